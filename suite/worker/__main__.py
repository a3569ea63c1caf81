"""``python -m suite.worker``: answer requests from standard input until it is closed."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys

from suite.worker.affinity import apply_affinity
from suite.worker.messages import Failed, Load, Response, pack, unpack
from suite.worker.serve import Server


def main() -> None:
    """Serve. Whatever libraries print to standard output goes to standard error: the channel is ours."""
    channel = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    _die_with_parent()
    apply_affinity()  # before a library counts the CPUs that it may use
    gc.disable()  # a collection in the middle of a timed sample would be counted as decode
    server = Server()
    for line in sys.stdin.buffer:
        request = unpack(line)
        response = write(server.answer(request))
        # Collected before the answer is given: afterwards another worker may be timed, on the same CPU.
        gc.collect()
        if isinstance(request, Load):
            gc.freeze()  # what a library made while it loaded need not be looked through each time
        channel.write(response)
    server.end()
    # Interpreter shutdown of native libraries is where crashes hide and time is lost; everything has been answered.
    sys.stderr.flush()
    os._exit(0)


def write(answer: Response) -> bytes:
    """The line of an answer. One that no message carries, since a number of it is none, fails that request alone."""
    try:
        return pack(answer)
    except ValueError as fault:
        return pack(Failed(kind="failure", message=f"{type(answer).__name__} cannot be told: {fault}"))


def _die_with_parent() -> None:
    """On Linux the kernel kills this process when its parent is killed, even in the middle of native code."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


if __name__ == "__main__":
    main()
