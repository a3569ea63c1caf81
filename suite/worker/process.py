"""The parent's side: start a worker, ask it, and say plainly how it died."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from suite import clock
from suite.errors import LoadError, Unavailable, UsageError, VariantError, VariantInvalid, WorkerDied, WorkerTimeout
from suite.worker.messages import Failed, Request, pack, unpack
from suite.worker.surroundings import environment_of

TAIL_BYTES = 4000
EXIT_S = 5.0
"""How long a worker that was told to end, or that hung up, may take to exit."""


class Worker:
    """One worker process. A context manager: leaving it ends the process, whatever state it is in.

    Its standard error goes to `log`, which outlives it. `cpus` are those that it runs on, `python` is another interpreter
    than ours, which finds nothing that is installed beside ours. `passing` names variables that it gets too.
    """

    def __init__(
        self,
        name: str,
        *,
        log: Path | None = None,
        launch: int = 0,
        cpus: Sequence[int] = (),
        python: str | None = None,
        passing: Sequence[str] = (),
    ) -> None:
        self.name = name
        self._buffer = b""
        self._busy = False
        self._log: IO[bytes] = log.open("ab") if log else tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._log_start = self._log.seek(0, os.SEEK_END)
        self._log_path = log
        self._process = subprocess.Popen(
            [python or sys.executable, "-P", "-m", "suite.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment_of(launch, cpus, python, passing),
            start_new_session=True,  # Ctrl-C reaches the parent alone, which then ends its workers in order
        )

    @property
    def pid(self) -> int:
        """Process id of the worker."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def ask(self, request: Request, deadline_s: float) -> Any:
        """Send a request and wait for its response, at most `deadline_s` seconds.

        Raises WorkerDied with the signal and the tail of standard error, WorkerTimeout after killing the process,
        LoadError, Unavailable, UsageError, VariantInvalid or VariantError for a request that failed while the worker lives on.
        """
        try:
            self._channel_in.write(pack(request))
            self._channel_in.flush()
        except BrokenPipeError:
            raise self._died(request) from None
        self._busy = True
        line = self._read_line(request, deadline_s)
        self._busy = False
        try:
            response = unpack(line)
        except ValueError as fault:
            self.kill()
            raise WorkerDied(f"worker of {self.name} was killed, for it broke the protocol: {fault}") from fault
        if isinstance(response, Failed):
            raise _ERRORS[response.kind](response.message)
        return response

    @property
    def _channel_in(self) -> IO[bytes]:
        if self._process.stdin is None:
            raise WorkerDied(f"worker of {self.name} was not started with a channel")
        return self._process.stdin

    def _read_line(self, request: Request, deadline_s: float) -> bytes:
        if self._process.stdout is None:
            raise WorkerDied(f"worker of {self.name} was not started with a channel")
        fd = self._process.stdout.fileno()
        end = clock.monotonic() + deadline_s
        while b"\n" not in self._buffer:
            left = end - clock.monotonic()
            if left <= 0 or not select.select([fd], [], [], left)[0]:
                self.kill()
                raise WorkerTimeout(
                    f"worker of {self.name} did not answer '{type(request).__name__.lower()}' within {deadline_s:g} s "
                    f"and was killed; raise the deadline in [deadlines] if it only needs longer{self._told()}"
                )
            data = os.read(fd, 1 << 20)
            if not data:
                raise self._died(request)
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _died(self, request: Request) -> WorkerDied:
        """What became of a worker that closed its channel: it has ended, or hangs on its way out and is killed."""
        try:
            how = describe_exit(self._process.wait(timeout=EXIT_S))
        except subprocess.TimeoutExpired:
            self.kill()
            how = f"closed its channel, did not exit within {EXIT_S:g} s and was killed"
        return WorkerDied(
            f"worker of {self.name} {how} while it worked on '{type(request).__name__.lower()}'{self._told()}"
        )

    def _told(self) -> str:
        tail = self.stderr_tail()
        return f"\nlast lines of its standard error:\n{tail}" if tail else ""

    def stderr_tail(self) -> str:
        """The last lines that the worker wrote to standard error, at most 4000 bytes."""
        if self._log_path:
            with self._log_path.open("rb") as log:
                return _tail(log, self._log_start)
        return _tail(self._log, self._log_start)

    def kill(self) -> None:
        """Kill the whole process group and wait for it."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        """End the worker: ask by closing its input, then kill. One that is still at work (Ctrl-C) is killed at once."""
        if self._busy:
            self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        try:
            self._process.wait(timeout=EXIT_S)
        except subprocess.TimeoutExpired:
            self.kill()
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_ERRORS: Mapping[str, type[Exception]] = {
    "load": LoadError,
    "unavailable": Unavailable,
    "usage": UsageError,
    "invalid": VariantInvalid,
    "failure": VariantError,
}


def describe_exit(status: int) -> str:
    """How a process ended, in words: a signal by its name, with the likely cause of a SIGKILL."""
    if status >= 0:
        return f"exited with status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    hint = " (most often: out of memory; see the kernel log)" if -status == signal.SIGKILL else ""
    return f"was killed by {name}{hint}"


def _tail(log: IO[bytes], start: int) -> str:
    end = log.seek(0, os.SEEK_END)
    log.seek(max(start, end - TAIL_BYTES))
    text = log.read(TAIL_BYTES).decode(errors="replace")
    return "\n".join(text.strip().splitlines()[-15:])
