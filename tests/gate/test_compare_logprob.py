"""Log-probability of the accepted answers: signed, paired by case, and compared with what was accepted."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Collection, Sequence
from typing import Any

import pytest

from suite.gate.answers import answer_of, hash_tokens, ids_of
from suite.gate.compare import compare
from suite.gate.decide import limit_of
from suite.gate.judge import judge, judge_all
from suite.gate.plan import plan_gates
from suite.gate.policy import DEFAULT_POLICY, merge_policy
from suite.gate.refresh import Mode, Update, refresh_quality
from suite.records import Baselines, Finding, Gate, QualityBaseline, Tolerance, Trial, TrialStatus, Verdict
from suite.stats.beta import t_quantile
from suite.stats.intervals import p_above, paired_mean

TOKENS = (5, 60, 700, 2)


def answer(made: Any, case: str, logprob: float | None, tokens: Sequence[int] = TOKENS, **changes: Any) -> Trial:
    """One right answer of which every token has this log-probability; None: a backend that cannot tell."""
    trial: Trial = made.trial(case, 1.0, tokens=tokens)
    assert trial.generation is not None
    logprobs = None if logprob is None else (logprob,) * len(tokens)
    return dataclasses.replace(trial, generation=dataclasses.replace(trial.generation, logprobs=logprobs), **changes)


def answers(made: Any, logprobs: Sequence[float | None], **changes: Any) -> list[Trial]:
    return [answer(made, f"math/{number:02}", logprob, **changes) for number, logprob in enumerate(logprobs)]


def other(made: Any, trial: Trial, weighed: float | None, of: Sequence[int] = TOKENS) -> Trial:
    """Another answer to the same case, very likely itself, by a variant that was made to weigh the answer `of`."""
    return answer(made, trial.case, -0.001, (9, 9), accepted_logprob=weighed, accepted_sha256=hash_tokens(of))


def found(
    made: Any, then: Sequence[Trial], now: Sequence[Trial], scope: str = "all", silent: Collection[str] = ()
) -> Finding:
    baselines = Baselines(quality=made.quality_baseline(then))
    compared = compare(made.result(trials=now), now, baselines, made.environment, silent=silent)
    return next(judge(c, DEFAULT_POLICY) for c in compared if (c.metric, c.scope) == ("logprob", scope))


def spread(mean: float, sd: float, count: int = 24) -> list[float]:
    """Log-probabilities about `mean`, the same every time."""
    luck = random.Random(7)
    return [mean + luck.gauss(0, sd) for _ in range(count)]


def test_the_same_likelihood_passes_and_says_so(made: Any) -> None:
    trials = answers(made, spread(-0.4, 0.1))
    finding = found(made, trials, trials)
    assert (finding.verdict, finding.gate) == (Verdict.PASS, Gate.WARN)
    assert finding.comparison.identical
    assert "every accepted answer is as likely as it was, on 24 cases" in finding.sentence


def test_what_four_stored_digits_round_away_is_no_change_and_a_little_more_is(made: Any) -> None:
    then = answers(made, [-0.4] * 24)
    assert found(made, then, answers(made, [-0.4004] * 24)).comparison.identical
    shifted = found(made, then, answers(made, [*[-0.4] * 23, -0.4006]))
    assert not shifted.comparison.identical
    assert shifted.verdict is Verdict.PASS


def test_the_same_tokens_less_likely_are_a_loss_in_nats(made: Any) -> None:
    then = answers(made, spread(-0.4, 0.1))
    now = [answer(made, t.case, (answer_of(t).logprob or 0.0) - 0.05) for t in then]
    finding = found(made, then, now)
    assert finding.verdict is Verdict.REGRESSED
    assert finding.comparison.drift == pytest.approx(0.05)
    assert "fell by 0.050 nats a token" in finding.sentence
    assert "tolerance 0.020 nats a token" in finding.sentence
    assert found(made, now, then).verdict is Verdict.IMPROVED


def test_the_interval_is_that_of_t_on_cases_and_the_level_is_not_shared_with_later_looks(made: Any) -> None:
    losses = spread(0.03, 0.01)
    then = answers(made, [-0.4] * 24)
    finding = found(made, then, answers(made, [-0.4 - loss for loss in losses]))
    expected = paired_mean(losses, sd_floor=0.001)
    assert expected is not None
    comparison = finding.comparison
    assert (comparison.log_drift, comparison.log_se) == pytest.approx((expected.mean, expected.se))
    assert comparison.interval is not None
    assert finding.tolerance is not None
    assert finding.p_needed is not None
    least = t_quantile(1 - finding.p_needed, expected.df) * expected.se
    assert comparison.mde == pytest.approx(limit_of(comparison, finding.tolerance) + least)
    assert finding.p_value == pytest.approx(p_above(expected, limit_of(comparison, finding.tolerance)))
    assert finding.verdict is Verdict.REGRESSED


def test_a_loss_that_a_few_cases_carry_cannot_be_told_and_says_what_would_settle_it(made: Any) -> None:
    then = answers(made, [-0.4] * 24)
    finding = found(made, then, answers(made, [*[-0.4] * 21, -0.7, -0.5, -0.6]))
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "the interval spans the tolerance" in finding.sentence
    assert "cases would settle it" in finding.next_step


def test_one_case_has_no_spread_whatever_it_says(made: Any) -> None:
    finding = found(made, answers(made, [-0.1]), answers(made, [-3.0]))
    assert (finding.verdict, finding.comparison.interval) == (Verdict.INCONCLUSIVE, None)
    assert "a single case has no spread" in finding.sentence


def test_another_answer_is_held_to_the_accepted_one_and_not_to_itself(made: Any) -> None:
    then = answers(made, [-0.4] * 12)
    finding = found(made, then, [other(made, trial, -0.5) for trial in then])
    assert finding.verdict is Verdict.REGRESSED
    assert (finding.comparison.baseline, finding.comparison.observed) == pytest.approx((-0.4, -0.5))
    assert finding.comparison.drift == pytest.approx(0.1)


def test_what_was_weighed_of_some_other_answer_does_not_count(made: Any) -> None:
    then = answers(made, [-0.4] * 12)
    stale = [other(made, then[0], -9.0, of=(1, 2)), other(made, then[1], None), *then[2:]]
    comparison = found(made, then, stale).comparison
    assert (comparison.n, comparison.identical) == (10, False)
    assert comparison.drift == pytest.approx(0.0)
    assert "10 of 12 answers have a log-probability then and now" in comparison.reason


def test_too_few_of_the_answers_are_no_comparison(made: Any) -> None:
    then, before = answers(made, [-0.4] * 12), answers(made, [None] * 12)
    refused = found(made, then, [*(other(made, trial, None) for trial in then[:7]), *then[7:]])
    assert refused.verdict is Verdict.NOT_MEASURED
    assert "only 5 of 12 accepted answers could be weighed" in refused.sentence
    mixed = found(made, [*before[:7], *then[7:]], then)
    assert mixed.verdict is Verdict.UNBASELINED
    assert "all but 5 answers were accepted before" in mixed.sentence
    assert found(made, [*before[:6], *then[6:]], then).verdict is Verdict.PASS


def test_variations_of_one_prompt_count_once_by_their_mean(made: Any) -> None:
    then = [*answers(made, [-0.4] * 6, family="sheep"), answer(made, "math/alone", -0.4)]
    now = [*answers(made, [-0.4] * 3 + [-0.5] * 3, family="sheep"), answer(made, "math/alone", -0.41)]
    comparison = found(made, then, now).comparison
    assert (comparison.n, comparison.log_df) == (2, 1)
    assert comparison.drift == pytest.approx((0.05 + 0.01) / 2)


def test_cases_that_cannot_testify_are_left_out(made: Any) -> None:
    then = answers(made, [-0.4] * 12)
    now = [answer(made, then[0].case, -5.0), *then[1:]]
    finding = found(made, then, now, silent=[then[0].case])
    assert (finding.verdict, finding.comparison.n) == (Verdict.PASS, 11)
    assert finding.comparison.left_out == (then[0].case,)


def test_a_baseline_from_before_is_unbaselined_and_only_warns(made: Any) -> None:
    before, now = answers(made, [None] * 4), answers(made, [-0.4] * 4)
    finding = found(made, before, now)
    assert (finding.verdict, finding.gate) == (Verdict.UNBASELINED, Gate.WARN)
    assert "accepted before log-probabilities were kept; accept anew" in finding.sentence


def test_a_backend_that_cannot_tell_is_not_measured(made: Any) -> None:
    baselines = Baselines(quality=made.quality_baseline(answers(made, [-0.4] * 4)))
    now = answers(made, [None] * 4)
    planned = plan_gates((), ["math"], DEFAULT_POLICY)
    compared = compare(made.result(trials=now), now, baselines, made.environment, planned=planned)
    findings = {(f.metric, f.scope): f for f in judge_all(compared, DEFAULT_POLICY)}
    assert findings["logprob", "all"].verdict is Verdict.NOT_MEASURED
    assert findings["score", "all"].verdict is Verdict.PASS
    assert ("logprob", "math") not in findings


def test_nothing_accepted_at_all_is_unbaselined(made: Any) -> None:
    now = answers(made, [-0.4] * 4)
    compared = compare(made.result(trials=now), now, Baselines(), made.environment)
    assert {c.unresolved for c in compared if c.metric == "logprob"} == {Verdict.UNBASELINED}


def test_an_empty_answer_has_no_likelihood_and_does_not_disturb(made: Any) -> None:
    then = [*answers(made, [-0.4] * 4), answer(made, "math/empty", -1.0, ())]
    assert answer_of(then[-1]).logprob is None
    comparison = found(made, then, then).comparison
    assert (comparison.n, comparison.identical) == (4, True)


def test_it_is_gated_over_all_and_by_a_policy_of_ones_own_in_each_domain() -> None:
    usual = {item.scope for item in plan_gates((), ["math", "code"], DEFAULT_POLICY) if item.metric == "logprob"}
    own = merge_policy({"logprob": Tolerance(absolute=0.01)}, where="m.toml")
    assert usual == {"all"}
    assert {i.scope for i in plan_gates((), ["math", "code"], own) if i.metric == "logprob"} == {"math", "code", "all"}


def test_ids_are_read_back_unless_they_were_edited(made: Any) -> None:
    accepted = answer_of(answer(made, "math/a", -0.4))
    assert (accepted.output_ids, ids_of(accepted)) == ("5 60 700 2", TOKENS)
    for edited in ("5 60 700 3", "five", None):
        assert ids_of(dataclasses.replace(accepted, output_ids=edited)) is None


# ------------------------------------------------------------------------------------------ accepting


def refreshed(made: Any, then: Sequence[Trial], now: Sequence[Trial], mode: Mode) -> QualityBaseline | None:
    old = made.quality_baseline(then)
    result = made.result(trials=now)
    findings = judge_all(compare(result, now, Baselines(quality=old), made.environment), DEFAULT_POLICY)
    run = made.run(result, now)
    update = Update(
        run=run, result=result, trials=tuple(now), findings=findings, mode=mode, provenance=made.provenance
    )  # fmt: skip
    return refresh_quality(update, old)


@pytest.mark.parametrize("mode", ["new", "changed"])
def test_an_update_adds_what_was_not_kept_to_answers_that_are_still_given(made: Any, mode: Mode) -> None:
    before = answers(made, [None] * 3)
    now = [*answers(made, [-0.4] * 2), answer(made, "math/02", -0.4, (9, 9))]
    accepted = refreshed(made, before, now, mode)
    assert accepted is not None
    other = -0.4 if mode == "changed" else None  # three cases cannot tell, and a deliberate update takes the new answer
    assert [case.logprob for case in accepted.cases.values()] == [pytest.approx(-0.4), pytest.approx(-0.4), other]
    assert accepted.cases["math/00"] == dataclasses.replace(
        answer_of(before[0]), logprob=accepted.cases["math/00"].logprob, output_ids="5 60 700 2"
    )


@pytest.mark.parametrize("mode", ["new", "changed"])
def test_an_update_keeps_what_did_not_drift(made: Any, mode: Mode) -> None:
    then = answers(made, spread(-0.4, 0.1))
    assert (
        refreshed(made, then, [answer(made, t.case, (answer_of(t).logprob or 0) - 0.001) for t in then], mode) is None
    )


def test_an_update_takes_in_a_loss_of_likelihood_of_the_same_answers(made: Any) -> None:
    then, now = answers(made, [-0.4] * 24), answers(made, [-0.4, *[-0.5] * 23])
    accepted = refreshed(made, then, now, "changed")
    assert accepted is not None
    assert accepted.cases["math/00"] == answer_of(then[0])
    assert accepted.cases["math/01"].logprob == pytest.approx(-0.5)
    assert refreshed(made, then, now, "new") is None


def test_an_answer_that_failed_leaves_it_unmeasured(made: Any) -> None:
    then = answers(made, [-0.4] * 4)
    finding = found(made, then, [made.trial("math/00", TrialStatus.ERROR), *then[1:]])
    assert finding.verdict is Verdict.NOT_MEASURED
