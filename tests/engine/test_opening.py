"""From settings to a run: which one is resumed, and what a journal must hold for that."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.in_process import make_matrix

from suite.engine.accepting import accept_baselines, read_commit
from suite.engine.assembling import RunHead, assemble
from suite.engine.opening import (
    KEY,
    XDIST_REASON,
    find_resumable,
    open_session,
    prepare_directory,
    read_ledger,
    read_question,
)
from suite.engine.progress import silent
from suite.errors import CaseFileError, UsageError
from suite.records import Note, VariantFailure, Verdict
from suite.settings import Settings, read_settings
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


def test_the_newest_unfinished_run_of_the_same_question_is_resumed(tmp_path: Path) -> None:
    assert find_resumable(tmp_path / "nowhere", "k") is None
    write_journal(tmp_path / "1-old", "k")
    write_journal(tmp_path / "2-newer", "k")
    write_journal(tmp_path / "3-other", "another question")
    write_journal(tmp_path / "4-finished", "k", finished=True)
    (tmp_path / "5-empty").mkdir()
    assert find_resumable(tmp_path, "k") == tmp_path / "2-newer"
    assert find_resumable(tmp_path, "never asked") is None


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
    assert not read_question(replace(resuming, variants=("q4",))).resumed
    (tmp_path / "cases" / "math" / "b.toml").write_text(
        '[[case]]\nid = "b"\nversion = 1\nprompt = "p"\ntarget = "1"\nscorer = "number"\nmax_new_tokens = 4\n'
    )
    assert not read_question(resuming).resumed


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
    assert not again.resumed
    prepare_directory(again)
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
