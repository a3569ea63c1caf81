"""``--matrix-cached``: what a person types and gets, from a first run to a changed model."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from support.foreign_project import WRONG, ForeignProject, verdicts

ANSWERS = "--matrix-only=answers"
CACHED = "--matrix-cached"
REFERENCE: dict[str, Any] = {"reference": True}


def taken(run: dict[str, Any]) -> Counter[tuple[str, str | None]]:
    """Number of answers by variant and run that they are from."""
    return Counter((trial["variant"], trial["cached_from"]) for trial in run["trials"])


@pytest.fixture
def measured(project: ForeignProject) -> ForeignProject:
    """Two variants whose answers are in the store."""
    project.write_matrix({"ref": REFERENCE, "q4": {}})
    assert project.run(ANSWERS).ret == 0
    return project


def test_answers_are_taken_and_marked_and_speed_is_measured(measured: ForeignProject) -> None:
    first = measured.read_run()
    assert measured.run(CACHED).ret == 0
    run = measured.read_run()
    assert taken(run) == {(name, origin): n for name in ("ref", "q4") for origin, n in ((first["id"], 4), (None, 3))}
    assert run["settings"]["cached"] == "yes"
    for trial in run["trials"]:
        if trial["cached_from"]:
            assert (trial["token_times_s"], trial["ttft_s"], trial["decode_tok_s"]) == ([], None, None)
            assert trial["prefill_tok_s"] is None
    assert {forced["cached_from"] for forced in run["forced"]} == {None, first["id"]}
    assert {sample["variant"] for sample in run["speed_samples"]} == {"ref", "q4"}
    assert [trial["score"] for trial in run["trials"]] == [trial["score"] for trial in first["trials"]]
    assert "cached" not in first["settings"]


def test_the_items_of_taken_answers_tell_no_times(measured: ForeignProject) -> None:
    measured.run(CACHED, ANSWERS, "--junitxml=junit.xml")
    text = (measured.root / "junit.xml").read_text()
    assert text.count('name="quantdrift.output_tokens"') == 14
    assert text.count('name="quantdrift.ttft_s"') == text.count('name="quantdrift.decode_tok_s"') == 6


def test_gates_judge_taken_answers_as_they_judge_others(measured: ForeignProject) -> None:
    assert measured.accept().ret == 0
    assert measured.run(CACHED, ANSWERS).ret == 0
    held = verdicts(measured.read_run(), "q4")
    assert held["score/math"] == "PASS"
    assert held["mean_kld/all"] == "PASS"


def test_a_model_that_changed_in_silence_is_found_and_measured(measured: ForeignProject) -> None:
    assert measured.accept().ret == 0
    measured.write_script("q4", replies=WRONG)
    result = measured.run(CACHED, ANSWERS)
    assert result.ret == 1
    run = measured.read_run()
    assert {origin for variant, origin in taken(run) if variant == "q4"} == {None}
    assert verdicts(run, "q4")["score/all"] == "REGRESSED"
    journal = measured.root / ".quantdrift" / "runs" / run["id"] / "journal.jsonl"
    notes = [json.loads(line).get("record", {}) for line in journal.read_text().splitlines()]
    (dropped,) = [note["data"] for note in notes if note.get("text") == "cache dropped"]
    assert dropped["variant"] == "q4"
    assert "another answer" in dropped["reason"]


def test_one_variant_added_is_one_variant_measured(measured: ForeignProject) -> None:
    measured.write_matrix({"ref": REFERENCE, "q4": {}, "q5": {}})
    assert measured.run(CACHED, ANSWERS).ret == 0
    found = taken(measured.read_run())
    assert found["q5", None] == 7
    assert found["q4", None] == found["ref", None] == 3


def test_a_case_that_was_raised_is_answered_anew(measured: ForeignProject) -> None:
    measured.write_cases(versions=dict.fromkeys(("apples", "pears", "plums", "figs"), 2))
    assert measured.run(CACHED, ANSWERS).ret == 0
    fresh = {t["case"] for t in measured.read_run()["trials"] if t["variant"] == "q4" and t["cached_from"] is None}
    assert {"math/apples", "math/pears", "math/plums", "math/figs"} <= fresh


def test_the_ini_file_may_ask_for_it(measured: ForeignProject) -> None:
    (measured.root / "pytest.ini").write_text("[pytest]\nmatrix_cached = true\n")
    assert measured.run(ANSWERS).ret == 0
    assert any(origin for _, origin in taken(measured.read_run()))


def test_what_was_taken_is_never_accepted(measured: ForeignProject) -> None:
    status, told = measured.refuse(CACHED, "--matrix-update=new", "--matrix-reason=why")
    assert status == 2
    assert "rests on what was computed for it" in str(told)
    assert measured.run(CACHED, ANSWERS).ret == 0
    taken_up = measured.run(
        ANSWERS, "--matrix-resume", "--matrix-update=new", "--matrix-reason=because the test says so"
    )
    assert taken_up.ret == 0
    taken_up.stdout.fnmatch_lines(["*holds answers of earlier runs, which are not accepted: this run is new*"])
    assert {origin for _, origin in taken(measured.read_run())} == {None}


def test_a_run_of_taken_answers_is_resumed_without_the_option(measured: ForeignProject) -> None:
    assert measured.run(CACHED, ANSWERS).ret == 0
    first = measured.read_run()
    assert measured.run("--matrix-resume").ret == 0
    assert measured.read_run()["id"] == first["id"]
    assert taken(measured.read_run()) == taken(first)
