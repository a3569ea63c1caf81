"""Calibrating on the scripted model, whose launches vary by what its options say."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from support.in_process import InProcessLauncher, make_matrix, make_variant

from suite.backends.base import LAUNCH_VARIABLE
from suite.engine.launching import LiveVariant
from suite.engine.progress import silent
from suite.errors import UsageError
from suite.planning.calibrate import Gathered, calibrate, describe_calibration, merge_sessions
from suite.planning.floors import Session
from suite.planning.measuring import Asked, Measured, measure_sessions
from suite.records import Environment, Matrix, Variant

ENVIRONMENT = Environment(machine="epyc-2c", identity={"cpu": "EPYC"}, suspects={}, readings={})


class LuckyLauncher(InProcessLauncher):
    """Gives each launch the luck of its number, as a process of its own has."""

    @contextmanager
    def launch(self, variant: Variant, index: int = 0) -> Iterator[LiveVariant]:
        os.environ[LAUNCH_VARIABLE] = str(index)
        try:
            with super().launch(variant, index) as live:
                yield live
        finally:
            os.environ.pop(LAUNCH_VARIABLE, None)


def measure(matrix: Matrix, *, sessions: int = 3, launches: int = 3, **more: Any) -> Measured:
    asked = Asked(sessions=sessions, launches=launches, pause_s=20)
    launcher = LuckyLauncher(deaths=more.pop("deaths", {}))
    return measure_sessions(matrix, launcher, asked, silent, **{"wait": lambda _seconds: None, **more})


def gather(matrix: Matrix, sessions: tuple[Session, ...]) -> Gathered:
    return Gathered(
        matrix=matrix, environment=ENVIRONMENT, sessions=sessions, launch_s=2.0, measured="2026-11-29T18:00:00+00:00"
    )


def test_the_scripted_spread_of_launches_is_found() -> None:
    matrix = make_matrix(*(make_variant(n, seed=s, launch_noise=0.02) for n, s in (("a", 1), ("b", 2))))
    found = measure(matrix, sessions=6, launches=8)
    noise = calibrate(gather(matrix, found.sessions))
    floor = noise.floors["prefill_tok_s"]
    assert floor.launch_sd == pytest.approx(0.02, rel=0.25)
    assert floor.session_sd < 0.01, "simulated sessions do not differ"
    assert floor.pair_sd == pytest.approx(0.02 * math.sqrt(2), rel=0.3)
    assert (noise.sessions, noise.launches, noise.machine) == (6, 8, "epyc-2c")
    assert noise.max_pressure is None, "simulated time has no witnesses"
    assert all(len(line) <= 100 for line in describe_calibration(noise))


def test_each_session_is_fresh_launches_with_a_pause_between() -> None:
    waits: list[float] = []
    found = measure(make_matrix(make_variant("a"), make_variant("b")), wait=waits.append)
    indexes = [sorted({launch.index for launch in session.launches}) for session in found.sessions]
    assert indexes == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    assert waits == [20, 20]
    assert found.launch_s is not None


def test_a_lone_variant_is_measured_beside_a_twin() -> None:
    matrix = make_matrix(make_variant("a", launch_noise=0.02))
    found = measure(matrix, launches=5)
    assert {frozenset(session.variants) for session in found.sessions} == {frozenset({"a", "a@twin"})}
    floor = calibrate(gather(matrix, found.sessions)).floors["itl_s"]
    assert floor.pair_sd is not None


def test_ctrl_c_keeps_the_finished_sessions() -> None:
    matrix = make_matrix(make_variant("a"), make_variant("b"))
    waits: list[float] = []

    def interrupt(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            raise KeyboardInterrupt

    found = measure(matrix, wait=interrupt)
    assert (len(found.sessions), found.interrupted) == (2, True)
    assert calibrate(gather(matrix, found.sessions)).sessions == 2


def test_one_session_is_too_few() -> None:
    matrix = make_matrix(make_variant("a"), make_variant("b"))
    with pytest.raises(UsageError, match=r"1 finished session.*--from-runs"):
        calibrate(gather(matrix, measure(matrix, sessions=1).sessions))


def test_a_variant_that_fails_is_left_out_and_named() -> None:
    matrix = make_matrix(make_variant("a"), make_variant("b"))
    found = measure(matrix, deaths={"b": 3})
    assert found.failures == ("b: worker of b was killed by SIGKILL",)
    assert {session.variants for session in found.sessions} == {("a",)}


def test_stored_sessions_count_only_where_libraries_are_the_same() -> None:
    matrix = make_matrix(make_variant("a"), make_variant("b"))
    now, then = measure(matrix, sessions=1).sessions[0], measure(matrix, sessions=1).sessions[0]
    changed = dataclasses.replace(
        then,
        launches=tuple(
            dataclasses.replace(launch, facts={"fake": "2"}) if launch.variant == "b" else launch
            for launch in then.launches
        ),
    )
    stored, measured = merge_sessions([now], [changed])
    assert (stored.variants, measured.variants) == (("a",), ("a", "b"))
    assert {sample.variant for sample in stored.samples} == {"a"}
    assert merge_sessions([], [changed]) == (changed,)
