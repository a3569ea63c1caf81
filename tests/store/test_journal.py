"""The journal: nothing that was finished is lost, and damage never passes silently."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from suite.errors import StoreError
from suite.records import Note, VariantFailure, Verdict
from suite.store.journal import KINDS, Entry, Journal, read_journal, read_journals
from suite.store.layout import journal_file

NOTES = [Note(text=f"note {number}", data={"k": "v\n한"}) for number in range(3)]


def write(path: Path, *records: object) -> Path:
    with Journal(path) as journal:
        for record in records:
            journal.append(record)
    return path


def records(path: Path) -> list[Any]:
    return [entry.record for entry in read_journal(path)]


def test_what_is_appended_is_read_in_order(tmp_path: Path) -> None:
    failure = VariantFailure(variant="q4", verdict=Verdict.ERROR, reason="killed", detail="signal 9")
    path = write(tmp_path / "run" / "journal.jsonl", NOTES[0], failure, NOTES[1])
    assert read_journal(path) == (Entry("note", NOTES[0]), Entry("failure", failure), Entry("note", NOTES[1]))


def test_each_record_is_on_the_disk_before_the_next(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        journal.append(NOTES[0])
        assert records(path) == NOTES[:1]


def test_opening_again_goes_on_where_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    write(path, NOTES[0])
    write(path, NOTES[1])
    assert records(path) == NOTES[:2]
    assert path.read_text().count('"journal"') == 1


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_one_torn_last_line_is_left_out_and_mended(cut: int, tmp_path: Path) -> None:
    path = write(tmp_path / "journal.jsonl", *NOTES)
    path.write_bytes(path.read_bytes()[:-cut])
    kept = NOTES if cut == 1 else NOTES[:2]  # only the newline is missing: the record is whole
    assert records(path) == kept
    write(path, NOTES[0])
    assert records(path) == [*kept, NOTES[0]]


def test_zeros_after_a_power_cut_are_a_torn_line(tmp_path: Path) -> None:
    path = write(tmp_path / "journal.jsonl", *NOTES)
    path.write_bytes(path.read_bytes() + b"\0" * 100)
    assert records(path) == NOTES


def test_a_torn_first_line_is_an_empty_journal(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text('{"kind":"jou')
    assert records(path) == []
    write(path, NOTES[0])
    assert records(path) == NOTES[:1]


@pytest.mark.parametrize(
    ("line", "text", "message"),
    [
        (2, b"{torn", "line 2: not JSON"),
        (4, b"{torn", "line 4: not JSON"),
        (3, b"\xff\xfe", "line 3: not UTF-8"),
        (3, b'{"kind":"nite","record":{}}', "line 3: unknown kind 'nite'; did you mean 'note'"),
        (3, b'{"kind":"note","record":{"txt":"x"}}', "line 3: .*unknown key 'txt'; did you mean 'text'"),
        (3, b'{"kind":"note"}', "line 3: "),
        (1, b'{"kind":"note","record":{"text":"x"}}', "line 1: .*is it a journal"),
        (1, b'{"kind":"journal","schema":2}', "line 1: written by a newer quantdrift"),
    ],
)
def test_damage_elsewhere_names_the_line(line: int, text: bytes, message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "journal.jsonl", *NOTES)
    lines = path.read_bytes().splitlines()
    lines[line - 1] = text
    path.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(StoreError, match=message):
        read_journal(path)
    with pytest.raises(StoreError, match=message):
        Journal(path)


def test_two_processes_write_a_journal_each_and_both_are_read(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from suite.records import Note; from suite.store.journal import Journal\n"
        "with Journal(Path(sys.argv[1])) as journal:\n"
        "    for number in range(20): journal.append(Note(text=f'{sys.argv[2]} {number}'))\n"
    )
    root = Path(__file__).parents[2]
    running = [
        subprocess.Popen([sys.executable, "-c", program, str(journal_file(tmp_path, name)), name], cwd=root)
        for name in ("gw0", "gw1")
    ]
    assert [process.wait(60) for process in running] == [0, 0]
    texts = [entry.record.text for entry in read_journals(tmp_path)]
    assert texts == [f"{name} {number}" for name in ("gw0", "gw1") for number in range(20)]


def test_a_full_disk_is_said_and_what_was_written_is_safe(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    journal = Journal(tmp_path / "journal.jsonl")
    journal.append(NOTES[0])
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, hard))
    try:
        with pytest.raises(StoreError, match=r"journal\.jsonl: could not be appended to"):
            journal.append(Note(text="x" * 1000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    journal.append(NOTES[1])
    journal.close()
    assert records(journal.path) == NOTES[:2]


def test_a_record_without_a_kind_is_a_fault_of_the_caller(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal.jsonl") as journal, pytest.raises(TypeError, match="a dict cannot be journalled"):
        journal.append({"text": "x"})


def test_a_number_that_is_none_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    from suite.records import Environment

    environment = Environment(machine="m", identity={}, suspects={}, readings={"load": float("nan")})
    with Journal(tmp_path / "journal.jsonl") as journal, pytest.raises(StoreError, match=r"record\.readings\.load"):
        journal.append(environment)
    assert records(journal.path) == []


def test_no_journal_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"journal\.jsonl: cannot be read: No such file"):
        read_journal(tmp_path / "journal.jsonl")


@given(data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_kind_of_record_survives(
    data: st.DataObject, records_of: Callable[[Any], st.SearchStrategy[Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    drawn = data.draw(st.lists(st.one_of(*(records_of(record) for record in KINDS.values())), max_size=3))
    assert records(write(tmp_path_factory.mktemp("journal") / "journal.jsonl", *drawn)) == drawn
