"""What is taken from earlier runs, what is not, and the control that finds what no key can tell."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.in_process import InProcessLauncher, make_case, make_matrix, make_variant

from suite.engine.assembling import DROPPED, Ledger, RunHead, assemble, join_journals
from suite.engine.earlier import MOST_RUNS, EarlierRuns, is_answer_to
from suite.engine.launching import LiveVariant
from suite.engine.plan import Plan
from suite.engine.preparing import Prepared
from suite.engine.sameness import is_same_forced, tell_difference
from suite.engine.session import MatrixSession
from suite.gate.policy import DEFAULT_POLICY
from suite.metrics import SPECS
from suite.records import Artifact, Case, Environment, Forced, Note, Score, Trial, TrialStatus, Variant
from suite.store.baselines import BaselineStore
from suite.store.journal import Journal, read_journal
from suite.store.runs import write_run

MACHINE = Environment(
    machine="box", identity={"isa": "avx2", "threads": "2"}, suspects={"kernel": "6.1", "python": "3.11"}, readings={}
)
CASES = tuple(make_case(f"math/{letter}") for letter in "abcdefgh")
REFERENCE = dataclasses.replace(make_variant("ref", reply="the answer is 18"), reference=True)
Q4 = make_variant("q4", reply="the answer is 18", noise=0.1)


class Story:
    """Runs in one store, one after the other."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.runs = 0

    def run(
        self,
        *variants: Variant,
        cached: bool = True,
        cases: tuple[Case, ...] = CASES,
        machine: Environment = MACHINE,
        ledger: Ledger | None = None,
        version: str = "1",
        launcher: InProcessLauncher | None = None,
        ask: Mapping[str, tuple[Case, ...]] | None = None,
        **plan: Any,
    ) -> Told:
        self.runs += 1
        directory = self.root / f"run-{self.runs}"
        matrix = make_matrix(*variants)
        head = RunHead(id=directory.name, created="now", suite_version=version, settings={})
        asked = Plan(
            matrix=matrix, cases=cases, policy=DEFAULT_POLICY, environment=machine, gates=(), fidelity=True, **plan
        )
        launcher, journal = launcher or InProcessLauncher(), directory / "journal.jsonl"
        session = MatrixSession(
            asked, launcher, Journal(journal), BaselineStore(self.root / "none"), ledger or Ledger()
        )
        if cached:
            earlier = sorted((path for path in self.root.glob("run-*") if path != directory), reverse=True)
            session.take_from(EarlierRuns(earlier, machine, head))
        for variant in variants:
            for case in (ask or {}).get(variant.name, cases):
                session.trial(variant, case)
            session.follow_rest(variant, cases)
        session.close()
        records = [entry.record for entry in read_journal(journal)]
        write_run(assemble(head, join_journals([records]), matrix, cases, machine), directory, specs=SPECS)
        return Told(session.ledger, launcher.events, records)


class Told:
    """What one run came to."""

    def __init__(self, ledger: Ledger, events: list[str], records: list[Any]) -> None:
        self.ledger = ledger
        self.records = records
        self._events = events

    def asked(self, variant: str) -> int:
        """Generations."""
        return sum(event.startswith(f"{variant}:") and "+" in event for event in self._events)

    def origins(self, variant: str) -> set[str | None]:
        return {trial.cached_from for trial in self.ledger.trials_of(variant)}

    def taken(self, variant: str) -> tuple[int, int]:
        """Answers, and passages through the trace."""
        forced = [one for one in self.ledger.forced_of(variant) if one.path == "batched"]
        return (
            sum(trial.cached_from is not None for trial in self.ledger.trials_of(variant)),
            sum(one.cached_from is not None for one in forced),
        )

    def dropped(self) -> dict[str, str]:
        notes = [record for record in self.records if isinstance(record, Note) and record.text == DROPPED]
        return {note.data["variant"]: note.data["reason"] for note in notes}


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


def test_only_a_sample_of_what_did_not_change_is_computed_again(story: Story) -> None:
    fresh = story.run(REFERENCE, Q4, cached=False)
    cached = story.run(REFERENCE, Q4)
    for name in ("ref", "q4"):
        assert (fresh.asked(name), cached.asked(name)) == (8, 3)
        assert (fresh.taken(name), cached.taken(name)) == ((0, 0), (5, 5))
        assert cached.origins(name) == {None, "run-1"}
        for case in CASES:
            old, new = (told.ledger.trials[name, case.id] for told in (fresh, cached))
            assert tell_difference(old, new) == ""
            assert new.generation is not None
            assert (new.generation.token_times_s == ()) == (new.cached_from is not None)
            assert is_same_forced(*(told.ledger.forced[name, case.id, "batched"] for told in (fresh, cached)))
    assert sum(one.cached_from is not None for one in cached.ledger.traced.values()) == 5
    assert fresh.ledger.forced.keys() == cached.ledger.forced.keys()
    assert cached.dropped() == {}


def test_nothing_is_taken_unless_that_was_asked_for(story: Story) -> None:
    story.run(REFERENCE, cached=False)
    assert story.run(REFERENCE, cached=False).taken("ref") == (0, 0)


def test_what_is_taken_twice_still_names_the_run_that_computed_it(story: Story) -> None:
    story.run(Q4, REFERENCE, cached=False)
    first = story.run(Q4, REFERENCE)
    drawn = {trial.case for trial in first.ledger.trials_of("q4") if trial.cached_from is None}
    second = story.run(Q4, REFERENCE)
    for trial in second.ledger.trials_of("q4"):
        if trial.cached_from is not None:
            assert trial.cached_from == ("run-2" if trial.case in drawn else "run-1")
    assert second.taken("q4")[0] == 5


def test_a_variant_that_was_added_is_measured_and_no_other(story: Story) -> None:
    story.run(REFERENCE, cached=False)
    told = story.run(REFERENCE, Q4)
    assert (told.taken("ref"), told.taken("q4")) == ((5, 5), (0, 0))


def test_another_name_is_the_same_variant(story: Story) -> None:
    story.run(REFERENCE, Q4, cached=False)
    told = story.run(REFERENCE, dataclasses.replace(Q4, name="renamed"))
    assert told.taken("renamed") == (5, 5)
    assert {one.variant for one in told.ledger.forced_of("renamed")} == {"renamed"}


@pytest.mark.parametrize(
    "now",
    [
        {"variants": (REFERENCE, make_variant("q4", reply="the answer is 18", noise=0.2))},
        {"machine": dataclasses.replace(MACHINE, identity={"isa": "avx512f", "threads": "2"})},
        {"machine": dataclasses.replace(MACHINE, suspects={"kernel": "6.1", "python": "3.12"})},
        {"version": "2"},
        {"cases": tuple(dataclasses.replace(case, version=2) for case in CASES)},
        {"cases": tuple(dataclasses.replace(case, prompt="Another one?") for case in CASES)},
    ],
)
def test_what_an_answer_depends_on_is_in_its_key(story: Story, now: dict[str, Any]) -> None:
    story.run(REFERENCE, Q4, cached=False)
    assert story.run(*now.pop("variants", (REFERENCE, Q4)), **now).taken("q4") == (0, 0)


def test_another_kernel_of_the_system_computes_nothing_else(story: Story) -> None:
    story.run(REFERENCE, Q4, cached=False)
    machine = dataclasses.replace(MACHINE, suspects={"kernel": "6.2", "python": "3.11"})
    assert story.run(REFERENCE, Q4, machine=machine).taken("q4") == (5, 5)


def test_other_libraries_or_weights_are_another_key(story: Story) -> None:
    story.run(Q4, REFERENCE, cached=False)
    file = story.root / "run-1" / "journal.jsonl"
    text = file.read_text()
    assert '"fake":"1"' in text
    file.write_text(text.replace('"fake":"1"', '"fake":"0"'))
    assert story.run(Q4, REFERENCE).taken("q4") == (0, 0)


def test_an_edited_target_is_graded_and_not_answered_again(story: Story) -> None:
    story.run(REFERENCE, cached=False)
    edited = tuple(dataclasses.replace(case, target="19") for case in CASES)
    told = story.run(REFERENCE, cases=edited)
    assert told.taken("ref")[0] == 5
    assert {trial.score.correct for trial in told.ledger.trials_of("ref")} == {False}


@pytest.mark.parametrize(("then", "now", "taken"), [(40, 60, True), (40, 20, True), (40, 10, False), (10, 40, False)])
def test_an_answer_that_ended_is_the_same_under_any_budget_that_holds_it(
    story: Story, then: int, now: int, taken: bool
) -> None:
    """``the answer is 18`` are sixteen tokens and an end."""
    story.run(Q4, cached=False, cases=tuple(dataclasses.replace(case, max_new_tokens=then) for case in CASES))
    told = story.run(Q4, cases=tuple(dataclasses.replace(case, max_new_tokens=now) for case in CASES))
    assert (told.taken("q4")[0] > 0) == taken


def test_the_end_counts_as_a_token_of_the_budget(story: Story) -> None:
    trial = story.run(Q4, cached=False).ledger.trials["q4", "math/a"]
    prompt = tuple(b"<user>How many math/a?<assistant>")
    case = CASES[0]
    assert is_answer_to(trial, dataclasses.replace(case, max_new_tokens=17), prompt)
    assert not is_answer_to(trial, dataclasses.replace(case, max_new_tokens=16), prompt)
    assert not is_answer_to(trial, case, prompt[1:])


def write_script(path: Path, **options: Any) -> None:
    path.write_text(json.dumps(options))


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"reply": "the answer is 17"}, "another answer"),
        ({"logprob": -0.11}, "the same answer with other log-probabilities"),
        ({"noise": 0.01}, "other logits along the batched path"),
        ({"path_noise": 0.01}, "other logits along the decode path"),
    ],
)
def test_one_difference_drops_all_that_is_held_of_a_variant(
    story: Story, tmp_path: Path, changed: dict[str, Any], reason: str
) -> None:
    """The same declaration serves other weights, which no hash of the scripted model tells."""
    script = tmp_path / "q4.json"
    scripted = make_variant("q4", script=str(script))
    write_script(script, reply="the answer is 18")
    story.run(REFERENCE, scripted, cached=False)
    write_script(script, **{"reply": "the answer is 18", **changed})
    told = story.run(REFERENCE, scripted)
    assert (told.taken("ref"), told.taken("q4")) == ((5, 5), (0, 0))
    assert told.asked("q4") == 8
    assert told.dropped().keys() == {"q4"}
    assert told.dropped()["q4"].endswith(reason)
    fresh = story.run(REFERENCE, scripted, cached=False)
    for case in CASES:
        assert tell_difference(told.ledger.trials["q4", case.id], fresh.ledger.trials["q4", case.id]) == ""


def test_other_logits_that_are_seen_late_undo_what_was_taken(story: Story, tmp_path: Path) -> None:
    """The reference comes last, so that there is no trace yet when the answers are taken."""
    script = tmp_path / "q4.json"
    scripted = make_variant("q4", script=str(script))
    write_script(script, reply="the answer is 18")
    story.run(scripted, REFERENCE, cached=False)
    write_script(script, reply="the answer is 18", path_noise=0.01)
    told = story.run(scripted, REFERENCE)
    assert told.taken("q4") == (0, 0)
    assert "decode path" in told.dropped()["q4"]
    assert {forced.cached_from for forced in told.ledger.forced_of("q4")} == {None}
    held = join_journals([told.records])
    assert {trial.cached_from for trial in held.trials_of("q4")} == {None}


def test_the_sample_is_another_one_in_each_run_and_always_the_same_in_one(story: Story) -> None:
    story.run(Q4, REFERENCE, cached=False)
    drawn = []
    for _ in range(6):
        told = story.run(Q4, REFERENCE)
        samples = [
            frozenset(trial.case for trial in told.ledger.trials_of(name) if trial.cached_from is None)
            for name in ("q4", "ref")
        ]
        assert samples[0] == samples[1]
        drawn.append(samples[0])
    assert len(set(drawn)) > 3


def test_a_run_that_is_resumed_goes_on_taking(story: Story) -> None:
    story.run(REFERENCE, Q4, cached=False)
    begun = story.run(REFERENCE, Q4, ask={"ref": CASES, "q4": CASES[:4]})
    for key in [key for key in begun.ledger.trials if key[0] == "q4" and key[1] > "math/d"]:
        del begun.ledger.trials[key]
    (story.root / "run-2" / "run.json").unlink()
    story.runs = 1
    (story.root / "run-2" / "journal.jsonl").unlink()
    told = story.run(REFERENCE, Q4, ledger=begun.ledger)
    assert told.taken("q4")[0] == 5


def test_unfinished_damaged_and_old_runs_are_passed_over(story: Story) -> None:
    for _ in range(3):
        story.run(Q4, cached=False)
    (story.root / "run-1" / "journal.jsonl").write_text('{"kind": "journal", "schema": 1}\nnothing\n\n')
    (story.root / "run-2" / "run.json").write_text('{"kind": "run", "schema": 1, "matrix": 3}')
    (story.root / "run-3" / "run.json").unlink()
    assert story.run(Q4).taken("q4") == (0, 0)


def test_so_many_runs_are_looked_through_and_no_more(story: Story) -> None:
    told = story.run(Q4, cached=False)
    assert told.taken("q4") == (0, 0)
    for _ in range(MOST_RUNS):
        story.run(make_variant("other"), cached=False)
    runs = sorted(story.root.glob("run-*"), key=lambda path: int(path.name[4:]), reverse=True)
    head = RunHead(id="now", created="now", suite_version="1", settings={})
    assert len(list(EarlierRuns(runs, MACHINE, head))) == MOST_RUNS
    assert len(list(EarlierRuns(runs[1:], MACHINE, head))) == MOST_RUNS
    assert {name for run in EarlierRuns(runs[1:], MACHINE, head) for name in run.declared} == {"other", "q4"}
    assert {name for run in EarlierRuns(runs, MACHINE, head) for name in run.declared} == {"other"}


def test_both_sides_of_a_duet_are_computed(story: Story) -> None:
    old = dataclasses.replace(Q4, name="q4@old", old_of="q4")
    story.run(REFERENCE, Q4, cached=False)
    assert story.run(REFERENCE, Q4, shadows=(old,)).taken("q4") == (0, 0)


def test_a_failed_variant_lends_nothing(story: Story) -> None:
    story.run(Q4, cached=False)
    file = story.root / "run-1" / "journal.jsonl"
    file.write_text(
        file.read_text()
        + '{"kind":"failure","record":{"variant":"q4","verdict":"ERROR","reason":"killed","detail":""}}\n'
    )
    assert story.run(Q4).taken("q4") == (0, 0)


def make_forced(**fields: Any) -> Forced:
    usual: dict[str, Any] = {
        "variant": "q4", "case": "math/a", "domain": "math", "family": None, "path": "batched", "trace": "t",
        "kld": (0.001, 1e-7), "logprobs": (-0.1, -2.0), "reference_logprobs": (-0.1, -2.0),
    }  # fmt: skip
    return Forced(**{**usual, **fields})


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ({}, True),
        ({"kld": (0.0010000001, 2e-7)}, True),
        ({"kld": (0.0011, 1e-7)}, False),
        ({"kld": (0.001,)}, False),
        ({"logprobs": (-0.100001, -2.0)}, True),
        ({"logprobs": (-0.101, -2.0)}, False),
        ({"broken": (1,)}, False),
        ({"trace": "u"}, False),
        ({"path": "decode"}, False),
        ({"distance": (0.1, 0.1)}, False),
        ({"distance": (None, None)}, True),
        ({"peer": "f16", "peer_kld": (0.1, 0.2)}, True),
    ],
)
def test_rounding_is_no_difference(other: dict[str, Any], same: bool) -> None:
    assert is_same_forced(make_forced(), make_forced(**other)) is same


def test_an_answer_that_cannot_be_given_any_more_is_a_difference() -> None:
    trial: dict[str, Any] = {
        "variant": "q4", "case": "math/a", "case_version": 1, "domain": "math", "family": None, "scorer": "number@1",
        "prompt_sha256": "p", "generation": None,
    }  # fmt: skip
    lost = Trial(**trial, score=Score(status=TrialStatus.ERROR))
    assert "could not be answered" in tell_difference(lost, lost)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Weighted(InProcessLauncher):
    """``f16`` is unquantized, the others are not."""

    @contextmanager
    def launch(self, variant: Variant, index: int = 0) -> Iterator[LiveVariant]:
        artifact = Artifact(files=(), size_bytes=1, bpw=16.0 if variant.name == "f16" else 4.0)
        with super().launch(variant, index) as live:
            yield dataclasses.replace(live, prepared=Prepared(weights=None, artifact=artifact))


F16 = make_variant("f16", reply="the answer is 18", noise=0.01)


def peers_of(told: Told, variant: str) -> set[str | None]:
    return {forced.peer for forced in told.ledger.forced_of(variant) if forced.path == "batched"}


def test_what_quantization_alone_did_is_taken_with_the_rest(story: Story) -> None:
    fresh = story.run(REFERENCE, F16, Q4, cached=False, launcher=Weighted())
    cached = story.run(REFERENCE, F16, Q4, launcher=Weighted())
    assert peers_of(fresh, "q4") == peers_of(cached, "q4") == {"f16"}
    assert cached.taken("q4") == (5, 5)
    for case in CASES:
        found = [told.ledger.forced["q4", case.id, "batched"].peer_kld for told in (fresh, cached)]
        assert found[0] == found[1]


def test_a_variant_that_was_added_finds_the_rows_of_its_peer(story: Story) -> None:
    story.run(REFERENCE, F16, cached=False, launcher=Weighted())
    told = story.run(REFERENCE, F16, Q4, launcher=Weighted())
    assert (told.taken("f16"), told.taken("q4")) == ((5, 0), (0, 0))
    assert peers_of(told, "q4") == {"f16"}


def test_a_peer_that_changed_is_not_the_one_of_then(story: Story, tmp_path: Path) -> None:
    script = tmp_path / "f16.json"
    scripted = make_variant("f16", script=str(script))
    write_script(script, reply="the answer is 18", noise=0.01)
    then = story.run(REFERENCE, scripted, Q4, cached=False, launcher=Weighted())
    write_script(script, reply="the answer is 18", noise=0.02)
    told = story.run(REFERENCE, scripted, Q4, launcher=Weighted())
    assert told.dropped().keys() == {"f16"}
    assert told.taken("q4") == (5, 0)
    for case in CASES:
        found = [run.ledger.forced["q4", case.id, "batched"].peer_kld for run in (then, told)]
        assert found[0] != found[1]


def test_without_the_peer_the_reference_of_the_same_engine_takes_its_place(story: Story) -> None:
    story.run(REFERENCE, F16, Q4, cached=False, launcher=Weighted())
    told = story.run(REFERENCE, Q4, launcher=Weighted())
    assert told.taken("q4") == (5, 5)
    assert peers_of(told, "q4") == {"ref"}  # the fakes are all of one engine
    for (name, _, path), forced in told.ledger.forced.items():
        if (name, path) == ("q4", "batched"):
            assert forced.peer_kld == forced.kld


def test_a_peer_that_came_later_is_used(story: Story) -> None:
    story.run(REFERENCE, Q4, cached=False, launcher=Weighted())
    told = story.run(REFERENCE, F16, Q4, launcher=Weighted())
    assert told.taken("q4") == (5, 0)
    assert peers_of(told, "q4") == {"f16"}
