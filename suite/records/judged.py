"""What it amounts to: comparisons, findings, and the run, whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from suite.records.asked import Matrix, Tolerance, Variant
from suite.records.found import Artifact, Environment, Launch, Measurement, SpeedSample, Trial, VariantFailure
from suite.records.words import Aspect, Gate, Tier, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """A case whose correctness changed, either way."""

    case: str
    was_correct: bool
    is_correct: bool
    was: str | None
    now: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A variant's metric now beside its baseline: numbers only, no verdict. Drift is signed so that positive is worse."""

    variant: str
    metric: str
    scope: str
    aspect: Aspect
    tier: Tier
    observed: float | None = None
    baseline: float | None = None
    drift: float | None = None
    """Positive is worse. Speed and memory: share of the baseline's value, (then - now) / then where higher is better and
    (now - then) / then where lower is better, so that 0.1 reads as "10 % of the baseline lost". Quality: the same
    difference in the metric's own unit."""
    interval: tuple[float, float] | None = None
    """95 % interval of `drift`; for quality each end is a one-sided 95 % bound, so that it agrees with `p_value`."""
    mde: float | None = None
    """The smallest worsening that this comparison could have told from noise, same unit as `drift`."""
    p_value: float | None = None
    """Score: exact one-sided p that it fell by luck (sign flips of the paired credits; McNemar for right and wrong)."""
    p_gain: float | None = None
    """The same, that it rose by luck."""
    n: int = 0
    """Launches for speed and memory, paired cases for quality."""
    n_baseline: int = 0
    """Launches behind the baseline, for speed and memory."""
    identical: bool = False
    """Quality: every compared output is the same, token for token."""
    flips: tuple[Flip, ...] = ()
    unresolved: Verdict | None = None
    """UNBASELINED, NOT_COMPARABLE, NOT_MEASURED, ERROR or INVALID when there is nothing to compare."""
    reason: str = ""
    suspects: tuple[str, ...] = ()
    """What changed since the baseline: ``name: old → new``."""
    accepted: str = ""
    """When and why the baseline was accepted, for people."""
    machine_drift: tuple[float, ...] = ()
    """Speed: by which share each yardstick was slower (positive) than when the baseline was accepted."""
    contended: str = ""
    """Non-empty: too few clean samples, and what the witnesses saw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A verdict, the numbers behind it, and the one sentence that a person reads."""

    variant: str
    metric: str
    scope: str
    verdict: Verdict
    gate: Gate
    sentence: str
    tolerance: Tolerance | None
    comparison: Comparison
    next_step: str = ""
    """What to do now, with the exact command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantResult:
    """Everything measured of one variant."""

    variant: Variant
    artifact: Artifact | None
    measurements: tuple[Measurement, ...]
    launches: tuple[Launch, ...]
    failure: VariantFailure | None
    identity: Mapping[str, str]
    """What makes it the same question (without the machine)."""
    suspects: Mapping[str, str]
    """What may have changed and be to blame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run, whole."""

    id: str
    created: str
    """ISO 8601, UTC."""
    suite_version: str
    model: str
    matrix: Matrix
    environment: Environment
    variants: tuple[VariantResult, ...]
    trials: tuple[Trial, ...]
    speed_samples: tuple[SpeedSample, ...]
    settings: Mapping[str, str]
    """Decoding parameters and options in force."""
    findings: tuple[Finding, ...] = ()
