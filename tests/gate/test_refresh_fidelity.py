"""What an update keeps, adds and takes of the fidelity of a variant; and what of it holds its speed back."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest

from suite.gate.compare import compare
from suite.gate.compare_fidelity import Beside, fidelity_of
from suite.gate.held import Answers, hold_answers
from suite.gate.judge import judge_all
from suite.gate.plan import plan_gates
from suite.gate.policy import DEFAULT_POLICY
from suite.gate.refresh import REVIEWED, Mode, Update, refresh_quality
from suite.metrics.fidelity import measure_fidelity
from suite.records import Baselines, CaseFidelity, Finding, Forced, QualityBaseline, Trial, Verdict
from suite.store.baselines import BaselineStore, encode

TRACE, OTHER = "ab" * 32, "cd" * 32
MODES: tuple[Mode, ...] = ("new", "changed")


def forced(case: str, kld: float, **changes: Any) -> Forced:
    made = Forced(
        variant="q4", case=case, domain=case.partition("/")[0], family=None, path="batched", trace=TRACE,
        kld=(kld, kld / 3, 2 * kld / 3), logprobs=(-0.5, -0.4, -0.4), reference_logprobs=(-0.4, -0.4, -0.4),
    )  # fmt: skip
    return dataclasses.replace(made, **changes)


def both(case: str, kld: float, **changes: Any) -> list[Forced]:
    """One case along both paths."""
    return [forced(case, kld, **changes), forced(case, kld, path="decode", distance=(0.0, 0.003, 0.001), **changes)]


def everything(count: int = 24, factor: float = 1.0, **changes: Any) -> list[Forced]:
    cases = [(f"{('math', 'code')[number % 2]}/{number:02}", 0.01 + 0.003 * number) for number in range(count)]
    return [one for case, kld in cases for one in both(case, factor * kld / 0.9, **changes)]


def trials_of(made: Any, records: Sequence[Forced]) -> list[Trial]:
    return [made.trial(case) for case in dict.fromkeys(one.case for one in records)]


def updated(
    made: Any, now: Sequence[Forced], mode: Mode, stored: QualityBaseline | None, trials: Sequence[Trial] | None = None
) -> Update:
    trials = trials_of(made, now) if trials is None else trials
    result = made.result(*measure_fidelity(now), trials=trials)
    planned = plan_gates((), {trial.domain for trial in trials}, DEFAULT_POLICY, fidelity=True)
    compared = compare(
        result, trials, Baselines(quality=stored), made.environment, planned=planned, fidelity=Beside(forced=tuple(now))
    )
    run = dataclasses.replace(made.run(result, trials), forced=tuple(now))
    return Update(
        run=run, result=result, trials=tuple(trials), findings=judge_all(compared, DEFAULT_POLICY), mode=mode,
        provenance=made.provenance,
    )  # fmt: skip


def accepted(
    made: Any, then: Sequence[Forced], tmp_path: Any, trials: Sequence[Trial] | None = None
) -> QualityBaseline:
    """What was accepted and stored before, as it reads."""
    fresh = refresh_quality(updated(made, then, "new", None, trials), None)
    assert fresh is not None
    store = BaselineStore(tmp_path)
    store.write(fresh)
    found = store.read_quality("smol", "q4")
    assert found is not None
    assert not found.edited
    return found


def refreshed(made: Any, now: Sequence[Forced], mode: Mode, stored: QualityBaseline, **more: Any) -> Any:
    return refresh_quality(updated(made, now, mode, stored, **more), stored)


def klds(baseline: QualityBaseline) -> dict[str, float | None]:
    return {case: one.fidelity.kld if one.fidelity else None for case, one in baseline.cases.items()}


def test_what_is_accepted_first_has_each_case_and_figures_for_people(made: Any, tmp_path: Any) -> None:
    found = accepted(made, everything(), tmp_path)
    one = found.cases["math/00"].fidelity
    assert one == CaseFidelity(trace=TRACE[:16], kld=0.007407, decode_kld=0.007407, path_distance=0.002)
    figures = {key.partition("/")[0] for key in found.metrics} & REVIEWED
    assert figures == REVIEWED
    assert {"mean_kld/all", "mean_kld/code", "mean_kld/math", "path_distance/all"} <= set(found.metrics)
    line = next(line for line in encode(found).splitlines() if '"math/00"' in line)
    assert '"fidelity": {"decode_kld": 0.007407, "kld": 0.007407, "path_distance": 0.002, "trace": "' in line


@pytest.mark.parametrize("mode", MODES)
def test_the_same_again_is_an_empty_diff(made: Any, tmp_path: Any, mode: Mode) -> None:
    then = everything()
    assert refreshed(made, then, mode, accepted(made, then, tmp_path)) is None


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("factor", [1.03, 0.97])
def test_what_did_not_drift_is_kept_to_the_letter(made: Any, tmp_path: Any, mode: Mode, factor: float) -> None:
    stored = accepted(made, everything(), tmp_path)
    assert refreshed(made, everything(factor=factor), mode, stored) is None


@pytest.mark.parametrize("factor", [1.5, 0.6])
def test_what_drifted_is_taken_with_its_figures_and_only_when_asked_for(
    made: Any, tmp_path: Any, factor: float
) -> None:
    stored = accepted(made, everything(), tmp_path)
    now = everything(factor=factor)
    assert refreshed(made, now, "new", stored) is None
    found = refreshed(made, now, "changed", stored)
    assert klds(found) == {case: pytest.approx(factor * (kld or 0), rel=1e-3) for case, kld in klds(stored).items()}
    was, here = (one.metrics["mean_kld/all"].value for one in (stored, found))
    assert here / was == pytest.approx(factor, rel=1e-3)
    bare = {
        case: (dataclasses.replace(stored.cases[case], fidelity=None), dataclasses.replace(one, fidelity=None))
        for case, one in found.cases.items()
    }
    assert all(then == now for then, now in bare.values()), "the answers did not change"
    assert found.metrics["score/all"] is stored.metrics["score/all"]


def test_of_a_domain_that_drifted_the_other_one_is_kept(made: Any, tmp_path: Any) -> None:
    stored = accepted(made, everything(), tmp_path)
    small = everything(factor=1.0)
    now = [
        dataclasses.replace(one, kld=tuple(1.5 * d for d in one.kld)) if one.domain == "code" else one for one in small
    ]
    update = updated(made, now, "changed", stored)
    only = tuple(f for f in update.findings if f.scope == "code" or f.metric == "broken_logits")
    found = refresh_quality(dataclasses.replace(update, findings=only), stored)
    assert found is not None
    assert {case for case, one in found.cases.items() if one != stored.cases[case]} == {
        case for case in stored.cases if case.startswith("code/")
    }


@pytest.mark.parametrize("mode", MODES)
def test_baselines_from_before_get_it_and_nothing_else_changes(made: Any, tmp_path: Any, mode: Mode) -> None:
    now = everything()
    before = made.quality_baseline(trials_of(made, now))
    found = refreshed(made, now, mode, before)
    assert {case: one.fidelity for case, one in found.cases.items()} == fidelity_of(now)
    assert {case: dataclasses.replace(one, fidelity=None) for case, one in found.cases.items()} == before.cases
    assert "mean_kld/all" in found.metrics
    assert found.metrics["score/math"] is before.metrics["score/math"]


def test_another_trace_is_taken_when_it_is_meant(made: Any, tmp_path: Any) -> None:
    stored = accepted(made, everything(), tmp_path)
    now = everything(trace=OTHER)
    assert refreshed(made, now, "new", stored) is None
    found = refreshed(made, now, "changed", stored)
    assert {one.fidelity.trace for one in found.cases.values()} == {OTHER[:16]}


def test_another_trace_of_one_case_is_taken_and_the_others_stay(made: Any, tmp_path: Any) -> None:
    stored = accepted(made, everything(), tmp_path)
    now = [dataclasses.replace(one, trace=OTHER) if one.case == "math/00" else one for one in everything()]
    found = refreshed(made, now, "changed", stored)
    assert {case for case, one in found.cases.items() if one != stored.cases[case]} == {"math/00"}


@pytest.mark.parametrize("mode", MODES)
def test_a_case_that_came_into_the_sample_gets_its_decode_path_and_keeps_the_rest(
    made: Any, tmp_path: Any, mode: Mode
) -> None:
    then = [one for one in everything() if one.path == "batched" or one.case != "math/00"]
    stored = accepted(made, then, tmp_path)
    found = refreshed(made, everything(factor=1.02), mode, stored)
    assert {case for case, one in found.cases.items() if one != stored.cases[case]} == {"math/00"}
    one, was = found.cases["math/00"].fidelity, stored.cases["math/00"].fidelity
    assert was is not None
    assert (one.kld, one.trace) == (was.kld, was.trace)
    assert (one.decode_kld, one.path_distance) == (pytest.approx(1.02 * was.kld, rel=1e-3), pytest.approx(0.002))


@pytest.mark.parametrize("mode", MODES)
def test_a_run_that_was_not_forced_leaves_it_as_it_is(made: Any, tmp_path: Any, mode: Mode) -> None:
    then = everything()
    stored = accepted(made, then, tmp_path)
    assert refreshed(made, [], mode, stored, trials=trials_of(made, then)) is None


def test_a_case_that_is_gone_takes_its_part_of_the_figures_with_it(made: Any, tmp_path: Any) -> None:
    then = everything()
    stored = accepted(made, then, tmp_path)
    found = refreshed(made, then[:-2], "changed", stored)
    assert len(found.cases) == 23
    assert found.metrics["mean_kld/all"].value < stored.metrics["mean_kld/all"].value
    unforced = refreshed(made, [], "changed", stored, trials=trials_of(made, then[:-2]))
    assert unforced.metrics["mean_kld/all"] == stored.metrics["mean_kld/all"]


def test_of_another_question_nothing_old_is_kept(made: Any, tmp_path: Any) -> None:
    then = everything()
    stored = accepted(made, then, tmp_path)
    trials = [dataclasses.replace(t, prompt_sha256="ef") if t.case == "math/00" else t for t in trials_of(made, then)]
    found = refreshed(made, [one for one in then if one.case != "math/00"], "changed", stored, trials=trials)
    assert found.cases["math/00"].fidelity is None
    assert found.cases["math/02"] == stored.cases["math/02"]


# ------------------------------------------------------------------------------------------ speed held back


def held(made: Any, now: Sequence[Forced], mode: Mode, stored: QualityBaseline | None, **changes: Any) -> Answers:
    update = updated(made, now, mode, stored, changes.pop("trials", None))
    return hold_answers(dataclasses.replace(update, **changes), takes_quality=True)


def without(findings: Sequence[Finding], metric: str) -> tuple[Finding, ...]:
    return tuple(finding for finding in findings if finding.metric != metric)


def test_speed_is_not_bought_with_divergence(made: Any, tmp_path: Any) -> None:
    stored = accepted(made, everything(), tmp_path)
    assert held(made, everything(), "new", stored) == Answers()
    lost = held(made, everything(factor=1.5), "new", stored).lost
    assert lost is not None
    assert "quality regressed in this run (mean_kld/all" in lost
    assert held(made, everything(factor=1.5), "changed", stored).lost is None


@pytest.mark.parametrize("mode", ["new", "changed", "all"])
def test_with_broken_logits_no_speed_is_accepted_in_any_mode(made: Any, mode: Mode) -> None:
    now = everything()
    now[0] = dataclasses.replace(now[0], broken=(1,))
    lost = held(made, now, mode, None).lost
    assert lost == "some of its logits are no numbers, which no update accepts; mend it"


def test_a_gate_on_fidelity_that_was_not_judged_is_missed_only_where_there_was_a_trace(
    made: Any, tmp_path: Any
) -> None:
    now = everything()
    stored = accepted(made, now, tmp_path)
    update = updated(made, now, "changed", stored)
    fewer = dataclasses.replace(update, findings=without(update.findings, "path_distance"))
    unknown = hold_answers(fewer, takes_quality=False).unknown
    assert unknown is not None
    assert "path_distance/all" in unknown
    untraced = dataclasses.replace(fewer, run=dataclasses.replace(update.run, forced=()))
    assert hold_answers(untraced, takes_quality=False).unknown is None


def test_a_backend_that_cannot_be_forced_may_have_its_speed_accepted(made: Any, tmp_path: Any) -> None:
    trials = trials_of(made, everything())
    update = updated(made, [], "new", made.quality_baseline(trials), trials)
    assert any(f.metric == "mean_kld" and f.verdict is Verdict.NOT_MEASURED for f in update.findings)
    assert hold_answers(update, takes_quality=False) == Answers()
