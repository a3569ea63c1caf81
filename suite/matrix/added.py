"""``--matrix-add``: a source given on the command line becomes a variant for one run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from suite.errors import MatrixFileError
from suite.matrix.source import Source, parse_source
from suite.matrix.tables import KEPT, VariantTable
from suite.matrix.variants import VariantReader
from suite.records import Variant

GGUF_BACKEND = "llama_cpp"
DIRECTORY_BACKEND = "transformers"


def add_variants(texts: Sequence[str], *, reader: VariantReader, taken: set[str]) -> Iterator[Variant]:
    """One variant for each of `texts`, with the defaults of its backend and a name that is not in `taken`.

    The backend is guessed: llama.cpp for anything GGUF, transformers for the rest. Raises MatrixFileError.
    """
    names = set(taken)
    for text in texts:
        source = _from_current_directory(text, reader.base)
        name = next(name for name in _names(source) if name not in names)
        names.add(name)
        table = VariantTable(backend=_guess_backend(source, reader.base), source=source.text)
        variant = reader.read(name, table)
        if isinstance(variant, MatrixFileError):
            raise MatrixFileError(f"--matrix-add={text}: {variant}")
        yield variant


def _from_current_directory(text: str, base: Path) -> Source:
    """A path is where the person stands; failing that, where the matrix file stands."""
    here = Path.cwd()
    try:
        source = parse_source(text, base=here)
    except MatrixFileError:
        return _parse_option(text, base)
    if source.kind not in ("file", "directory"):
        return _parse_option(text, base)
    path = here / Path(source.location).expanduser()
    if not path.exists():
        return _parse_option(text, base)
    relative = Path(os.path.relpath(path, base.absolute()))
    written = f"./{relative.as_posix()}" if ".." not in relative.parts else str(path)
    return parse_source(written, base=base)


def _parse_option(text: str, base: Path) -> Source:
    try:
        return parse_source(text, base=base)
    except MatrixFileError as fault:
        raise MatrixFileError(f"--matrix-add={text}: {fault}") from None


def _guess_backend(source: Source, base: Path) -> str:
    if source.kind == "directory":
        directory = base / Path(source.location).expanduser()
        has_tensors = any(directory.glob("*.safetensors"))
        return GGUF_BACKEND if not has_tensors and any(directory.glob("*.gguf")) else DIRECTORY_BACKEND
    return DIRECTORY_BACKEND if source.kind == "hub" else GGUF_BACKEND


def _names(source: Source) -> Iterator[str]:
    """Names to try: the label, then the name of the file, then that with a number."""
    stem = _slug(Path(source.file or source.location).name.removesuffix(".gguf")) or "added"
    if source.label:
        yield _slug(source.label)
    yield stem
    number = 2
    while True:
        yield f"{stem}_{number}"
        number += 1


def _slug(text: str) -> str:
    slug = re.sub(r"[^a-z0-9_.]+", "_", text.lower()).strip("_.")
    return slug.replace(".", "_") if slug.endswith(KEPT) else slug
