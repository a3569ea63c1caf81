"""A session measures what is asked for, once, and keeps failures where they belong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.bench import CASES, Bench
from support.in_process import InProcessLauncher, make_variant

from suite.engine.answering import check_same_prompts, hash_ids
from suite.engine.assembling import Ledger
from suite.engine.earlier import changes_between
from suite.engine.session import MatrixSession, VariantFailed
from suite.errors import StoreError, UsageError, VariantError, VariantInvalid
from suite.records import (
    Artifact,
    ArtifactFile,
    ResolvedArtifact,
    SpeedSample,
    TrialStatus,
    Variant,
    Verdict,
)
from suite.store.baselines import BaselineStore
from suite.store.journal import Journal


@pytest.fixture
def make_bench(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., Bench]:
    def make(*variants: Variant, **deaths: int) -> Bench:
        bench = Bench(tmp_path, *variants, launcher=InProcessLauncher(deaths=deaths))
        request.addfinalizer(bench.session.close)
        return bench

    return make


def test_a_case_is_asked_once_and_written_down_at_once(make_bench: Callable[..., Bench]) -> None:
    (variant,) = (make_variant("q4", reply="the answer is 18"),)
    bench = make_bench(variant)
    trial = bench.session.trial(variant, CASES[0])
    assert (trial.score.status, trial.score.correct) == (TrialStatus.SCORED, True)
    assert bench.kinds() == ["artifact", "prompts", "trial"]
    assert bench.session.trial(variant, CASES[0]) is trial
    assert len([event for event in bench.asked() if "+" in event]) == 1


def test_only_one_variant_is_in_memory_for_answers(make_bench: Callable[..., Bench]) -> None:
    variants = make_variant("a"), make_variant("b")
    bench = make_bench(*variants)
    for variant in variants:
        for case in CASES:
            bench.session.trial(variant, case)
    assert [event for event in bench.asked() if "+" not in event] == ["a:launch 0", "a:end 0", "b:launch 0"]


def test_a_failed_request_is_a_trial_and_a_dead_worker_a_failure(make_bench: Callable[..., Bench]) -> None:
    raising, dying = make_variant("raising", fault="raise"), make_variant("dying")
    bench = make_bench(raising, dying, dying=1)
    trial = bench.session.trial(raising, CASES[0])
    assert trial.score.status is TrialStatus.ERROR
    assert "planted failure" in str(trial.error)
    assert bench.session.trial(raising, CASES[1]).score.status is not TrialStatus.ERROR
    bench.session.trial(dying, CASES[0])
    with pytest.raises(VariantFailed) as first:
        bench.session.trial(dying, CASES[1])
    assert first.value.first
    assert first.value.failure.verdict is Verdict.ERROR
    with pytest.raises(VariantFailed) as second:
        bench.session.findings(dying, bench.gate("score", "math"))
    assert not second.value.first
    assert bench.session.trial(dying, CASES[0]).variant == "dying"  # what it answered before stays
    assert bench.kinds().count("failure") == 1


def test_other_token_ids_are_invalid_and_ask_nothing(make_bench: Callable[..., Bench]) -> None:
    honest, shifted = make_variant("honest"), make_variant("shifted", shift_ids_from=7)
    bench = make_bench(honest, shifted)
    bench.session.trial(honest, CASES[0])
    with pytest.raises(VariantFailed, match="differ from those of 'honest' at position 7 of case math/a") as failed:
        bench.session.trial(shifted, CASES[0])
    assert failed.value.failure.verdict is Verdict.INVALID
    assert not any(event.startswith("shifted:") and "+" in event for event in bench.asked())


def test_a_cached_prefill_is_invalid(make_bench: Callable[..., Bench]) -> None:
    variant = make_variant("q4", fault="cached", fault_at=1)
    bench = make_bench(variant)
    bench.session.trial(variant, CASES[0])
    with pytest.raises(VariantFailed, match=r"case math/b: 1 of .* prompt tokens were evaluated"):
        bench.session.trial(variant, CASES[1])


def test_requests_of_ones_own(make_bench: Callable[..., Bench]) -> None:
    variant = make_variant("q4", reply="hello", n_ctx=200)
    bench = make_bench(variant)
    assert bench.session.ask(variant, "hi", max_new_tokens=9, system="be kind").text == "hello"
    with pytest.raises(VariantError, match="do not fit a context of 200"):
        bench.session.ask(variant, "x" * 300, max_new_tokens=9)
    assert bench.session.ledger.failures == {}
    trial = bench.session.own.record(variant.name, "mine", score=1.0, domain="format", generation=None)
    assert (trial.case, trial.score.correct) == ("format/mine", True)
    with pytest.raises(UsageError, match="'math/a' is a case of the matrix"):
        bench.session.own.record(variant.name, "a", score=1.0, domain="math", generation=None)


def test_speed_is_measured_once_for_all_that_are_timed_together(make_bench: Callable[..., Bench]) -> None:
    variants = make_variant("a"), make_variant("b", fault="load")
    bench = make_bench(*variants)
    (found,) = bench.session.findings(variants[0], bench.gate("decode_tok_s", "short"))
    assert found.verdict is Verdict.UNBASELINED
    asked = len(bench.asked())
    bench.session.findings(variants[0], bench.gate("prefill_tok_s", "long"))
    assert len(bench.asked()) == asked
    with pytest.raises(VariantFailed, match="planted failure while loading"):
        bench.session.findings(variants[1], bench.gate("decode_tok_s", "short"))
    assert bench.kinds().count("launch") == 2


def test_prompts_that_differ_are_told_with_case_and_position() -> None:
    here = {"math/a": (1, 2, 3, 4, 5), "math/b": (1, 2)}
    check_same_prompts(here, dict(here), other="ref")
    check_same_prompts(here, {"code/c": (9,)}, other="ref")
    with pytest.raises(
        VariantInvalid, match=r"'ref' at position 2 of case math/a: \[3 4 5 …\] here, \[7 4 5 …\] there"
    ):
        check_same_prompts(here, {"math/a": (1, 2, 7, 4, 5)}, other="ref")
    with pytest.raises(
        VariantInvalid, match=r"position 2 of case math/b: \[end\] here, \[9 …\] there \(2 and 3 tokens"
    ):
        check_same_prompts(here, {"math/b": (1, 2, 9)}, other="ref")


def test_ids_are_hashed_whole() -> None:
    assert hash_ids([1, 23]) != hash_ids([12, 3])
    assert hash_ids((1, 2)) == hash_ids([1, 2])


class FillingJournal(Journal):
    """The disk is full from the third speed sample on."""

    left = 2
    fault: Exception = StoreError("no space left")

    def append(self, record: object) -> None:
        if isinstance(record, SpeedSample):
            if not self.left:
                raise self.fault
            self.left -= 1
        super().append(record)


@pytest.mark.parametrize(
    ("fault", "told"),
    [(StoreError("no space left"), "no space left"), (RuntimeError("a bug"), "the first gate that failed says why")],
)
def test_a_speed_pass_that_broke_off_blames_nobody_and_is_not_judged(
    tmp_path: Path, fault: Exception, told: str
) -> None:
    variants = make_variant("a"), make_variant("b")
    bench = Bench(tmp_path, *variants)
    bench.session.close()
    journal = FillingJournal(tmp_path / "full.jsonl")
    journal.fault = fault
    session = MatrixSession(bench.plan, bench.launcher, journal, BaselineStore(tmp_path), Ledger())
    gate = bench.gate("decode_tok_s", "short")
    with pytest.raises(type(fault), match=str(fault)):
        session.findings(variants[0], gate)
    asked = len(bench.asked())
    for variant in variants:
        with pytest.raises(StoreError, match=f"broke off, and its part is not judged as the whole: {told}"):
            session.findings(variant, gate)
    session.settle()
    session.close()
    assert not session.ledger.failures
    assert not session.ledger.findings
    assert len(bench.asked()) == asked


def test_answers_are_judged_although_the_speed_pass_broke_off(tmp_path: Path) -> None:
    bench = Bench(tmp_path, make_variant("a"))
    bench.session.close()
    session = MatrixSession(
        bench.plan, bench.launcher, FillingJournal(tmp_path / "full.jsonl"), BaselineStore(tmp_path), Ledger()
    )
    (variant,) = bench.matrix.variants
    answers, speed = bench.gate("score", "math"), bench.gate("decode_tok_s", "short")
    session.select([(variant, answers), (variant, speed)])
    assert [found.verdict for found in session.findings(variant, answers)][:1] == [Verdict.UNBASELINED]
    with pytest.raises(StoreError, match="broke off, and its part is not judged as the whole: no space left"):
        session.findings(variant, speed)
    session.close()


def test_changes_since_a_run_was_interrupted_are_told_by_name() -> None:
    def resolve(sha256: str, version: str) -> ResolvedArtifact:
        artifact = Artifact(files=(ArtifactFile(name="a.gguf", size_bytes=1, sha256=sha256),), size_bytes=1)
        return ResolvedArtifact(variant="q4", artifact=artifact, suspects={"llama-cpp-python": version})

    assert changes_between(resolve("s1", "1"), resolve("s1", "1")) == []
    assert changes_between(resolve("s1", "1"), resolve("s2", "2")) == ["llama-cpp-python", "sha256 of a.gguf"]
