"""The engine asks how likely the accepted answers are, and never makes a fault of a backend that cannot tell."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.in_process import InProcessLauncher, make_case, make_matrix, make_variant

from suite.backends.fake import FakeModel
from suite.engine.assembling import OLD, Ledger, result_of
from suite.engine.session import MatrixSession, Plan
from suite.gate.answers import answer_of
from suite.gate.differences import quality_identity
from suite.gate.plan import GateItem
from suite.gate.policy import DEFAULT_POLICY
from suite.records import Aspect, Environment, Provenance, QualityBaseline, Trial, TrialStatus, Variant, Verdict
from suite.store.baselines import BaselineStore
from suite.store.journal import Journal, read_journal

CASES = (make_case("math/a"), make_case("math/b"))
GATE = GateItem(Aspect.QUALITY, "logprob", "all")
ENVIRONMENT = Environment(machine="box", identity={"device": "cpu"}, suspects={}, readings={})
Open = Callable[..., Any]


@pytest.fixture
def open_session(tmp_path: Path) -> Open:
    """A session over one scripted variant, and perhaps its old side, each with its own journal."""
    count = iter(range(9))

    @contextmanager
    def begin(variant: Variant, *shadows: Variant, ledger: Ledger | None = None) -> Iterator[MatrixSession]:
        plan = Plan(
            matrix=make_matrix(variant), cases=CASES, policy=DEFAULT_POLICY, environment=ENVIRONMENT,
            gates=(GATE,), shadows=shadows,
        )  # fmt: skip
        journal = Journal(tmp_path / f"journal-{next(count)}.jsonl")
        store = BaselineStore(tmp_path / "baselines")
        with closing(MatrixSession(plan, InProcessLauncher(), journal, store, ledger or Ledger())) as session:
            yield session

    return begin


def accept(tmp_path: Path, trials: list[Trial], **changes: Any) -> None:
    """Accept these answers to the question that every variant is asked here, with other fields where one says so."""
    matrix = make_matrix(make_variant("q4"))
    result = result_of(matrix.variants[0], Ledger(), matrix, CASES, ENVIRONMENT)
    cases = {trial.case: dataclasses.replace(answer_of(trial), **changes) for trial in trials}
    provenance = Provenance(accepted="2026-11-20", reason="first", run="r0")
    BaselineStore(tmp_path / "baselines").write(
        QualityBaseline(
            model="toy",
            variant="q4",
            identity=quality_identity(result),
            suspects={},
            provenance=provenance,
            metrics={},
            cases=cases,
        )
    )


def ask(session: MatrixSession, variant: Variant) -> list[Trial]:
    return [session.trial(variant, case) for case in CASES]


def test_without_an_accepted_answer_there_is_none_to_weigh(open_session: Open) -> None:
    variant = make_variant("q4", reply="18")
    with open_session(variant) as session:
        first, _ = ask(session, variant)
    assert first.generation is not None
    assert first.generation.logprobs == (-0.1, -0.1)
    assert (first.accepted_logprob, first.accepted_sha256) == (None, None)


def test_the_same_answer_tells_by_itself_and_another_one_is_weighed(open_session: Open, tmp_path: Path) -> None:
    variant = make_variant("q4", reply="18")
    with open_session(variant) as session:
        before = ask(session, variant)
    accept(tmp_path, before)
    same = make_variant("q4", reply="18", logprob=-0.2)
    with open_session(same) as session:
        assert [trial.accepted_logprob for trial in ask(session, same)] == pytest.approx([-0.2, -0.2])
    changed = make_variant("q4", reply="no idea", logprob=-0.3)
    with open_session(changed) as session:
        trials = ask(session, changed)
    assert [trial.accepted_logprob for trial in trials] == pytest.approx([-0.3, -0.3])
    assert {trial.accepted_sha256 for trial in trials} == {answer_of(before[0]).output_sha256}


def test_an_answer_to_another_question_is_not_weighed(open_session: Open, tmp_path: Path) -> None:
    variant = make_variant("q4", reply="18")
    with open_session(variant) as session:
        accept(tmp_path, ask(session, variant), prompt_sha256="ab")
    with open_session(variant) as session:
        assert {trial.accepted_logprob for trial in ask(session, variant)} == {None}


def test_a_request_that_is_refused_leaves_it_unknown(open_session: Open, tmp_path: Path) -> None:
    wordy = make_variant("q4", reply="18" * 20)
    with open_session(wordy) as session:
        accept(tmp_path, ask(session, wordy))
    narrow = make_variant("q4", reply="7", n_ctx=62)  # the answers fit, the accepted ones do not
    short = tuple(dataclasses.replace(case, max_new_tokens=4) for case in CASES)
    with open_session(narrow) as session:
        trials = [session.trial(narrow, case) for case in short]
    assert {trial.score.status for trial in trials} != {TrialStatus.ERROR}
    assert {trial.accepted_logprob for trial in trials} == {None}


@pytest.mark.parametrize(
    ("accepted", "verdict"), [("I do not know.", Verdict.PASS), ("19", Verdict.NOT_MEASURED)], ids=["same", "other"]
)
def test_a_backend_that_tells_only_of_its_own_answers_is_measured_where_they_are_the_accepted_ones(
    open_session: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, accepted: str, verdict: Verdict
) -> None:
    earlier, variant = make_variant("q4", reply=accepted), make_variant("q4")
    with open_session(earlier) as session:
        accept(tmp_path, ask(session, earlier))
    monkeypatch.delattr(FakeModel, "weigh")
    with open_session(variant) as session:
        session.select([(variant, GATE)])
        (finding,) = session.findings(variant, GATE)
        assert session.ledger.failures == {}
    assert finding.verdict is verdict
    assert ("0 of 2 accepted answers could be weighed" in finding.sentence) is (verdict is Verdict.NOT_MEASURED)


def test_an_old_side_is_weighed_when_it_has_answered(open_session: Open) -> None:
    variant = make_variant("q4", reply="7", logprob=-0.5)
    old = dataclasses.replace(make_variant("q4" + OLD, reply="18", logprob=-0.1), old_of="q4")
    with open_session(variant, old) as session:
        assert {trial.accepted_logprob for trial in ask(session, variant)} == {None}
        session.select([(variant, GATE)])
        (finding,) = session.findings(variant, GATE)
    assert finding.verdict is Verdict.REGRESSED
    assert (finding.comparison.baseline, finding.comparison.observed) == pytest.approx((-0.1, -0.5))


def test_a_run_that_goes_on_weighs_what_was_accepted_in_between(open_session: Open, tmp_path: Path) -> None:
    before, variant = make_variant("q4", reply="18"), make_variant("q4", reply="7", logprob=-0.5)
    with open_session(before) as session:
        accepted = ask(session, before)
    with open_session(variant) as session:
        ask(session, variant)
        ledger = session.ledger
    accept(tmp_path, accepted)
    with open_session(variant, ledger=ledger) as session:
        session.weigh_rest(variant)
        assert {trial.accepted_logprob for trial in ask(session, variant)} == {-0.5}
        session.weigh_rest(variant)  # nothing is left to do
    assert [entry.kind for entry in read_journal(tmp_path / "journal-2.jsonl")].count("trial") == 2
