"""What launches can find, against simulation of the very tests that judge."""

from __future__ import annotations

import dataclasses
import math

import numpy
import pytest

from suite.gate.decide import verdict_of_speed
from suite.gate.sessions import WORST_SESSION_SD, session_spread
from suite.planning.speed import (
    ASSUMED_PAIR_SD,
    PlannedTest,
    Spread,
    launches_needed,
    smallest_tolerance,
    spread_of,
    to_log,
    to_share,
)
from suite.records import Aspect, Comparison, NoiseFloor, Tier, Verdict
from suite.stats.intervals import (
    PAIRED_SD_FLOOR,
    SESSION_SD,
    STORED_SD_FLOOR,
    p_above,
    p_below,
    paired_mean,
    spend,
    spend_late,
    stored_difference,
)

DUET = Spread(tier=Tier.DUET, launch_sd=0.01)
STORED = Spread(tier=Tier.STORED, launch_sd=0.02, session_sd=0.01)
FLOOR = NoiseFloor(slice_sd=0.01, launch_sd=0.02, launch_df=12, session_sd=0.01, session_df=4)


def simulate(test: PlannedTest, effect: float, margin: float) -> tuple[float, float]:
    """Shares of 2000 pretended comparisons that are REGRESSED, and that PASS when nothing changed."""
    random = numpy.random.default_rng(7)
    found = passed = 0
    for _ in range(2000):
        noise = random.normal(0, test.spread.launch_sd, test.launches)
        if test.spread.tier is Tier.DUET:
            changed, same = (paired_mean(list(noise + shift)) for shift in (effect, 0.0))
        else:
            stored = random.normal(0, test.spread.launch_sd, test.stored)
            sessions = random.normal(0, test.spread.session_sd, 2)
            now, then = noise + sessions[0], list(stored + sessions[1])
            changed, same = (
                stored_difference(list(now + shift), then, session_sd=test.spread.session_sd, sd_floor=0.0001)
                for shift in (effect, 0.0)
            )
        assert changed is not None
        assert same is not None
        found += p_above(changed, margin) <= spend_late(test.alpha, test.look)
        passed += p_below(same, margin) <= spend(0.05, test.look)
    return found / 2000, passed / 2000


@pytest.mark.parametrize(
    ("spread", "effect", "margin"),
    [(DUET, 0.065, 0.03), (DUET, 0.05, 0.02), (STORED, 0.16, 0.10), (STORED, 0.10, 0.05)],
)
def test_the_chances_are_those_of_the_tests_that_judge(spread: Spread, effect: float, margin: float) -> None:
    test = PlannedTest(spread=spread, launches=5, stored=5, look=1, alpha=0.02)
    found, passed = simulate(test, effect, margin)
    assert test.finds(effect, margin) == pytest.approx(found, abs=0.04)
    assert test.passes(margin) == pytest.approx(passed, abs=0.04)


def test_the_smallest_drift_is_found_just_so() -> None:
    test = PlannedTest(spread=DUET, launches=5, stored=5, look=1, alpha=0.001)
    effect = test.detectable(0.03, 0.95)
    assert effect is not None
    assert test.finds(effect, 0.03) == pytest.approx(0.95, abs=0.001)


def test_more_launches_find_less_side_by_side_but_not_what_sessions_hide() -> None:
    def smallest(spread: Spread, launches: int) -> float:
        found = PlannedTest(spread=spread, launches=launches, stored=launches, look=1, alpha=0.001).detectable(
            0.03, 0.95
        )
        assert found is not None
        return found

    assert smallest(DUET, 20) < smallest(DUET, 5)
    sessions = Spread(tier=Tier.STORED, launch_sd=0.015, session_sd=0.03)
    assert smallest(sessions, 1000) > 0.03 + 3.09 * math.sqrt(2) * 0.03


def test_one_launch_finds_nothing() -> None:
    test = PlannedTest(spread=DUET, launches=1, stored=1, look=1, alpha=0.01)
    assert (test.detectable(0.03, 0.95), test.passes(0.03)) == (None, 0.0)


def test_spreads_are_floored_as_in_a_verdict_and_assumed_where_nothing_was_measured() -> None:
    assert spread_of(None, Tier.DUET) == Spread(tier=Tier.DUET, launch_sd=ASSUMED_PAIR_SD)
    assert spread_of(None, Tier.STORED) == Spread(
        tier=Tier.STORED, launch_sd=STORED_SD_FLOOR, session_sd=SESSION_SD, assumed=True
    )
    quiet = NoiseFloor(slice_sd=0, launch_sd=0, launch_df=4, session_sd=0.01, session_df=2, pair_sd=0.0, pair_df=4)
    assert spread_of(quiet, Tier.DUET).launch_sd == PAIRED_SD_FLOOR
    assert spread_of(quiet, Tier.STORED).launch_sd == PAIRED_SD_FLOOR
    steady = dataclasses.replace(quiet, session_sd=0.0)
    assert spread_of(steady, Tier.STORED).session_sd == session_spread(steady)[0] > 0.02
    divided = dataclasses.replace(quiet, session_sd=0.08, normaliser="copy", normalised_session_sd=0.02)
    assert spread_of(divided, Tier.STORED).session_sd == session_spread(divided, normalised=True)[0] < 0.03
    assert spread_of(FLOOR, Tier.DUET).launch_sd == pytest.approx(0.02 * math.sqrt(2)), "never seen side by side"


def test_one_session_tells_nothing_about_sessions() -> None:
    alone = NoiseFloor(slice_sd=0, launch_sd=0.02, launch_df=4, session_sd=0.0, session_df=0)
    assert spread_of(alone, Tier.STORED).session_sd == SESSION_SD


@pytest.mark.parametrize("metric", ["itl_s", "decode_tok_s"])
def test_shares_and_logs_are_two_words_for_one_thing(metric: str) -> None:
    assert to_share(metric, to_log(metric, 0.1)) == pytest.approx(0.1)
    assert to_log("decode_tok_s", 1.0) == math.inf


def test_a_wanted_tolerance_needs_what_it_needs_and_no_less() -> None:
    needed = launches_needed(DUET, "itl_s", 0.03, 0.001)
    assert needed is not None

    def holds(launches: int) -> bool:
        test = PlannedTest(spread=DUET, launches=launches, stored=launches, look=1, alpha=0.001)
        margin = math.log1p(0.03)
        return min(test.passes(margin), test.finds(math.log1p(0.06), margin)) >= 0.95

    assert holds(needed)
    assert not holds(needed - 1)
    assert launches_needed(Spread(tier=Tier.STORED, launch_sd=0.015, session_sd=0.03), "itl_s", 0.03, 0.001) is None


def test_the_smallest_tolerance_is_one_that_unchanged_variants_pass() -> None:
    test = PlannedTest(spread=DUET, launches=5, stored=5, look=1, alpha=0.001)
    tolerance = smallest_tolerance(test, "itl_s", grid=(0.005, 0.02, 0.05, 0.5))
    assert tolerance is not None
    assert tolerance > 0.005
    assert test.passes(math.log1p(tolerance)) >= 0.95
    assert smallest_tolerance(test, "itl_s", grid=(0.001,)) is None
    assert smallest_tolerance(test, "itl_s", grid=(tolerance, 0.5), excess=0.3) == 0.5, "1.5 points more are not found"


def test_the_plan_knows_that_an_uncalibrated_machine_accuses_only_of_what_no_session_could_do() -> None:
    """What `finds` promises is what the gate does, by a seeded simulation of both."""
    spread = spread_of(None, Tier.STORED)
    test = PlannedTest(spread=spread, launches=5, stored=5, look=1, alpha=0.01)
    margin = to_log("itl_s", 0.15)
    effect = test.detectable(margin, 0.80)
    assert effect is not None
    assert effect > 3 * WORST_SESSION_SD  # with the usual spread taken as known it would be a third of that
    drawn = numpy.random.default_rng(3).normal(effect, test.error, 2000)
    called = 0
    for mean in drawn:
        comparison = Comparison(
            variant="q4", metric="itl_s", scope="short", aspect=Aspect.SPEED, tier=Tier.STORED, observed=2.0, baseline=1.0,
            drift=1.0, log_drift=float(mean), log_se=test.error, log_df=test.freedom, assumed=True,
        )  # fmt: skip
        called += verdict_of_speed(comparison, 0.15, 0.01 / 4) is Verdict.REGRESSED
    assert called / len(drawn) == pytest.approx(0.80, abs=0.03)
