"""What it amounts to: comparisons, findings, and the run, whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from suite.records.asked import Budget, Matrix, Tolerance, Variant
from suite.records.found import Artifact, Environment, Launch, Measurement, SpeedSample, Trial, VariantFailure
from suite.records.traced import Forced
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
    """95 % interval of `drift`; for quality each end is a one-sided 95 % bound, so that it agrees with `p_value`;
    for memory the least and the largest drift between any launch now and any then. Of what must not be there at all, and is,
    the least and the largest launch, in the metric's own unit (`drift` is None then)."""
    mde: float | None = None
    """The smallest worsening that could have been told from noise at the level in force, same unit as `drift`: of speed
    and log-probabilities the smallest that is beyond the tolerance for sure, of answers the smallest net loss. Set when it is
    judged."""
    log_drift: float | None = None
    """Speed: mean log ratio of now and then, positive is worse: the centre of the t interval. Log-probabilities:
    the drift itself, in nats."""
    log_se: float | None = None
    """Its standard error, launches and (for stored baselines) sessions included."""
    log_df: float | None = None
    """Its degrees of freedom."""
    assumed: bool = False
    """Whether the spread between sessions was assumed, since the machine was never calibrated."""
    numeric_floor: float = 0.0
    """Fidelity: nats a position that were added to both sides, so that what is beneath numerics is no drift."""
    log_floor: float = 0.0
    """The part of the standard error that no number of launches on this side makes smaller."""
    p_value: float | None = None
    """Answers: exact one-sided p that they got worse by luck (sign flips of paired differences, families as clusters;
    McNemar for right and wrong)."""
    p_least: float = 0.0
    """The smallest p that this test could have given with the cases that changed; 1 when nothing changed."""
    p_gain: float | None = None
    """The same, that it rose by luck."""
    n: int = 0
    """Launches for speed and memory, paired cases for quality."""
    n_baseline: int = 0
    """Launches behind the baseline, for speed and memory."""
    draws: int = 0
    """Answers: independent cases behind `p_value`, where a template family counts once."""
    draws_gained: int = 0
    """How many of them were gained (wrong → right)."""
    identical: bool = False
    """Quality: every compared output is the same, token for token."""
    flips: tuple[Flip, ...] = ()
    unresolved: Verdict | None = None
    """UNBASELINED, NOT_COMPARABLE, NOT_MEASURED, ERROR or INVALID when there is nothing to compare."""
    reason: str = ""
    unsuited: bool = False
    """Whether the variant cannot do it with what it has, a scenario or a way of being evaluated: measuring again alone changes
    nothing."""
    suspects: tuple[str, ...] = ()
    """What changed since the baseline: ``name: old → new``."""
    accepted: str = ""
    """When and why the baseline was accepted, for people."""
    machine_drift: tuple[float, ...] = ()
    """Speed: by which share each yardstick was slower (positive) than when the baseline was accepted."""
    contended: str = ""
    """Non-empty: too few clean samples, and what the witnesses saw."""
    flags: tuple[str, ...] = ()
    """Why the machine was not as it should be although there are clean samples: never a PASS."""
    looks: int = 1
    """How often this question has been judged on these data so far, this time included: the level is spent among them."""
    left_out: tuple[str, ...] = ()
    """Cases that cannot testify: their answers differ from one run to the next, or depend on the number of threads."""
    unsteady: tuple[str, ...] = ()
    """Those of them that differ from one run to the next under the same number of threads."""


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
    p_value: float | None = None
    """One-sided p of "no worse than the tolerance" (speed) or "no worse" (answers); None where nothing is tested."""
    p_needed: float | None = None
    """The p below which it is REGRESSED, after sharing 5 % out over everything that this run tests."""
    family: int = 0
    """Number of tests among which its share was divided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What a variant costs against the reference of the same run. Positive `value` of a loss is worse."""

    variant: str
    metric: str
    """``score``, ``exact``, ``speedup``, ``peak_rss_bytes``, ``output_tokens``, ``truncated``, ``empty``, ``unparsable``,
    ``looping``."""
    scope: str
    value: float | None
    """Score and rates: reference - variant, or its reverse where less is better. Speed-up, memory, length: the ratio."""
    interval: tuple[float, float] | None
    """95 %: exact for counts, t on launches for ratios."""
    n: int
    """Paired cases (clusters), or launches."""
    lost: int = 0
    gained: int = 0
    mde: float | None = None
    budget: Budget | None = None
    answer: Literal["within budget", "over budget", "cannot tell", "no budget", "not measured"] = "no budget"
    sentence: str = ""


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
    against: tuple[VariantResult, ...] = ()
    """The old sides of a duet, measured beside the variants that they are named in."""
    losses: tuple[Loss, ...] = ()
    forced: tuple[Forced, ...] = ()
    """What each variant made of the reference trace."""
    creep: tuple[Finding, ...] = ()
    """Held against the first accepted baselines, where the latest ones have moved away from them. Informs only."""
