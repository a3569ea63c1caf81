"""One process writes into a run. The system lets go of the lock when that process ends, however it ends."""

from __future__ import annotations

from pathlib import Path

import filelock

from suite.errors import StoreError, UsageError

LOCK_FILE = "lock"


class RunLock:
    """Holds a run's directory, which is made if need be, until `release`.

    Raises UsageError when another process holds it, StoreError when the directory cannot be written to.
    """

    def __init__(self, directory: Path) -> None:
        self._file = directory / LOCK_FILE
        self._lock = filelock.FileLock(self._file)
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
        except filelock.Timeout as fault:
            raise UsageError(
                f"{directory}: another process is writing this run; wait until it ends, or begin another run "
                "without --matrix-resume, in another --matrix-report directory"
            ) from fault
        except OSError as error:
            raise StoreError(f"{directory}: cannot be written to: {error.strerror or error}") from error

    def release(self) -> None:
        """Let go, and leave no file behind, nor a directory in which nothing else lies."""
        self._file.unlink(missing_ok=True)
        self._lock.release()
