"""What was found: artifacts, answers, timed samples, launches, the machine, and what they amount to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from suite.records.limits import Demand, Limits
from suite.records.words import Aspect, Direction, SampleStatus, TrialStatus, Verdict


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
    demand: Demand | None = None
    """What a token demands; None where the headers do not tell, and in runs before it was computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """What happened on the machine while one sample was taken. Readings: never part of a key."""

    wall_s: float
    cpu_s: float
    """CPU time of the worker itself, all threads, and of a server that it started."""
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
    logprobs: tuple[float, ...] | None = None
    """Natural logarithm of the probability of each token; None where the backend gives none, or nobody asked."""

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
        """(n - 1) / (last - first token time); None for fewer than two tokens, or when no time passed between them.

        Tokens that came together with the first one, as a server may send them, were made before it and do not count.
        """
        times = self.token_times_s
        if len(times) < 2 or times[-1] <= times[0]:
            return None
        return sum(time > times[0] for time in times) / (times[-1] - times[0])

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
    accepted_logprob: float | None = None
    """Mean log-probability per token, in nats, that the present variant gives the accepted answer to the same question: its own
    answer, or another one that it was made to weigh. None without an accepted answer, or when the backend cannot tell."""
    accepted_sha256: str | None = None
    """Hash of the token ids of that accepted answer."""
    cached_from: str | None = None
    """The run that gave the answer, where it was taken from there (``--matrix-cached``) and graded anew. It has no times then:
    `Generation.token_times_s` is empty, `Generation.prefill_s` is 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn of a conversation, both ways: with the KV state kept, and with everything sent again."""

    prompt_tokens: int
    """The whole conversation up to the answer."""
    kept_tokens: int
    """Of them those that lay in the state already."""
    evaluated_tokens: int
    """As the backend counts them, with the state kept."""
    ttft_s: float
    resent_evaluated_tokens: int
    resent_ttft_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Anonymous memory of the worker after so many new tokens."""

    tokens: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """One load and unload in a process that lives on. Anonymous memory, and that of the accelerator."""

    load_s: float
    before_bytes: int
    loaded_bytes: int
    """After one request."""
    after_bytes: int
    """After the unload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedSample:
    """One timed pass of a scenario: prompt evaluated, fixed number of tokens decoded. Of a conversation: its last turn."""

    variant: str
    scenario: str
    launch: int
    round: int
    prompt_tokens: int
    """Of all sequences together."""
    evaluated_tokens: int
    """The same, as the backend counts them."""
    new_tokens: int
    """Of each sequence."""
    prefill_s: float
    ttft_s: float
    itl_s: tuple[float, ...]
    """The gaps; of sequences that are decoded together, one a step."""
    witness: Witness
    status: SampleStatus = SampleStatus.CLEAN
    reason: str | None = None
    kept_tokens: int = 0
    """Prompt tokens that lay in the KV state already."""
    batch: int = 1
    """Sequences decoded together."""
    held_bytes: int | None = None
    """Anonymous memory of the worker right after it; None where the system does not tell."""
    turns: tuple[Turn, ...] = ()
    """A conversation from its second turn on."""
    memory: tuple[Held, ...] = ()
    """Memory while it generated, where the scenario watches it; without what the backend says that its KV cache holds."""
    cycle: Cycle | None = None


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
    seen: Mapping[str, str] = field(default_factory=dict)
    """What the worker saw while it worked: ``alive s`` (since the model was loaded), ``throttle events`` (of its CPUs),
    ``device throttled s`` (by heat or power), and what the backend tells besides. Readings: in no key."""
    limits: Limits | None = None
    """What the device gave meanwhile; None for simulated time, without a `Demand`, and in runs before it was measured."""
    kv_cache_tokens: int | None = None
    """Tokens that `kv_cache_bytes` and `kv_cache_reported_bytes` are of; None in runs before it was kept."""
    readings: Mapping[str, float] = field(default_factory=dict)
    """What a server said of itself when the launch was over, with units in names: reported, in no key."""


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
