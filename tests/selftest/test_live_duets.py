"""Live duets, with a kernel so small that nothing is measured in earnest: the way from workers to rows of the table."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import time
from pathlib import Path

import pytest

from suite.records import Environment, Verdict
from suite.selftest import live as living
from suite.selftest.characteristics import live_section
from suite.selftest.live import KINDS, Checked, Kind, LiveRun, read_runs, run_live, write_line
from suite.selftest.neighbour import neighbours
from suite.selftest.table import failed

HERE = Environment(machine="here", identity={}, suspects={}, readings={})


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few launches of little work; a side that does four times the work."""
    small = {"megabytes": 2, "prefill_passes": 2}
    monkeypatch.setitem(KINDS, "aa", Kind(about="the same work", options=small))
    protocol = dataclasses.replace(living.PROTOCOL, launches=2, max_launches=3, rounds=2, max_warmup=1, retries=0)
    monkeypatch.setattr(living, "PROTOCOL", protocol)
    monkeypatch.setattr(living, "SCENARIO", dataclasses.replace(living.SCENARIO, prompt_tokens=16, new_tokens=14))


@pytest.mark.usefixtures("_small")
def test_a_live_run_goes_through_workers_speed_pass_and_gate() -> None:
    run = run_live("aa", HERE)
    assert (run.kind, run.machine) == ("aa", "here")
    assert set(run.checks) == set(living.ASKED)
    assert 2 <= run.launches <= 3
    assert run.looks == (1 if run.launches == 2 else 2)
    drift = run.checks["itl_s"].drift
    assert drift is not None
    assert drift < -0.5  # the new side has 2 MiB to read, the old one 64: far beyond any noise


def made(kind: str, **verdicts: Verdict) -> LiveRun:
    checks = {
        metric: Checked(verdict=verdicts.get(metric, Verdict.PASS), drift=0.0, interval=(-0.01, 0.01))
        for metric in living.ASKED
    }
    return LiveRun(
        kind=kind,
        at="2026-01-01T00:00:00+00:00",
        machine="m",
        launches=5,
        looks=1,
        cost_s=20.0,
        slices=60,
        checks=checks,
    )


def test_runs_are_read_as_they_were_written_and_a_torn_line_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    runs = [made("aa"), made("slower5", itl_s=Verdict.REGRESSED)]
    file.write_text("".join(write_line(run) + "\n" for run in runs) + write_line(runs[0])[:40])
    assert read_runs(file) == runs
    assert read_runs(tmp_path / "none.jsonl") == []


@pytest.mark.parametrize(
    ("kind", "verdicts", "success"),
    [
        ("aa", {}, True),
        ("aa", {"prefill_tok_s": Verdict.INCONCLUSIVE}, True),
        ("aa", {"decode_tok_s": Verdict.REGRESSED}, False),
        ("busy", {"itl_s": Verdict.REGRESSED}, False),
        ("slower10", {"itl_s": Verdict.REGRESSED, "decode_tok_s": Verdict.INCONCLUSIVE}, True),
        ("slower5", {"decode_tok_s": Verdict.REGRESSED}, False),
        ("faster5", {"itl_s": Verdict.IMPROVED}, True),
        ("faster5", {}, False),
        ("stalls", {"decode_tok_s": Verdict.REGRESSED}, True),
    ],
)
def test_each_kind_knows_success(kind: str, verdicts: dict[str, Verdict], success: bool) -> None:
    assert made(kind, **verdicts).success is success


def test_false_alarms_and_missed_work_fail_the_table() -> None:
    alarms = [made("aa", itl_s=Verdict.REGRESSED) for _ in range(5)]
    missed = [made("slower10") for _ in range(5)]
    good = [made("busy") for _ in range(5)]
    bad = [row.check for row in failed([live_section([*alarms, *missed, *good])])]
    assert bad == ["the same work: any REGRESSED", "10 % more work: itl_s REGRESSED"]


def crowd(run: LiveRun) -> LiveRun:
    return dataclasses.replace(run, unclean=run.slices * 2 // 3)


def test_a_crowded_run_says_nothing_about_power_but_may_still_cry_wolf() -> None:
    quiet = [made("slower10", itl_s=Verdict.REGRESSED) for _ in range(20)]
    crowded = [crowd(made("slower10", itl_s=Verdict.INCONCLUSIVE)) for _ in range(20)]
    section = live_section([*quiet, *crowded])
    assert (section.rows[0].trials, section.rows[0].outcome) == (20, "holds")
    assert "20 crowded" in section.rows[-1].result
    alarms = [crowd(made("aa", itl_s=Verdict.REGRESSED)) for _ in range(5)]
    assert [row.check for row in failed([live_section(alarms)])] == ["the same work: any REGRESSED"]


@pytest.mark.parametrize("bursty", [True, False])
def test_neighbours_are_gone_afterwards(bursty: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    start = subprocess.Popen

    def watching(*arguments: object, **options: object) -> subprocess.Popen[bytes]:
        started.append(start(*arguments, **options))  # type: ignore[call-overload]
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", watching)

    def meet() -> None:
        with neighbours(2, bursty=bursty):
            assert [process.poll() for process in started] == [None, None]
            raise RuntimeError("planted")

    with pytest.raises(RuntimeError, match="planted"):
        meet()
    assert all(process.returncode is not None for process in started)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system tells nothing about processes")
def test_a_neighbour_whose_parent_is_gone_ends_by_itself() -> None:
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-m', 'suite.selftest.neighbour', 'always', '0'])\n"
        "import time; time.sleep(1.0)\n"
        "print(child.pid)\n"
    )
    pid = int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    for _ in range(100):
        if not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text().split(")")[1][:3]:
            return
        time.sleep(0.1)
    raise AssertionError("it burns on")
