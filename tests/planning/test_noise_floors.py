"""Noise floors from sessions with known spreads."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy
import pytest

from suite.planning.floors import Session, find_floors, find_limit, neighbours
from suite.records import Launch, SampleStatus, SpeedSample, Witness, Yardstick

SLICES = 4


def make_sessions(
    *,
    sessions: int = 8,
    launches: int = 8,
    variants: Sequence[str] = ("a", "b"),
    launch_sd: float = 0.0,
    session_sd: float = 0.0,
    slice_sd: float = 0.0,
    follows: str = "",
) -> list[Session]:
    """Sessions in which gaps have these spreads; `follows`: the yardstick that is as fast as the session."""
    random = numpy.random.default_rng(3)
    return [
        _make_session(
            [
                (variant, launch, slow + random.normal(0, launch_sd), list(random.normal(0, slice_sd, SLICES)))
                for launch in range(launches)
                for variant in variants
            ],
            speed=math.exp(-slow),
            follows=follows,
        )
        for slow in random.normal(0, session_sd, sessions)
    ]


def _make_session(taken: Sequence[tuple[str, int, float, Sequence[float]]], *, speed: float, follows: str) -> Session:
    samples = [
        make_sample(variant, launch, turn, 0.01 * math.exp(slow + luck))
        for variant, launch, slow, lucks in taken
        for turn, luck in enumerate(lucks)
    ]
    kernels = Yardstick(
        hash_bytes_s=1e9 * (speed if follows == "hash" else 1), copy_bytes_s=1e9 * (speed if follows == "copy" else 1)
    )
    launches = [
        Launch(
            variant=variant, index=launch, load_s=math.exp(slow), cold_ttft_s=None, cold_prompt_tokens=None,
            peak_rss_bytes=None, uss_bytes=None, peak_device_bytes=None, kv_cache_bytes=None,
            kv_cache_reported_bytes=None, facts={}, yardstick=kernels,
        )
        for variant, launch, slow, _ in taken
    ]  # fmt: skip
    return Session(samples=tuple(samples), launches=tuple(launches))


def make_sample(variant: str, launch: int, turn: int, gap: float, *, pressure: float | None = None) -> SpeedSample:
    return SpeedSample(
        variant=variant, scenario="short", launch=launch, round=turn, prompt_tokens=8, evaluated_tokens=8, new_tokens=9,
        prefill_s=8 * gap, ttft_s=9 * gap, itl_s=(gap,) * 8,
        witness=Witness(wall_s=17 * gap, cpu_s=17 * gap, threads=1, pressure=pressure), status=SampleStatus.CLEAN,
    )  # fmt: skip


def test_the_spread_of_launches_and_that_of_sessions_are_told_apart() -> None:
    floors = find_floors(make_sessions(launch_sd=0.02, session_sd=0.05, sessions=20))
    for metric in ("itl_s", "decode_tok_s", "prefill_tok_s", "ttft_s", "load_s"):
        assert floors[metric].launch_sd == pytest.approx(0.02, rel=0.2)
        assert floors[metric].session_sd == pytest.approx(0.05, rel=0.4)
    assert "cold_ttft_s" not in floors, "it was not measured"
    assert (floors["itl_s"].launch_df, floors["itl_s"].session_df) == (2 * 20 * 7, 19)


def test_the_spread_of_slices_is_that_within_a_launch() -> None:
    floors = find_floors(make_sessions(launch_sd=0.05, slice_sd=0.01))
    assert floors["itl_s"].slice_sd == pytest.approx(0.01, rel=0.2)
    assert floors["load_s"].slice_sd == 0.0


def test_side_by_side_the_session_cancels_and_two_launches_vary_by_root_two() -> None:
    floors = find_floors(make_sessions(launch_sd=0.01, session_sd=0.2))
    assert floors["itl_s"].pair_sd == pytest.approx(0.01 * math.sqrt(2), rel=0.25)
    assert floors["itl_s"].pair_df == 63
    assert floors["load_s"].pair_sd is None


@pytest.mark.parametrize("follows", ["hash", "copy"])
def test_a_yardstick_that_follows_the_sessions_is_divided_by(follows: str) -> None:
    floors = find_floors(make_sessions(launch_sd=0.01, session_sd=0.05, follows=follows))
    for metric in ("itl_s", "prefill_tok_s"):
        floor = floors[metric]
        assert floor.normaliser == follows
        assert floor.normalised_session_sd is not None
        assert floor.normalised_session_sd < 0.2 * floor.session_sd


def test_a_yardstick_that_tells_nothing_is_not_divided_by() -> None:
    floor = find_floors(make_sessions(launch_sd=0.01, session_sd=0.05))["itl_s"]
    assert (floor.normaliser, floor.normalised_session_sd) == ("none", None)


@pytest.mark.parametrize("seed", range(6))
def test_a_yardstick_that_varies_by_itself_is_not_divided_by(seed: int) -> None:
    random = numpy.random.default_rng(seed)
    sessions = make_sessions(sessions=3, launches=4, launch_sd=0.01, session_sd=0.03)
    noisy = [
        dataclasses.replace(
            session,
            launches=tuple(
                dataclasses.replace(launch, yardstick=Yardstick(hash_bytes_s=wild, copy_bytes_s=wild))
                for launch, wild in zip(
                    session.launches, random.lognormal(20, 0.05, len(session.launches)), strict=True
                )
            ),
        )
        for session in sessions
    ]
    assert find_floors(noisy)["itl_s"].normaliser == "none"


def test_two_sessions_are_too_few_to_choose_a_yardstick() -> None:
    floor = find_floors(make_sessions(sessions=2, launch_sd=0.001, session_sd=0.05, follows="hash"))["itl_s"]
    assert floor.normaliser == "none"


def test_neighbours_are_those_of_every_session_in_whatever_order() -> None:
    one, other = make_sessions(sessions=2, variants="abc")
    turned = Session(samples=other.samples, launches=other.launches[::-1])
    assert neighbours([one, turned]) == [("a", "b"), ("b", "c")]
    (apart,) = make_sessions(sessions=1, variants="acb")
    assert neighbours([one, apart]) == [("b", "c")]


def test_without_two_launches_anywhere_there_is_no_floor() -> None:
    assert find_floors(make_sessions(launches=1)) == {}


def test_the_limit_of_a_clean_slice_is_a_fence_around_the_quiet_ones() -> None:
    quiet = [(0.001 * step, 0.005) for step in range(20)]
    loud = [(0.10, 0.3), (0.11, 0.4), (0.12, 0.2), (0.13, 0.5), (0.14, 0.4)]
    limit = find_limit(quiet + loud, 0.15)
    assert limit is not None
    assert 0.02 <= limit < 0.10


def test_pressure_that_does_no_harm_leaves_the_limit_of_the_protocol() -> None:
    quiet = [(0.001 * step, 0.005) for step in range(20)]
    harmless = [(0.10, 0.005), (0.11, -0.004), (0.12, 0.006), (0.13, 0.004), (0.14, 0.005)]
    assert find_limit(quiet + harmless, 0.15) == 0.15


def test_a_limit_is_never_looser_than_the_protocol_nor_drawn_from_a_handful() -> None:
    assert find_limit([(0.5, 0.1)] * 20, 0.15) == 0.15
    assert find_limit([(0.01, 0.0)] * 5, 0.15) is None
    assert find_limit([(0.0, 0.0)] * 20, 0.15) == 0.02
