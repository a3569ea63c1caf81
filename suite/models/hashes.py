"""sha256 of large files, remembered between runs."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path

from suite.atomic import write_text
from suite.errors import StoreError
from suite.models.files import hash_file, read_json

_HEX_DIGITS = 64


class HashCache:
    """sha256 by path, size and modification time: one small file each below `root`, so that two runs never clash."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def sha256(self, path: Path) -> str:
        """Hex digest of `path`, read anew only when its size or modification time changed. Raises OSError."""
        real = path.resolve()
        status = real.stat()
        key = {"path": str(real), "size": status.st_size, "mtime_ns": status.st_mtime_ns}
        entry = self._root / f"{hashlib.sha256(json.dumps(key).encode()).hexdigest()[:32]}.json"
        known = _read(entry, key)
        if known is not None:
            return known
        digest = hash_file(real)
        with suppress(StoreError):  # a full or read-only cache costs time on the next run, nothing else
            write_text(entry, json.dumps({**key, "sha256": digest}, indent=1))
        return digest


def _read(entry: Path, key: dict[str, object]) -> str | None:
    """The digest in `entry`; None when it is absent, damaged, or of something else."""
    stored = read_json(entry)
    if any(stored.get(name) != value for name, value in key.items()):
        return None
    digest = stored.get("sha256")
    return digest if isinstance(digest, str) and len(digest) == _HEX_DIGITS else None
