"""What parent and worker say to each other survives the line it travels on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.worker.__main__ import write
from suite.worker.messages import Failed, Generated, Load, Made, Memory, Request, Response, pack, unpack

TEXT = st.text(max_size=20)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
WHOLE = st.integers(-(2**53), 2**53)
PLAIN = st.recursive(
    st.none() | st.booleans() | WHOLE | FINITE | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
SIMPLE: Mapping[Any, st.SearchStrategy[Any]] = {
    str: TEXT, int: WHOLE, float: FINITE, bool: st.booleans(), type(None): st.none(), Any: PLAIN,
}  # fmt: skip


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Any value of a type that a message may hold."""
    if hint in SIMPLE:
        return SIMPLE[hint]
    arguments = get_args(hint)
    match str(hint).partition("[")[0].rpartition(".")[2]:
        case "Literal":
            return st.sampled_from(arguments)
        case "Mapping" | "dict":
            return st.dictionaries(TEXT, values(arguments[1]), max_size=3)
        case "list":
            return st.lists(values(arguments[0]), max_size=4)
        case _:
            return st.one_of(*map(values, arguments))


def messages() -> st.SearchStrategy[Any]:
    kinds = [*get_args(Request), *get_args(Response)]
    return st.one_of(
        *(st.builds(kind, **{name: values(hint) for name, hint in get_type_hints(kind).items()}) for kind in kinds)
    )


@given(messages())
def test_every_message_comes_back_as_it_was_sent(message: Any) -> None:
    line = pack(message)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    back = unpack(line)
    assert type(back) is type(message)
    assert back == message


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_refused(number: float) -> None:
    message = Generated(
        token_ids=[1], text="", finish_reason="stop", prompt_tokens=1, evaluated_tokens=1, prefill_s=number,
        token_times_s=[0.1], witness={},
    )  # fmt: skip
    with pytest.raises(ValueError, match="not JSON compliant"):
        pack(message)


@pytest.mark.parametrize("line", [
    b"", b"\n", b"null\n", b'"ab"\n', b"[]\n", b'["Made"]\n', b'["Nobody", {}]\n', b'["Made", {"extra": 1}]\n',
    b'["Load", {"backend": "fake"}]\n', b'[["Made"], {}]\n', b"llama_model_load: 12 %\n", b"\xff\xfe\n",
])  # fmt: skip
def test_what_is_no_message_is_refused_and_shown(line: bytes) -> None:
    with pytest.raises(ValueError, match="not a message"):
        unpack(line)


def test_text_from_a_broken_tokenizer_survives() -> None:
    load = Load(backend="fake", weights=None, options={"reply": "\udc80 \x00 \u2028 한국어"}, prompt_format="chat")
    assert unpack(pack(load)) == load


def test_messages_without_fields_are_equal() -> None:
    assert unpack(pack(Made())) == Made()
    assert unpack(pack(Memory(
        peak_rss_bytes=1, uss_bytes=None, peak_device_bytes=None, kv_cache_bytes=None, kv_cache_tokens=None
    ))).uss_bytes is None  # fmt: skip


def test_an_answer_that_no_message_carries_fails_its_request_and_not_the_worker() -> None:
    odd = Memory(
        peak_rss_bytes=1, uss_bytes=1, peak_device_bytes=None, kv_cache_bytes=None, kv_cache_tokens=None,
        readings={"server_waiting": math.inf},
    )  # fmt: skip
    answer = unpack(write(odd))
    assert isinstance(answer, Failed)
    assert answer.kind == "failure"
    assert "Memory cannot be told" in answer.message
    assert unpack(write(Made())) == Made()
