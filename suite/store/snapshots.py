"""A state of the baselines as it was or is: in a git revision, in a directory, or in a run. Nothing is checked out or written.

A file that cannot be used is a `Fault` of the snapshot, so that the rest can still be compared and nothing is left out in
silence.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import subprocess
import tomllib
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from suite.errors import MatrixFileError, StoreError, UsageError
from suite.matrix.tables import MatrixTable
from suite.records import (
    Budget,
    DeclaredMatrix,
    Fault,
    Noise,
    Protocol,
    QualityBaseline,
    Run,
    Snapshot,
    SnapshotKind,
    SpeedBaseline,
    Tolerance,
    TraceFacts,
)
from suite.schema import parse
from suite.store.baselines import decode
from suite.store.layout import FROZEN
from suite.store.runs import read_run

MOST_BYTES = 64 * 2**20
"""A larger file is no baseline."""
_HEADER = "header.npy"
_NUMPY = b"\x93NUMPY"
_DAMAGED = (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile, zlib.error,
            NotImplementedError, RuntimeError)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a project keeps its baselines and its matrix file. Paths are absolute."""

    baselines: Path
    matrix: Path


@dataclass(slots=True)
class _Gathered:
    """A snapshot while it is put together."""

    quality: list[QualityBaseline] = field(default_factory=list)
    speed: list[SpeedBaseline] = field(default_factory=list)
    noise: list[Noise] = field(default_factory=list)
    traces: list[TraceFacts] = field(default_factory=list)
    frozen: dict[str, str] = field(default_factory=dict)
    matrix: DeclaredMatrix | None = None
    faults: list[Fault] = field(default_factory=list)


Blob = bytes | Fault
"""What a file holds, or why that is not known."""


def read_directory(place: Place, *, label: str) -> Snapshot:
    """The baselines that lie in a directory now, with the tolerances of the matrix file, if there is one."""
    files = sorted(file for file in place.baselines.rglob("*") if file.is_file() and not file.name.startswith("."))
    found = {file.relative_to(place.baselines).as_posix(): _read_file(file, place) for file in files}
    matrix = _read_file(place.matrix, place) if place.matrix.is_file() else None
    return _gather(found, matrix, place, label=label, kind="directory")


def read_revision(revision: str, place: Place) -> Snapshot:
    """The baselines of a git revision, read from its objects.

    Raises UsageError when git is missing, nothing there is a repository, or the revision is not known.
    """
    repository = find_repository(place)
    commit = repository.resolve(revision)
    if commit is None:
        raise UsageError(
            f"git knows no revision {revision!r}, and there is no directory or run of that name; see: git log --oneline, "
            "and in a shallow clone: git fetch --unshallow"
        )
    prefix, matrix = repository.path_of(place.baselines), repository.path_of(place.matrix)
    blobs = repository.read(commit, [prefix, matrix])
    found = {path.removeprefix(f"{prefix}/"): blob for path, blob in blobs.items() if path.startswith(f"{prefix}/")}
    shown = revision if commit.startswith(revision) and len(revision) >= 7 else f"{revision} ({commit[:7]})"
    return _gather(found, blobs.get(matrix), place, label=shown, kind="revision")


def read_run_snapshot(file: Path) -> Snapshot:
    """A run, with the tolerances that it was judged by. Raises StoreError when the file cannot be used."""
    run = read_run(file)
    return Snapshot(label=f"run {run.id}", kind="run", run=run, matrix=_declared_of(run))


def _declared_of(run: Run) -> DeclaredMatrix:
    matrix = run.matrix
    return DeclaredMatrix(
        file=matrix.file,
        variants=tuple(variant.name for variant in matrix.variants),
        reference=matrix.reference.name if matrix.reference else None,
        policy=matrix.policy,
        budgets=matrix.budgets,
        protocol=matrix.protocol,
    )


def _read_file(file: Path, place: Place) -> Blob:
    path = _shown(file, place)
    try:
        if file.stat().st_size > MOST_BYTES:
            return Fault(path=path, sentence=f"{file}: larger than {MOST_BYTES >> 20} MiB, which no baseline is")
        return file.read_bytes()
    except OSError as error:
        return Fault(path=path, sentence=f"{file}: cannot be read: {error.strerror or error}")


def _shown(file: Path, place: Place) -> str:
    return file.relative_to(place.baselines).as_posix() if file.is_relative_to(place.baselines) else file.name


# ----------------------------------------------------------------------------------------------------------- git


@dataclass(frozen=True, slots=True)
class Repository:
    """A git repository, asked through its command."""

    root: Path
    """Its top-level directory."""

    def resolve(self, revision: str) -> str | None:
        """The commit that a revision names, None when git knows none."""
        if revision.startswith("-") or not revision.isprintable():
            return None
        done = _git(self.root, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
        return done.stdout.decode("ascii", "replace").strip() if done.returncode == 0 else None

    def path_of(self, path: Path) -> str:
        """A path relative to the root. Raises UsageError for one that is not below it."""
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(self.root) or real == self.root:
            raise UsageError(
                f"{path}: lies outside of the git repository {self.root}, so that no revision of it can be read; "
                "name two directories instead"
            )
        return real.relative_to(self.root).as_posix()

    def read(self, commit: str, paths: Iterable[str]) -> dict[str, Blob]:
        """The files of a commit at or below `paths`, by their path from the root; links and submodules are left out."""
        done = _git(self.root, "ls-tree", "-r", "-z", "-l", "--full-tree", commit, "--", *paths)
        if done.returncode != 0:
            raise UsageError(f"git ls-tree {commit[:12]}: {_said(done)}")
        listed = [_Listed.of(line) for line in done.stdout.decode("utf-8", "surrogateescape").split("\0") if line]
        files = [one for one in listed if one.kind == "blob" and one.mode != "120000"]
        wanted = [one for one in files if one.size <= MOST_BYTES]
        found: dict[str, Blob] = {
            one.path: Fault(path=one.path, sentence=f"{one.path}: larger than {MOST_BYTES >> 20} MiB, which no baseline is")
            for one in files
            if one.size > MOST_BYTES
        }  # fmt: skip
        return found | dict(zip((one.path for one in wanted), self._contents(wanted), strict=True))

    def _contents(self, files: list[_Listed]) -> Iterator[Blob]:
        if not files:
            return
        done = _git(self.root, "cat-file", "--batch", given="".join(f"{one.object}\n" for one in files).encode())
        stream = io.BytesIO(done.stdout)
        for one in files:
            head = stream.readline().split()
            if len(head) == 3 and head[1] == b"blob":
                yield stream.read(int(head[2]))
                stream.read(1)  # the line feed after it
            else:
                why = f"{one.path}: git has not got its content (a partial clone?); {_said(done) or 'git fetch'}"
                yield Fault(path=one.path, sentence=why)


@dataclass(frozen=True, slots=True)
class _Listed:
    """One line of ``git ls-tree -l``."""

    mode: str
    kind: str
    object: str
    size: int
    path: str

    @classmethod
    def of(cls, line: str) -> _Listed:
        facts, _, path = line.partition("\t")
        mode, kind, object_name, size = facts.split()
        return cls(mode, kind, object_name, int(size) if size.isdecimal() else 0, path)


def find_repository(place: Place) -> Repository:
    """The repository that the baselines belong to. Raises UsageError, saying what else can be compared, when there is none."""
    start = next(directory for directory in place.baselines.parents if directory.is_dir())
    done = _git(start, "rev-parse", "--show-toplevel")
    if done.returncode != 0:
        raise UsageError(
            f"{start}: git finds no repository here ({_said(done)}); name two directories or run files instead: "
            "quantdrift diff OLD NEW"
        )
    return Repository(Path(os.path.realpath(os.fsdecode(done.stdout.rstrip(b"\n")))))


def _git(directory: Path, *arguments: str, given: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run git, with its messages in English. Raises UsageError when there is no git."""
    environment = {**os.environ, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
    try:
        return subprocess.run(
            ["git", "-C", str(directory), *arguments],
            input=given, stdin=subprocess.DEVNULL if given is None else None, capture_output=True, check=False, env=environment,
        )  # fmt: skip
    except OSError as error:
        why = f"git cannot be run ({error.strerror or error}); name two directories or run files instead"
        raise UsageError(f"{why}: quantdrift diff OLD NEW") from None


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[0] if lines else ""


# --------------------------------------------------------------------------------------------------------- files


def _gather(
    files: Mapping[str, Blob], matrix: Blob | None, place: Place, *, label: str, kind: SnapshotKind
) -> Snapshot:
    gathered = _Gathered()
    for path, blob in sorted(files.items()):
        if isinstance(blob, Fault):
            gathered.faults.append(dataclasses.replace(blob, path=path))
        else:
            _take(path, blob, f"{place.baselines.name}/{path}", gathered)
    if isinstance(matrix, Fault):
        gathered.faults.append(matrix)
    elif matrix is not None:
        _catch(place.matrix.name, gathered, lambda: _take_matrix(matrix, place.matrix.name, gathered))
    return Snapshot(
        label=label,
        kind=kind,
        quality=tuple(gathered.quality),
        speed=tuple(gathered.speed),
        noise=tuple(gathered.noise),
        traces=tuple(gathered.traces),
        frozen=gathered.frozen,
        matrix=gathered.matrix,
        faults=tuple(gathered.faults),
    )


def _take(path: str, data: bytes, where: str, gathered: _Gathered) -> None:
    """Put one file to where it belongs; what lies where nothing is read from is a fault, unless it is no data."""
    parts = PurePosixPath(path).parts
    name = parts[-1].removesuffix(".json")
    match parts:
        case (_, "quality", _) | (_, "speed", _, _) if parts[-1].endswith(f"{FROZEN}.json"):
            gathered.frozen[path] = hashlib.sha256(data).hexdigest()
        case (model, "quality", file) if file.endswith(".json"):
            said = {"model": model, "variant": name}
            _catch(
                path,
                gathered,
                lambda: gathered.quality.append(decode(QualityBaseline, data, where=where, place=said)),
            )
        case (model, "speed", machine, file) if file.endswith(".json"):
            said = {"model": model, "variant": name, "machine": machine}
            _catch(
                path,
                gathered,
                lambda: gathered.speed.append(decode(SpeedBaseline, data, where=where, place=said)),
            )
        case (model, "noise", file) if file.endswith(".json"):
            said = {"model": model, "machine": name}
            _catch(path, gathered, lambda: gathered.noise.append(decode(Noise, data, where=where, place=said)))
        case (model, "trace.npz"):
            _catch(path, gathered, lambda: gathered.traces.append(read_trace_facts(data, where=where)))
        case _ if parts[-1].endswith((".json", ".npz")):
            fault = (
                f"{where}: no baseline is read from there; move it to MODEL/quality, MODEL/speed/MACHINE or MODEL/noise"
            )
            gathered.faults.append(Fault(path=path, sentence=fault))


def _catch(path: str, gathered: _Gathered, read: Callable[[], None]) -> None:
    try:
        read()
    except (StoreError, MatrixFileError) as error:
        gathered.faults.append(Fault(path=path, sentence=str(error)))


def read_trace_facts(data: bytes, *, where: str) -> TraceFacts:
    """What the header of a trace tells, without its arrays and without numpy. Raises StoreError for what is no trace.

    The header is an array of bytes: magic, version, two or four bytes of length, a description, then the bytes themselves
    (NumPy Enhancement Proposal 1).
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entry = archive.getinfo(_HEADER)
            if entry.file_size > MOST_BYTES:
                raise ValueError("its header is too large")
            raw = archive.read(entry)
        if raw[:6] != _NUMPY:
            raise ValueError("its header is no array")
        width = 2 if raw[6] == 1 else 4
        start = 8 + width + int.from_bytes(raw[8 : 8 + width], "little")
        header = json.loads(raw[start:])
        cases = header["cases"]
        return TraceFacts(
            model=str(header["model"]),
            sha256=hashlib.sha256(data).hexdigest(),
            reference=str(header["reference"]),
            key={str(name): str(value) for name, value in header["key"].items()},
            positions={str(case["case"]): int(case["answer_tokens"]) for case in cases},
            families={str(case["case"]): _text_or_none(case.get("family")) for case in cases},
        )
    except (*_DAMAGED, RecursionError) as fault:
        raise StoreError(f"{where}: not a trace, or damaged ({fault}); take it back from git") from fault


def _text_or_none(value: object) -> str | None:
    return None if value is None else str(value)


def _take_matrix(data: bytes, where: str, gathered: _Gathered) -> None:
    try:
        document = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as problem:
        raise MatrixFileError(f"{where}: cannot be read: {problem}") from None
    table = parse(MatrixTable, document, where=where, error=MatrixFileError)
    gathered.matrix = DeclaredMatrix(
        file=where,
        variants=tuple(table.variants),
        reference=next((name for name, variant in table.variants.items() if variant.reference), None),
        policy={key: Tolerance(**dataclasses.asdict(entry)) for key, entry in table.policy.items()},
        budgets={key: Budget(**dataclasses.asdict(entry)) for key, entry in table.budget.items()},
        protocol=Protocol(**dataclasses.asdict(table.protocol)),
    )
