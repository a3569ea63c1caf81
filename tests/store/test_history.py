"""The history: a run is in it once, whole; a damaged line is named and kept."""

from __future__ import annotations

import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sample_history import entry, steady

from suite.errors import StoreError
from suite.records import HistoryEntry
from suite.store.history import append_history, read_history, scan_history

GOLDEN = Path(__file__).parent / "golden"
ROOT = Path(__file__).parent.parent.parent
NAMES = st.from_regex(r"[a-z][a-z0-9_.+-]{0,8}", fullmatch=True)
SCOPES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
KEYS = st.tuples(NAMES, NAMES, SCOPES).map("/".join)
TEXTS = st.dictionaries(
    st.text(st.characters(codec="utf-8"), max_size=12), st.text(st.characters(codec="utf-8"), max_size=12)
)


def stored(file: Path, *entries: HistoryEntry) -> Path:
    for one in entries:
        assert append_history(file, one)
    return file


def runs(file: Path) -> list[str]:
    return [one.run for one in read_history(file)]


@given(values=st.dictionaries(KEYS, st.floats(-1e12, 1e12)), versions=TEXTS)
def test_what_is_appended_is_read_again_to_six_digits(
    values: dict[str, float], versions: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    one = entry(values=values, versions=versions)
    (read,) = read_history(stored(tmp_path_factory.mktemp("history") / "h.jsonl", one))
    assert replace(read, values={}) == replace(one, values={})
    assert dict(read.values) == pytest.approx(values, rel=5.1e-6)


def test_lines_are_in_the_order_in_which_they_were_appended(tmp_path: Path) -> None:
    file = stored(tmp_path / "deep" / "h.jsonl", entry(2), entry(0), entry(1))
    assert runs(file) == [entry(night).run for night in (2, 0, 1)]


def test_the_same_run_is_not_appended_twice(tmp_path: Path) -> None:
    file = stored(tmp_path / "h.jsonl", entry(0), entry(1))
    before = file.read_bytes()
    assert not append_history(file, replace(entry(0), commit="another"))
    assert file.read_bytes() == before


def test_a_run_is_one_short_line(tmp_path: Path) -> None:
    file = stored(tmp_path / "h.jsonl", *steady(3))
    lines = file.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 3
    assert max(map(len, lines)) < 900  # of twelve values


def test_the_first_version_ever_written_stays_readable() -> None:
    (read,) = read_history(GOLDEN / "history-schema-1.jsonl")
    assert read.run == "2026-11-29T18-04-11-7c1f"
    assert read.accepted
    assert dict(read.values) == {
        "q4_k_m/decode_tok_s/short": 173.1,
        "q4_k_m/score/all": 0.44,
        "q4_k_m/score/math": 0.0,
    }


def test_that_version_is_what_is_written_now_to_the_letter(tmp_path: Path) -> None:
    (read,) = read_history(GOLDEN / "history-schema-1.jsonl")
    written = stored(tmp_path / "h.jsonl", read)
    assert written.read_bytes() == (GOLDEN / "history-schema-1.jsonl").read_bytes()


def test_a_part_of_the_cases_is_kept(tmp_path: Path) -> None:
    (read,) = read_history(stored(tmp_path / "h.jsonl", replace(entry(0), cases="3 of 77")))
    assert read.cases == "3 of 77"


def test_keys_that_are_not_known_yet_are_no_damage(tmp_path: Path) -> None:
    file = stored(tmp_path / "h.jsonl", entry(0))
    file.write_text(file.read_text().replace('"kind"', '"mood":"fine","kind"'))
    assert runs(file) == [entry(0).run]


def test_a_newer_version_asks_for_an_upgrade_and_is_not_added_to(tmp_path: Path) -> None:
    file = stored(tmp_path / "h.jsonl", entry(0), entry(1))
    text = file.read_text()
    newer = text.replace('{"schema":1', '{"schema":99', 1)
    file.write_text(newer)
    with pytest.raises(StoreError, match=r"h\.jsonl, line 1: written by a newer quantdrift .*upgrade"):
        read_history(file)
    with pytest.raises(StoreError, match="line 1: written by a newer quantdrift"):
        append_history(file, entry(2))
    assert file.read_text() == newer


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ('{"schema":1,"kind":"history","run":"2026-', "not JSON"),
        ("<<<<<<< HEAD", "not JSON"),
        ("\0\0\0\0", "not JSON"),
        ("[1]", "not an object"),
        ('{"schema":1,"kind":"journal"}', "expected 'history'"),
        ('{"schema":1,"kind":"history","run":"x"}', "'created' is missing"),
        ('{"kind":"history","run":"x"}', "key 'schema'"),
        ('{"schema":0,"kind":"history","run":"x"}', "too old"),
        ('{"schema":1,"kind":"history","run":"x","values":{"q4_k_m":3}}', "key 'values' is not laid out"),
    ],
)
def test_a_damaged_line_is_named_with_its_number_and_kept(damage: str, said: str, tmp_path: Path) -> None:
    file = stored(tmp_path / "h.jsonl", entry(0))
    with file.open("a", encoding="utf-8") as opened:
        opened.write(damage + "\n")
    stored(file, entry(1))
    assert damage in file.read_text(encoding="utf-8").splitlines()
    lines = scan_history(file)
    assert [one.run for one in lines.entries] == [entry(0).run, entry(1).run]
    (fault,) = lines.faults
    assert fault.startswith(f"{file}, line 2: ")
    assert "quantdrift history --append RUN" in fault
    with pytest.raises(StoreError, match=rf"line 2: .*{said}"):
        read_history(file)


def test_a_line_that_is_no_utf_8_is_named(tmp_path: Path) -> None:
    file = stored(tmp_path / "h.jsonl", entry(0))
    with file.open("ab") as opened:
        opened.write(b"\xff\xfe}\n")
    with pytest.raises(StoreError, match="line 2: not UTF-8"):
        read_history(file)


def test_a_cut_last_line_does_not_melt_into_the_next(tmp_path: Path) -> None:
    file = stored(tmp_path / "h.jsonl", entry(0), entry(1))
    file.write_bytes(file.read_bytes()[:-30])
    assert append_history(file, entry(1))  # its own line was cut, so it is not in it
    lines = scan_history(file)
    assert [one.run for one in lines.entries] == [entry(0).run, entry(1).run]
    assert len(lines.faults) == 1
    assert "line 2" in lines.faults[0]
    assert "not JSON" in lines.faults[0]


def test_a_whole_last_line_without_its_newline_counts(tmp_path: Path) -> None:
    file = stored(tmp_path / "h.jsonl", entry(0))
    file.write_bytes(file.read_bytes().rstrip(b"\n"))
    assert not append_history(file, entry(0))
    assert append_history(file, entry(1))
    assert runs(file) == [entry(0).run, entry(1).run]


def test_a_run_that_is_there_twice_is_named(tmp_path: Path) -> None:
    file = stored(tmp_path / "h.jsonl", entry(0))
    file.write_bytes(2 * file.read_bytes())
    lines = scan_history(file)
    assert len(lines.entries) == 1
    assert f"line 2: run {entry(0).run} is on line 1 already" in lines.faults[0]


def test_a_value_that_is_no_number_is_refused_and_named(tmp_path: Path) -> None:
    file = tmp_path / "h.jsonl"
    with pytest.raises(StoreError, match=r"values\.q4_k_m\.score\.all"):
        append_history(file, entry(values={"q4_k_m/score/all": float("nan")}))
    assert not file.exists()


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    file = stored(tmp_path / "h.jsonl", entry(0))
    before = file.read_bytes()
    code = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from support.sample_history import entry\n"
        "from suite.errors import StoreError\n"
        "from suite.store.history import append_history\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({len(before) + 50}, {resource.RLIM_INFINITY}))\n"
        "try:\n"
        f"    append_history(Path({str(file)!r}), entry(1))\n"
        "except StoreError as error:\n"
        "    print(error)\n"
    )
    assert "could not be appended to: File too large" in run_python(code)
    assert file.read_bytes() == before


def test_many_processes_that_append_at_once_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / "h.jsonl"
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from support.sample_history import entry\n"
        "from suite.store.history import append_history\n"
        "mine = int(sys.argv[1])\n"
        "for night in range(20):\n"
        f"    append_history(Path({str(file)!r}), entry(night if mine < 2 else 100 * mine + night))\n"
    )
    command = [sys.executable, "-c", code]
    started = [subprocess.Popen([*command, str(mine)], env=surroundings()) for mine in range(4)]
    assert [process.wait(timeout=120) for process in started] == [0, 0, 0, 0]
    expected = [entry(night).run for start in (0, 200, 300) for night in range(start, start + 20)]
    assert sorted(runs(file)) == sorted(expected)


def test_a_missing_file_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"nowhere\.jsonl: cannot be read"):
        read_history(tmp_path / "nowhere.jsonl")


def surroundings() -> dict[str, str]:
    return {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}


def run_python(code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=surroundings()).stdout
