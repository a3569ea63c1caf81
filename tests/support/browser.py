"""Chromium without a window, driven over the DevTools protocol through two pipes, by the standard library alone.

The protocol is described at https://chromedevtools.github.io/devtools-protocol/. With ``--remote-debugging-pipe`` the browser
reads messages from descriptor 3 and writes them to descriptor 4; each is JSON and ends in a zero byte.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

import pytest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--password-store=basic",
    "--remote-debugging-pipe",
)  # fmt: skip
PATIENCE_S = 60.0
KEYS: Mapping[str, tuple[int, str]] = {"Tab": (9, ""), "Enter": (13, "\r"), " ": (32, " ")}
"""Key → its code and the text that it makes."""

Json = dict[str, Any]


def find_browser() -> str | None:
    """The first of the known programs that is installed."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


def miss(what: str) -> NoReturn:
    """Skip a test for which something is missing; in CI, fail it: nobody should believe in tests that did not run."""
    told = f"{what}; get it with: make browser"
    if os.environ.get("CI", "").lower() in ("", "0", "false"):
        pytest.skip(told)
    pytest.fail(told)


class BrowserFault(AssertionError):
    """The browser died, was silent for too long, or refused a command."""


class Browser:
    """One browser with a new, empty profile in `home`. A context manager: leaving it ends the process."""

    def __init__(self, program: str, home: Path) -> None:
        self._log = home / "browser.log"
        self._buffer = b""
        self._number = 0
        self._tabs: dict[str, Tab] = {}
        theirs_in, ours_out = _pipe()
        ours_in, theirs_out = _pipe()
        self._reading, self._writing = ours_in, ours_out
        actions = [
            (os.POSIX_SPAWN_OPEN, 2, str(self._log), os.O_WRONLY | os.O_CREAT, 0o600),
            (os.POSIX_SPAWN_DUP2, theirs_in, 3),
            (os.POSIX_SPAWN_DUP2, theirs_out, 4),
        ]
        arguments = [program, *FLAGS, f"--user-data-dir={home / 'profile'}", "about:blank"]
        self._pid = os.posix_spawn(program, arguments, os.environ, file_actions=actions, setpgroup=0)
        os.close(theirs_in)
        os.close(theirs_out)

    def open(self, file: Path, *, width: int = 1280, dark: bool = False) -> Tab:
        """A new tab in which `file` is loaded, `width` CSS pixels wide; a telephone when that is below 600."""
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        tab = self._tabs[session] = Tab(self, session, target)
        tab.load(file, width=width, dark=dark)
        return tab

    def call(self, method: str, parameters: Mapping[str, Any] | None = None, session: str | None = None) -> Json:
        """Send a command and wait for its result; what happens in the meantime is noted by the tabs."""
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": parameters or {}}
        self._send({**message, **({"sessionId": session} if session else {})})
        while True:
            answer = self.receive()
            if answer.get("id") == number:
                if "error" in answer:
                    raise BrowserFault(f"{method}: {answer['error']}")
                result: Json = answer["result"]
                return result

    def receive(self) -> Json:
        """The next message, which has been handed to its tab if it is an event."""
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._reading], [], [], PATIENCE_S)
            data = os.read(self._reading, 1 << 20) if ready else b""
            if not data:
                raise BrowserFault(f"the browser {'ended' if ready else 'is silent'}; it said: {self._said()}")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: Json = json.loads(line)
        tab = self._tabs.get(message.get("sessionId", ""))
        if tab is not None and "method" in message:
            tab.note(message["method"], message["params"])
        return message

    def forget(self, tab: Tab) -> None:
        """Close a tab."""
        self._tabs.pop(tab.session)
        self.call("Target.closeTarget", {"targetId": tab.target})

    def send_unasked(self, method: str, parameters: Mapping[str, Any], session: str) -> None:
        """Send a command whose result nobody waits for."""
        self._number += 1
        self._send({"id": self._number, "method": method, "params": parameters, "sessionId": session})

    def _send(self, message: Json) -> None:
        rest = memoryview(json.dumps(message).encode() + b"\0")
        while rest:
            rest = rest[os.write(self._writing, rest) :]

    def _said(self) -> str:
        return self._log.read_text(errors="replace")[-2000:]

    def close(self) -> None:
        """Kill it with all its helpers: it holds nothing that is worth keeping."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._reading)
        os.close(self._writing)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Tab:
    """One page. A context manager: leaving it closes the tab."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self._browser = browser
        self.session = session
        self.target = target
        self.problems: list[str] = []
        """What the console would show in red or yellow, uncaught exceptions, dialogs that were opened."""
        self.requests: list[str] = []
        """Every address that was asked for."""
        self._loaded = False

    def load(self, file: Path, *, width: int, dark: bool) -> None:
        """Load a local file and wait until it is complete."""
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width)
        self.show_as("", dark=dark)
        self._loaded = False
        self.call("Page.navigate", {"url": file.as_uri()})
        while not self._loaded:
            self._browser.receive()

    def resize(self, width: int, height: int = 900) -> None:
        """Give the window another size, in CSS pixels."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", size)

    def show_as(self, media: str, *, dark: bool = False) -> None:
        """Show as in ``print``, or as it is for ""; `dark` where the person prefers that."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", {"media": media, "features": [scheme]})

    def call(self, method: str, parameters: Mapping[str, Any] | None = None) -> Json:
        """Send a command to this page and wait for its result."""
        return self._browser.call(method, parameters, self.session)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, a promise waited for. Raises BrowserFault for one that throws."""
        asked = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        answer = self.call("Runtime.evaluate", asked)
        if "exceptionDetails" in answer:
            raise BrowserFault(f"{expression[:200]}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Press and release a key, as a person would."""
        code, text = KEYS[key]
        pressed = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", {"type": "keyDown", "text": text, **pressed})
        self.call("Input.dispatchKeyEvent", {"type": "keyUp", **pressed})

    def to_pdf(self) -> bytes:
        """The page as a PDF, on A4."""
        paper = {"paperWidth": 8.27, "paperHeight": 11.69, "preferCSSPageSize": True, "printBackground": False}
        return base64.b64decode(self.call("Page.printToPDF", paper)["data"])

    def to_png(self) -> bytes:
        """All of the page as a PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", {"captureBeyondViewport": True})["data"])

    def note(self, event: str, told: Json) -> None:
        """Keep what is worth knowing of an event."""
        match event:
            case "Page.loadEventFired":
                self._loaded = True
            case "Runtime.consoleAPICalled" if told["type"] in ("error", "warning", "assert"):
                self.problems.append(f"console: {_words(told['args'])}")
            case "Runtime.exceptionThrown":
                self.problems.append(f"exception: {told['exceptionDetails'].get('exception', {}).get('description')}")
            case "Log.entryAdded" if told["entry"]["level"] in ("error", "warning"):
                self.problems.append(f"log: {told['entry']['text']}")
            case "Page.javascriptDialogOpening":
                self.problems.append(f"dialog: {told['message']}")
                self._browser.send_unasked("Page.handleJavaScriptDialog", {"accept": True}, self.session)
            case "Network.requestWillBeSent":
                self.requests.append(told["request"]["url"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if fault is None:
            self._browser.forget(self)


def _words(arguments: Sequence[Json]) -> str:
    return " ".join(str(argument.get("value", argument.get("description", ""))) for argument in arguments)


def _pipe() -> tuple[int, int]:
    """A pipe whose ends lie beyond the descriptors that the browser expects something on."""
    ends = os.pipe()
    moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return moved[0], moved[1]
