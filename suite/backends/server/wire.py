"""HTTP/1.1 to one server with the standard library: every deadline, every retry and every time stamp is ours."""

from __future__ import annotations

import contextlib
import email.utils
import http.client
import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, urlsplit

from suite import clock
from suite.backends.server.faults import Secret, ServerFault, quote

BUSY = (429, 503)
"""Statuses that say "later": no token has been made yet, so asking again changes nothing."""
LONGEST_WAIT_S = 30.0
"""However long a server says to wait."""
MOST_ANSWER_BYTES = 64 * 2**20
READ_BYTES = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """Seconds after which a silent server is given up, and how often one that says "later" is asked again."""

    connect_s: float = 5.0
    first_token_s: float = 120.0
    chunk_s: float = 30.0
    retries: int = 3


@dataclass(slots=True, kw_only=True)
class Opened:
    """A stream whose answer has begun."""

    started_at: float
    """When the request went out, over a connection that was open already."""
    response: http.client.HTTPResponse
    socket: Any


@dataclass(slots=True)
class Endpoint:
    """One server. Connections are fresh for each request, and opened before its time starts."""

    url: str
    secret: Secret = field(default_factory=Secret)
    waits: Waits = field(default_factory=Waits)
    retried: int = 0
    """How often a request was sent again, over all of them."""
    _pause: threading.Event = field(default_factory=threading.Event)

    def get(self, path: str, *, timeout_s: float | None = None) -> tuple[int, bytes]:
        """Status and body of a GET. Raises ServerFault when nothing answers."""
        return self._ask("GET", path, None, timeout_s)

    def post(self, path: str, body: Mapping[str, Any], *, timeout_s: float | None = None) -> tuple[int, bytes]:
        """Status and body of a POST of JSON. Raises ServerFault when nothing answers."""
        return self._ask("POST", path, body, timeout_s)

    def _ask(
        self, method: str, path: str, body: Mapping[str, Any] | None, timeout_s: float | None
    ) -> tuple[int, bytes]:
        with contextlib.ExitStack() as stack:
            connection = self._connect(stack, path)
            self._set_timeout(connection.sock, timeout_s or self.waits.first_token_s)
            try:
                self._send(connection, method, path, body)
                response = connection.getresponse()
                return response.status, response.read(MOST_ANSWER_BYTES)
            except (OSError, http.client.HTTPException) as fault:
                raise self._fault(path, fault) from None

    @contextlib.contextmanager
    def stream(self, path: str, body: Mapping[str, Any]) -> Iterator[Opened]:
        """Send a request whose answer comes in pieces.

        A server that says "later" (429, 503) is asked again after what it asks for; afterwards nothing is ever sent twice.
        Raises ServerFault for another status than 200, with what the server said.
        """
        left = self.waits.retries
        while True:
            with contextlib.ExitStack() as stack:
                opened = self._open(stack, path, body)
                status = opened.response.status
                if status == 200:
                    yield opened
                    return
                said = quote(_read_some(opened.response), self.secret)
                wait_s = _asked_wait(opened.response)
            if status not in BUSY or not left:
                tried = f" after {self.waits.retries} more tries" if status in BUSY and self.waits.retries else ""
                raise ServerFault(f"{path}: HTTP status {status}{tried}: {said or 'no explanation'}")
            left -= 1
            self.retried += 1
            self._pause.wait(wait_s if wait_s is not None else 0.5 * 2 ** (self.waits.retries - left - 1))

    def _open(self, stack: contextlib.ExitStack, path: str, body: Mapping[str, Any]) -> Opened:
        connection = self._connect(stack, path)
        socket = connection.sock
        self._set_timeout(socket, self.waits.first_token_s)
        started_at = clock.monotonic()
        try:
            self._send(connection, "POST", path, body)
            response = connection.getresponse()
        except (OSError, http.client.HTTPException) as fault:
            raise self._fault(path, fault) from None
        stack.callback(response.close)
        return Opened(started_at=started_at, response=response, socket=socket)

    def _connect(self, stack: contextlib.ExitStack, path: str) -> http.client.HTTPConnection:
        where = urlsplit(self.url)
        connection = _connection(where, self.waits.connect_s)
        stack.callback(connection.close)
        try:
            connection.connect()
        except OSError as fault:
            raise self._fault(path, fault) from None
        return connection

    def _send(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: Mapping[str, Any] | None
    ) -> None:
        data = None if body is None else json.dumps(body, allow_nan=False).encode()
        headers = {"Accept": "text/event-stream, application/json", **self.secret.header()}
        if data is not None:
            headers["Content-Type"] = "application/json"
        connection.request(method, urlsplit(self.url).path.rstrip("/") + path, body=data, headers=headers)

    @staticmethod
    def _set_timeout(socket: Any, seconds: float) -> None:
        socket.settimeout(seconds)

    def _fault(self, path: str, fault: Exception) -> ServerFault:
        where = urlsplit(self.url)
        reason = "no answer in time" if isinstance(fault, TimeoutError) else quote(str(fault), self.secret)
        return ServerFault(f"{where.hostname}:{where.port or where.scheme}{path}: {reason or type(fault).__name__}")


def read_pieces(opened: Opened, waits: Waits) -> Iterator[tuple[float, bytes]]:
    """What arrives, each piece with the reading of the clock when it had arrived, until the server closes.

    The first piece may take `Waits.first_token_s`, each further one `Waits.chunk_s`. Raises ServerFault for silence and
    for a connection that breaks.
    """
    while True:
        try:
            piece = opened.response.read1(READ_BYTES)
        except TimeoutError:
            raise ServerFault("silence") from None
        except (OSError, http.client.HTTPException, ValueError) as fault:
            raise ServerFault(f"the connection broke ({type(fault).__name__})") from None
        at = clock.monotonic()
        if not piece:
            return
        yield at, piece
        opened.socket.settimeout(waits.chunk_s)


def check_url(url: str) -> str | None:
    """What is wrong with the address of a server; None for nothing."""
    try:
        where = urlsplit(url)
        port = where.port
    except ValueError as fault:
        return str(fault)
    if where.scheme not in ("http", "https") or not where.hostname:
        return "write it as http://host:port"
    if where.username or where.password:
        return "a key does not belong there: put it into an environment variable and name that as api_key_env"
    if where.query or where.fragment or port == 0:
        return "write it as http://host:port, without a query"
    return None


def root_of(url: str) -> str:
    """Where a server's paths begin: other clients are given the address with the ``/v1`` of the protocol behind it."""
    return url.rstrip("/").removesuffix("/v1").rstrip("/")


def _connection(where: SplitResult, timeout_s: float) -> http.client.HTTPConnection:
    host, port = where.hostname or "", where.port
    if where.scheme == "https":
        return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=ssl.create_default_context())
    return http.client.HTTPConnection(host, port, timeout=timeout_s)


def _read_some(response: http.client.HTTPResponse) -> bytes:
    try:
        return response.read(4096)
    except (OSError, http.client.HTTPException):
        return b""


def _asked_wait(response: http.client.HTTPResponse) -> float | None:
    """Seconds of a ``Retry-After`` header (RFC 9110, 10.2.3), at most `LONGEST_WAIT_S`; None without one."""
    said = response.headers.get("Retry-After")
    if said is None:
        return None
    if said.strip().isdecimal():  # a superscript is a digit, and no number
        return min(float(said), LONGEST_WAIT_S)
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        return min(max((email.utils.parsedate_to_datetime(said) - clock.now()).total_seconds(), 0.0), LONGEST_WAIT_S)
    return None
