"""What to measure: cases, scenarios, variants, and how far they may drift."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from suite.records.words import Gate


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
    """Of each sequence; of a conversation, those that each turn adds."""
    new_tokens: int
    """The same of what is generated."""
    kept_tokens: int = 0
    """So many of the prompt's tokens already lie in the KV state when timing begins: decoding at that depth."""
    batch: int = 1
    """Sequences that are decoded together, each with a prompt of its own."""
    turns: int = 1
    """Turns of a conversation. The last one is timed with the KV state kept, and beside it with everything sent again."""
    rounds: int | None = None
    """Timed slices in each launch; None takes the protocol's."""
    watch: bool = False
    """Read the worker's memory every so many tokens: memory that goes on growing is a finding."""
    reloads: int = 0
    """How often the variant is loaded and unloaded in a process of its own, which must give the memory back. 0: not at all."""

    @property
    def context_tokens(self) -> int:
        """Tokens that the context of each sequence must hold."""
        return self.turns * (self.prompt_tokens + self.new_tokens)

    @property
    def is_plain(self) -> bool:
        """Whether each slice is one prompt from an empty state: what can warm a variant up."""
        return not self.kept_tokens and self.batch == 1 and self.turns == 1 and not self.watch and not self.reloads

    @property
    def described(self) -> str:
        """What is timed, in words: part of a baseline's identity, in which only what is not the default is named."""
        parts = [
            f"{self.prompt_tokens} → {self.new_tokens} tokens",
            f"{self.kept_tokens} of them kept" if self.kept_tokens else "",
            f"{self.batch} together" if self.batch > 1 else "",
            f"{self.turns} turns" if self.turns > 1 else "",
            "loaded and unloaded" if self.reloads else "",
        ]
        return ", ".join(filter(None, parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A model × backend × quantization × options, as declared; not yet resolved to bytes."""

    name: str
    """Lower-case identifier, e.g. ``q4_k_m``."""
    model: str
    backend: str
    """A built-in name (``transformers``, ``bitsandbytes``, ``llama_cpp``, ``server``, ``fake``, ``kernel``), or one's own as
    ``package.module:attribute``."""
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
    python: str | None = None
    """The interpreter that it runs under; None is ours."""
    old_of: str | None = None
    """Set on the old side of a duet: the name of the variant that it is measured beside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """How speed is measured."""

    launches: int = 5
    """Fresh loads of each variant: the sampling unit."""
    max_launches: int = 10
    """Up to here launches are added for a variant of which a gate is undecided."""
    rounds: int = 5
    """Timed slices of each scenario in each launch, interleaved across the variants."""
    warmup: int = 1
    """Fewest untimed slices after each load; it goes on until decoding has become steady."""
    max_warmup: int = 6
    """Most untimed slices after each load."""
    retries: int = 2
    """How often a contended or rejected sample is taken again."""
    max_pressure: float = 0.15
    """Share of the wall time in which some task waited for a CPU, above which a sample is contended."""
    max_steal: float = 0.05
    """Share of all CPU time that the hypervisor took, above which a sample is contended."""
    pin: bool = True
    """Keep every variant on the same CPUs: two processes on different cores differ by up to 10 %."""
    resident: Literal["auto", "all", "one"] = "auto"
    """Which variants are in memory at once: as many as fit, all, or one at a time (no interleaving)."""
    peak_flop_s: float = 0.0
    """Operations a second that the device can do in the variants' types, where it is known; 0 measures a rate in float32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """How far a metric may drift. REGRESSED needs more than `relative` and more than `absolute`."""

    relative: float = 0.0
    """Share of the baseline value, e.g. 0.1 for 10 %."""
    absolute: float = 0.0
    """In the metric's own unit."""
    gate: Gate = Gate.BLOCK
    duet: float | None = None
    """Takes the place of `relative` where old and new were measured side by side; None leaves it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a variant may cost against the reference in the same run, for one quantity."""

    limit: float
    """Score: the largest loss, in credit (0.05 is 5 points). Speed-up: the smallest. Memory: the largest share of the
    reference's. Output length: the largest ratio. Rates: the largest rise."""
    gate: Gate = Gate.INFO


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
    budgets: Mapping[str, Budget] = field(default_factory=dict)
    """By ``metric`` or ``metric/scope``: the price that each variant may have against the reference."""
    notes: tuple[str, ...] = ()
    """What a reader of the report must know about this model, e.g. that the reference is a demonstration."""

    @property
    def reference(self) -> Variant | None:
        """The unquantized variant that the others are compared with, if the matrix holds one."""
        return next((variant for variant in self.variants if variant.reference), None)
