"""What a plan says: for each metric and each domain, what could be found, and what more would cost."""

from __future__ import annotations

from dataclasses import dataclass

from suite.records import Gate, Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """What a number of launches finds."""

    launches: int
    mde_80: float | None
    """The smallest drift (share of the old value, positive is worse) that is called REGRESSED with 80 % power; None: none."""
    mde_95: float | None
    passes: float
    """The chance that an unchanged variant is called PASS, rather than INCONCLUSIVE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedOutlook:
    """One gated metric of speed in one tier, for the scopes that share a tolerance."""

    metric: str
    scopes: tuple[str, ...]
    gate: Gate
    tier: Tier
    tolerance: float
    absolute: float
    """In the metric's unit; a drift must pass both. Not part of the figures, which know no speed."""
    launch_sd: float
    """Standard deviation between launches, of logs: of the value, or of the ratio in a duet. Floored as in a verdict."""
    session_sd: float
    """Between sessions; 0 in a duet."""
    measured: bool
    """Whether these are of this machine, or assumed."""
    first: Detection
    """With the launches that every variant gets."""
    most: Detection
    """With the launches that an undecided variant gets at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchesNeeded:
    """What a wanted tolerance would cost."""

    metric: str
    tier: Tier
    tolerance: float
    launches: int | None
    """So that an unchanged variant passes and twice the tolerance is found, each with 95 % power; None: none do."""
    minutes: float | None
    limit: str
    """Why no number of launches does; empty when one does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityOutlook:
    """The score of one domain, or of all cases."""

    scope: str
    cases: int
    """Independent ones: cases made from one template count once."""
    tolerance: float
    called: int | None
    """The smallest net loss that is called REGRESSED when this is the only variant of which answers changed."""
    called_crowded: int | None
    """The same when the answers of all variants changed."""
    loss_80: float | None
    """The true loss rate that is found with 80 % power if nothing is gained; None: none is."""
    loss_95: float | None
    loss_80_gain: float | None
    """The same, with 2 % of the cases gained."""
    loss_95_gain: float | None
    certified: float
    """The largest true net loss that is still possible (one-sided 95 %) when not one case flips."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CasesNeeded:
    """How many independent cases a wanted tolerance of the score needs."""

    tolerance: float
    certify: int
    """So that PASS can be earned: the bound that zero flips give is within the tolerance."""
    find: int | None
    """So that a true loss of twice the tolerance is found with 95 % power."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """The whole plan."""

    model: str
    machine: str
    variants: int
    speed_gates: int
    """Gates of speed of all variants together: they share one part of the 5 %."""
    speed_alpha: float
    noise: str
    """Where the noise figures come from, for people."""
    launch_s: float | None
    launches: int
    max_launches: int
    speed: tuple[SpeedOutlook, ...]
    quality: tuple[QualityOutlook, ...]
    launches_needed: tuple[LaunchesNeeded, ...] = ()
    cases_needed: tuple[CasesNeeded, ...] = ()
