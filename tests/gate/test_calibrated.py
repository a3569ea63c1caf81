"""What calibration knows of a machine narrows or widens what is compared on it."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from suite.gate.compare import compare
from suite.gate.judge import judge, needs_more
from suite.gate.policy import DEFAULT_POLICY
from suite.gate.sessions import session_spread
from suite.records import Baselines, Comparison, Noise, Verdict
from suite.stats.intervals import SESSION_SD, STORED_SD_FLOOR, stored_difference

OLD = (0.0100, 0.0101, 0.0099, 0.0100, 0.0100)
HASH = "yardstick_hash_bytes_s"


def compared(
    made: Any, factor: float, noise: Noise | None = None, *, machine: float | None = None, metric: str = "itl_s"
) -> Comparison:
    """Five launches now, `factor` times as long (or as fast) as five then, on a machine `machine` times as fast."""
    now = made.speed(metric, [factor * value for value in OLD])
    yardsticks = () if machine is None else (made.speed(HASH, [1e9 * machine] * 5, "all"),)
    accepted = {f"{metric}/short": OLD, f"{HASH}/all": (1e9,) * 5}
    baselines = Baselines(speed=made.speed_baseline(accepted), noise=noise)
    found = compare(made.result(now, *yardsticks), (), baselines, made.environment)
    return next(c for c in found if c.metric == metric)


def verdict(found: Comparison) -> Verdict:
    return judge(found, DEFAULT_POLICY).verdict


def test_without_calibration_sessions_are_taken_to_differ_by_three_percent(made: Any) -> None:
    found = compared(made, 1.0)
    assert found.log_se == pytest.approx(math.sqrt(STORED_SD_FLOOR**2 * 2 / 5 + 2 * SESSION_SD**2))


def test_calibrated_spreads_take_the_place_of_the_assumed_ones(made: Any) -> None:
    noise = made.noise("itl_s", launch_sd=0.02, session_sd=0.015, session_df=12)
    found = compared(made, 1.0, noise)
    logs = [math.log(value) for value in OLD]
    session_sd, session_df = session_spread(noise.floors["itl_s"])
    assert SESSION_SD > session_sd > 0.015
    expected = stored_difference(logs, logs, sd_floor=0.02, session_sd=session_sd, session_df=session_df)
    assert expected is not None
    assert found.log_se == pytest.approx(expected.se)
    assert found.log_df == pytest.approx(expected.df)
    assert found.log_floor == pytest.approx(math.sqrt(2 * session_sd**2 + 0.02**2 / 5))


def test_a_steady_machine_tells_more_and_a_restless_one_less(made: Any) -> None:
    steady, restless = made.noise("itl_s"), made.noise("itl_s", session_sd=0.08)
    assert [verdict(compared(made, 1.17, noise)) for noise in (steady, None, restless)] == [
        Verdict.REGRESSED, Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE
    ]  # fmt: skip
    assert [verdict(compared(made, 1.04, noise)) for noise in (steady, None)] == [Verdict.PASS, Verdict.INCONCLUSIVE]
    assert verdict(compared(made, 1.25)) is Verdict.REGRESSED
    assert verdict(compared(made, 1.25, restless)) is Verdict.INCONCLUSIVE


def test_a_calibration_of_another_metric_has_no_say(made: Any) -> None:
    assert compared(made, 1.17, made.noise("prefill_tok_s")) == compared(made, 1.17)


def test_few_sessions_are_believed_less_and_none_that_never_differ(made: Any) -> None:
    few, many = (compared(made, 1.0, made.noise("itl_s", session_sd=0.03, session_df=df)) for df in (2, 50))
    assert (few.log_df or 0) < (many.log_df or 0)
    assert (few.interval or (0, 0))[1] > (many.interval or (0, 0))[1]
    never = compared(made, 1.0, made.noise("itl_s", session_sd=0.0))
    assert (never.log_se or 0) >= math.sqrt(2) * 0.01
    single = compared(made, 1.0, made.noise("itl_s", session_sd=0.0, session_df=0))
    assert (single.log_se or 0) >= math.sqrt(2) * SESSION_SD


DIVIDED = {"session_sd": 0.06, "normaliser": "hash", "normalised_session_sd": 0.01}


@pytest.mark.parametrize(("metric", "slow"), [("itl_s", 1.12), ("decode_tok_s", 1 / 1.12)])
def test_what_follows_the_yardstick_is_judged_as_if_the_machine_were_as_fast_as_it_was(
    made: Any, metric: str, slow: float
) -> None:
    """A machine that is slower by 12 % makes times longer and rates lower by as much, and nothing else changed."""
    noise = made.noise(metric, **DIVIDED)
    same = compared(made, slow, noise, machine=1 / 1.12, metric=metric)
    assert same.log_drift == pytest.approx(0.0, abs=1e-9)
    assert same.machine_drift == ()
    assert verdict(same) is Verdict.PASS
    worse = compared(made, slow**3, noise, machine=1 / 1.12, metric=metric)
    assert worse.log_drift == pytest.approx(2 * math.log(1.12))
    assert verdict(worse) is Verdict.REGRESSED
    hidden = compared(made, 1.0, noise, machine=1.3, metric=metric)  # a faster machine, and no faster on it
    assert hidden.log_drift == pytest.approx(math.log(1.3))
    assert hidden.machine_drift == ()  # it has been allowed for already
    assert verdict(hidden) is Verdict.REGRESSED


def test_without_a_yardstick_to_divide_by_the_values_and_their_spread_are_those_that_were_measured(made: Any) -> None:
    noise = made.noise("itl_s", **DIVIDED)
    plain = made.noise("itl_s", session_sd=0.06)
    assert compared(made, 1.25, noise) == compared(made, 1.25, plain)
    assert verdict(compared(made, 1.25, noise)) is Verdict.INCONCLUSIVE
    assert verdict(compared(made, 1.25, noise, machine=1.0)) is Verdict.REGRESSED


def test_other_metrics_are_not_divided(made: Any) -> None:
    noise = made.noise("itl_s")
    noise = dataclasses.replace(noise, floors={**noise.floors, **made.noise("ttft_s", **DIVIDED).floors})
    assert compared(made, 1.1, noise, machine=0.9).log_drift == pytest.approx(math.log(1.1))


@pytest.mark.parametrize(("machine", "blamed"), [(0.96, False), (1.04, False), (0.90, True), (1.20, True)])
def test_a_yardstick_is_no_witness_within_what_calibration_saw_of_the_sessions(
    made: Any, machine: float, blamed: bool
) -> None:
    noise = made.noise("itl_s", session_sd=0.02)
    found = compared(made, 1.0, noise, machine=machine)
    assert found.machine_drift == pytest.approx([1 - machine] if blamed else [])
    assert compared(made, 1.0, machine=machine).machine_drift == pytest.approx([1 - machine])


def test_a_yardstick_that_moved_less_than_sessions_do_keeps_a_regression(made: Any) -> None:
    noise = made.noise("itl_s", session_sd=0.012)
    assert verdict(compared(made, 1.18, noise, machine=0.97)) is Verdict.REGRESSED
    assert verdict(compared(made, 1.18, noise, machine=0.90)) is Verdict.INCONCLUSIVE


def test_more_launches_are_asked_for_only_where_sessions_do_not_stand_in_the_way(made: Any) -> None:
    restless = judge(compared(made, 1.0, made.noise("itl_s", session_sd=0.05)), DEFAULT_POLICY)
    assert (restless.verdict, needs_more(restless)) == (Verdict.INCONCLUSIVE, False)
    assert "more launches cannot settle it" in restless.next_step
    noisy = judge(compared(made, 1.0, made.noise("itl_s", launch_sd=0.08)), DEFAULT_POLICY)
    assert noisy.verdict is Verdict.INCONCLUSIVE
    assert (noisy.comparison.log_floor or 0) < (noisy.comparison.log_se or 0)
