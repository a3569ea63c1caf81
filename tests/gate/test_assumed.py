"""A machine that was never calibrated accuses nobody of what its sessions may have done."""

from __future__ import annotations

from typing import Any

import pytest

from suite.gate.compare import compare
from suite.gate.judge import judge, needs_more
from suite.gate.policy import DEFAULT_POLICY
from suite.records import Baselines, Finding, Noise, Verdict

OLD = (0.0101, 0.0099, 0.0100, 0.0100, 0.0100)


def judged(made: Any, gap: float, noise: Noise | None = None, *, real: bool = True) -> Finding:
    now = made.speed("itl_s", [gap * value / 0.01 for value in OLD])
    yardsticks = [made.speed("yardstick_hash_bytes_s", (1e9,) * 5, "all")] if real else []
    stored = Baselines(speed=made.speed_baseline({"itl_s/short": OLD}), noise=noise)
    found = compare(made.result(now, *yardsticks), (), stored, made.environment)
    return judge(next(c for c in found if c.metric == "itl_s"), DEFAULT_POLICY)


@pytest.mark.parametrize("gap", [0.014, 0.007])
def test_what_sessions_may_have_done_is_neither_regressed_nor_improved(made: Any, gap: float) -> None:
    finding = judged(made, gap)
    assert finding.comparison.assumed
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "quantdrift calibrate" in finding.sentence


def test_once_calibrated_it_is_called(made: Any) -> None:
    noise = made.noise("itl_s")
    assert judged(made, 0.014, noise).verdict is Verdict.REGRESSED
    assert judged(made, 0.007, noise).verdict is Verdict.IMPROVED


def test_what_no_session_could_have_done_is_called_all_the_same(made: Any) -> None:
    assert judged(made, 0.03).verdict is Verdict.REGRESSED


def test_simulated_time_has_no_sessions(made: Any) -> None:
    assert judged(made, 0.014, real=False).verdict is Verdict.REGRESSED


def test_more_launches_do_not_tell_how_sessions_differ(made: Any) -> None:
    assert not needs_more(judged(made, 0.014))
