"""Stands between a worker and the server that it started, so that the server ends whenever and however the worker does.

Run as a file of its own, ``python -I keeper.py COMMAND…``, with a pipe as standard input. It tells the process id
of the server in one line, and its exit status in another. When the pipe closes, since the worker closed it or is gone, the
server and all of its process group end: asked first, killed after `GRACE_S`. Standard library only.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress

GRACE_S = 3.0
POLL_S = 0.2


def keep(command: Sequence[str]) -> int:
    """Start `command`, wait until it ends or nobody wants it any more. Its exit status, negative for a signal."""
    try:
        server = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            start_new_session=True,
            preexec_fn=_die_with_keeper,  # noqa: PLW1509 - this process has one thread
        )
    except OSError as fault:
        _tell(f"could not be started: {fault.strerror}: {fault.filename}")
        return 127
    _tell(f"pid {server.pid}")
    while server.poll() is None:
        readable, _, _ = select.select([0], [], [], POLL_S)
        if readable and not os.read(0, 1):
            _end(server)
    _tell(f"exit {server.returncode}")
    _kill_group(server.pid, signal.SIGKILL)  # what it has left behind
    return server.returncode


def _end(server: subprocess.Popen[bytes]) -> None:
    _kill_group(server.pid, signal.SIGTERM)
    try:
        server.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        _kill_group(server.pid, signal.SIGKILL)
        server.wait()


def _kill_group(group: int, sign: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, sign)


def _die_with_keeper() -> None:
    """On Linux the kernel kills the server when the keeper itself is killed."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def _tell(line: str) -> None:
    with suppress(BrokenPipeError):
        os.write(1, line.encode() + b"\n")


if __name__ == "__main__":
    sys.exit(0 if keep(sys.argv[1:]) == 0 else 1)
