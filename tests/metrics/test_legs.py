"""What a divergence is made of: the engine's part, and that of quantization."""

from __future__ import annotations

import math
from typing import Any

import pytest

from suite.metrics.fidelity import kld_interval
from suite.metrics.legs import Legs, split_legs
from suite.records import Forced
from suite.stats.ratios import share_of_sums

CASES = ("math/a", "math/b", "code/c")


def forced(variant: str, case: str, kld: tuple[float, ...], **changes: Any) -> Forced:
    made: dict[str, Any] = {
        "variant": variant,
        "case": case,
        "domain": case.split("/", maxsplit=1)[0],
        "family": None,
        "path": "batched",
        "trace": "00" * 32,
        "kld": kld,
        "logprobs": (-1.0,) * len(kld),
        "reference_logprobs": (-1.0,) * len(kld),
    }
    return Forced(**{**made, **changes})


def split(found: list[Forced], *names: str, reference: str | None = "fp16", plain: tuple[str, ...] = ()) -> list[Legs]:
    everyone = dict.fromkeys([*names, *(one.variant for one in found)])
    split = split_legs(found, list(everyone), reference=reference, unquantized=plain)
    return [legs for legs in split if legs.variant in names]


def both() -> list[Forced]:
    """A peer in the engine of q4, 0.001 from the reference; q4 is 0.05 from it and 0.051 from the reference."""
    peer = [forced("f16", case, (0.001, 0.001)) for case in CASES]
    return [*peer, *(forced("q4", c, (0.05, 0.052), peer="f16", peer_kld=(0.049, 0.051)) for c in CASES)]


def test_both_legs_are_told_apart_where_the_run_holds_the_peer() -> None:
    (legs,) = split(both(), "q4")
    assert (legs.made, legs.peer, legs.partial) == ("both", "f16", False)
    assert legs.total.value == pytest.approx(0.051)
    assert legs.engine is not None
    assert legs.engine.value == pytest.approx(0.001)
    assert legs.quantization is not None
    assert legs.quantization.value == pytest.approx(0.05)
    assert (legs.quantization.positions, legs.quantization.cases) == (6, 3)


def test_the_reference_has_no_legs_and_variants_keep_their_order() -> None:
    found = [forced("fp16", "math/a", (0.0,)), *both()]
    assert [legs.variant for legs in split(found, "q4", "fp16", "f16", "absent")] == ["q4", "f16"]


def test_without_a_peer_the_figure_mixes_both() -> None:
    (legs,) = split([forced("q4", case, (0.05,)) for case in CASES], "q4")
    assert (legs.made, legs.engine, legs.quantization) == ("mixed", None, None)
    assert legs.total.value == pytest.approx(0.05)


def test_a_peer_that_is_the_reference_leaves_no_engine_leg() -> None:
    found = [forced("int8", case, (0.02,), peer="fp16", peer_kld=(0.02,)) for case in CASES]
    theirs = [forced("fp16", case, (0.0,)) for case in CASES]
    (legs,) = split([*found, *theirs], "int8")
    assert (legs.made, legs.engine) == ("quantization", None)
    assert legs.quantization is not None


def test_the_reference_of_a_stored_trace_is_no_variant_of_the_run() -> None:
    found = [forced("int8", case, (0.02,), peer="fp16", peer_kld=(0.02,)) for case in CASES]
    (legs,) = split(found, "int8", reference=None)
    assert (legs.made, legs.engine) == ("quantization", None)


def test_in_the_engine_of_the_reference_all_is_quantization_even_without_a_peer() -> None:
    found = [forced("q4", case, (0.05,)) for case in CASES]
    (legs,) = split_legs(found, ("fp16", "q4"), reference="fp16", unquantized=(), engine_mates=("fp16", "q4"))
    assert (legs.made, legs.peer, legs.engine, legs.quantization) == ("quantization", "fp16", None, legs.total)
    (stored,) = split_legs(found, ("q4",), reference=None, unquantized=(), engine_mates=("q4",))
    assert stored.made == "mixed"


def test_an_unquantized_variant_differs_by_its_engine_alone() -> None:
    (legs,) = split(both(), "f16", plain=("f16",))
    assert (legs.made, legs.quantization) == ("engine", None)
    assert legs.engine == legs.total


def test_legs_are_over_the_cases_that_both_are_known_of() -> None:
    found = both()
    found[1] = forced("f16", "math/b", (9.0, 9.0))
    found[4] = forced("q4", "math/b", (9.0, 9.0))  # taken up again in another process: the peer's rows were gone
    (legs,) = split(found, "q4")
    assert legs.partial
    assert legs.engine is not None
    assert legs.engine.value == pytest.approx(0.001)
    assert (legs.engine.cases, legs.total.cases) == (2, 3)


def test_a_peer_that_lacks_all_of_the_cases_tells_nothing() -> None:
    found = [forced("q4", "math/a", (0.05,), peer="f16", peer_kld=(0.05,)), forced("f16", "code/c", (0.001,))]
    (legs,) = split(found, "q4")
    assert (legs.made, legs.peer) == ("mixed", "f16")


def test_a_peer_of_the_run_that_was_not_forced_itself_is_not_taken_for_the_reference() -> None:
    found = [forced("q4", "math/a", (0.05,), peer="f16", peer_kld=(0.05,))]
    (legs,) = split_legs(found, ("fp16", "f16", "q4"), reference="fp16", unquantized=())
    assert legs.made == "mixed"


def test_positions_whose_logits_are_no_numbers_count_into_no_leg() -> None:
    found = [
        forced("f16", "math/a", (0.001, 0.0), broken=(1,)),
        forced("q4", "math/a", (0.0, 0.5, 0.05), broken=(0,), peer="f16", peer_kld=(0.0, 0.0, 0.04)),
    ]
    found[0] = forced("f16", "math/a", (0.003, 0.0, 0.001), broken=(1,))
    (legs,) = split(found, "q4")
    assert legs.total.value == pytest.approx(0.275)
    assert legs.quantization is not None
    assert (legs.quantization.value, legs.quantization.positions) == (0.04, 1)
    assert legs.engine is not None
    assert legs.engine.value == 0.001


def test_a_variant_of_which_all_is_broken_has_no_legs() -> None:
    assert split([forced("q4", "math/a", (0.0,), broken=(0,))], "q4") == []


def test_the_decode_path_is_left_out() -> None:
    found = [forced("q4", "math/a", (0.05,)), forced("q4", "math/a", (9.0,), path="decode")]
    assert split(found, "q4")[0].total.value == 0.05


def test_the_interval_is_that_of_the_mean_divergence_with_families_as_clusters() -> None:
    found = [
        forced("q4", case, values, family=family)
        for case, values, family in (
            ("math/a", (0.1, 0.2), "trains"),
            ("math/b", (0.1, 0.2, 0.2), "trains"),
            ("math/c", (0.01,), None),
            ("code/d", (0.02, 0.04), None),
        )
    ]
    (legs,) = split(found, "q4")
    interval = legs.total.interval()
    assert interval == pytest.approx(kld_interval(found))
    assert interval is not None
    assert interval[0] < legs.total.value < interval[1]
    clusters = share_of_sums([0.8, 0.01, 0.06], [5, 1, 2])
    assert legs.total.estimate is not None
    assert clusters is not None
    assert (legs.total.estimate.se, legs.total.estimate.df) == pytest.approx((clusters.se, clusters.df))


def test_one_cluster_has_a_value_and_no_interval() -> None:
    (legs,) = split([forced("q4", "math/a", (0.05, math.e))], "q4")
    assert legs.total.interval() is None
