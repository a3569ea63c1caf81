"""From settings to a run: which one is resumed, and what a journal must hold for that."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from support.in_process import make_matrix

from suite.engine.accepting import accept_baselines, read_commit
from suite.engine.assembling import RunHead, assemble
from suite.engine.locking import RunLock
from suite.engine.opening import XDIST_REASON, open_session, prepare_directory, read_question
from suite.engine.progress import silent
from suite.engine.resuming import KEY, find_resumable, read_ledger
from suite.errors import CaseFileError, StoreError, UsageError
from suite.records import Aspect, Note, Provenance, QualityBaseline, ResolvedArtifact, VariantFailure, Verdict
from suite.settings import Settings, read_settings
from suite.store.baselines import BaselineStore
from suite.store.journal import Journal, read_journal


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "matrix.toml").write_text(
        'model = { name = "toy", source = "org/toy" }\nscenarios.short = { prompt_tokens = 8, new_tokens = 4 }\n'
        'variants.q4 = { backend = "fake" }\nvariants.q5 = { backend = "fake" }\n'
    )
    (tmp_path / "cases" / "math").mkdir(parents=True)
    (tmp_path / "cases" / "math" / "a.toml").write_text(
        '[[case]]\nid = "a"\nversion = 1\nprompt = "p"\ntarget = "1"\nscorer = "number"\nmax_new_tokens = 4\n'
    )
    return read_settings(lambda _: None, root=tmp_path, environment={"QUANTDRIFT_CACHE": str(tmp_path / "cache")})


def write_journal(directory: Path, key: str, *, finished: bool = False) -> None:
    with Journal(directory / "journal.jsonl") as journal:
        journal.append(Note(text=KEY, data={KEY: key}))
    if finished:
        (directory / "run.json").write_text("{}")


def test_the_newest_run_of_the_same_question_is_resumed(tmp_path: Path) -> None:
    assert find_resumable(tmp_path / "nowhere", "k") is None
    write_journal(tmp_path / "1-old", "k")
    write_journal(tmp_path / "2-newer", "k")
    write_journal(tmp_path / "3-other", "another question")
    write_journal(tmp_path / "4-finished", "k", finished=True)
    (tmp_path / "5-empty").mkdir()
    (tmp_path / "6-damaged").mkdir()
    (tmp_path / "6-damaged" / "journal.jsonl").write_bytes(
        b'{"kind": "journal", "schema": 999}\n[]\n\xff\n{"record": 1}\n'
    )
    assert find_resumable(tmp_path, "k") == tmp_path / "4-finished"
    assert find_resumable(tmp_path, "another question") == tmp_path / "3-other"
    assert find_resumable(tmp_path, "never asked") is None


def test_of_two_runs_of_one_second_the_later_one_is_the_newest(tmp_path: Path) -> None:
    directories = [tmp_path / f"2026-11-29T12-00-00-{suffix}" for suffix in ("ffff", "0000", "5555")]
    for age, directory in enumerate(directories):
        write_journal(directory, "k")
        os.utime(directory, ns=(age, age))
    assert find_resumable(tmp_path, "k") == directories[-1]


def test_reading_a_question_writes_nothing(settings: Settings, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    question = read_question(settings)
    assert sorted(tmp_path.rglob("*")) == before
    assert [variant.name for variant in question.plan.matrix.variants] == ["q4", "q5"]
    assert question.directory.parent == tmp_path / ".quantdrift" / "runs"
    assert question.head.id == question.directory.name
    assert question.plan.speed_excluded is None
    assert read_question(settings, parallel=True).plan.speed_excluded == XDIST_REASON


def test_a_run_goes_on_only_with_the_same_question(settings: Settings, tmp_path: Path) -> None:
    begun = read_question(settings)
    open_session(begun, silent).close()
    resuming = replace(settings, resume=True)
    resumed = read_question(resuming)
    assert (resumed.resumed, resumed.directory, resumed.head.id) == (True, begun.directory, begun.head.id)
    assert not read_question(settings).resumed
    assert (resumed.plan.finished, resumed.plan.selected) == (False, frozenset({"q4", "q5"}))
    assert read_question(replace(resuming, variants=("q4",))).resumed
    assert not read_question(replace(resuming, quick=True)).resumed
    (tmp_path / "cases" / "math" / "b.toml").write_text(
        '[[case]]\nid = "b"\nversion = 1\nprompt = "p"\ntarget = "1"\nscorer = "number"\nmax_new_tokens = 4\n'
    )
    assert not read_question(resuming).resumed


def accepted_from(run: str, settings: Settings) -> None:
    """A baseline of q5 that was accepted from `run`."""
    BaselineStore(settings.baselines).write(
        QualityBaseline(
            model="toy", variant="q5", identity={}, suspects={}, metrics={}, cases={},
            provenance=Provenance(accepted="2026-11-29T12:00:00+00:00", reason="why", run=run),
        )
    )  # fmt: skip


@pytest.mark.parametrize("named", [False, True])
def test_a_run_that_the_baselines_were_accepted_from_is_not_taken_up(
    settings: Settings, tmp_path: Path, named: bool
) -> None:
    """It would be held against itself."""
    settings = replace(settings, report=tmp_path / "out") if named else settings
    begun = read_question(settings)
    open_session(begun, silent).close()
    resuming = replace(settings, resume=True)
    (begun.directory / "run.json").write_text(json.dumps({"kind": "run", "id": begun.head.id}))
    accepted_from("another", settings)
    assert (read_question(resuming).resumed, read_question(resuming).remarks) == (True, ())
    accepted_from(begun.head.id, settings)
    anew = read_question(replace(resuming, variants=("q4",)))
    assert not anew.resumed
    assert anew.head.id != begun.head.id
    (said,) = anew.remarks
    assert "is what the baselines were accepted from, and was not taken up again" in said


def test_the_cpus_are_those_of_the_whole_matrix_whatever_was_selected(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("suite.engine.opening.threads_of", lambda variants: len(tuple(variants)))
    monkeypatch.setattr("suite.engine.opening.choose_cpus", lambda threads: tuple(range(threads)))
    question = read_question(replace(settings, variants=("q4",)))
    assert question.plan.cpus == (0, 1)
    assert question.head.settings["cpus"] == "0,1"


def test_how_much_is_measured_and_how_it_is_judged_is_another_question(settings: Settings, tmp_path: Path) -> None:
    begun = read_question(settings)
    file = tmp_path / "matrix.toml"
    text = file.read_text()
    file.write_text(f"{text}protocol.launches = 9\npolicy.decode_tok_s.relative = 0.5\ndeadlines.load_s = 3.0\n")
    assert read_question(settings).key == begun.key
    file.write_text(f"{text}protocol.launches = 9\nscenarios.long = {{ prompt_tokens = 9, new_tokens = 4 }}\n")
    assert read_question(settings).key != begun.key


def test_a_run_that_is_taken_up_keeps_the_variants_that_it_measured(settings: Settings) -> None:
    begun = read_question(settings)
    open_session(begun, silent).close()
    with Journal(begun.directory / "journal.jsonl") as journal:
        journal.append(ResolvedArtifact(variant="q5", artifact=None))
    resumed = read_question(replace(settings, resume=True, variants=("q4",)))
    assert [variant.name for variant in resumed.plan.matrix.variants] == ["q4", "q5"]
    assert [variant.name for variant in resumed.plan.asked_for] == ["q4"]


def test_a_quick_run_times_one_scenario_and_adds_no_launches(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "matrix.toml"
    file.write_text(file.read_text() + "scenarios.long = { prompt_tokens = 9, new_tokens = 4 }\n")
    question = read_question(replace(settings, quick=True))
    protocol = question.plan.matrix.protocol
    assert (protocol.launches, protocol.max_launches, protocol.rounds) == (3, 3, 4)
    assert {gate.scope for gate in question.plan.gates if gate.aspect is Aspect.SPEED} == {"short"}
    assert not [gate for gate in question.plan.gates if gate.aspect is Aspect.MEMORY]
    assert question.head.settings["quick"] == "yes"
    assert "quick" not in read_question(settings).head.settings


def test_two_processes_do_not_write_into_one_run(tmp_path: Path) -> None:
    held = RunLock(tmp_path / "run")
    with pytest.raises(UsageError, match="another process is writing this run"):
        RunLock(tmp_path / "run")
    held.release()
    assert list((tmp_path / "run").iterdir()) == []
    RunLock(tmp_path / "run").release()
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written to"):
        RunLock(tmp_path / "file")


def test_going_on_marks_every_journal_and_forgets_failures(settings: Settings) -> None:
    begun = read_question(settings)
    for worker in ("gw0", "gw1"):
        open_session(begun, silent, worker=worker).close()
        with Journal(begun.directory / f"journal-{worker}.jsonl") as journal:
            journal.append(VariantFailure(variant=worker, verdict=Verdict.ERROR, reason="killed"))
    assert set(read_ledger(begun.directory).failures) == {"gw0", "gw1"}
    resumed = read_question(replace(settings, resume=True))
    open_session(resumed, silent).close()
    assert read_ledger(begun.directory).failures == {}
    assert read_question(replace(settings, resume=True)).directory == begun.directory  # its own journal has no key


def test_a_named_directory_is_begun_anew_or_gone_on_with(settings: Settings, tmp_path: Path) -> None:
    named = replace(settings, report=tmp_path / "out")
    open_session(read_question(named), silent).close()
    resumed = read_question(replace(named, resume=True))
    assert (resumed.resumed, resumed.directory) == (True, tmp_path / "out")
    (tmp_path / "out" / "run.json").write_text('{"kind": "run"}')
    with Journal(tmp_path / "out" / "journal.jsonl") as journal:
        journal.append(VariantFailure(variant="q4", verdict=Verdict.ERROR, reason="killed"))
    (tmp_path / "out" / "mine.txt").write_text("stays")
    again = read_question(replace(named, resume=True))
    assert (again.resumed, again.plan.finished) == (True, True)
    prepare_directory(again)
    assert (tmp_path / "out" / "run.json").exists()
    prepare_directory(read_question(named))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]


def test_what_is_wrong_is_told_before_anything_is_loaded(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no variant 'q6'; known: q4, q5"):
        read_question(replace(settings, variants=("q6",)))
    with pytest.raises(CaseFileError, match="no such directory"):
        read_question(replace(settings, cases=tmp_path / "nowhere"))
    with pytest.raises(UsageError, match=r"nothing\.gguf"):
        read_question(replace(settings, added=("./nothing.gguf",)))


def test_the_journal_says_what_was_asked(settings: Settings) -> None:
    question = read_question(settings)
    open_session(question, silent).close()
    kinds = [entry.kind for entry in read_journal(question.directory / "journal.jsonl")]
    assert kinds == ["environment", "note"]


def test_a_run_of_answers_refuses_nothing_about_speed(settings: Settings) -> None:
    updating = replace(settings, update="new", reason="why", only="answers")
    question = read_question(updating)
    head = RunHead(id="r", created="now", suite_version="0", settings={})
    run = assemble(head, read_ledger(question.directory), make_matrix(), (), question.plan.environment)
    assert accept_baselines(run, replace(question, settings=settings)) == (False, ())
    refused, said = accept_baselines(run, question)
    assert (refused, said) == (False, (" nothing to accept: every baseline is in place and nothing drifted",))


def test_outside_of_git_there_is_no_commit(tmp_path: Path) -> None:
    assert read_commit(tmp_path) is None
    assert read_commit(tmp_path / "nowhere") is None
