"""Where two answers part, and how close it was."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support import sample_fidelity as sample
from support import sample_runs

from suite.records import Forced, Run, Trial, TrialStatus
from suite.reporting.parting import NEAR_TIE, Parting, find_changes, part

CASE = "math/apples"


def reference(text: str = "one two three", ids: tuple[int, ...] = (1, 2, 3), **changes: Any) -> Trial:
    return replace(sample.answered("fp16", CASE, text, ids, correct=True, answer="18"), **changes)


def other(text: str = "one two four", ids: tuple[int, ...] = (1, 2, 4), **changes: Any) -> Trial:
    return replace(sample.answered("q4_k_m", CASE, text, ids, correct=False, answer="17"), **changes)


def forced(*leads: tuple[int, int, float], length: int = 4, **changes: Any) -> Forced:
    plain = sample.forced(kld=(0.1,) * length, logprobs=(-1.0,) * length, reference_logprobs=(-0.5,) * length)
    return replace(sample.departing(plain, *leads), **changes)


def parted(*found: Forced, mine: Trial | None = None, theirs: Trial | None = None) -> Parting:
    parting = part(theirs or reference(), mine or other(), found)
    assert parting is not None
    return parting


def test_the_first_differing_token_stands_with_both_texts_from_there_on() -> None:
    parting = parted(forced((2, 4, 0.05)))
    assert (parting.position, parting.reference_token, parting.token) == (2, 3, 4)
    assert (parting.shared, parting.reference_text, parting.text) == ("one two ", "three", "four")


def test_probabilities_come_from_the_departure_at_that_position() -> None:
    parting = parted(forced((2, 4, 0.05)))
    assert (parting.reference_logprob, parting.reference_token_here) == (-0.5, -1.0)
    assert parting.logprob == pytest.approx(-0.95)
    assert parting.lead == 0.05
    assert parting.near_tie is True


@pytest.mark.parametrize(("lead", "tie"), [(0.0, True), (NEAR_TIE - 0.001, True), (NEAR_TIE, False), (2.0, False)])
def test_a_near_tie_is_a_lead_below_a_tenth_of_a_nat(lead: float, tie: bool) -> None:
    assert parted(forced((2, 4, lead))).near_tie is tie


def test_equal_answers_do_not_part() -> None:
    assert part(reference(), other("one two three", (1, 2, 3)), [forced()]) is None
    assert part(reference(generation=None), other(), [forced()]) is None


def test_the_decode_path_comes_first_for_answers_are_decoded() -> None:
    decoded = forced((2, 4, 0.3), path="decode")
    assert parted(forced((2, 4, 0.05)), decoded).lead == 0.3


def test_a_path_that_chose_another_token_is_not_the_one_that_answered() -> None:
    decoded = forced((2, 9, 0.3), path="decode")
    assert parted(forced((2, 4, 0.05)), decoded).lead == 0.05


def test_where_no_path_chose_as_the_answer_did_the_paths_are_told_of() -> None:
    parting = parted(forced())
    assert parting.lead is None
    assert parting.near_tie is None
    assert "evaluated in batches, it prefers the reference's token there" in parting.unknown
    assert "evaluated token by token, it prefers token 9" in parted(forced((2, 9, 0.3), path="decode")).unknown


def test_an_answer_whose_own_probabilities_are_recorded_needs_no_departure() -> None:
    mine = other()
    assert mine.generation is not None
    told = replace(mine, generation=replace(mine.generation, logprobs=(-0.1, -0.1, -0.98)))
    parting = parted(forced(), mine=told)
    assert parting.lead == pytest.approx(0.02)
    assert parting.unknown == ""


def test_an_answer_that_ends_first_parts_where_it_ends() -> None:
    parting = parted(forced((2, 2, 0.05)), mine=other("one two ", (1, 2)))
    assert (parting.position, parting.token, parting.text) == (2, 2, "")
    longer = parted(forced((3, 5, 0.05)), mine=other("one two three five", (1, 2, 3, 5)))
    assert (longer.position, longer.reference_token, longer.reference_text) == (3, None, "")
    assert longer.lead == 0.05


def test_beyond_the_trace_nothing_is_known() -> None:
    assert parted(forced(length=2)).unknown == "the trace ends before it, at position 2"
    assert "not taken through" in parted().unknown


@pytest.mark.parametrize("stale", [
    [forced((2, 4, 0.05)), forced((1, 7, 0.4), variant="fp16")],  # the reference itself would go another way
    [forced((2, 4, 0.05), length=9)],  # longer than what the reference answered
])  # fmt: skip
def test_a_trace_of_another_answer_is_not_taken_for_this_one(stale: list[Forced]) -> None:
    parting = parted(*stale)
    assert parting.lead is None
    assert "of another answer" in parting.unknown


def test_a_reference_that_departs_later_does_not_matter() -> None:
    assert parted(forced((2, 4, 0.05)), forced((3, 7, 0.4), variant="fp16")).lead == 0.05


def test_other_prompts_have_no_common_positions() -> None:
    parting = parted(forced((2, 4, 0.05)), mine=other(prompt_sha256="cd" * 32))
    assert (parting.lead, parting.unknown) == (None, "the prompts have other token ids")


def test_broken_logits_tell_nothing() -> None:
    assert parted(forced((2, 4, 0.05), broken=(2,))).unknown == "its logits there are no numbers"


# --------------------------------------------------------------------------------------------------- what changed


def changes_of(run: Run, name: str = "q4_k_m") -> list[tuple[str, bool, bool]]:
    return [(c.case, c.was_correct, c.is_correct) for c in find_changes(run, name, "fp16") if c.flipped]


def test_lost_cases_come_before_gained_ones_and_both_before_the_rest() -> None:
    found = find_changes(sample.damaged(), "q4_k_m", "fp16")
    assert [c.case for c in found[:2]] == ["math/apples", "code/trains"]
    assert changes_of(sample.damaged()) == [("math/apples", True, False), ("code/trains", False, True)]
    assert len(found) == 6


def test_an_answer_in_which_nothing_was_found_counts_as_wrong() -> None:
    lost = sample_runs.trial("q4_k_m", CASE, score=sample_runs.score(TrialStatus.UNPARSABLE))
    assert changes_of(sample_runs.run(trials=(reference(), lost))) == [(CASE, True, False)]


def test_an_answer_that_ended_in_an_error_is_none() -> None:
    lost = sample_runs.trial("q4_k_m", CASE, score=sample_runs.score(TrialStatus.ERROR), generation=None)
    assert find_changes(sample_runs.run(trials=(reference(), lost)), "q4_k_m", "fp16") == ()
