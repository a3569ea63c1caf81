"""Write a file whole or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from suite.errors import StoreError


def write_text(path: Path, text: str) -> None:
    """Replace `path` by `text` (UTF-8, no newline translation): see `write_bytes`."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, data: bytes) -> None:
    """Replace the content of `path` by `data`, creating its directory.

    They go to a temporary file beside it, is forced to the disk, and takes the name in one step: a full disk, a
    kill or a power cut leaves the old file or the new one. A symbolic link stays a link; its target is replaced.

    Raises StoreError naming the file and the system's reason; the old file is then untouched.
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _write_synced(temporary, data)
        temporary.replace(target)
        sync_directory(target.parent)
    except OSError as error:
        reason = error.strerror or error
        raise StoreError(f"{path}: could not be written: {reason}; the old file is untouched") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def sync_directory(directory: Path) -> None:
    """Force a directory's entries to the disk; without it a new name may not survive a power cut. No-op on Windows."""
    if os.name == "nt":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write_synced(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
