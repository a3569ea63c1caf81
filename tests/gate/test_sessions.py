"""How much sessions differ: found, assumed, and both together."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from suite.gate.sessions import PRIOR_DF, session_spread
from suite.records import NoiseFloor
from suite.stats.intervals import SESSION_SD

FLOOR = NoiseFloor(slice_sd=0.01, launch_sd=0.01, launch_df=8, session_sd=0.06, session_df=2)


def test_without_calibration_the_usual_spread_is_taken_as_known() -> None:
    assert session_spread(None) == (SESSION_SD, math.inf)
    assert session_spread(replace(FLOOR, session_df=0)) == (SESSION_SD, math.inf)


def test_what_few_sessions_showed_is_averaged_with_what_is_usual() -> None:
    sd, df = session_spread(FLOOR)
    assert df == 2 + PRIOR_DF
    assert sd == pytest.approx(math.sqrt((2 * 0.06**2 + PRIOR_DF * SESSION_SD**2) / df))
    assert session_spread(replace(FLOOR, session_sd=0.0))[0] > 0.02  # three sessions that agreed by luck


def test_many_sessions_speak_for_themselves() -> None:
    sd, df = session_spread(replace(FLOOR, session_sd=0.005, session_df=400))
    assert (sd < 0.0075, df) == (True, 408)


def test_the_spread_after_dividing_by_a_yardstick_is_another_one() -> None:
    divided = replace(FLOOR, session_df=400, normaliser="copy", normalised_session_sd=0.01)
    assert session_spread(divided, normalised=True)[0] < 0.2 * session_spread(divided)[0] + 0.01
