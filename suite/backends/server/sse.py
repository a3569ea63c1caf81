"""Server-sent events out of bytes as they arrive (WHATWG HTML, 9.2.6: parsing an event stream)."""

from __future__ import annotations

from collections.abc import Iterator

MOST_BYTES = 8 * 2**20
"""An event that is longer than this is none: the server sends something else."""


class EventParser:
    """Takes bytes in whatever pieces, gives the data of each whole event.

    Comments (what servers send to keep a connection alive), names and ids of events are left out. A half event stays in
    `rest` until its end has come.
    """

    def __init__(self) -> None:
        self._line: list[bytes] = []
        """What has come of a line that has not ended."""
        self._data: list[bytes] = []
        self._size = 0
        self._after_cr = False

    @property
    def rest(self) -> str:
        """What has come of an event that is not whole."""
        return b"\n".join([*self._data, b"".join(self._line)]).decode("utf-8", "replace").strip()

    def feed(self, received: bytes) -> Iterator[str]:
        """The data of the events that `received` makes whole, in order.

        Raises ValueError for an event that does not end.
        """
        for line in self._lines(received):
            if not line:
                if self._data:
                    yield b"\n".join(self._data).decode("utf-8", "replace")
                self._data, self._size = [], 0
            elif line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
        if self._size > MOST_BYTES:
            raise ValueError(f"an event of more than {MOST_BYTES} bytes")

    def _lines(self, received: bytes) -> list[bytes]:
        """The lines that are whole now. They end with CR LF, LF or CR; an LF after a CR that came before is its second half."""
        self._size += len(received)
        if self._after_cr and received.startswith(b"\n"):
            received = received[1:]
        self._after_cr = received.endswith(b"\r") or (self._after_cr and not received)
        first, *more = received.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._line.append(first)
        if not more:
            return []
        whole = [b"".join(self._line), *more[:-1]]
        self._line = [more[-1]]
        return whole
