"""Which reference trace an update writes, and which it leaves alone."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from suite.gate.accept_trace import accept_trace
from suite.gate.refresh import Mode
from suite.records import Trace, Traced, TracedCase

KEY = {"model": "toy", "source": "org/toy", "sha256 of weights": "ab" * 32, "top": "2"}
OTHER = {**KEY, "sha256 of weights": "cd" * 32}
MADE = {"accepted": "2026-11-29", "reason": "because"}
MODES: tuple[Mode, ...] = ("new", "changed", "all")


def case(name: str, **changes: Any) -> TracedCase:
    made = TracedCase(
        case=name, version=1, domain="math", family=None, prompt_ids=(1, 2), answer_ids=(3,), logprobs=(-0.1,),
        top=2, top_ids="AwAAAAQAAAA=", top_logprobs="zczMvQAAQMA=", rest=(-4.0,),
    )  # fmt: skip
    return dataclasses.replace(made, **changes)


def wrote(*cases: TracedCase, key: dict[str, str] = KEY) -> list[Traced]:
    return [Traced(variant="fp16", key=key, traced=one) for one in cases]


def stored(*cases: TracedCase) -> Trace:
    return Trace(
        model="toy",
        reference="old-name",
        key=KEY,
        top=2,
        cases={one.case: one for one in cases},
        made={"accepted": "2026"},
    )


A, B, C = case("math/a"), case("math/b"), case("math/c")
ALL = ("math/a", "math/b", "math/c")


@pytest.mark.parametrize("mode", MODES)
def test_the_first_one_is_taken_with_when_and_why(mode: Mode) -> None:
    found = accept_trace(wrote(A, B), None, ALL, mode, MADE)
    assert found == Trace(
        model="toy", reference="fp16", key=KEY, top=2, cases={"math/a": A, "math/b": B}, made=MADE
    )  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_a_run_that_wrote_nothing_down_changes_nothing(mode: Mode) -> None:
    assert accept_trace([], None, ALL, mode, MADE) is None
    assert accept_trace([], stored(A), ALL, mode, MADE) is None


@pytest.mark.parametrize("mode", MODES)
def test_what_is_stored_already_changes_nothing(mode: Mode) -> None:
    assert accept_trace(wrote(A), stored(A, B), ALL, mode, MADE) is None


@pytest.mark.parametrize("mode", MODES)
def test_what_was_missing_is_added_and_the_rest_stays(mode: Mode) -> None:
    found = accept_trace(wrote(C), stored(A, B), ALL, mode, MADE)
    assert isinstance(found, Trace)
    assert found.cases == {"math/a": A, "math/b": B, "math/c": C}
    assert found.cases["math/a"] is A


@pytest.mark.parametrize(("mode", "kept"), [("new", True), ("changed", False), ("all", False)])
def test_cases_that_are_gone_are_dropped_except_in_mode_new(mode: Mode, kept: bool) -> None:
    found = accept_trace(wrote(C), stored(A, B), ("math/a", "math/c"), mode, MADE)
    assert isinstance(found, Trace)
    assert ("math/b" in found.cases) is kept


def test_a_case_that_asks_another_question_is_replaced_except_in_mode_new() -> None:
    anew = case("math/a", version=2, prompt_ids=(7,))
    assert accept_trace(wrote(anew), stored(A, B), ALL, "new", MADE) is None
    found = accept_trace(wrote(anew), stored(A, B), ALL, "changed", MADE)
    assert isinstance(found, Trace)
    assert found.cases == {"math/a": anew, "math/b": B}


def test_another_reference_replaces_all_of_it_when_it_is_meant() -> None:
    found = accept_trace(wrote(A, key=OTHER), stored(A, B), ALL, "changed", MADE)
    assert isinstance(found, Trace)
    assert (found.key, found.cases) == (OTHER, {"math/a": A})


def test_mode_new_refuses_another_reference_and_names_what_differs() -> None:
    refused = accept_trace(wrote(A, key=OTHER), stored(A), ALL, "new", MADE)
    assert refused == (
        "the stored trace is of another reference (sha256 of weights: abababababab… → cdcdcdcdcdcd…); "
        "replace it with --matrix-update=changed"
    )


@pytest.mark.parametrize("mode", MODES)
def test_a_run_of_two_references_is_refused(mode: Mode) -> None:
    refused = accept_trace([*wrote(A), *wrote(B, key=OTHER)], None, ALL, mode, MADE)
    assert isinstance(refused, str)
    assert "traces of two references (sha256 of weights" in refused
