"""Policy: merging, planning, and the law that a wider tolerance never fails what a narrower one let pass."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.errors import MatrixFileError
from suite.gate.family import decide
from suite.gate.judge import judge
from suite.gate.plan import GateItem, plan_gates
from suite.gate.policy import DEFAULT_POLICY, merge_policy, tolerance_for
from suite.metrics.catalog import SPECS
from suite.metrics.speed import YARDSTICKS
from suite.records import Aspect, Comparison, Flip, Gate, Scenario, Tier, Tolerance, Verdict
from suite.stats.binomial import mcnemar_p, net_loss_bounds, net_loss_interval
from suite.stats.intervals import Estimate, interval_of

SCENARIOS = [
    Scenario(name="short", prompt_tokens=128, new_tokens=32),
    Scenario(name="long", prompt_tokens=1, new_tokens=1),
]
BADNESS = [Verdict.IMPROVED, Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.REGRESSED]
share = st.floats(-0.9, 0.9)
tolerances = st.builds(Tolerance, relative=st.floats(0, 1), absolute=st.floats(0, 1))


def comparison(metric: str, scope: str, **changes: Any) -> Comparison:
    return Comparison(
        **{
            "variant": "q4",
            "metric": metric,
            "scope": scope,
            "aspect": SPECS[metric].aspect,
            "tier": Tier.STORED,
            "observed": 1.0,
            "baseline": 1.0,
            "drift": 0.0,
            "n": 3,
            "n_baseline": 3,
            **changes,
        }
    )


@st.composite
def speed(draw: st.DrawFn) -> Comparison:
    mean, se = draw(st.floats(-1, 1)), draw(st.floats(0.001, 0.3))
    return rate(mean, se, draw(st.floats(1, 50)), looks=draw(st.integers(1, 4)))


def rate(mean: float, se: float, df: float, **changes: Any) -> Comparison:
    """A decode rate that fell by `mean` on the scale of logs."""
    bounds = interval_of(Estimate(mean, se, df))
    low, high = (-math.expm1(-min(bound, 700)) if bound > -700 else -math.inf for bound in bounds)
    return comparison(
        "decode_tok_s", "short", drift=-math.expm1(-mean), interval=(max(low, -1e9), high), mde=(high - low) / 2,
        log_drift=mean, log_se=se, log_df=df, **changes,
    )  # fmt: skip


@st.composite
def quality(draw: st.DrawFn) -> Comparison:
    lost, gained = draw(st.integers(0, 12)), draw(st.integers(0, 12))
    n = lost + gained + draw(st.integers(1, 40))
    flips = [
        Flip(case=str(i), was_correct=i < lost, is_correct=i >= lost, was=None, now=None) for i in range(lost + gained)
    ]
    return comparison(
        "score",
        "math",
        drift=(lost - gained) / n,
        interval=(
            net_loss_interval(lost, gained, n, confidence=0.9)[0],
            net_loss_bounds(lost, gained, n, confidence=0.9)[1],
        ),
        p_least=2.0 ** -(lost + gained),
        p_value=mcnemar_p(lost, gained),
        p_gain=mcnemar_p(gained, lost),
        n=n,
        flips=tuple(flips),
    )


@st.composite
def memory(draw: st.DrawFn) -> Comparison:
    drift = draw(share)
    return comparison("peak_rss_bytes", "all", drift=drift, observed=1.0 + drift)


anything = speed() | quality() | memory()


@given(anything, tolerances, tolerances)
@settings(deadline=None)
def test_a_wider_tolerance_is_never_stricter(found: Comparison, one: Tolerance, other: Tolerance) -> None:
    narrow = Tolerance(relative=min(one.relative, other.relative), absolute=min(one.absolute, other.absolute))
    wide = Tolerance(relative=max(one.relative, other.relative), absolute=max(one.absolute, other.absolute))
    strict, lenient = decide(found, narrow), decide(found, wide)
    if strict is not Verdict.IMPROVED:  # what was a gain is within a wide tolerance
        assert BADNESS.index(lenient) <= BADNESS.index(strict)
    else:
        assert lenient in (Verdict.IMPROVED, Verdict.PASS)


@given(speed(), tolerances, st.floats(0, 0.5))
@settings(deadline=None)
def test_a_larger_drift_is_never_better(found: Comparison, tolerance: Tolerance, more: float) -> None:
    assert found.log_drift is not None
    worse = dataclasses.replace(found, log_drift=found.log_drift + more)
    assert BADNESS.index(decide(worse, tolerance)) >= BADNESS.index(decide(found, tolerance))


@given(anything, tolerances)
@settings(deadline=None)
def test_every_finding_has_a_sentence_and_what_is_not_a_pass_a_next_step(
    found: Comparison, tolerance: Tolerance
) -> None:
    finding = judge(found, {found.metric: tolerance})
    assert finding.sentence.startswith("q4: ")
    assert "nan" not in finding.sentence
    assert "\n" not in finding.sentence
    assert (finding.next_step == "") is (finding.verdict is Verdict.PASS)


@given(anything, tolerances, st.sampled_from(list(Verdict)))
def test_what_is_unresolved_stays_so_under_any_policy(
    found: Comparison, tolerance: Tolerance, verdict: Verdict
) -> None:
    assert decide(dataclasses.replace(found, unresolved=verdict), tolerance) is verdict


def test_every_gated_metric_has_a_tolerance_that_can_fail() -> None:
    blocking = {key.partition("/")[0] for key, limit in DEFAULT_POLICY.items() if limit.gate is Gate.BLOCK}
    assert blocking == {
        "decode_tok_s", "itl_s", "prefill_tok_s", "peak_rss_bytes", "peak_device_bytes", "kv_cache_bytes",
        "score", "truncated", "empty", "unparsable", "mean_kld", "path_distance", "broken_logits",
        "growth_bytes", "unreturned_bytes", "reevaluated_tokens", "reevaluated_share",
    }  # fmt: skip
    assert DEFAULT_POLICY["ttft_s"].gate is Gate.WARN
    assert set(SPECS) - {key.partition("/")[0] for key in DEFAULT_POLICY} == {
        "speedup", "mbu", "mfu", "looping", *YARDSTICKS,
        "median_kld", "p99_kld", "same_top_1", "delta_p", "rms_delta_p", "ppl_ratio",
    }  # fmt: skip


def test_side_by_side_the_tolerances_are_tighter_and_the_guard_against_stalls_the_widest() -> None:
    tighter = {name: limit for name, limit in DEFAULT_POLICY.items() if limit.duet is not None}
    assert all(limit.duet is not None and limit.duet < limit.relative for limit in tighter.values())
    assert tighter["itl_s"].duet == 0.03
    assert tighter["decode_tok_s"].duet == 0.10


def test_a_tolerance_of_ones_own_holds_side_by_side_too() -> None:
    merged = merge_policy({"itl_s": Tolerance(relative=0.5)}, where="m.toml")
    beside = rate(math.log(1.3), 0.001, 4, tier=Tier.DUET)
    assert decide(beside, tolerance_for(merged, "itl_s", "short")) is Verdict.PASS
    assert decide(beside, DEFAULT_POLICY["itl_s"]) is Verdict.REGRESSED


def test_overrides_replace_the_whole_tolerance_and_single_scopes_take_precedence() -> None:
    merged = merge_policy(
        {"decode_tok_s": Tolerance(relative=0.03), "ttft_s/long": Tolerance(relative=0.5, gate=Gate.WARN)},
        where="m.toml",
    )
    assert tolerance_for(merged, "decode_tok_s", "short") == Tolerance(relative=0.03)
    assert tolerance_for(merged, "ttft_s", "long").gate is Gate.WARN
    assert tolerance_for(merged, "ttft_s", "short") == DEFAULT_POLICY["ttft_s"]
    assert tolerance_for(merged, "score", "all") == Tolerance(absolute=0.05)
    assert tolerance_for(merged, "score", "math") == Tolerance(absolute=0.08)


def test_an_override_of_a_metric_covers_all_of_its_scopes() -> None:
    merged = merge_policy({"score": Tolerance(absolute=0.2)}, where="m.toml")
    assert tolerance_for(merged, "score", "all") == Tolerance(absolute=0.2)


def test_unknown_metrics_and_impossible_tolerances_are_all_named_at_once() -> None:
    with pytest.raises(MatrixFileError) as caught:
        merge_policy(
            {
                "decode_toks": Tolerance(),
                "score/all": Tolerance(absolute=-1),
                "speedup": Tolerance(),
                "itl_s": Tolerance(duet=math.nan),
            },
            where="m.toml",
        )
    first, second, third, fourth = str(caught.value).splitlines()
    assert first == "m.toml: key 'policy.decode_toks': no metric 'decode_toks' is gated; did you mean 'decode_tok_s'?"
    assert second == "m.toml: key 'policy.score/all.absolute': must be a finite number, 0 or more (got -1)"
    assert "policy.speedup" in third
    assert fourth == "m.toml: key 'policy.itl_s.duet': must be a finite number, 0 or more (got nan)"


def test_the_plan_names_every_gate_before_anything_runs() -> None:
    planned = plan_gates(SCENARIOS, ["math", "code"], DEFAULT_POLICY)
    assert [f"{item.metric}/{item.scope}" for item in planned] == [
        "score/code", "score/math", "score/all", "truncated/all", "empty/all", "unparsable/all", "logprob/all",
        "prefill_tok_s/short", "prefill_tok_s/long", "ttft_s/short", "ttft_s/long", "decode_tok_s/short",
        "decode_tok_s/long", "itl_s/short", "itl_s/long", "peak_rss_bytes/all", "peak_device_bytes/all",
        "kv_cache_bytes/all",
    ]  # fmt: skip
    traced = plan_gates(SCENARIOS, ["math", "code"], DEFAULT_POLICY, fidelity=True)
    assert [f"{item.metric}/{item.scope}" for item in traced if item not in planned] == [
        "mean_kld/all", "decode_kld/all", "path_distance/all", "broken_logits/all",
    ]  # fmt: skip
    assert {item.aspect for item in planned} == set(Aspect)


def test_the_plan_follows_the_policy_and_the_machine() -> None:
    policy = merge_policy(
        {
            "load_s": Tolerance(relative=1.0),
            "empty": Tolerance(gate=Gate.INFO),
            "ttft_s/long": Tolerance(gate=Gate.INFO),
        },
        where="m.toml",
    )
    planned = plan_gates(SCENARIOS, [], policy, has_accelerator=False)
    names = [f"{item.metric}/{item.scope}" for item in planned]
    assert GateItem(Aspect.SPEED, "load_s", "all") in planned
    assert "ttft_s/short" in names
    assert not {"ttft_s/long", "empty/all", "peak_device_bytes/all"} & set(names)
    assert not any(item.aspect is Aspect.QUALITY for item in planned)


def test_a_gate_that_only_informs_is_still_judged() -> None:
    found = comparison("load_s", "all", drift=2.0, observed=3.0, log_drift=math.log(3), log_se=0.02, log_df=8.0)
    assert (judge(found, DEFAULT_POLICY).verdict, judge(found, DEFAULT_POLICY).gate) == (Verdict.REGRESSED, Gate.INFO)


@given(speed() | memory(), tolerances)
def test_what_is_contended_is_inconclusive_whatever_its_numbers(found: Comparison, tolerance: Tolerance) -> None:
    busy = dataclasses.replace(found, contended="pressure 50 %")
    assert decide(busy, tolerance) is Verdict.INCONCLUSIVE
