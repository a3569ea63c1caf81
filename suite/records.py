"""Every record that is stored or passed on. No logic beyond derived properties, no I/O.

Units are in the names: ``_s`` seconds, ``_bytes`` bytes, ``_tok_s`` tokens a second. A quantity that was not measured is
``None`` beside a status that says why; never NaN, never a silent zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Any, Literal

SCHEMA_VERSION = 1
"""Version of everything written by `suite.store`. Raise it with a migration, and keep a file of each version in tests."""


ALL = "all"
"""The scope of everything together: all domains, or no scenario in particular."""


class Verdict(StrEnum):
    """What a gate says. Only PASS and IMPROVED are good news, and IMPROVED asks for a new baseline."""

    ERROR = "ERROR"
    INVALID = "INVALID"
    REGRESSED = "REGRESSED"
    INCONCLUSIVE = "INCONCLUSIVE"
    NOT_COMPARABLE = "NOT_COMPARABLE"
    UNBASELINED = "UNBASELINED"
    NOT_MEASURED = "NOT_MEASURED"
    IMPROVED = "IMPROVED"
    PASS = "PASS"


VERDICTS_WORST_FIRST: tuple[Verdict, ...] = tuple(Verdict)
"""The order in which verdicts outrank one another when several are summed up in one word."""


class TrialStatus(StrEnum):
    """How a trial ended. Only SCORED carries a score; the others are counted as what they are."""

    SCORED = "scored"
    TRUNCATED = "truncated"
    """The token budget ran out before an anchored answer appeared."""
    EMPTY = "empty"
    """Nothing but white space (after thoughts were stripped)."""
    UNPARSABLE = "unparsable"
    """Text, but no rule of the scorer found an answer in it."""
    ERROR = "error"
    """The worker failed while it answered."""


class SampleStatus(StrEnum):
    """Whether a timed sample may be used."""

    CLEAN = "clean"
    CONTENDED = "contended"
    """Its witnesses say that the machine was not ours while it was taken."""
    REJECTED = "rejected"
    """Evaluated tokens differ from prompt tokens, or fewer tokens came than were asked for."""


class Aspect(StrEnum):
    """What a metric is about; speed and quality have different comparability keys."""

    QUALITY = "quality"
    SPEED = "speed"
    MEMORY = "memory"


class Direction(StrEnum):
    """Which way is better."""

    HIGHER = "higher"
    LOWER = "lower"


class Tier(StrEnum):
    """What a speed verdict was compared with."""

    STORED = "stored"
    """The accepted baseline of the same identity."""
    FOREIGN = "foreign"
    """A baseline from another machine: never a failure."""
    DUET = "duet"
    """Measured side by side in this run."""
    NONE = "none"


class Gate(StrEnum):
    """What a REGRESSED finding of this metric does: fail, warn, or only inform."""

    BLOCK = "block"
    WARN = "warn"
    INFO = "info"


# ---------------------------------------------------------------------------------------------- what to measure


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorerSpec:
    """Which scorer grades a case, and with which options. Scorer identity is data, so a stored run can be re-scored."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One versioned prompt with its target and its scorer."""

    id: str
    """``domain/name``, unique; readable in a test id."""
    domain: str
    version: int
    prompt: str
    target: str
    scorer: ScorerSpec
    max_new_tokens: int
    system: str | None = None
    tags: tuple[str, ...] = ()
    family: str | None = None
    """Cases made from one template share a family, which is a cluster for statistics."""
    language: str = "en"
    solution: str | None = None
    """Code cases: a canonical solution."""
    asserts: tuple[str, ...] = ()
    """Code cases: statements that hold for a right solution."""
    source: str = ""
    """File (and row) that it came from, for error messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One way of timing a variant: fixed token counts, so that a change in quality cannot move it."""

    name: str
    prompt_tokens: int
    new_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A model × backend × quantization × options, as declared; not yet resolved to bytes."""

    name: str
    """Lower-case identifier, e.g. ``q4_k_m``."""
    model: str
    backend: str
    """A built-in name (``transformers``, ``bitsandbytes``, ``llama_cpp``, ``fake``) or ``package.module:attribute``."""
    source: str
    """Where the weights come from, in the grammar of `suite.models.sources`."""
    quantization: str | None = None
    """What was asked for (``int8``, ``Q4_K_M``); what the file holds is in `Artifact`."""
    make: str | None = None
    """Quantize one's own: the GGUF type to make from the model's F16."""
    reference: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    """Backend options with every default filled in."""
    prompt_format: Literal["chat", "raw"] = "chat"


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """How speed is measured."""

    launches: int = 3
    """Fresh loads of each variant: the sampling unit."""
    rounds: int = 4
    """Timed samples of each scenario in each launch, interleaved across the variants."""
    warmup: int = 1
    """Untimed samples of each scenario after each load."""
    retries: int = 2
    """How often a contended or rejected sample is taken again."""
    max_pressure: float = 0.15
    """Share of the wall time in which some task waited for a CPU, above which a sample is contended."""
    resident: Literal["auto", "all", "one"] = "auto"
    """Which variants are in memory at once: as many as fit, all, or one at a time (no interleaving)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """How far a metric may drift. REGRESSED needs more than `relative` and more than `absolute`."""

    relative: float = 0.0
    """Share of the baseline value, e.g. 0.1 for 10 %."""
    absolute: float = 0.0
    """In the metric's own unit."""
    gate: Gate = Gate.BLOCK


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """Seconds after which a worker that has not answered is killed."""

    load_s: float = 900.0
    answer_s: float = 300.0
    make_s: float = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """A validated matrix file."""

    model: str
    variants: tuple[Variant, ...]
    scenarios: tuple[Scenario, ...]
    protocol: Protocol
    policy: Mapping[str, Tolerance]
    """Tolerance by metric identifier."""
    deadlines: Deadlines
    file: str
    notes: tuple[str, ...] = ()
    """What a reader of the report must know about this model, e.g. that the reference is a demonstration."""

    @property
    def reference(self) -> Variant | None:
        """The unquantized variant that the others are compared with, if the matrix holds one."""
        return next((variant for variant in self.variants if variant.reference), None)


# ---------------------------------------------------------------------------------------------- what was found


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactFile:
    """One file of weights."""

    name: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """The bytes that a variant was resolved to."""

    files: tuple[ArtifactFile, ...]
    size_bytes: int
    revision: str | None = None
    """Commit of a hub repository, or version of a package."""
    tensor_types: Mapping[str, int] = field(default_factory=dict)
    """Number of tensors by storage type, e.g. ``{"Q5_0": 180, "F32": 61}``."""
    parameters: int | None = None
    bpw: float | None = None
    """Bits per weight as found: 8 × tensor bytes / parameters."""
    label: str | None = None
    """What the file or its name claims to hold."""
    mismatch: str | None = None
    """A sentence when label and tensors disagree: the bulk of the weights is of another type."""
    derived_from: str | None = None
    """How it was made, when it was made here."""
    inspection_error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """What happened on the machine while one sample was taken. Readings: never part of a key."""

    wall_s: float
    cpu_s: float
    """CPU time of the worker itself, all threads."""
    threads: int
    pressure: float | None = None
    """Share of wall time in which some task waited for a CPU (Linux PSI ``some``)."""
    involuntary_switches: int | None = None
    steal: float | None = None
    """Share of all CPU time that the hypervisor took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One generation, timed token by token. Times are seconds since the request started."""

    token_ids: tuple[int, ...]
    text: str
    finish_reason: Literal["stop", "length"]
    prompt_tokens: int
    evaluated_tokens: int
    """Prompt tokens that the backend says it evaluated; fewer means that a cache answered."""
    prefill_s: float
    """Request start → prompt evaluated, device synchronized."""
    token_times_s: tuple[float, ...]
    """Request start → each token available; the first is TTFT."""

    @property
    def ttft_s(self) -> float | None:
        """Request start → first token available."""
        return self.token_times_s[0] if self.token_times_s else None

    @property
    def itl_s(self) -> tuple[float, ...]:
        """Each gap between two tokens."""
        times = self.token_times_s
        return tuple(later - earlier for earlier, later in pairwise(times))

    @property
    def decode_tok_s(self) -> float | None:
        """(n - 1) / (last - first token time); None for fewer than two tokens, or when no time passed between them."""
        if len(self.token_times_s) < 2 or self.token_times_s[-1] <= self.token_times_s[0]:
            return None
        return (len(self.token_times_s) - 1) / (self.token_times_s[-1] - self.token_times_s[0])

    @property
    def prefill_tok_s(self) -> float | None:
        """Newly evaluated prompt tokens / prefill time."""
        return self.evaluated_tokens / self.prefill_s if self.prefill_s > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How one answer was graded."""

    status: TrialStatus
    value: float | None = None
    """0..1; None unless `status` is SCORED."""
    correct: bool | None = None
    """Whether it counts as right; None unless SCORED."""
    answer: str | None = None
    """What was extracted."""
    rule: str | None = None
    """The extraction rule that fired, e.g. ``boxed``, ``answer-is``, ``last-number``."""
    explanation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One generation of one case by one variant, graded."""

    variant: str
    case: str
    case_version: int
    domain: str
    family: str | None
    scorer: str
    prompt_sha256: str
    """Hash of the prompt's token ids."""
    score: Score
    generation: Generation | None
    """None when the worker failed."""
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedSample:
    """One timed pass of a scenario: prompt evaluated, fixed number of tokens decoded."""

    variant: str
    scenario: str
    launch: int
    round: int
    prompt_tokens: int
    evaluated_tokens: int
    new_tokens: int
    prefill_s: float
    ttft_s: float
    itl_s: tuple[float, ...]
    witness: Witness
    status: SampleStatus = SampleStatus.CLEAN
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Yardstick:
    """How fast the machine itself was: neutral kernels of one thread, see `suite.engine.yardstick`."""

    hash_bytes_s: float
    copy_bytes_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One fresh load of a variant. The process that was measured is gone when this is written, or lives on."""

    variant: str
    index: int
    load_s: float
    cold_ttft_s: float | None
    """TTFT of the very first request after the load."""
    cold_prompt_tokens: int | None
    peak_rss_bytes: int | None
    uss_bytes: int | None
    peak_device_bytes: int | None
    kv_cache_bytes: int | None
    """Computed: 2 × layers × KV heads × head size × bytes per element × context."""
    kv_cache_reported_bytes: int | None
    """As the backend reports it."""
    facts: Mapping[str, str]
    """Backend and library versions, build flags, effective options: suspects."""
    witness: Witness | None = None
    yardstick: Yardstick | None = None
    """Median of the readings that were taken right before this variant's samples; None for simulated time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantFailure:
    """Why a variant has no (full) results."""

    variant: str
    verdict: Verdict
    """ERROR, INVALID or NOT_MEASURED."""
    reason: str
    detail: str = ""
    """The tail of the worker's stderr, and the like."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The machine. `identity` must be equal for two speeds to be compared; `suspects` may differ and be to blame."""

    machine: str
    """Readable slug of the identity, used as a directory name."""
    identity: Mapping[str, str]
    """device, device memory, CPU model, ISA, cores, threads, OS."""
    suspects: Mapping[str, str]
    """kernel, driver, Python, library versions."""
    readings: Mapping[str, float | str]
    """load, frequency, temperature: in no key."""


# ---------------------------------------------------------------------------------------------- what it amounts to


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSpec:
    """A metric's identifier with its unit, direction and formula."""

    name: str
    unit: str
    direction: Direction
    aspect: Aspect
    formula: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One quantity of one variant in one scope, with the samples that it was computed from."""

    metric: str
    scope: str
    """A scenario, a domain, or ``all``."""
    value: float | None
    samples: tuple[float, ...] = ()
    launches: tuple[int, ...] = ()
    """For each sample, the launch that it came from; empty for quality."""
    status: Literal["measured", "not_measured", "contended"] = "measured"
    reason: str | None = None


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


# ---------------------------------------------------------------------------------------------- baselines


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


# ---------------------------------------------------------------------------------------------- journal


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


# ---------------------------------------------------------------------------------------------- judgement


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
