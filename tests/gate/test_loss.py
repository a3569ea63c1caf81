"""A variant against the reference of the same run: exact counts, families as one draw, budgets answered three ways."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from suite.gate.compare import compare
from suite.gate.loss import bounds, detectable, losses
from suite.gate.loss_wording import suspicions
from suite.records import Baselines, Budget, Gate, Loss, Trial, TrialStatus, VariantFailure, VariantResult, Verdict
from suite.stats.binomial import net_loss_bounds

LOOP = (7, 8) * 20


def of(name: str, trials: Sequence[Trial], families: Sequence[str | None] | None = None) -> list[Trial]:
    chosen = families or [None] * len(trials)
    return [dataclasses.replace(t, variant=name, family=f) for t, f in zip(trials, chosen, strict=True)]


def sides(made: Any, mine: Sequence[Any] = (), theirs: Sequence[Any] = ()) -> tuple[VariantResult, VariantResult]:
    """Variant ``q4`` and reference ``fp16`` with these measurements."""
    reference = made.result(*theirs)
    return made.result(*mine), dataclasses.replace(
        reference, variant=dataclasses.replace(reference.variant, name="fp16", reference=True)
    )


def compared(
    made: Any,
    then: Sequence[Trial],
    now: Sequence[Trial],
    budgets: Mapping[str, Budget] | None = None,
    families: Sequence[str | None] | None = None,
) -> dict[tuple[str, str], Loss]:
    """The losses of ``q4`` (its answers now) against ``fp16`` (then), by metric and scope."""
    result, reference = sides(made)
    found = losses(result, of("q4", now, families), reference, of("fp16", then, families), budgets or {})
    return {(loss.metric, loss.scope): loss for loss in found}


# ------------------------------------------------------------------------------------------------------- answers


def test_a_net_loss_is_what_was_lost_less_what_was_gained(made: Any) -> None:
    then = made.trials(*[1.0] * 5, *[0.0] * 5)
    now = made.trials(0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0)
    score = compared(made, then, now)["score", "all"]
    assert (score.lost, score.gained, score.n) == (3, 1, 10)
    assert score.value == pytest.approx(0.2)
    assert score.interval == pytest.approx(net_loss_bounds(3, 1, 10))
    assert score.answer == "no budget"
    assert "20.0 points below that of fp16" in score.sentence
    assert "3 lost and 1 gained of 10 cases" in score.sentence


def test_each_domain_is_compared_by_itself_too(made: Any) -> None:
    then = [*made.trials(1.0, 1.0), *made.trials(1.0, 1.0, domain="code")]
    now = [*made.trials(0.0, 1.0), *made.trials(1.0, 1.0, domain="code")]
    found = compared(made, then, now)
    assert [found["score", scope].value for scope in ("all", "math", "code")] == [0.25, 0.5, 0.0]


def test_a_family_that_spans_domains_is_one_draw_among_all_as_in_drift(made: Any) -> None:
    then = (*made.trials(1.0, 1.0, domain="math"), *made.trials(1.0, 1.0, domain="code"))
    now = (*made.trials(0.0, 1.0, domain="math"), *made.trials(0.0, 1.0, domain="code"))
    families = ["twins", None, "twins", None]
    found = compared(made, then, now, families=families)
    assert {scope: found["score", scope].n for scope in ("all", "math", "code")} == {"all": 3, "math": 2, "code": 2}
    baselines = Baselines(quality=made.quality_baseline(of("q4", then, families)))
    mine = of("q4", now, families)
    drift = compare(made.result(trials=mine), mine, baselines, made.environment)
    assert {c.draws for c in drift if (c.metric, c.scope) == ("score", "all")} == {found["score", "all"].n}


def test_a_family_counts_once_however_many_cases_it_has(made: Any) -> None:
    then, now = made.trials(*[1.0] * 6), made.trials(0.0, 0.0, 0.0, 0.0, 1.0, 1.0)
    score = compared(made, then, now, families=["f", "f", "f", "f", None, None])["score", "all"]
    assert score.n == 3
    assert score.value == pytest.approx(1 / 3)
    assert score.interval == pytest.approx(net_loss_bounds(1, 0, 3))
    assert (score.lost, score.gained) == (4, 0)
    assert "6 cases in 3 independent groups" in score.sentence


def test_partial_credit_adds_up_to_cases_and_is_rounded_to_the_cautious_side(made: Any) -> None:
    score = compared(made, made.trials(*[1.0] * 10), made.trials(*[0.5] * 3, *[1.0] * 7))["score", "all"]
    assert score.value == pytest.approx(0.15)
    assert score.interval == pytest.approx((net_loss_bounds(1, 0, 10)[0], net_loss_bounds(2, 0, 10)[1]))


def test_a_rate_that_rose_is_positive_and_one_that_fell_negative(made: Any) -> None:
    truncated, empty = TrialStatus.TRUNCATED, TrialStatus.EMPTY
    found = compared(made, made.trials(1.0, empty, empty, 1.0), made.trials(truncated, 1.0, empty, 1.0))
    assert (found["truncated", "all"].value, found["empty", "all"].value) == (0.25, -0.25)
    assert (found["truncated", "all"].lost, found["empty", "all"].gained) == (1, 1)
    assert "25.0 points above" in found["truncated", "all"].sentence


def test_answer_length_is_a_geometric_mean_of_ratios(made: Any) -> None:
    then = [made.trial("math/a", 1.0, tokens=range(10)), made.trial("math/b", 1.0, tokens=range(10))]
    now = [made.trial("math/a", 1.0, tokens=range(20)), made.trial("math/b", 1.0, tokens=range(5))]
    length = compared(made, then, now)["output_tokens", "all"]
    assert length.value == pytest.approx(1.0)
    assert length.interval is not None
    assert length.interval[0] * length.interval[1] == pytest.approx(1.0)
    assert length.interval[1] > 2.0


def test_an_answer_of_no_token_has_a_length(made: Any) -> None:
    then, now = made.trial("math/a", 1.0, tokens=range(8)), made.trial("math/a", TrialStatus.EMPTY, tokens=())
    assert compared(made, [then], [now])["output_tokens", "all"].value == pytest.approx(1 / 8)


def test_the_same_answers_token_for_token_are_said_to_be_that(made: Any) -> None:
    trials = made.trials(1.0, 0.0)
    assert "every answer is the same, token for token" in compared(made, trials, trials)["score", "all"].sentence


def test_a_case_that_only_one_side_answered_is_not_compared(made: Any) -> None:
    found = compared(made, made.trials(1.0, 1.0), made.trials(0.0))
    assert found["score", "all"].n == 1


def test_an_answer_lost_to_an_error_leaves_its_scopes_unmeasured(made: Any) -> None:
    then = [*made.trials(1.0), *made.trials(1.0, domain="code")]
    now = [*made.trials(TrialStatus.ERROR), *made.trials(1.0, domain="code")]
    found = compared(made, then, now)
    assert {found["score", scope].answer for scope in ("all", "math")} == {"not measured"}
    assert "math/00" in found["score", "all"].sentence
    assert found["score", "code"].value == 0.0


# ------------------------------------------------------------------------------------------------------- bounds


def test_the_bounds_hold_at_their_level_for_every_truth_tried() -> None:
    """Exact coverage by enumeration: 12 cases, each lost or gained with these chances."""
    n = 12
    kept = {
        (a, b): bounds([1.0] * a + [-1.0] * b + [0.0] * (n - a - b)) for a in range(n + 1) for b in range(n + 1 - a)
    }
    for lose, gain in ((0.0, 0.0), (0.1, 0.1), (0.3, 0.3), (0.5, 0.5), (0.2, 0.0), (0.6, 0.1), (0.1, 0.4), (0.0, 0.9)):
        missed_low = missed_high = 0.0
        for (a, b), (low, high) in kept.items():
            ways = math.comb(n, a) * math.comb(n - a, b)
            chance = ways * lose**a * gain**b * max(1 - lose - gain, 0.0) ** (n - a - b)
            missed_low += chance * (low > lose - gain + 1e-12)
            missed_high += chance * (high < lose - gain - 1e-12)
        assert missed_low <= 0.025 + 1e-9
        assert missed_high <= 0.025 + 1e-9


def test_losses_that_luck_does_not_explain_leave_no_doubt_that_there_is_one() -> None:
    assert bounds([1.0] * 5 + [0.0] * 72)[0] < 0  # p = 1/32
    assert bounds([1.0] * 6 + [0.0] * 71)[0] == 0.0  # p = 1/64, below 2.5 %
    assert bounds([-1.0] * 6 + [0.0] * 71)[1] == 0.0
    assert bounds([1.0] * 40 + [0.0] * 37)[0] > 0.3


@pytest.mark.parametrize(("n", "limit"), [(20, None), (77, None), (77, 0.05), (200, 0.1)])
def test_what_is_called_detectable_is_seen_with_a_chance_of_80_percent(n: int, limit: float | None) -> None:
    rate = detectable(n, limit)
    assert rate is not None
    beyond = [k for k in range(n + 1) if bounds([1.0] * k + [0.0] * (n - k))[0] >= (limit or 0.0) + 1e-9 * bool(limit)]
    seen = sum(math.comb(n, k) * rate**k * (1 - rate) ** (n - k) for k in beyond)
    assert 0.8 - 1e-6 <= seen < 0.82


def test_a_few_cases_can_show_no_loss_at_all() -> None:
    assert detectable(3, None) is None


def test_thousands_of_cases_still_have_a_detectable_loss() -> None:
    assert 0.0 < (detectable(5000, None) or 0.0) <= (detectable(1000, None) or 0.0)


# ------------------------------------------------------------------------------------------------------- budgets


@pytest.mark.parametrize(
    ("lost", "answer"), [(0, "within budget"), (1, "cannot tell"), (12, "cannot tell"), (40, "over budget")]
)
def test_a_budget_is_answered_three_ways(made: Any, lost: int, answer: str) -> None:
    """77 cases that lose nothing show that the loss is below 4.7 points."""
    then, now = made.trials(*[1.0] * 77), made.trials(*[0.0] * lost, *[1.0] * (77 - lost))
    assert compared(made, then, now, {"score": Budget(limit=0.05)})["score", "all"].answer == answer


def test_what_cannot_be_told_says_what_could_and_what_it_would_take(made: Any) -> None:
    then, now = made.trials(*[1.0] * 24), made.trials(0.0, *[1.0] * 23)
    score = compared(made, then, now, {"score": Budget(limit=0.05)})["score", "all"]
    assert score.mde is not None
    assert f"cannot tell with 24 cases: a loss below {100 * score.mde:.1f} points would not be seen" in score.sentence
    assert "72 cases that lose nothing" in score.sentence
    assert net_loss_bounds(0, 0, 72)[1] <= 0.05 < net_loss_bounds(0, 0, 71)[1]


def test_a_budget_over_all_says_nothing_about_a_domain_that_has_none_of_its_own(made: Any) -> None:
    trials = made.trials(*[1.0] * 5)
    found = compared(made, trials, trials, {"score": Budget(limit=0.5), "exact/math": Budget(limit=0.9)})
    assert found["score", "math"].answer == "no budget"
    assert (found["exact", "math"].answer, found["exact", "all"].answer) == ("within budget", "no budget")


def test_a_budget_for_length_limits_how_much_longer_and_not_how_much_shorter(made: Any) -> None:
    then = [made.trial(f"math/{k}", 1.0, tokens=range(20)) for k in range(5)]
    for length, answer in ((10, "within budget"), (20, "within budget"), (40, "over budget")):
        now = [made.trial(f"math/{k}", 1.0, tokens=range(length)) for k in range(5)]
        assert compared(made, then, now, {"output_tokens": Budget(limit=1.2)})["output_tokens", "all"].answer == answer


def test_one_case_has_no_spread_of_lengths(made: Any) -> None:
    trial = made.trials(1.0)
    length = compared(made, trial, trial, {"output_tokens": Budget(limit=1.2)})["output_tokens", "all"]
    assert (length.interval, length.answer) == (None, "cannot tell")


# ----------------------------------------------------------------------------------------------- speed and memory


@pytest.mark.parametrize(
    ("limit", "answer"), [(1.5, "within budget"), (2.0, "cannot tell"), (2.5, "over budget"), (None, "no budget")]
)
def test_speed_up_has_an_interval_over_launches(made: Any, limit: float | None, answer: str) -> None:
    result, reference = sides(
        made, [made.speed("decode_tok_s", [98.0, 200.0, 51.0])], [made.speed("decode_tok_s", [50.0, 100.0, 25.0])]
    )
    budgets = {} if limit is None else {"speedup": Budget(limit=limit)}
    (speedup,) = losses(result, (), reference, (), budgets)
    assert (speedup.metric, speedup.scope, speedup.n, speedup.answer) == ("speedup", "short", 3, answer)
    assert speedup.value == pytest.approx((1.96 * 2.0 * 2.04) ** (1 / 3))
    assert speedup.interval is not None
    assert speedup.interval[0] < 2.0 < speedup.interval[1] < 2.2


def test_speed_ups_that_were_measured_already_are_taken_as_they_are(made: Any) -> None:
    result, reference = sides(made, [made.speed("speedup", [3.0, 3.0]), made.speed("decode_tok_s", [1.0, 1.0])])
    assert [loss.value for loss in losses(result, (), reference, (), {})] == [pytest.approx(3.0)]


def test_looking_again_widens_the_interval_of_the_speed_up(made: Any) -> None:
    result, reference = sides(made, [made.speed("speedup", [2.0, 2.1, 2.2])])
    (once,), (twice,) = (losses(result, (), reference, (), {}, looks=looks) for looks in (1, 2))
    assert once.interval is not None
    assert twice.interval is not None
    assert twice.interval[0] < once.interval[0] < once.interval[1] < twice.interval[1]
    assert "97.5 %" in twice.sentence


def test_a_contended_speed_up_is_never_within_its_budget(made: Any) -> None:
    contended = made.speed("speedup", [3.0, 3.0], status="contended", reason="CPU pressure 31 %")
    result, reference = sides(made, [contended])
    (loss,) = losses(result, (), reference, (), {"speedup": Budget(limit=1.0)})
    assert loss.answer == "cannot tell"
    assert "CPU pressure 31 %" in loss.sentence


def test_one_launch_has_no_spread(made: Any) -> None:
    result, reference = sides(made, [made.speed("speedup", [3.0])])
    (loss,) = losses(result, (), reference, (), {"speedup": Budget(limit=1.0)})
    assert (loss.interval, loss.answer) == (None, "cannot tell")


@pytest.mark.parametrize(("limit", "answer"), [(0.6, "within budget"), (0.5, "within budget"), (0.4, "over budget")])
def test_memory_is_a_share_of_the_reference_and_answered_by_its_value(made: Any, limit: float, answer: str) -> None:
    result, reference = sides(
        made, [made.speed("peak_rss_bytes", [90, 100], "all")], [made.speed("peak_rss_bytes", [200, 150], "all")]
    )
    (loss,) = losses(result, (), reference, (), {"peak_rss_bytes": Budget(limit=limit)})
    assert (loss.value, loss.interval, loss.answer) == (0.5, None, answer)


# ----------------------------------------------------------------------------------------- nothing to compare


def test_the_reference_has_no_loss_against_itself(made: Any) -> None:
    _, reference = sides(made)
    trials = of("fp16", made.trials(1.0))
    assert losses(reference, trials, reference, trials, {}) == ()


@pytest.mark.parametrize("failing", ["q4", "fp16"])
def test_a_failed_side_is_not_measured_and_named(made: Any, failing: str) -> None:
    failed = VariantFailure(variant=failing, verdict=Verdict.ERROR, reason="killed")
    result, reference = (
        dataclasses.replace(side, failure=failed) if side.variant.name == failing else side for side in sides(made)
    )
    trials = made.trials(1.0)
    (loss,) = losses(result, of("q4", trials), reference, of("fp16", trials), {"score": Budget(limit=0.1)})
    assert (loss.metric, loss.answer, loss.value) == ("score", "not measured", None)
    assert f"{failing} is ERROR" in loss.sentence


# ------------------------------------------------------------------------------------------------------- oddities


def test_longer_answers_and_loops_are_pointed_out_although_the_score_held(made: Any) -> None:
    then = [made.trial(f"math/{k}", 1.0, tokens=range(20)) for k in range(5)]
    now = [made.trial(f"math/{k}", 1.0, tokens=LOOP) for k in range(5)]
    told = suspicions(list(compared(made, then, now).values()))
    assert told == (
        "answers are much longer than the reference's: q4 (2.00 times)",
        "more answers end in a repetition loop: q4 (5 more, which its score does not show)",
    )


def test_loops_that_cost_score_are_not_said_to_be_hidden(made: Any) -> None:
    then = [made.trial(f"math/{k}", 1.0, tokens=range(40)) for k in range(5)]
    now = [made.trial(f"math/{k}", 0.0, tokens=LOOP) for k in range(5)]
    assert suspicions(list(compared(made, then, now).values())) == (
        "more answers end in a repetition loop: q4 (5 more)",
    )


def test_one_loop_and_slightly_longer_answers_are_nothing_odd(made: Any) -> None:
    then = [made.trial(f"math/{k}", 1.0, tokens=range(40)) for k in range(5)]
    now = [
        made.trial("math/0", 1.0, tokens=LOOP),
        *(made.trial(f"math/{k}", 1.0, tokens=range(44)) for k in range(1, 5)),
    ]
    assert suspicions(list(compared(made, then, now).values())) == ()


def test_loops_are_not_compared_with_baselines_which_hold_no_token_ids(made: Any) -> None:
    trials = [made.trial(f"math/{k}", 1.0, tokens=LOOP) for k in range(5)]
    baselines = Baselines(quality=made.quality_baseline(trials))
    result = made.result(trials=trials)
    found = {one.metric for one in compare(result, trials, baselines, made.environment)}
    assert {m.value for m in result.measurements if m.metric == "looping"} == {1.0}
    assert "looping" not in found
    assert "score" in found


def test_a_gate_does_not_change_the_answer(made: Any) -> None:
    then, now = made.trials(*[1.0] * 10), made.trials(*[0.0] * 10)
    answers = {compared(made, then, now, {"score": Budget(limit=0.1, gate=g)})["score", "all"].answer for g in Gate}
    assert answers == {"over budget"}
