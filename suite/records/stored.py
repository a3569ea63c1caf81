"""What is kept: accepted baselines, the entries of a journal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from suite.records.found import Artifact
from suite.records.words import TrialStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Why a baseline is what it is."""

    accepted: str
    """ISO 8601 date and time, UTC."""
    reason: str
    run: str
    commit: str | None = None
    launches: int = 0
    flags: tuple[str, ...] = ()
    """What was not as it should be while it was measured."""
    gates: Mapping[str, int] = field(default_factory=dict)
    """How many gates of the variant ended in each verdict when it was accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineMetric:
    """One accepted quantity."""

    value: float
    unit: str
    launches: tuple[float, ...] = ()
    """Median of each launch, for speed and memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFidelity:
    """How far a variant was from the reference in one case, nats a position."""

    trace: str
    """The first digits of the traced case's hash: another trace is another question."""
    kld: float
    """Along the batched path."""
    decode_kld: float | None = None
    """Along the decode path, where the case is in the sample."""
    path_distance: float | None = None
    """Of the decode path from the batched one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineCase:
    """One accepted answer."""

    version: int
    scorer: str
    prompt_sha256: str
    status: TrialStatus
    score: float | None
    correct: bool | None
    answer: str | None
    output_sha256: str
    """Hash of the answer's token ids."""
    output_tokens: int
    output_ids: str | None = None
    """The answer's token ids, decimal, with a space between them; None in baselines accepted before they were kept."""
    logprob: float | None = None
    """Mean log-probability of its tokens, in nats; None too where the backend gives none."""
    fidelity: CaseFidelity | None = None
    """None in baselines accepted before it was measured, and where the backend cannot be forced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityBaseline:
    """Accepted answers of one variant; valid on every machine."""

    model: str
    variant: str
    identity: Mapping[str, str]
    suspects: Mapping[str, str]
    provenance: Provenance
    metrics: Mapping[str, BaselineMetric]
    """By ``metric/scope``."""
    cases: Mapping[str, BaselineCase]
    edited: bool = False
    """Found when read, never stored: the content does not match its digest, so somebody changed it by hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedBaseline:
    """Accepted speed and memory of one variant on one machine."""

    model: str
    variant: str
    machine: str
    """`Environment.machine` of the machine that it was measured on; names the directory it lies in."""
    identity: Mapping[str, str]
    """Includes the machine's, prefixed ``machine.``."""
    suspects: Mapping[str, str]
    provenance: Provenance
    metrics: Mapping[str, BaselineMetric]
    """By ``metric/scope``."""
    edited: bool = False
    """Found when read, never stored: the content does not match its digest, so somebody changed it by hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseFloor:
    """How much one quantity varies when nothing changed: standard deviations of its logarithm."""

    slice_sd: float
    """Between slices of one launch."""
    launch_sd: float
    """Between launches of one session."""
    launch_df: int
    session_sd: float
    """Between sessions, launches averaged out."""
    session_df: int
    normaliser: Literal["none", "hash", "copy"] = "none"
    """The yardstick that it may be divided by: only where that was seen to narrow the spread between sessions."""
    normalised_session_sd: float | None = None
    pair_sd: float | None = None
    """Between launches, of the ratio of two variants measured side by side: what a duet varies by. None: not measured."""
    pair_df: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """What `quantdrift calibrate` found on one machine."""

    model: str
    machine: str
    identity: Mapping[str, str]
    """The machine's."""
    measured: str
    """ISO 8601 date and time, UTC."""
    sessions: int
    launches: int
    floors: Mapping[str, NoiseFloor]
    """By metric; pooled over variants and scenarios."""
    max_pressure: float | None = None
    """The limits of a clean slice, as found; they take the place of the protocol's defaults."""
    max_steal: float | None = None
    launch_s: float | None = None
    """Seconds that one launch of every variant takes: what more launches cost."""
    edited: bool = False
    """Found when read, never stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Baselines:
    """What is stored of one variant."""

    quality: QualityBaseline | None = None
    speed: SpeedBaseline | None = None
    """Of this machine."""
    foreign: tuple[SpeedBaseline, ...] = ()
    """Of other machines."""
    frozen_quality: QualityBaseline | None = None
    """The first one that was accepted, which later ones are held against, so that creeping is seen."""
    frozen_speed: SpeedBaseline | None = None
    noise: Noise | None = None
    """Of this machine, if it was calibrated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedArtifact:
    """Journal entry: the bytes that a variant was resolved to, and the libraries that hold them."""

    variant: str
    artifact: Artifact | None
    suspects: Mapping[str, str] = field(default_factory=dict)
    """Hashes of template and tokenizer, backend and library versions, build flags."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedPrompts:
    """Journal entry: what a variant's tokenizer made of the cases."""

    variant: str
    ids: Mapping[str, tuple[int, ...]]
    """Token ids by case id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Journal entry: anything else worth keeping, for people and for resuming."""

    text: str
    data: Mapping[str, str] = field(default_factory=dict)
