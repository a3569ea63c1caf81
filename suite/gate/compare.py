"""A variant's measurements beside its baselines: numbers only. `suite.gate.judge` turns them into verdicts."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from suite.gate.compare_fidelity import Beside as Fidelity
from suite.gate.compare_fidelity import compare_fidelity
from suite.gate.compare_quality import Beside, compare_quality
from suite.gate.compare_speed import Timed, compare_speed
from suite.gate.duet import OldSide
from suite.gate.plan import GateItem
from suite.records import Baselines, Comparison, Environment, SpeedSample, Trial, VariantResult


def compare(  # noqa: PLR0913 - what a run holds of one variant, and no two of them belong together
    result: VariantResult,
    trials: Sequence[Trial],
    baselines: Baselines,
    environment: Environment,
    *,
    planned: Sequence[GateItem] = (),
    samples: Sequence[SpeedSample] = (),
    old: OldSide | None = None,
    looks: int = 1,
    silent: Collection[str] = (),
    unsteady: Collection[str] = (),
    fidelity: Fidelity | None = None,
) -> tuple[Comparison, ...]:
    """Compare one variant with what was accepted for it, or with its `old` side in this run.

    Trials and samples of other variants are left out. Every planned gate gets a comparison, whatever became of the
    variant; so does everything else that was measured and has a meaning in the catalogue, and each case that cannot be
    paired (metric ``score``, scope the case's id). `looks` counts how often the speed of these data was judged; `silent`
    are cases that cannot testify since they depend on the number of threads, `unsteady` those that differ from one run to the
    next. `fidelity` is what was forced of it; None leaves that out.
    """
    beside = Beside(old=old, silent=silent, unsteady=unsteady)
    timed = tuple(sample for sample in samples if sample.variant == result.variant.name)
    return (
        *compare_quality(result, trials, baselines.quality, environment, planned, beside),
        *(compare_fidelity(result, baselines.quality, environment, planned, fidelity) if fidelity else ()),
        *compare_speed(result, baselines, environment, planned, Timed(samples=timed, old=old, looks=looks)),
    )
