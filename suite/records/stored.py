"""What is kept: accepted baselines, the entries of a journal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineMetric:
    """One accepted quantity."""

    value: float
    unit: str
    launches: tuple[float, ...] = ()
    """Median of each launch, for speed and memory."""


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
class Baselines:
    """What is stored of one variant."""

    quality: QualityBaseline | None = None
    speed: SpeedBaseline | None = None
    """Of this machine."""
    foreign: tuple[SpeedBaseline, ...] = ()
    """Of other machines."""


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
