"""What a forced answer comes to: each formula by hand, and what is broken counts into nothing else."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.metrics.catalog import SPECS
from suite.metrics.fidelity import (
    BROKEN,
    DECODE_KLD,
    MOST_NATS,
    OF_POSITIONS,
    PATH_DISTANCE,
    kld_interval,
    measure_fidelity,
    percentile,
    positions_of,
)
from suite.records import Departure, Forced, Measurement


def forced(case: str, kld: Sequence[float], **changes: Any) -> Forced:
    """One answer along the batched path, whose tokens are as likely as for the reference unless one says otherwise."""
    made = Forced(
        variant="q4", case=case, domain=case.partition("/")[0], family=None, path="batched", trace="ab" * 32,
        kld=tuple(kld), logprobs=(-0.5,) * len(kld), reference_logprobs=(-0.5,) * len(kld),
    )  # fmt: skip
    return dataclasses.replace(made, **changes)


def departing(*positions: int) -> tuple[Departure, ...]:
    return tuple(Departure(position=position, token=7, logprob=-0.3, lead=0.2) for position in positions)


def decoded(case: str, kld: Sequence[float], distance: Sequence[float | None], **changes: Any) -> Forced:
    return forced(case, kld, path="decode", distance=tuple(distance), **changes)


def measured(*records: Forced) -> dict[tuple[str, str], Measurement]:
    return {(m.metric, m.scope): m for m in measure_fidelity(records)}


def values(*records: Forced, scope: str = "all") -> dict[str, float | None]:
    return {metric: m.value for (metric, where), m in measured(*records).items() if where == scope}


# ------------------------------------------------------------------------------------------ formulas


def test_divergences_are_over_positions_and_not_over_cases() -> None:
    found = values(forced("math/a", [0.1]), forced("math/b", [0.2, 0.3, 0.8]))
    assert found["mean_kld"] == pytest.approx((0.1 + 0.2 + 0.3 + 0.8) / 4)
    assert found["median_kld"] == 0.2
    assert found["p99_kld"] == 0.8


def test_likelihoods_by_hand() -> None:
    """The reference's tokens: 1/2 and 1/4 for it, 1/4 and 1/2 for the variant."""
    logprobs, reference = (math.log(0.25), math.log(0.5)), (math.log(0.5), math.log(0.25))
    even = values(forced("math/a", [0.1, 0.1], logprobs=logprobs, reference_logprobs=reference))
    assert even["delta_p"] == pytest.approx(0.0)
    assert even["rms_delta_p"] == pytest.approx(0.25)
    assert even["ppl_ratio"] == pytest.approx(1.0)
    worse = values(forced("math/a", [0.1] * 2, logprobs=(math.log(0.25),) * 2, reference_logprobs=reference))
    assert worse["delta_p"] == pytest.approx(-0.25 / 2)
    assert worse["rms_delta_p"] == pytest.approx(math.sqrt(0.25**2 / 2))
    assert worse["ppl_ratio"] == pytest.approx(math.sqrt(2))


def test_the_same_top_token_is_a_share_of_positions() -> None:
    found = values(forced("math/a", [0.1] * 3, departures=departing(1)), forced("math/b", [0.1] * 5))
    assert found["same_top_1"] == pytest.approx(7 / 8)


def test_a_variant_that_is_the_reference() -> None:
    found = values(forced("math/a", [0.0] * 3), decoded("math/a", [0.0] * 3, [0.0] * 3))
    assert found == {
        "mean_kld": 0.0, "median_kld": 0.0, "p99_kld": 0.0, "same_top_1": 1.0, "delta_p": 0.0, "rms_delta_p": 0.0,
        "ppl_ratio": 1.0, "decode_kld": 0.0, "path_distance": 0.0, "broken_logits": 0.0,
    }  # fmt: skip


def test_each_metric_is_in_the_catalogue() -> None:
    assert {*OF_POSITIONS, DECODE_KLD, PATH_DISTANCE, BROKEN} <= set(SPECS)


def test_percentiles_are_values_that_were_measured() -> None:
    hundred = [number / 100 for number in range(100, 0, -1)]
    assert percentile(hundred, 0.99) == 0.99
    assert percentile(hundred, 0.5) == 0.5
    assert percentile([*hundred, 5.0], 0.99) == 1.0
    assert (percentile([3.0], 0.99), percentile([1.0, 2.0, 3.0, 4.0], 0.5)) == (3.0, 2.0)


@given(st.lists(st.floats(0, 10), min_size=1, max_size=300), st.floats(0.01, 1))
def test_a_percentile_has_its_share_at_or_below_it_and_no_smaller_value_has(sample: list[float], share: float) -> None:
    found = percentile(sample, share)
    assert sum(value <= found for value in sample) >= share * len(sample) - 1e-9
    assert sum(value < found for value in sample) < share * len(sample)


def test_what_is_next_to_impossible_is_a_large_ratio_and_still_a_number() -> None:
    found = measured(forced("math/a", [900.0], logprobs=(-1000.0,)))["ppl_ratio", "all"]
    assert found.value == found.samples[0] == math.exp(MOST_NATS)
    assert math.isfinite(found.value)


# ------------------------------------------------------------------------------------------ scopes and samples


def test_there_is_one_scope_for_all_and_one_for_each_domain() -> None:
    found = measured(forced("math/b", [0.4]), forced("code/a", [0.1, 0.3]), forced("math/a", [0.2]))
    assert [scope for metric, scope in found if metric == "mean_kld"] == ["all", "code", "math"]
    assert found["mean_kld", "code"].value == pytest.approx(0.2)
    assert found["mean_kld", "math"].value == pytest.approx(0.3)
    assert found["mean_kld", "all"].value == pytest.approx(0.25)


def test_samples_are_the_cases_by_name() -> None:
    found = measured(forced("math/b", [0.4]), forced("code/a", [0.1, 0.3]), forced("math/a", [0.2]))
    assert found["mean_kld", "all"].samples == pytest.approx((0.2, 0.2, 0.4))
    assert found["mean_kld", "math"].samples == pytest.approx((0.2, 0.4))


def test_the_decode_path_is_apart_and_over_all_cases_together() -> None:
    found = measured(
        forced("math/a", [0.1, 0.3]),
        decoded("math/a", [0.5, 0.7, 0.9], [0.0, 0.01, 0.03]),  # the first position follows the prompt on either path
        decoded("code/b", [0.9, 0.9, 0.9], [0.0, 0.05, 0.05]),
        decoded("code/c", [0.9, 0.9], [0.0, 0.0]),  # a batch of one token runs the kernels of decoding
    )
    assert found["mean_kld", "all"].value == pytest.approx(0.2)
    assert found["decode_kld", "all"].value == pytest.approx((0.5 + 0.7 + 0.9 + 5 * 0.9) / 8)
    assert found["path_distance", "all"].value == pytest.approx(0.035)
    assert found["path_distance", "all"].samples == pytest.approx((0.05, 0.02))
    assert [scope for metric, scope in found if metric in (DECODE_KLD, PATH_DISTANCE)] == ["all", "all"]


def test_without_a_decode_path_there_is_no_such_metric_and_without_anything_none() -> None:
    assert {metric for metric, _ in measured(forced("math/a", [0.1]))} == {*OF_POSITIONS, BROKEN}
    assert measure_fidelity([]) == ()


# ------------------------------------------------------------------------------------------ broken positions


def test_what_is_broken_counts_into_nothing_but_its_own_metric() -> None:
    broken = forced(
        "math/a", [0.1, 0.0, 0.3], broken=(1,), departures=departing(0, 1), logprobs=(-0.5, 0.0, -0.5),
    )  # fmt: skip
    found = values(broken, decoded("math/a", [0.5, 0.0, 0.7], [0.2, None, 0.4], broken=(1,)))
    assert positions_of(broken).kld == (0.1, 0.3)
    assert found["mean_kld"] == pytest.approx(0.2)
    assert found["same_top_1"] == pytest.approx(1 / 2)
    assert (found["delta_p"], found["ppl_ratio"]) == (0.0, 1.0)
    assert found["decode_kld"] == pytest.approx(0.6)
    assert found["path_distance"] == pytest.approx(0.4)
    assert found["broken_logits"] == pytest.approx(2 / 6)


def test_what_is_broken_along_one_path_is_no_distance_between_them() -> None:
    found = values(forced("math/a", [0.1, 0.0, 0.3], broken=(1,)), decoded("math/a", [0.5, 0.6, 0.7], [0.2, None, 0.4]))
    assert found["path_distance"] == pytest.approx(0.4)
    assert found["decode_kld"] == pytest.approx(0.6)


def test_a_case_of_which_everything_is_broken_is_left_out() -> None:
    found = measured(forced("math/a", [0.0, 0.0], broken=(0, 1)), forced("math/b", [0.2]))
    assert found["mean_kld", "all"].value == pytest.approx(0.2)
    assert found["mean_kld", "all"].samples == pytest.approx((0.2,))
    assert found[BROKEN, "all"].value == pytest.approx(2 / 3)
    assert found[BROKEN, "all"].samples == pytest.approx((1.0, 0.0))


def test_when_everything_is_broken_nothing_else_is_measured_and_that_is_said() -> None:
    found = measured(forced("math/a", [0.0] * 2, broken=(0, 1)), decoded("math/a", [0.0] * 2, [0.0] * 2, broken=(0, 1)))
    assert found[BROKEN, "all"].value == 1.0
    for metric in (*OF_POSITIONS, DECODE_KLD, PATH_DISTANCE):
        one = found[metric, "all"]
        assert (one.value, one.status, one.reason, one.samples) == (
            None,
            "not_measured",
            "none of its logits are numbers",
            (),
        )


# ------------------------------------------------------------------------------------------ interval


def test_the_interval_is_about_the_mean_and_never_below_nothing() -> None:
    sample = [forced(f"math/{number}", [0.01 * (number % 5)] * 4) for number in range(20)]
    interval = kld_interval(sample)
    assert kld_interval(sample, path="decode") is None
    assert kld_interval([dataclasses.replace(one, path="decode") for one in sample], path="decode") == interval
    assert interval is not None
    low, high = interval
    assert 0 < low < fmean(0.01 * (number % 5) for number in range(20)) < high
    lopsided = kld_interval([forced("math/a", [0.0]), forced("math/b", [0.0]), forced("math/c", [3.0])])
    assert lopsided is not None
    assert lopsided[0] == 0.0


def test_a_wider_level_is_a_wider_interval() -> None:
    sample = [forced(f"math/{number}", [0.01 * (number % 5 + 1)] * 4) for number in range(20)]
    wide, narrow = kld_interval(sample, 0.99), kld_interval(sample, 0.9)
    assert wide is not None
    assert narrow is not None
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_variations_of_one_prompt_are_one_cluster_for_the_interval() -> None:
    alone = [forced(f"math/{number}", [0.01 * (number % 5)] * 4) for number in range(20)]
    related = [dataclasses.replace(one, family=f"f{index % 5}") for index, one in enumerate(alone)]
    apart, together = kld_interval(alone), kld_interval(related)
    assert apart is not None
    assert together is not None
    assert together[1] - together[0] > 2 * (apart[1] - apart[0])


def test_the_decode_path_broken_positions_and_single_clusters_give_no_interval() -> None:
    assert kld_interval([]) is None
    assert kld_interval([forced("math/a", [0.1, 0.2])]) is None
    assert kld_interval([forced("math/a", [0.1]), decoded("math/b", [0.1], [0.0])]) is None
    assert kld_interval([forced("math/a", [0.1]), forced("math/b", [0.0], broken=(0,))]) is None
    assert kld_interval([forced("math/a", [0.1], family="x"), forced("math/b", [0.2], family="x")]) is None
    assert kld_interval([forced("math/a", [0.1], family="x"), forced("x", [0.2])]) is not None
