"""A neighbour on the machine: another process that burns a core, always or in bursts. Ended surely, whatever happens."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import suite
from suite import clock

BURST_S = 3.0
"""Mean of the exponentially distributed times for which a bursty neighbour works, and for which it rests."""
_WORK = bytes(1 << 20)


@contextmanager
def neighbours(count: int, *, bursty: bool, seed: int = 0) -> Iterator[None]:
    """Have `count` other processes at work while this context is open."""
    paths = os.pathsep.join([str(Path(next(iter(suite.__path__))).resolve().parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths.rstrip(os.pathsep)}
    started: list[subprocess.Popen[bytes]] = []
    try:
        for number in range(count):
            arguments = ["bursts" if bursty else "always", str(seed + number)]
            command = [sys.executable, "-P", "-m", "suite.selftest.neighbour", *arguments]
            started.append(subprocess.Popen(command, stdin=subprocess.PIPE, env=environment))
        yield
    finally:
        for process in started:
            process.kill()
            process.communicate()


def burn(kind: str, seed: int) -> None:
    """Work until killed, or until the parent is gone."""
    luck, parent = random.Random(seed), os.getppid()
    while True:
        end = clock.monotonic() + luck.expovariate(1 / BURST_S)
        while clock.monotonic() < end or kind == "always":
            hashlib.sha256(_WORK).digest()
            _leave_with(parent)
        time.sleep(luck.expovariate(1 / BURST_S))


def _leave_with(parent: int) -> None:
    """End when the process that wanted a neighbour is gone, however it went."""
    if os.getppid() != parent:
        sys.exit(0)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when it ends
    burn(sys.argv[1], int(sys.argv[2]))
