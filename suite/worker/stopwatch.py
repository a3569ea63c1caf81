"""Takes the time of every token of a stream, and looks at the memory now and then while its clock stands still."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar, cast

from suite.backends.base import Arrived, Prefilled
from suite.clock import Clock

Token = TypeVar("Token")

Read = Callable[[], int | None]
"""Bytes that are held now, or None where nobody can tell."""


@dataclass(slots=True)
class Timed(Generic[Token]):
    """A stream as it came, seconds since it was asked for."""

    tokens: list[Token] = field(default_factory=list)
    times_s: list[float] = field(default_factory=list)
    evaluated: int = 0
    prefill_s: float = 0.0
    ended: bool = False
    """Whether an end token came; it is neither counted nor timed."""
    memory: list[list[int]] = field(default_factory=list)
    """Number of tokens, and bytes held then."""


def time_stream(
    now: Clock,
    stream: Iterator[Prefilled | Arrived | Token],
    is_end: Callable[[Token], bool],
    *,
    watch: int = 0,
    read: Read | None = None,
) -> Timed[Token]:
    """Take the time of every item of a stream, unless it brings its own, and `read` the memory every `watch` tokens.

    What reading takes is left out of all times that follow.
    """
    timed: Timed[Token] = Timed()
    stopped_s = 0.0
    start = now()
    for item in stream:
        elapsed = now() - start - stopped_s
        if isinstance(item, Prefilled):
            start = start if item.started_at is None else item.started_at
            timed.evaluated, timed.prefill_s = item.evaluated_tokens, elapsed if item.at is None else item.at - start
            continue
        token, elapsed = (cast("Token", item.token), item.at - start) if isinstance(item, Arrived) else (item, elapsed)
        if is_end(token):
            timed.ended = True
            break
        timed.tokens.append(token)
        timed.times_s.append(elapsed)
        if watch and read is not None and len(timed.tokens) % watch == 0:
            stopped = now()
            _look(timed, read)
            stopped_s += now() - stopped
    return timed


def _look(timed: Timed[Token], read: Read) -> None:
    held = read()
    if held is not None:
        timed.memory.append([len(timed.tokens), held])
