"""What was made from weights (another quantization, a dequantized copy), kept so that it is made once.

Layout below the root::

    <digest>/manifest.json          the full key, and size and sha256 of every file
    <digest>/<digest><suffix>       the entry: a file or a directory
    .making/<digest>.<pid>/         in the making; left behind only by a killed run, removed by the next
    .locks/<digest>.lock
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from suite.atomic import write_text
from suite.models.files import hash_file

_MANIFEST = "manifest.json"
_DIGEST_LENGTH = 20


class Cache:
    """Entries addressed by what they were made from. Safe for several processes at once.

    `say` receives one line of text when something takes long or was wrong: waiting, a damaged entry.
    """

    def __init__(self, root: Path, *, say: Callable[[str], None] = lambda _line: None) -> None:
        self._root = root
        self._say = say

    def fetch_or_make(self, key: Mapping[str, str], suffix: str, make: Callable[[Path], None]) -> Path:
        """The entry for `key`: the existing one, or what `make` wrote to the path that it was given.

        The key must name everything that the content depends on (source sha256, recipe, version of the maker). `make`
        writes a file or creates a directory; it runs under a lock, in one process at a time, and appears whole or not
        at all. `suffix` ends the name, e.g. ``.Q4_K_M.gguf``. Whatever `make` raises is passed on, and nothing stays.
        """
        digest = hashlib.sha256(json.dumps(dict(key), sort_keys=True).encode()).hexdigest()[:_DIGEST_LENGTH]
        entry = self._root / digest / f"{digest}{suffix}"
        if _fault(entry) is None:
            return entry
        with self._locked(digest, suffix):
            fault = _fault(entry)
            if fault is None:
                return entry
            self._sweep(digest)
            if entry.parent.exists():
                self._say(f"cached {entry.name} is made again: {fault}")
                shutil.rmtree(entry.parent)
            self._make(entry, key, make)
        return entry

    def _make(self, entry: Path, key: Mapping[str, str], make: Callable[[Path], None]) -> None:
        making = self._root / ".making" / f"{entry.parent.name}.{os.getpid()}"
        making.mkdir(parents=True)
        try:
            content = making / entry.name
            make(content)
            if not content.exists():
                raise FileNotFoundError(f"nothing was written to {content}")
            manifest = {"key": dict(key), "files": _measure(content)}
            write_text(making / _MANIFEST, json.dumps(manifest, indent=1, sort_keys=True))
            making.rename(entry.parent)
        finally:
            shutil.rmtree(making, ignore_errors=True)

    def _sweep(self, digest: str) -> None:
        """Remove what killed runs left: whoever holds the lock is the only one that makes this entry."""
        for stale in (self._root / ".making").glob(f"{digest}.*"):
            shutil.rmtree(stale, ignore_errors=True)

    @contextmanager
    def _locked(self, digest: str, suffix: str) -> Iterator[None]:
        path = self._root / ".locks" / f"{digest}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            self._say(f"waiting for another run that is making {digest}{suffix}")
            lock.acquire()
        try:
            yield
        finally:
            lock.release()


def _measure(content: Path) -> dict[str, dict[str, Any]]:
    """Size and sha256 of the file, or of each file in the directory."""
    return {
        name: {"size_bytes": path.stat().st_size, "sha256": hash_file(path)} for name, path in _files(content).items()
    }


def _files(content: Path) -> dict[str, Path]:
    if content.is_file():
        return {"": content}
    return {path.relative_to(content).as_posix(): path for path in sorted(content.rglob("*")) if path.is_file()}


def _fault(entry: Path) -> str | None:
    """Why the entry cannot be used; None when every file has the size that the manifest tells."""
    try:
        recorded = json.loads((entry.parent / _MANIFEST).read_text(encoding="utf-8"))["files"]
        expected = {name: file["size_bytes"] for name, file in recorded.items()}
        if not entry.exists():
            return "it is missing"
        actual = {name: path.stat().st_size for name, path in _files(entry).items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return "its manifest is missing or damaged"
    for name, size in expected.items():
        if actual.get(name) != size:
            return f"{name or entry.name} has {actual.get(name, 'no')} bytes instead of {size}"
    return None
