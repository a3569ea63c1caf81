"""What goes wrong with a server, in words, and the texts that must not get out."""

from __future__ import annotations

import re

SHOWN = 300
"""Characters of what a server said that a message carries."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


class ServerFault(RuntimeError):
    """A request failed; the variant's worker lives on. The message says what had come until then."""


class Secret:
    """An API key. Its text leaves this class in one header only."""

    def __init__(self, value: str = "") -> None:
        self._value = value

    def __repr__(self) -> str:
        return "Secret(***)" if self._value else "Secret()"

    def header(self) -> dict[str, str]:
        """The header that carries the key; nothing without one."""
        return {"Authorization": f"Bearer {self._value}"} if self._value else {}

    def redact(self, text: str) -> str:
        """`text` without the key: servers repeat what they refuse."""
        return text.replace(self._value, "***") if self._value else text


def quote(said: bytes | str, secret: Secret) -> str:
    """What a server said, for a message: one short line without the key and without control characters."""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    plain = _CONTROL.sub(" ", secret.redact(text)).strip()
    return plain if len(plain) <= SHOWN else plain[: SHOWN - 1] + "…"
