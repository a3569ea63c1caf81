"""A server that is started for one variant and ends with it."""

from __future__ import annotations

import functools
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from suite import clock
from suite.backends.server import keeper
from suite.backends.server.faults import Secret, ServerFault
from suite.backends.server.wire import Endpoint
from suite.errors import LoadError

TAIL_BYTES, TAIL_LINES = 4000, 15
KEPT_BYTES = 2**20
"""How much of a server's log goes into the worker's own when it ends."""
END_S = 4.5
READY_POLL_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """What is started, and when it counts as ready."""

    command: Sequence[str]
    env: Mapping[str, str]
    """All of it."""
    health: str
    startup_s: float


def free_port() -> int:
    """A port of the loopback interface that nobody listened at a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def fill_in(command: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """The command with ``{name}`` replaced by each of `values`; other braces stay, since arguments may be JSON.

    Raises LoadError for a placeholder that has no value here.
    """
    filled = []
    for part in command:
        for name, value in values.items():
            if f"{{{name}}}" in part and not value:
                raise LoadError(f"command: {{{name}}} has no value here: give it as an option, or write it out")
        filled.append(functools.reduce(lambda text, name: text.replace(f"{{{name}}}", values[name]), values, part))
    return filled


def surroundings(environment: Mapping[str, str]) -> dict[str, str]:
    """What of a worker's environment a server gets: all but what leads to this package, for it may be another Python."""
    return {
        name: value
        for name, value in environment.items()
        if name != "PYTHONPATH" and not name.startswith("QUANTDRIFT_")
    }


class ManagedServer:
    """A server process behind its keeper. Its output goes to a file of its own, whose end is shown when it dies."""

    def __init__(self, started: Started, secret: Secret) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._secret = secret
        self._started = started
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", keeper.__file__, *started.command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=dict(started.env),
            start_new_session=True,  # what kills the worker's group must leave the keeper to do its work
        )
        self.pid: int | None = None
        self.ending: str | None = None
        """How the server ended, once it has."""
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        first = self._next_word()
        if first.startswith("pid "):
            self.pid = int(first[4:])
            self._watcher.start()
        else:
            self.ending = first or "could not be started"

    def _next_word(self) -> str:
        stdout = self._keeper.stdout
        return stdout.readline().decode("utf-8", "replace").strip() if stdout is not None else ""

    def _watch(self) -> None:
        """Wait for the keeper's last word: a thread, so that a server that dies while it answers is noticed."""
        said = self._next_word()
        status = said.removeprefix("exit ")
        self.ending = f"ended with status {status}" if said.startswith("exit ") else "is gone, and its keeper with it"

    def wait_until_ready(self, endpoint: Endpoint) -> None:
        """Ask for its health until it is well. Raises LoadError with the last lines of its log when it dies or is late."""
        end = clock.monotonic() + self._started.startup_s
        pause = threading.Event()
        while clock.monotonic() < end:
            if self.ending is not None and self.pid is None:
                raise LoadError(f"{self._name} {self.ending}; install the program, or correct `command`{self.told()}")
            if self.ending is not None:
                raise LoadError(f"{self._name} {self.ending} while it started{self.told()}")
            if _is_well(endpoint, self._started.health):
                return
            pause.wait(READY_POLL_S)
        raise LoadError(
            f"{self._name} was not ready within {self._started.startup_s:g} s (startup_s); asked "
            f"{self._started.health or '/health, /v1/models'}{self.told()}"
        )

    @property
    def _name(self) -> str:
        return f"the server ({Path(self._started.command[0]).name})"

    def explain(self, fault: ServerFault) -> ServerFault:
        """The fault, with how the server ended if that is what happened."""
        threading.Event().wait(0.3)  # the connection breaks a moment before the process is gone
        if self.ending is None:
            return fault
        return ServerFault(f"{fault}; {self._name} {self.ending}{self.told()}")

    def told(self) -> str:
        """The last lines of its log, introduced; nothing where it wrote nothing."""
        lines = self._read(-TAIL_BYTES).strip().splitlines()[-TAIL_LINES:]
        return "\nlast lines of its log:\n" + "\n".join(lines) if lines else ""

    def mark(self) -> int:
        """A place in the log, for `since`."""
        return os.fstat(self._log.fileno()).st_size

    def since(self, mark: int) -> str:
        """What it has logged after `mark`."""
        return self._read(mark)

    def _read(self, start: int) -> str:
        """What is behind `start`, or the last bytes of a negative one; of much, the end. Cut lines are left out, for half a
        key could not be told.
        """
        size = self.mark()
        wanted = max(size + start, 0) if start < 0 else start
        begin = max(wanted, size - KEPT_BYTES)
        text = os.pread(self._log.fileno(), size - begin, begin).decode("utf-8", "replace")
        return self._secret.redact(text.partition("\n")[2] if begin > wanted or (start < 0 and begin > 0) else text)

    def process_ids(self) -> tuple[int, ...]:
        """The server and all that it has started."""
        return (self.pid, *descendants(self.pid)) if self.pid is not None and self.ending is None else ()

    def close(self) -> None:
        """End it, and put the end of its log into the worker's."""
        if self._keeper.stdin is not None:
            with suppress(BrokenPipeError):
                self._keeper.stdin.close()
        try:
            self._keeper.wait(timeout=END_S)
        except subprocess.TimeoutExpired:
            self._keeper.kill()
            self._keeper.wait()
        if self.pid is not None:
            self._watcher.join()
        if self._keeper.stdout is not None:
            self._keeper.stdout.close()
        sys.stderr.write(self._read(-KEPT_BYTES))
        sys.stderr.flush()
        self._log.close()


def descendants(pid: int, proc: Path = Path("/proc")) -> tuple[int, ...]:
    """Processes that a process has started, and those that they have; empty where the system does not tell."""
    parents: dict[int, int] = {}
    for entry in proc.glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            # The name, in parentheses, may hold anything; the parent is the second field behind it.
            parents[int(entry.parent.name)] = int(entry.read_text(errors="replace").rpartition(")")[2].split()[1])
    found: list[int] = []
    level = {pid}
    while level := {child for child, parent in parents.items() if parent in level}:
        found.extend(sorted(level))
    return tuple(found)


def _is_well(endpoint: Endpoint, path: str) -> bool:
    """Whether the server answers 200. Without a path of its own: ``/health``, or ``/v1/models`` where that is not known."""
    for candidate in (path,) if path else ("/health", "/v1/models"):
        try:
            status, _ = endpoint.get(candidate, timeout_s=5)
        except ServerFault:
            return False
        if status != 404:
            return status == 200
    return False
