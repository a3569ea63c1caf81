"""The table and the command: what is printed, and what the exit status says."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.made_corpora import write_all

from suite.cli.selftest import declare_selftest, read_extent, run_selftest
from suite.errors import QuantdriftError, UsageError
from suite.selftest import prove as proving
from suite.selftest.live import KINDS
from suite.selftest.prove import FEW_LIVE, MATRICES, QUICK_LIVE, Extent
from suite.selftest.table import WIDTH, Row, Section, failed, rate_row, render_table, share_text, told_row


def parse(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    declare_selftest(parser)
    return parser.parse_args(arguments)


def test_a_share_is_told_with_its_exact_interval() -> None:
    assert share_text(0, 3000) == "0: 0 % (0–0.12)"
    assert share_text(58, 60) == "58: 96.7 % (88.5–99.6)"
    assert share_text(0, 0) == "no trials"


@pytest.mark.parametrize(
    ("count", "trials", "limits", "outcome"),
    [
        (0, 60, {"most": 0.01}, "holds"),
        (1, 60, {"most": 0.01}, "open"),  # 1.7 %, but it may be 0.04 %
        (9, 60, {"most": 0.01}, "FAILS"),
        (1, 9000, {"most": 0.0}, "FAILS"),  # what may never happen has happened
        (9, 10, {"least": 0.95}, "open"),
        (5, 10, {"least": 0.95}, "FAILS"),
        (95, 100, {"least": 0.95}, "holds"),
        (990, 1000, {"least": 0.92, "most": 0.98}, "FAILS"),
        (0, 0, {"least": 0.9}, "open"),
    ],
)
def test_a_rate_holds_fails_or_is_open(count: int, trials: int, limits: dict[str, float], outcome: str) -> None:
    assert rate_row("x", count, trials, **limits).outcome == outcome


def test_the_table_is_plain_text_of_a_hundred_columns() -> None:
    rows = (
        rate_row(
            "a check with a name that is far too long for the column that it has to stand in", 3000, 3000, least=0.95
        ),
        rate_row("short", 7, 10, most=0.0),
        told_row("others", share_text(3, 10), 10),
    )
    lines = render_table([Section(title="Part", rows=rows)])
    assert max(map(len, lines)) <= WIDTH
    assert lines[3:] == [
        "Part",
        "  a check with a name that is far too long for at least 95 %  3000: 100 % (99.9–100)    3000   holds",
        "  the column that it has to stand in",
        "  short                                        never          7: 70 % (34.8–93.3)       10     FAILS",
        "  others                                                      3: 30 % (6.7–65.2)        10",
        "-" * WIDTH,
        "1 of 2 do not hold",
    ]
    assert [row.check for row in failed([Section(title="Part", rows=rows)])] == ["short"]


def test_open_rows_are_counted_but_fail_nothing() -> None:
    section = Section(title="Part", rows=(rate_row("x", 9, 10, least=0.95), rate_row("y", 0, 10, most=0.5)))
    assert render_table([section])[-1] == "1 of 2 hold, none fails; 1 with too few trials to tell"


def test_arguments_choose_how_much() -> None:
    assert read_extent(parse()).live == FEW_LIVE
    assert read_extent(parse()).matrices == MATRICES >= 3000
    quick = read_extent(parse("--quick", "--only", "live"))
    assert (quick.live, quick.parts) == (QUICK_LIVE, ("live",))
    assert quick.matrices < MATRICES
    assert read_extent(parse("--live", "4", "--seed", "7")) == Extent(live=dict.fromkeys(KINDS, 4), seed=7)
    with pytest.raises(UsageError, match="0 or more"):
        read_extent(parse("--live", "-1"))


def test_the_command_prints_the_table_and_exits_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_selftest(parse("--only", "quality")) == 0
    assert capsys.readouterr().out.endswith("5 of 5 hold, none fails\n")


def test_the_command_exits_1_when_something_does_not_hold(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = Section(title="Part", rows=(Row(check="x", asked="never", result="once", trials=1, outcome="FAILS"),))
    monkeypatch.setattr(proving, "prove", lambda _extent, _say: iter([bad]))
    assert run_selftest(parse()) == 1
    assert "1 of 1 do not hold" in capsys.readouterr().out


def test_the_command_exits_2_when_it_could_not_be_tried(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_extent: Extent, _say: object) -> Iterator[Section]:
        raise QuantdriftError("worker of a died")
        yield

    monkeypatch.setattr(proving, "prove", broken)
    assert run_selftest(parse()) == 2
    assert "worker of a died" in capsys.readouterr().err


def test_every_part_has_its_sections(tmp_path: Path) -> None:
    extent = Extent(matrices=2, trap_runs=2, corpora=write_all(tmp_path), live={})
    titles = [section.title.split(",")[0].split(":")[0] for section in proving.prove(extent, lambda _sentence: None)]
    assert titles == ["Answers", "Traps", *["Replayed"] * 5]  # no live run was asked for
