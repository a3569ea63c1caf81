"""The plan of a whole matrix, and what it says to people."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from support.in_process import make_case, make_matrix, make_variant

from suite.errors import UsageError
from suite.gate.family import ALPHA, SHARES
from suite.gate.policy import merge_policy
from suite.gate.sessions import session_spread
from suite.planning.plan import Ground, make_plan, read_wanted
from suite.planning.plan_text import render_plan
from suite.planning.proposals import GRID, Proposal, describe_proposals, propose, warn_too_tight
from suite.records import Environment, Gate, Noise, NoiseFloor, Tier, Tolerance
from suite.schema import dump

FLOOR = NoiseFloor(slice_sd=0.01, launch_sd=0.008, launch_df=24, session_sd=0.01, session_df=40, pair_sd=0.005)
NOISE = Noise(
    model="toy", machine="epyc-2c", identity={}, measured="2026-11-29T18:00:00+00:00", sessions=41, launches=3,
    floors={"itl_s": FLOOR, "decode_tok_s": FLOOR}, launch_s=30.0,
)  # fmt: skip


def ground(noise: Noise | None = None, policy: Any = None, **changes: Any) -> Ground:
    matrix = make_matrix(*(make_variant(name) for name in "abc"), launches=5, max_launches=10)
    made = Ground(
        matrix=matrix,
        cases=tuple(make_case(f"{domain}/{number}") for domain in ("code", "math") for number in range(30)),
        policy=merge_policy(policy or {}, where="matrix.toml"),
        environment=Environment(machine="epyc-2c", identity={"device": "cpu"}, suspects={}, readings={}),
        noise=noise,
    )
    return dataclasses.replace(made, **changes)


def test_speed_gates_of_all_variants_share_what_is_spent_on_false_alarms() -> None:
    outlook = make_plan(ground(), {})
    metrics = {speed.metric: len(speed.scopes) for speed in outlook.speed if speed.tier is Tier.DUET}
    assert outlook.speed_gates == 3 * sum(metrics.values())
    assert outlook.speed_alpha == pytest.approx(ALPHA * SHARES["speed"])
    assert {"itl_s", "decode_tok_s", "prefill_tok_s"} <= metrics.keys()
    assert "load_s" not in metrics, "it only informs"


def test_tolerances_are_those_of_each_tier() -> None:
    policy = {"itl_s": Tolerance(relative=0.12, duet=0.04), "ttft_s": Tolerance(gate=Gate.INFO)}
    outlook = make_plan(ground(policy=policy), {})
    found = {speed.tier: speed.tolerance for speed in outlook.speed if speed.metric == "itl_s"}
    assert found == {Tier.DUET: 0.04, Tier.STORED: 0.12}
    assert "ttft_s" not in {speed.metric for speed in outlook.speed}


def test_scopes_of_another_tolerance_are_told_apart() -> None:
    policy = {"itl_s": Tolerance(relative=0.10, duet=0.03), "itl_s/long": Tolerance(relative=0.30, duet=0.20)}
    outlook = make_plan(ground(policy=policy), {})
    found = {(speed.scopes, speed.tier): speed.tolerance for speed in outlook.speed if speed.metric == "itl_s"}
    assert found == {
        (("short",), Tier.DUET): 0.03,
        (("short",), Tier.STORED): 0.10,
        (("long",), Tier.DUET): 0.20,
        (("long",), Tier.STORED): 0.30,
    }
    shown = [line.split() for line in render_plan(outlook)]
    named = {row[0]: row[2] for row in shown if len(row) > 2 and row[1:2] == ["duet"]}
    assert (named["itl_s/short"], named["itl_s/long"]) == ("3", "20")
    assert "decode_tok_s" in named, "its scopes share a tolerance"


def test_a_quiet_machine_finds_less_than_an_assumed_one() -> None:
    assumed, measured = make_plan(ground(), {}), make_plan(ground(NOISE), {})
    for before, after in zip(assumed.speed, measured.speed, strict=True):
        if before.metric in NOISE.floors:
            assert after.measured
            assert not before.measured
            assert after.first.mde_95 is not None
            assert before.first.mde_95 is not None
            assert after.tolerance < after.first.mde_95 < before.first.mde_95
            assert after.first.passes >= before.first.passes
        else:
            assert not after.measured
    assert "assumed" in assumed.noise
    assert "measured on this machine, 2026-11-29, 41 sessions of 3 launches" in measured.noise
    assert "edited by hand" in make_plan(ground(dataclasses.replace(NOISE, edited=True)), {}).noise


def test_every_domain_and_all_of_them_have_an_outlook() -> None:
    outlook = make_plan(ground(), {})
    assert {quality.scope: quality.cases for quality in outlook.quality} == {"code": 30, "math": 30, "all": 60}
    (everything,) = [quality for quality in outlook.quality if quality.scope == "all"]
    assert (everything.called, everything.called_crowded) == (5, 7)


def test_a_wanted_tolerance_is_priced_in_launches_and_minutes_or_out_of_reach() -> None:
    outlook = make_plan(ground(NOISE), {"itl_s": 0.02, "score": 0.05})
    duet, stored = outlook.launches_needed
    assert duet.launches is not None
    assert duet.minutes == pytest.approx(2 * duet.launches * 30 / 60)
    assert (stored.launches, stored.minutes) == (None, None)
    usual, _ = session_spread(FLOOR)
    assert stored.limit == f"cannot be reached: the sessions themselves vary by {100 * usual:.1f} %"
    assert outlook.cases_needed[0].certify == 59


def test_launches_that_vary_too_much_are_told_apart_from_sessions() -> None:
    wild = dataclasses.replace(FLOOR, launch_sd=0.5, pair_sd=0.5, session_sd=0.0)
    outlook = make_plan(ground(dataclasses.replace(NOISE, floors={"itl_s": wild})), {"itl_s": 0.02})
    assert {needed.limit for needed in outlook.launches_needed} == {
        "cannot be reached with 50 launches: they vary by 50.0 %"
    }


@pytest.mark.parametrize(
    ("given", "message"),
    [("itl_s", "write METRIC=SHARE"), ("itl_s=fast", "write METRIC=SHARE"), ("itl_s=3", "between 0 and 1")],
)
def test_what_is_wanted_must_be_a_share(given: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_wanted([given])


def test_a_metric_that_nothing_tests_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'itl_s'"):
        make_plan(ground(), read_wanted(["itls=0.03"]))


def test_what_people_read_fits_into_100_columns_and_says_it_all() -> None:
    lines = render_plan(make_plan(ground(NOISE), {"itl_s": 0.02, "decode_tok_s": 0.05, "score": 0.05}))
    assert max(map(len, lines)) <= 100
    text = "\n".join(lines)
    for said in (
        "found in 5",
        "in 10",
        "zero flips certify",
        "cannot be reached",
        "2 min for the first launches",
        "59 cases certify",
    ):
        assert said in text, said


def test_a_plan_is_plain_data_too() -> None:
    plain = dump(make_plan(ground(), {"itl_s": 0.02}))
    assert plain["speed"][0]["tier"] == "duet"
    assert plain["launches_needed"][0]["minutes"] is None, "no launch was timed yet"


def test_proposed_tolerances_fit_and_tighter_ones_are_warned_of() -> None:
    proposals = propose({"itl_s": FLOOR}, launches=5, alpha=0.0005)
    (proposal,) = proposals
    assert proposal.duet in GRID
    assert proposal.stored in GRID
    assert proposal.duet < proposal.stored
    gates = ground().gates
    assert warn_too_tight(proposals, {"itl_s": Tolerance(relative=0.9, duet=0.9)}, gates) == []
    duet, stored = warn_too_tight(proposals, {"itl_s": Tolerance(relative=0.011, duet=0.001)}, gates)
    assert duet == f"[policy.itl_s] duet = 0.001 is tighter than this machine allows ({proposal.duet:g} fits)"
    assert stored.startswith("[policy.itl_s] relative = 0.011")
    assert warn_too_tight(proposals, {"itl_s": Tolerance(gate=Gate.INFO)}, gates) == []
    assert "none" in describe_proposals([Proposal(metric="itl_s", duet=None, stored=0.1)], 5)[-1]
