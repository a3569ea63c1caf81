"""The header of a safetensors file: eight bytes of length, then JSON. Format: the safetensors README."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from suite.errors import LoadError

_MAX_HEADER_BYTES = 100_000_000
"""The limit of the safetensors library itself."""


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor of the list."""

    name: str
    type: str
    """``F16``, ``BF16``, ``I8`` …"""
    elements: int
    size_bytes: int
    end: int
    """Offset in the file of the byte after its last."""
    rows: int = 1
    """Its first dimension."""


def read_safetensors_header(path: Path) -> tuple[StoredTensor, ...]:
    """The tensors of `path`. Raises LoadError, with the reason, for a damaged or cut-off header; OSError as usual."""
    with path.open("rb") as stream:
        length = int.from_bytes(prefix := stream.read(8), "little")
        if len(prefix) < 8 or length > _MAX_HEADER_BYTES:
            raise LoadError(f"{path.name}: not a safetensors file, or cut off")
        header = stream.read(length)
    if len(header) < length:
        raise LoadError(f"{path.name}: cut off within its header")
    try:
        entries = json.loads(header)
        return tuple(_tensor(name, entry, 8 + length) for name, entry in entries.items() if name != "__metadata__")
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise LoadError(f"{path.name}: its header is damaged ({type(problem).__name__}: {problem})") from problem


def _tensor(name: str, entry: dict[str, Any], start: int) -> StoredTensor:
    first, last = entry["data_offsets"]
    shape = entry["shape"]
    end = int(start + last)
    return StoredTensor(name, str(entry["dtype"]), prod(shape), int(last - first), end, int(shape[0]) if shape else 1)
