"""What scenarios of a kind give: conversations by time, and tails."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support import sample_health as health

from suite.gate.compare_none import compare_with_none
from suite.metrics.catalog import SPECS
from suite.metrics.kinds import BY_TIME, HELD_TO_NONE, reevaluated_share
from suite.metrics.speed import measure_samples
from suite.records import Comparison, Measurement, SpeedSample, Tier, Turn


def conversation(ttft_s: float, resent_ttft_s: float, step_s: float) -> SpeedSample:
    turn = Turn(
        prompt_tokens=1000,
        kept_tokens=900,
        evaluated_tokens=100,
        ttft_s=ttft_s,
        resent_evaluated_tokens=1000,
        resent_ttft_s=resent_ttft_s,
    )
    return health.sample_of("q8_0", 0, 0, turns=(turn,), itl_s=(step_s,) * 9)


@pytest.mark.parametrize("fixed_s", [0.0, 0.02, 0.5])
def test_what_any_pass_costs_is_no_sign_of_evaluating_again(fixed_s: float) -> None:
    """A pass takes `fixed_s`, and a millisecond a token."""
    step = fixed_s + 0.001
    kept, again = fixed_s + 0.1, fixed_s + 1.0
    assert reevaluated_share(conversation(kept, again, step)) == pytest.approx(0, abs=0.01) or again < 3 * step
    assert reevaluated_share(conversation(again, again, step)) == pytest.approx(1, abs=0.01) or again < 3 * step


def test_where_the_whole_costs_hardly_more_than_a_step_nothing_is_said() -> None:
    """Launching kernels takes 20 ms, and a thousand tokens of a small model two."""
    assert reevaluated_share(conversation(0.0202, 0.022, 0.020)) is None


def test_the_tail_of_a_server_that_sends_chunks_is_a_share_of_a_chunk() -> None:
    gaps = (0.0,) * 31 + ((0.32,) + (0.0,) * 31) * 4
    taken = [health.sample_of("q8_0", 0, turn, itl_s=gaps, new_tokens=len(gaps) + 1) for turn in range(20)]
    found = {(m.metric, m.scope): m for m in measure_samples(taken)}
    assert found["itl_p95_s", "short"].value == pytest.approx(0.01, rel=0.05)


@pytest.mark.parametrize("metric", sorted(HELD_TO_NONE))
def test_a_busy_machine_is_no_evidence_of_what_is_told_by_time(metric: str) -> None:
    busy = Measurement(
        metric=metric,
        scope="talk",
        value=0.9,
        samples=(0.9,),
        launches=(0,),
        status="contended",
        reason="1 of 1 contended",
    )
    bare = Comparison(variant="q8_0", metric=metric, scope="talk", aspect=SPECS[metric].aspect, tier=Tier.STORED)
    assert bool(compare_with_none(bare, busy, None).contended) is (metric in BY_TIME)
    assert not compare_with_none(bare, replace(busy, status="measured"), None).contended
