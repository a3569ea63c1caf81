"""The header of a GGUF file: metadata and tensor list, without its weights.

Our own reading, for two reasons. ``gguf.GGUFReader`` takes 12 s for the vocabulary of a Llama 3 file (0.4 s here), in
the process that must start at once; and a damaged array length keeps it busy for ever, while every length here is
checked against the end of the file. Tests compare the two. Format: ggml's ``docs/gguf.md``, versions 2 and 3.
"""

from __future__ import annotations

import hashlib
import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path

from suite.errors import LoadError

Scalar = bool | int | float | str

_MAGIC = b"GGUF"
_FIXED_BYTES = 24
"""Magic, version and the two counts."""
_VERSIONS = (2, 3)
_MAX_COUNT = 1_000_000
"""More tensors or metadata keys than any file has."""
_MAX_DIMENSIONS = 4
_MAX_KEPT = 4096
"""Arrays of numbers longer than this (token types, scores) are kept as a hash only."""
_STRING, _ARRAY, _BOOL = 8, 9, 7
_FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """One tensor of the list."""

    name: str
    type: str
    """ggml's name of the storage type, e.g. ``Q5_0``."""
    parameters: int
    size_bytes: int
    end: int
    """Offset in the file of the byte after its last."""
    rows: int = 1
    """Of a table, how many; a token reads one of its embeddings."""


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """What a GGUF file says about itself."""

    metadata: Mapping[str, Scalar | tuple[Scalar, ...]]
    """Single values, and arrays of up to 4096 numbers."""
    digests: Mapping[str, str]
    """sha256 of the stored bytes of every value, arrays of strings included."""
    tensors: tuple[GgufTensor, ...]

    def text(self, key: str) -> str | None:
        """A metadata string, or None when it is absent or no string."""
        value = self.metadata.get(key)
        return value if isinstance(value, str) else None

    def integer(self, key: str) -> int | None:
        """A metadata integer, or None when it is absent or no integer."""
        value = self.metadata.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None


def read_gguf_header(path: Path) -> GgufHeader:
    """The header of `path`. Raises LoadError, with the reason, for a damaged or cut-off header; OSError as usual.

    Tensor data may still be cut off: compare each tensor's `end` with the file's size.
    """
    with path.open("rb") as stream:
        if len(stream.read(_FIXED_BYTES)) < _FIXED_BYTES:
            raise LoadError(f"{path.name}: too short to be a GGUF file")
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                return _Reader(data).read()
            except _DamagedError as damage:
                raise LoadError(f"{path.name}: {damage}") from None


class _DamagedError(Exception):
    """Becomes a LoadError that names the file."""


class _Reader:
    """Walks over the bytes; `at` never passes the end."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self.at = 0

    def read(self) -> GgufHeader:
        if self._take(4) != _MAGIC:
            raise _DamagedError("not a GGUF file (its first bytes are not 'GGUF')")
        version = self._number("I")
        if version not in _VERSIONS:
            hint = ", perhaps of the other byte order" if version > 0xFFFF else ""
            raise _DamagedError(f"GGUF version {version}{hint} cannot be read; versions {_VERSIONS} can")
        tensors, keys = self._count("tensors"), self._count("metadata keys")
        metadata, digests = self._metadata(keys)
        infos = [self._tensor_info() for _ in range(tensors)]
        alignment = metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment <= 0 or alignment & (alignment - 1):
            raise _DamagedError(f"general.alignment is {alignment}, not a power of two")
        start = -(-self.at // alignment) * alignment
        return GgufHeader(metadata, digests, tuple(_place(info, start) for info in infos))

    def _metadata(self, count: int) -> tuple[dict[str, Scalar | tuple[Scalar, ...]], dict[str, str]]:
        values: dict[str, Scalar | tuple[Scalar, ...]] = {}
        digests: dict[str, str] = {}
        for _ in range(count):
            key = self._string()
            kind = int(self._number("I"))
            start = self.at
            value = self._array(key) if kind == _ARRAY else self._scalar(kind, key)
            digests[key] = hashlib.sha256(self.data[start : self.at]).hexdigest()
            if value is not None:
                values[key] = value
        return values, digests

    def _scalar(self, kind: int, key: str) -> Scalar:
        if kind == _STRING:
            return self._string()
        value: Scalar = self._number(_format(kind, key))
        return value

    def _array(self, key: str) -> tuple[Scalar, ...] | None:
        kind, length = int(self._number("I")), int(self._number("Q"))
        if kind == _STRING:
            self._require(length * 8, f"array '{key}'")
            for _ in range(length):
                self._skip_string()
            return None
        code = _format(kind, key)
        raw = self._take(length * struct.calcsize(code), f"array '{key}'")
        return struct.unpack(f"<{length}{code}", raw) if length <= _MAX_KEPT else None

    def _tensor_info(self) -> tuple[str, int, list[int], int]:
        name = self._string()
        dimensions = int(self._number("I"))
        if dimensions > _MAX_DIMENSIONS:
            raise _DamagedError(f"tensor '{name[:80]}' has {dimensions} dimensions")
        shape = [int(self._number("Q")) for _ in range(dimensions)]
        kind, offset = int(self._number("I")), int(self._number("Q"))
        return name, kind, shape, offset

    def _count(self, what: str) -> int:
        count = int(self._number("Q"))
        if count > _MAX_COUNT:
            raise _DamagedError(f"{count} {what} cannot be right: the header is damaged")
        return count

    def _number(self, code: str) -> int | float | bool:
        size = struct.calcsize(code)
        value: int | float | bool = struct.unpack(f"<{code}", self._take(size))[0]
        return value

    def _string(self) -> str:
        raw = self._take(int(self._number("Q")), "a string")
        return raw.decode("utf-8", errors="replace")

    def _skip_string(self) -> None:
        self._require(8)
        (length,) = _LENGTH.unpack_from(self.data, self.at)
        self._require(8 + length, "a string")
        self.at += 8 + length

    def _take(self, size: int, what: str = "the header") -> bytes:
        self._require(size, what)
        self.at += size
        return self.data[self.at - size : self.at]

    def _require(self, size: int, what: str = "the header") -> None:
        if size > len(self.data) - self.at:
            raise _DamagedError(f"cut off or damaged: {what} at byte {self.at} passes the end of the file")


_LENGTH = struct.Struct("<Q")


def _format(kind: int, key: str) -> str:
    if kind not in _FORMATS:
        raise _DamagedError(f"metadata '{key[:80]}' has the unknown type {kind}")
    return _FORMATS[kind]


def _place(info: tuple[str, int, list[int], int], start: int) -> GgufTensor:
    name, kind, shape, offset = info
    types = _types()
    if kind not in types:
        raise _DamagedError(f"tensor '{name[:80]}' has the unknown type {kind}; a newer gguf package may know it")
    label, block, block_bytes = types[kind]
    parameters = prod(shape)
    size = parameters // block * block_bytes
    return GgufTensor(name, label, parameters, size, start + offset + size, prod(shape[1:]))


@cache
def _types() -> Mapping[int, tuple[str, int, int]]:
    """Storage types by number: name, weights in a block, bytes of a block."""
    import gguf  # here, since it brings numpy

    sizes = gguf.constants.GGML_QUANT_SIZES
    return {int(kind): (kind.name, int(sizes[kind][0]), int(sizes[kind][1])) for kind in sizes}
