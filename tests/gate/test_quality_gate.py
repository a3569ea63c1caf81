"""Quality: paired answers, flips, and what a few cases can tell."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy
import pytest

from suite.gate.answers import hash_tokens
from suite.gate.compare import compare
from suite.gate.failing import is_accepted
from suite.gate.judge import judge
from suite.gate.policy import DEFAULT_POLICY
from suite.records import Baselines, Comparison, Finding, Trial, TrialStatus, Verdict
from suite.stats.binomial import net_loss_bounds


def findings(made: Any, then: Sequence[Trial], now: Sequence[Trial], **changes: Any) -> dict[tuple[str, str], Finding]:
    baselines = Baselines(quality=made.quality_baseline(then, **changes))
    found = compare(made.result(trials=now), now, baselines, made.environment)
    return {(c.metric, c.scope): judge(c, DEFAULT_POLICY) for c in found}


def score(made: Any, lost: int, gained: int, *, same: int = 24) -> Finding:
    """The finding on 24 cases of one domain of which so many flipped, as the only one of its run."""
    half = (same - lost - gained) // 2
    then = [1.0] * lost + [0.0] * gained + [1.0] * half + [0.0] * (same - lost - gained - half)
    now = [0.0] * lost + [1.0] * gained + then[lost + gained :]
    return findings(made, made.trials(*then), made.trials(*now))["score", "math"]


def test_the_same_answers_pass_token_for_token(made: Any) -> None:
    trials = made.trials(1.0, 0.0, 1.0)
    finding = findings(made, trials, trials)["score", "all"]
    assert finding.verdict is Verdict.PASS
    assert finding.comparison.identical
    assert "every answer is the same, token for token, on 3 cases" in finding.sentence


@pytest.mark.parametrize(("cases", "verdict"), [(24, Verdict.INCONCLUSIVE), (36, Verdict.PASS)])
def test_other_tokens_graded_the_same_pass_where_there_are_cases_enough_to_certify_it(
    made: Any, cases: int, verdict: Verdict
) -> None:
    then = made.trials(*[1.0] * cases)
    now = [made.trial(t.case, 1.0, tokens=(9, 9)) for t in then]
    finding = findings(made, then, now)["score", "math"]
    assert (finding.verdict, finding.comparison.identical) == (verdict, False)
    assert (1 - 0.05 ** (1 / cases) <= 0.08) is (verdict is Verdict.PASS)
    if verdict is Verdict.INCONCLUSIVE:
        assert "on other cases like these 11.7 points may be lost" in finding.sentence
        assert "about 36 cases of math would show a loss like this to be within the tolerance" in finding.next_step


def test_the_same_tokens_graded_otherwise_are_not_identical(made: Any) -> None:
    then = [made.trial("math/a", 1.0, tokens=(1, 2))]
    now = [made.trial("math/a", 0.0, tokens=(1, 2))]
    assert not findings(made, then, now)["score", "all"].comparison.identical


@pytest.mark.parametrize(("lost", "gained"), [(1, 0), (1, 1), (2, 2), (4, 4), (1, 2), (0, 2)])
def test_a_few_flips_both_ways_pass_among_many_cases_and_tell_nothing_among_few(
    made: Any, lost: int, gained: int
) -> None:
    assert score(made, lost, gained).verdict is Verdict.INCONCLUSIVE
    many = score(made, lost, gained, same=200)
    assert many.verdict is Verdict.PASS
    assert many.comparison.interval is not None
    assert many.comparison.interval[1] == pytest.approx(net_loss_bounds(lost, gained, 200, confidence=0.9)[1])


def test_without_a_flip_the_answers_pass(made: Any) -> None:
    assert score(made, 0, 0).verdict is Verdict.PASS


@pytest.mark.parametrize(("lost", "gained"), [(5, 0), (7, 1), (10, 2), (12, 0)])
def test_a_clear_loss_is_regressed(made: Any, lost: int, gained: int) -> None:
    finding = score(made, lost, gained)
    assert finding.verdict is Verdict.REGRESSED
    assert f"{lost} lost and {gained} gained of 24 cases" in finding.sentence
    assert "points worse" in finding.sentence


@pytest.mark.parametrize(("lost", "gained"), [(2, 0), (3, 0), (4, 0), (5, 1), (3, 2)])
def test_a_loss_that_may_be_luck_cannot_be_told_and_prints_what_could(made: Any, lost: int, gained: int) -> None:
    finding = score(made, lost, gained)
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert finding.comparison.mde is not None
    assert f"could have seen {100 * finding.comparison.mde:.1f} points" in finding.sentence
    assert "so few changed answers may be luck" in finding.sentence or finding.comparison.drift <= 0.08  # type: ignore[operator]
    assert finding.next_step.startswith("read the flipped answers; ")
    assert "quantdrift plan" in finding.next_step
    assert "--matrix-update=changed" in finding.next_step  # mode all would take any speed along


@pytest.mark.parametrize(("lost", "gained"), [(4, 0), (5, 0), (7, 1), (6, 2), (8, 1)])
def test_the_lower_bound_and_the_test_agree(made: Any, lost: int, gained: int) -> None:
    found = score(made, lost, gained).comparison
    assert found.interval is not None
    assert found.p_value is not None
    assert (found.interval[0] > 0) is (found.p_value <= 0.05)


def test_a_clear_gain_is_improved(made: Any) -> None:
    assert score(made, 1, 9).verdict is Verdict.IMPROVED


def test_a_handful_of_cases_says_that_it_could_never_tell(made: Any) -> None:
    finding = score(made, 4, 0, same=4)
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "4 cases are too few to show any loss" in finding.sentence


def test_a_significant_loss_within_the_tolerance_is_no_regression(made: Any) -> None:
    assert score(made, 6, 0, same=200).verdict is Verdict.PASS


def test_partial_credit_counts_without_a_flip(made: Any) -> None:
    found = findings(made, made.trials(*[0.9] * 24), made.trials(*[0.2] * 24))["score", "math"]
    assert found.comparison.drift == pytest.approx(0.7)
    assert found.comparison.interval is not None
    assert 0.08 < found.comparison.interval[0] < 0.7 <= found.comparison.interval[1]
    assert found.comparison.flips == ()
    assert found.verdict is Verdict.REGRESSED
    wiggle = findings(made, made.trials(*[0.5] * 72), made.trials(*[0.49, 0.51] * 36))["score", "math"]
    assert wiggle.verdict is Verdict.PASS


def test_variations_of_one_prompt_are_one_witness(made: Any) -> None:
    """Five losses are a verdict; five of one template are one loss."""
    then = made.trials(*[1.0] * 24)
    now = [made.trial(t.case, 0.0 if index < 5 else 1.0) for index, t in enumerate(then)]
    related = [dataclasses.replace(t, family="add" if index < 5 else None) for index, t in enumerate(now)]
    assert findings(made, then, now)["score", "math"].verdict is Verdict.REGRESSED
    finding = findings(made, then, related)["score", "math"]
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert (finding.comparison.p_value, finding.comparison.p_least) == (0.5, 0.5)


def test_cases_that_depend_on_the_number_of_threads_cannot_testify(made: Any) -> None:
    then = made.trials(*[1.0] * 24)
    now = [made.trial(t.case, 0.0 if index < 6 else 1.0) for index, t in enumerate(then)]
    baselines = Baselines(quality=made.quality_baseline(then))
    silent = [t.case for t in now[:5]]
    compared = compare(made.result(trials=now), now, baselines, made.environment, silent=silent)
    found = {(c.metric, c.scope): judge(c, DEFAULT_POLICY) for c in compared}
    finding = found["score", "math"]
    assert (finding.comparison.n, finding.comparison.left_out) == (19, tuple(silent))
    assert finding.comparison.drift == pytest.approx(1 / 19)
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "5 cases depend on the number of threads and cannot testify" in finding.sentence


@pytest.mark.parametrize("lost", [False, True])
def test_a_fault_that_silences_the_cases_that_it_breaks_is_no_pass(made: Any, lost: bool) -> None:
    """All other answers are the same, token for token: what was lost in silence counts as lost all the same."""
    then = made.trials(*[1.0 if lost else 0.0] * 6, *[1.0] * 66)
    now = [made.trial(t.case, 0.0 if lost else 1.0) for t in then[:6]] + list(then[6:])
    baselines = Baselines(quality=made.quality_baseline(then))
    silent = [t.case for t in now[:6]]
    compared = compare(made.result(trials=now), now, baselines, made.environment, silent=silent)
    found = {(c.metric, c.scope): judge(c, DEFAULT_POLICY) for c in compared}
    finding = found["score", "math"]
    assert not finding.comparison.identical
    assert finding.comparison.interval is not None
    bound = net_loss_bounds(6 if lost else 0, 0, 72, confidence=0.9)[1]
    assert finding.comparison.interval[1] == pytest.approx(bound)
    assert finding.verdict is (Verdict.INCONCLUSIVE if lost else Verdict.PASS)
    assert "every answer is the same" not in finding.sentence


def test_it_is_told_whether_threads_or_runs_make_a_case_mute(made: Any) -> None:
    then = made.trials(*[1.0] * 24)
    now = [made.trial(t.case, 0.0 if index < 3 else 1.0) for index, t in enumerate(then)]
    baselines = Baselines(quality=made.quality_baseline(then))
    cases = [t.case for t in now]
    compared = compare(made.result(trials=now), now, baselines, made.environment, silent=cases[:2], unsteady=cases[1:3])
    finding = next(judge(c, DEFAULT_POLICY) for c in compared if (c.metric, c.scope) == ("score", "math"))
    assert finding.comparison.left_out == tuple(cases[:3])
    assert finding.comparison.unsteady == tuple(cases[1:3])
    assert "2 cases differ from one run to the next and cannot testify" in finding.sentence
    assert "1 cases depend on the number of threads and cannot testify" in finding.sentence


def test_a_domain_of_which_no_case_can_testify_is_not_taken_for_a_new_one(made: Any) -> None:
    then = (*made.trials(1.0, 1.0), *made.trials(1.0, domain="code"))
    now = (*made.trials(1.0, 1.0), *made.trials(0.0, domain="code"))
    baselines = Baselines(quality=made.quality_baseline(then))
    found = compare(made.result(trials=now), now, baselines, made.environment, silent=["code/00"])
    finding = next(judge(c, DEFAULT_POLICY) for c in found if (c.metric, c.scope) == ("score", "code"))
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "no case of it can testify" in finding.sentence
    assert not is_accepted(finding, "new")


@pytest.mark.parametrize("change", [0.05, 0.25, 0.45])
def test_the_bound_of_a_loss_of_partial_credit_misses_it_at_most_as_often_as_it_says(made: Any, change: float) -> None:
    """Three of four answers get a little worse and the others better; only the counts are drawn, for speed."""
    then = made.trials(*[0.5] * 72)
    true = change / 2
    bounds: dict[int, float] = {}
    generator = numpy.random.default_rng(14)
    missed = 0
    for fell in generator.binomial(72, 0.75, 400).tolist():
        if fell not in bounds:
            now = made.trials(*[0.5 - change] * fell, *[0.5 + change] * (72 - fell))
            bounds[fell] = findings(made, then, now)["score", "all"].comparison.interval[1]  # type: ignore[index]
        missed += bounds[fell] < true
    assert missed / 400 <= 0.05


def test_flips_name_the_case_and_both_answers(made: Any) -> None:
    flips = score(made, 2, 1).comparison.flips
    assert [(flip.case, flip.was_correct) for flip in flips] == [
        ("math/00", True),
        ("math/01", True),
        ("math/02", False),
    ]


def test_domains_and_all_are_compared_apart(made: Any) -> None:
    then = (*made.trials(*[1.0] * 24), *made.trials(*[1.0] * 24, domain="code"))
    now = (*made.trials(*[0.0] * 24), *made.trials(*[1.0] * 24, domain="code"))
    found = findings(made, then, now)
    assert found["score", "math"].verdict is Verdict.REGRESSED
    assert found["score", "code"].verdict is Verdict.PASS
    assert found["score", "all"].verdict is Verdict.REGRESSED


@pytest.mark.parametrize(("cut", "verdict"), [(4, Verdict.INCONCLUSIVE), (8, Verdict.REGRESSED)])
def test_truncation_is_counted_apart_and_tested_like_a_loss(made: Any, cut: int, verdict: Verdict) -> None:
    then = made.trials(*[1.0] * 20)
    now = made.trials(*[1.0] * (20 - cut), *[TrialStatus.TRUNCATED] * cut)
    found = findings(made, then, now)
    assert found["truncated", "all"].verdict is verdict
    assert f"rose by {5 * cut}.0 points, 0.000 → {0.05 * cut:.3f}" in found["truncated", "all"].sentence
    if cut == 4:
        assert "not even 2000 cases would" in found["truncated", "all"].next_step  # 20 % are no 10 %
    assert found["empty", "all"].comparison.drift == 0.0
    assert found["empty", "all"].verdict is not Verdict.REGRESSED


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"case_version": 2}, "version: 1 → 2"),
        ({"scorer": "number@2"}, "scorer: number@1 → number@2"),
        ({"prompt_sha256": "ff"}, "prompt_sha256: ab → ff"),
    ],
)
def test_a_changed_case_is_named_and_left_out_of_both_sides(made: Any, change: dict[str, Any], words: str) -> None:
    then = made.trials(1.0, 1.0, 0.0)
    now = [dataclasses.replace(made.trial("math/00", 0.0), **change), *then[1:]]
    found = findings(made, then, now)
    assert found["score", "math/00"].verdict is Verdict.NOT_COMPARABLE
    assert words in found["score", "math/00"].sentence
    assert found["score", "all"].verdict is Verdict.PASS
    assert found["score", "all"].comparison.n == 2
    assert "2 of 3 accepted cases compared" in found["score", "all"].sentence


def test_a_new_case_is_unbaselined_and_a_run_of_some_cases_compares_those(made: Any) -> None:
    then = made.trials(1.0, 1.0, 0.0)
    now = [*then[:2], made.trial("math/new", 0.0)]
    found = findings(made, then, now)
    assert found["score", "math/new"].verdict is Verdict.UNBASELINED
    assert found["score", "math"].comparison.observed == 1.0
    assert found["score", "math"].comparison.baseline == 1.0


def test_a_domain_of_changed_cases_only_is_not_comparable_and_of_new_ones_unbaselined(made: Any) -> None:
    then = made.trials(1.0, 1.0)
    changed = [dataclasses.replace(t, case_version=2) for t in then]
    assert findings(made, then, changed)["score", "math"].verdict is Verdict.NOT_COMPARABLE
    added = (*then, *made.trials(1.0, domain="code"))
    assert findings(made, then, added)["score", "code"].verdict is Verdict.UNBASELINED


def test_another_identity_makes_all_of_it_not_comparable(made: Any) -> None:
    trials = made.trials(1.0, 0.0)
    found = findings(made, trials, trials, identity={"prompt_format": "raw"})
    assert {f.verdict for f in found.values()} == {Verdict.NOT_COMPARABLE}
    assert all(f.comparison.reason == "prompt_format: raw → chat" for f in found.values())


def test_an_answer_that_failed_leaves_its_scope_unmeasured(made: Any) -> None:
    then = (*made.trials(1.0, 1.0), *made.trials(1.0, domain="code"))
    now = (made.trial("math/00", TrialStatus.ERROR), *then[1:])
    found = findings(made, then, now)
    assert found["score", "math"].verdict is Verdict.NOT_MEASURED
    assert "math/00" in found["score", "math"].sentence
    assert found["score", "code"].verdict is Verdict.PASS
    assert ("score", "math/00") not in found


def test_nothing_stored_is_unbaselined_with_what_was_measured(made: Any) -> None:
    trials = made.trials(1.0, 0.0)
    found = compare(made.result(trials=trials), trials, Baselines(), made.environment)
    wanted = next(c for c in found if (c.metric, c.scope) == ("score", "math"))
    assert (wanted.unresolved, wanted.observed) == (Verdict.UNBASELINED, 0.5)


def test_trials_of_other_variants_are_left_out(made: Any) -> None:
    others = [dataclasses.replace(trial, variant="q8") for trial in made.trials(0.0, 0.0)]
    found: tuple[Comparison, ...] = compare(made.result(), others, Baselines(), made.environment)
    assert found == ()


def test_quality_is_portable_and_the_machine_only_a_suspect(made: Any) -> None:
    trials = made.trials(1.0)
    moved = dataclasses.replace(made.environment, machine="xeon", identity={"cpu": "Xeon", "cores": "2"})
    baselines = Baselines(quality=made.quality_baseline(trials))
    found = compare(made.result(trials=trials), trials, baselines, moved)
    assert judge(found[0], DEFAULT_POLICY).verdict is Verdict.PASS
    assert "machine.cpu: EPYC → Xeon" in found[0].suspects


def test_hashes_of_tokens_do_not_run_together() -> None:
    assert hash_tokens((1, 23)) != hash_tokens((12, 3))
    assert hash_tokens(()) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
