"""How likely a server finds the tokens of a prompt: vLLM's ``prompt_logprobs``, one object of tokens for each position."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from suite.backends.server.faults import Secret, ServerFault, quote
from suite.backends.server.prompting import COMPLETIONS
from suite.backends.server.wire import MOST_ANSWER_BYTES

LARGEST_ID = 2**31 - 1
LONGEST_ID = 10
"""Digits of a token."""


def scores_of(
    status: int, said: bytes, prompt: Sequence[int], count: int, secret: Secret
) -> tuple[Mapping[int, float], ...]:
    """Token → log-probability, nats, at each of the last `count` positions of `prompt`.

    Raises ServerFault for a refusal, with what the server said, and for an answer of another shape.
    """
    if status != 200:
        raise ServerFault(f"{COMPLETIONS}: HTTP status {status}: {quote(said, secret) or 'no explanation'}")
    if len(said) >= MOST_ANSWER_BYTES:
        raise ServerFault(
            f"{COMPLETIONS}: more than {MOST_ANSWER_BYTES >> 20} MiB of log-probabilities for {len(prompt)} tokens: lower "
            "prompt_logprobs, but not below the 64 that the trace tells of"
        )
    try:
        rows = json.loads(said)["choices"][0]["prompt_logprobs"]
    except (ValueError, LookupError, TypeError, RecursionError):
        rows = None
    if not isinstance(rows, list) or len(rows) != len(prompt):
        told = f"of {len(rows)} positions" if isinstance(rows, list) else "none"
        raise ServerFault(
            f"{COMPLETIONS}: log-probabilities of {len(prompt)} prompt tokens were asked for, and {told} told"
        )
    return tuple(_read(row) for row in rows[len(rows) - count :])


def _read(row: Any) -> dict[int, float]:
    if not isinstance(row, dict):
        raise ServerFault(f"{COMPLETIONS}: prompt_logprobs of a position are no object")
    found: dict[int, float] = {}
    for token, entry in row.items():
        value = entry.get("logprob") if isinstance(entry, dict) else None
        is_id = token.isdecimal() and len(token) <= LONGEST_ID and int(token) <= LARGEST_ID
        is_number = type(value) is float or (type(value) is int and abs(value) <= LARGEST_ID)
        if not (is_id and is_number):
            raise ServerFault(f"{COMPLETIONS}: prompt_logprobs of a position hold what is no token with its logarithm")
        found[int(token)] = float(value)  # type: ignore[arg-type]
    return found
