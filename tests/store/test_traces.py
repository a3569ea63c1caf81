"""The trace's file: the same numbers come back, the same bytes are written, and what is wrong with a file is said."""

from __future__ import annotations

import dataclasses
import io
import json
import pickle
import random
import re
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from suite.errors import StoreError
from suite.packed import pack
from suite.records import Trace, TracedCase
from suite.store.traces import ARRAYS, HEADER, SCHEMA, decode, encode, read_trace, write_trace

SINGLE = st.floats(-1000, 0, width=32)
DOCUMENT = Path(__file__).parents[2] / ".github" / "TRACE.md"
WHERE = "baselines/toy/trace.npz"
Arrays = dict[str, Any]


def single(value: float) -> float:
    """As single precision keeps it."""
    found: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return found


def traced(
    case: str, positions: int = 2, *, top: int = 3, prompt: int = 4, seed: int = 0, **changes: Any
) -> TracedCase:
    luck = random.Random(f"{case}/{seed}")
    rows = [sorted((single(luck.uniform(-12, 0)) for _ in range(top)), reverse=True) for _ in range(positions)]
    made = TracedCase(
        case=case,
        version=1,
        domain=case.partition("/")[0],
        family=None,
        prompt_ids=tuple(luck.randrange(49_152) for _ in range(prompt)),
        answer_ids=tuple(luck.randrange(49_152) for _ in range(positions)),
        logprobs=tuple(row[0] for row in rows),
        top=top,
        top_ids=pack(numpy.array([luck.sample(range(49_152), top) for _ in range(positions)], "<i4")),
        top_logprobs=pack(numpy.array(rows, "<f4")),
        rest=tuple(single(luck.uniform(-9, 0)) for _ in range(positions)),
    )
    return dataclasses.replace(made, **changes)


def trace_of(*cases: TracedCase, **changes: Any) -> Trace:
    made = Trace(
        model="toy",
        reference="fp16",
        key={"model": "toy", "source": "org/toy", "top": "3"},
        top=3,
        cases={case.case: case for case in cases},
        made={"accepted": "2026-11-20T10:00:00+00:00", "suite": "0.1.0"},
    )
    return dataclasses.replace(made, **changes)


TRACE = trace_of(
    traced("math/a"), traced("code/b", 5, family="sorting"), traced("reasoning/사과", 1, version=3, prompt=0)
)


def repack(change: Callable[[Arrays], None] = lambda _: None, **header: Any) -> bytes:
    """The file of `TRACE` with other contents, well packed."""
    with numpy.load(io.BytesIO(encode(TRACE))) as stored:
        arrays: Arrays = dict(stored)
    arrays[HEADER] = pack_header({**json.loads(arrays[HEADER].tobytes()), **header})
    change(arrays)
    buffer = io.BytesIO()
    numpy.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def pack_header(document: Any) -> Any:
    return numpy.frombuffer(json.dumps(document).encode(), "u1")


# ------------------------------------------------------------------------------------------ there and back


def test_what_was_written_is_read(tmp_path: Path) -> None:
    file = write_trace(TRACE, tmp_path)
    assert file == tmp_path / "toy" / "trace.npz"
    assert read_trace(tmp_path, "toy") == TRACE


@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_number_of_single_precision_comes_back_to_the_bit(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 4))
    row = st.lists(SINGLE, min_size=3, max_size=3).map(tuple)
    case = traced(
        "math/a",
        count,
        logprobs=tuple(data.draw(st.lists(SINGLE, min_size=count, max_size=count))),
        top_logprobs=pack(numpy.array(data.draw(st.lists(row, min_size=count, max_size=count)), "<f4")),
        rest=tuple(data.draw(st.lists(SINGLE, min_size=count, max_size=count))),
    )
    again = decode(encode(trace_of(case)), where=WHERE).cases["math/a"]
    assert repr(again) == repr(case), "to the bit, the sign of a zero included"


def test_the_same_trace_gives_the_same_bytes_whatever_the_order_it_was_made_in() -> None:
    backwards = dataclasses.replace(
        TRACE,
        cases=dict(reversed(list(TRACE.cases.items()))),
        key=dict(reversed(list(TRACE.key.items()))),
        made=dict(reversed(list(TRACE.made.items()))),
    )
    assert encode(TRACE) == encode(backwards) == encode(decode(encode(TRACE), where=WHERE))
    assert encode(TRACE) != encode(dataclasses.replace(TRACE, reference="bf16"))


def test_a_trace_without_a_case_comes_back_too() -> None:
    assert decode(encode(trace_of()), where=WHERE) == trace_of()


def test_the_trace_of_the_usual_cases_is_small(tmp_path: Path) -> None:
    """77 cases, 22 tokens each, 64 likeliest: random ids and numbers, which compress worse than real ones."""
    cases = [traced(f"math/{number:02}", 22, top=64, prompt=120) for number in range(77)]
    file = write_trace(trace_of(*cases, top=64), tmp_path)
    assert file.stat().st_size < 1_500_000


def test_the_lines_of_the_document_read_it(tmp_path: Path) -> None:
    code = re.search(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    assert code is not None
    assert len([line for line in code[1].splitlines() if line]) == 5
    found: dict[str, Any] = {}
    exec(code[1].replace("baselines/MODEL/trace.npz", str(write_trace(TRACE, tmp_path))), found)
    found["stored"].close()
    assert {case: values.tolist() for case, values in found["logprobs"].items()} == {
        name: list(case.logprobs) for name, case in TRACE.cases.items()
    }


def test_nothing_in_it_is_a_pickle_and_all_of_it_is_documented() -> None:
    with zipfile.ZipFile(io.BytesIO(encode(TRACE))) as archive:
        assert set(archive.namelist()) == {f"{name}.npy" for name in (HEADER, *ARRAYS)}
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    document = DOCUMENT.read_text(encoding="utf-8")
    assert all(f"`{name}`" in document for name in (HEADER, *ARRAYS))
    assert f"`schema` | {SCHEMA}" in document


# ------------------------------------------------------------------------------------------ what is wrong with it


def refused(data: bytes) -> str:
    with pytest.raises(StoreError) as told:
        decode(data, where=WHERE)
    assert WHERE in str(told.value)
    return str(told.value)


def test_no_file_is_no_trace(tmp_path: Path) -> None:
    assert read_trace(tmp_path, "toy") is None


def test_what_cannot_be_opened_says_why(tmp_path: Path) -> None:
    (tmp_path / "toy" / "trace.npz").mkdir(parents=True)
    with pytest.raises(StoreError, match=r"trace\.npz: cannot be read: Is a directory"):
        read_trace(tmp_path, "toy")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not a zip",
        b"PK\x03\x04",
        encode(TRACE)[:-30],
        encode(TRACE)[:200],
        json.dumps({"kind": "trace"}).encode(),
    ],
    ids=["empty", "text", "magic only", "cut at the end", "cut early", "json"],
)
def test_a_damaged_or_truncated_file_says_so_and_what_to_do(data: bytes) -> None:
    message = refused(data)
    assert "not a trace, or damaged" in message
    assert f"git rm {WHERE} && pytest --model-matrix --matrix-update=changed" in message


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(place=st.floats(0, 1), flip=st.integers(1, 255))
def test_one_wrong_byte_is_noticed_or_changes_nothing(place: float, flip: int) -> None:
    data = bytearray(encode(TRACE))
    data[int(place * (len(data) - 1))] ^= flip
    try:
        found = decode(bytes(data), where=WHERE)
    except StoreError:
        return
    assert found == TRACE


@settings(max_examples=100)
@given(share=st.floats(0, 0.999))
def test_no_part_of_a_file_is_taken_for_all_of_it(share: float) -> None:
    data = encode(TRACE)
    refused(data[: int(share * len(data))])


def test_a_pickle_is_never_loaded() -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return (pytest.fail, ("it was loaded",))

    assert "damaged" in refused(pickle.dumps(Trap()))
    with_objects = repack(lambda arrays: arrays.update(rest=numpy.array([Trap()], object)))
    assert "allow_pickle=False" in refused(with_objects)


def test_an_array_alone_is_no_trace() -> None:
    buffer = io.BytesIO()
    numpy.save(buffer, numpy.zeros(3))
    assert "not a trace, or damaged" in refused(buffer.getvalue())


@pytest.mark.parametrize("name", [HEADER, *ARRAYS])
def test_a_missing_array_is_named(name: str) -> None:
    assert name in refused(repack(lambda arrays: arrays.pop(name)))


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays.update(rest=arrays["rest"][:-1]),
        lambda arrays: arrays.update(rest=arrays["rest"].astype("<f8")),
        lambda arrays: arrays.update(rest=arrays["rest"].reshape(-1, 1)),
        lambda arrays: arrays.update(top_ids=arrays["top_ids"][:, :2]),
        lambda arrays: arrays.update(top_logprobs=arrays["top_logprobs"].T),
        lambda arrays: arrays.update(prompt_ids=arrays["prompt_ids"][1:]),
        lambda arrays: arrays.update(answer_ids=numpy.array("text")),
    ],
    ids=["short", "double", "two dimensions", "narrow", "on its side", "prompt", "text"],
)
def test_a_shape_or_type_that_is_not_what_the_header_says(change: Callable[[Arrays], None]) -> None:
    message = refused(repack(change))
    assert "of shape" in message
    assert "its header says" in message


@pytest.mark.parametrize("value", [numpy.nan, numpy.inf, -numpy.inf])
@pytest.mark.parametrize("name", ["logprobs", "rest", "top_logprobs"])
def test_what_is_no_number_is_refused(name: str, value: float) -> None:
    def spoil(arrays: Arrays) -> None:
        arrays[name] = arrays[name].copy()
        arrays[name].flat[1] = value

    assert f"array '{name}' holds what is no number" in refused(repack(spoil))


def test_a_newer_layout_asks_for_an_upgrade_even_where_its_arrays_are_others() -> None:
    newer = repack(lambda arrays: arrays.pop("rest"), schema=SCHEMA + 1)
    message = refused(newer)
    assert "written by a newer quantdrift (schema 2 of traces; this one reads 1)" in message
    assert "pip install --upgrade quantdrift" in message


@pytest.mark.parametrize("schema", [0, None, "one"])
def test_another_layout_is_made_anew(schema: Any) -> None:
    assert f"schema {schema!r} of traces" in refused(repack(schema=schema))


@pytest.mark.parametrize("header", [[], "text", 3, {"kind": "speed-baseline", "schema": 1}])
def test_another_header_is_another_file(header: Any) -> None:
    assert "is it the right file?" in refused(repack(lambda arrays: arrays.update(header=pack_header(header))))


def test_a_header_that_lacks_something_says_what() -> None:
    def without(key: str) -> bytes:
        with numpy.load(io.BytesIO(encode(TRACE))) as stored:
            header = json.loads(stored[HEADER].tobytes())
        del header[key]
        return repack(lambda arrays: arrays.update(header=pack_header(header)))

    for key in ("model", "reference", "key", "top", "cases"):
        assert f"'{key}'" in refused(without(key))
    assert decode(without("made"), where=WHERE).made == {}


@pytest.mark.parametrize(
    ("case", "says"),
    [
        ({"prompt_tokens": 4, "answer_tokens": 2}, "is missing"),
        ({"case": "math/a", "version": 1, "domain": "math", "family": None}, "'prompt_tokens'"),
        ({"prompt_tokens": -4, "answer_tokens": 2}, "counts what cannot be counted"),
        ({"prompt_tokens": "4", "answer_tokens": 2}, "counts what cannot be counted"),
        ("math/a", "its header lacks"),
    ],
)
def test_a_case_that_lacks_something_says_what(case: Any, says: str) -> None:
    def shorten(arrays: Arrays) -> None:
        for name in ARRAYS:
            arrays[name] = arrays[name][: 4 if name == "prompt_ids" else 2]

    assert says in refused(repack(shorten, cases=[case]))


def test_the_trace_of_another_model_is_in_the_wrong_place(tmp_path: Path) -> None:
    file = write_trace(TRACE, tmp_path)
    (tmp_path / "other").mkdir()
    file.rename(tmp_path / "other" / "trace.npz")
    with pytest.raises(StoreError, match=r"the trace of 'toy', but lies where that of 'other' belongs; move it"):
        read_trace(tmp_path, "other")


def test_a_case_that_is_not_even_is_not_written() -> None:
    uneven = dataclasses.replace(TRACE.cases["math/a"], top_ids=pack(numpy.array([1, 2, 3, 1, 2], "<i4")))
    with pytest.raises(ValueError, match="shape"):
        encode(trace_of(uneven))
