"""One event of a completion or chat stream → what of it counts. A server's words are checked before they are believed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LARGEST_ID, LARGEST_COUNT = 2**31 - 1, 2**53
DONE = "[DONE]"
"""The data of the last event of a stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What the server counted."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int | None = None
    """Prompt tokens that a prefix cache answered; None where the server does not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """What the server timed itself (llama-server)."""

    evaluated_tokens: int
    prefill_s: float
    new_tokens: int
    decode_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """One event."""

    text: str = ""
    token_ids: tuple[int, ...] | None = None
    """The tokens of `text`, where the server tells them."""
    logprobs: tuple[float, ...] | None = None
    """Of each token, natural logarithms, where they were asked for."""
    finish: str | None = None
    usage: Usage | None = None
    timings: Timings | None = None
    prompt_ids: tuple[int, ...] | None = None
    """The prompt as the server encoded it, where it tells."""
    is_silent_token: bool = False
    """It has a choice without a text, which neither opens nor ends the answer: a token that has no text of its own."""


def read_chunk(data: str) -> Chunk:
    """The chunk in the data of one event.

    Raises ValueError, saying what is wrong, for what is no JSON object, for an error that the server reports within its
    stream, and for counts that are no counts.
    """
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as fault:
        raise ValueError(f"no JSON ({fault})") from None
    if not isinstance(document, dict):
        raise ValueError(f"a JSON {type(document).__name__} where an object was expected")
    if document.get("error"):
        raise ValueError(f"an error: {_message(document['error'])}")
    choice = _first(document.get("choices"))
    text = _text(choice)
    return Chunk(
        text=text,
        is_silent_token=bool(choice) and not text and not choice.get("finish_reason") and not _opens(choice),
        token_ids=_ids(choice.get("token_ids")),
        logprobs=_logprobs(choice.get("logprobs")),
        finish=_word(choice.get("finish_reason")),
        usage=_usage(document.get("usage")),
        timings=_timings(document.get("timings")),
        prompt_ids=_ids(choice.get("prompt_token_ids", document.get("prompt_token_ids"))),
    )


def _message(error: Any) -> str:
    return str(error.get("message", error)) if isinstance(error, dict) else str(error)


def _first(choices: Any) -> Mapping[str, Any]:
    if choices is None or choices == []:  # the last chunk has nothing but the usage
        return {}
    if not isinstance(choices, list) or not isinstance(choices[0], dict):
        raise ValueError("'choices' is no list of objects")
    return choices[0]


def _text(choice: Mapping[str, Any]) -> str:
    delta = choice.get("delta", choice)
    text = delta.get("text", delta.get("content")) if isinstance(delta, dict) else None
    if text is not None and not isinstance(text, str):
        raise ValueError(f"text of type {type(text).__name__}")
    # Half a surrogate pair is no character, and could be written nowhere.
    return (text or "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _opens(choice: Mapping[str, Any]) -> bool:
    """The first chunk of a chat says who speaks."""
    delta = choice.get("delta")
    return isinstance(delta, dict) and "role" in delta


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _ids(value: Any) -> tuple[int, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list):
        raise ValueError("token ids that are no list")
    return tuple(_count(token, "a token id", most=LARGEST_ID) for token in value)


def _count(value: Any, what: str, *, most: int = LARGEST_COUNT) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"{what} is {value!r}, no count")
    return value


def _usage(value: Any) -> Usage | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise ValueError("'usage' is no object")
    details = value.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    usage = Usage(
        prompt_tokens=_count(value.get("prompt_tokens"), "usage.prompt_tokens"),
        completion_tokens=_count(value.get("completion_tokens", 0), "usage.completion_tokens"),
        cached_tokens=None if cached is None else _count(cached, "cached_tokens"),
    )
    if usage.cached_tokens is not None and usage.cached_tokens > usage.prompt_tokens:
        raise ValueError(f"{usage.cached_tokens} cached tokens of a prompt of {usage.prompt_tokens}")
    return usage


def _timings(value: Any) -> Timings | None:
    if not isinstance(value, dict) or not {"prompt_n", "prompt_ms", "predicted_n", "predicted_ms"} <= value.keys():
        return None
    return Timings(
        evaluated_tokens=_count(value["prompt_n"], "timings.prompt_n"),
        prefill_s=_milliseconds(value["prompt_ms"]),
        new_tokens=_count(value["predicted_n"], "timings.predicted_n"),
        decode_s=_milliseconds(value["predicted_ms"]),
    )


def _milliseconds(value: Any) -> float:
    found = _number(value)
    if found is None or found < 0:
        raise ValueError("a time that is no number of milliseconds")
    return found / 1000


def _number(value: Any) -> float | None:
    """A number of JSON; None for what is none, and for an integer of so many digits that it has no float."""
    if type(value) not in (int, float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def _logprobs(value: Any) -> tuple[float, ...] | None:
    """Of completions, a list of numbers; of chats (and of llama-server), a list of objects."""
    if not isinstance(value, dict):
        return None
    told: Any = value.get("token_logprobs")
    if told is None and isinstance(value.get("content"), Sequence):
        told = [entry.get("logprob") if isinstance(entry, dict) else None for entry in value["content"]]
    if not isinstance(told, list):
        return None
    found = [_number(one) for one in told]
    known = tuple(one for one in found if one is not None and one <= 0)
    return known if len(known) == len(found) else None
