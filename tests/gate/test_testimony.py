"""The determinism control: what is asked again, and what cannot testify."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from suite.gate.testimony import find_silent, which_to_ask_again
from suite.records import TrialStatus

T = TrialStatus.TRUNCATED


def test_only_cases_whose_grade_changed_are_asked_again(made: Any) -> None:
    baseline = made.quality_baseline(made.trials(1.0, 0.0, 1.0, 0.0, 0.5, T))
    now = made.trials(1.0, 1.0, 0.0, T, 0.75, T)
    assert which_to_ask_again(now, baseline) == ("math/01", "math/02", "math/03", "math/04")


def test_other_words_of_the_same_grade_are_not_asked_again(made: Any) -> None:
    baseline = made.quality_baseline(made.trials(1.0))
    assert which_to_ask_again([made.trial("math/00", 1.0, tokens=(9, 9))], baseline) == ()


@pytest.mark.parametrize(("now", "asked"), [(0.5004, ()), (0.5006, ("math/00",))])
def test_credit_counts_as_changed_beyond_the_digits_that_are_stored(made: Any, now: float, asked: tuple[str]) -> None:
    assert which_to_ask_again(made.trials(now), made.quality_baseline(made.trials(0.5))) == asked


def test_another_question_and_a_new_case_are_not_asked_again(made: Any) -> None:
    baseline = made.quality_baseline(made.trials(1.0))
    reworded = made.trial("math/00", 0.0, version=2)
    assert which_to_ask_again([reworded, made.trial("math/77", 0.0)], baseline) == ()


def test_nothing_is_asked_again_without_a_baseline(made: Any) -> None:
    assert which_to_ask_again(made.trials(0.0), None) == ()


def test_a_case_graded_otherwise_under_other_threads_cannot_testify(made: Any) -> None:
    now = made.trials(0.0, 0.0, 1.0, 0.0)
    control = made.trials(0.0, 1.0, 0.0, T)
    assert find_silent(now, control) == ("math/01", "math/02", "math/03")


def test_a_case_without_a_control_answer_keeps_its_voice(made: Any) -> None:
    now = made.trials(0.0, 0.0)
    lost = dataclasses.replace(made.trial("math/01", TrialStatus.ERROR))
    assert find_silent(now, [lost]) == ()
