"""What may be to blame: what differs besides the weights, found by comparing what is recorded of both sides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from suite.gate.differences import describe_differences, quality_identity
from suite.records import Aspect, Comparison, Run, Tier, VariantResult, Verdict
from suite.reporting.wording import counted, listed

KINDS = ("template", "tokenizer", "decoding", "backend", "machine", "weights")
"""What a recorded field is about; the order in which they are told, the weights last."""

_WEIGHTS = frozenset({"revision", "model", "source", "quantization", "make", "dtypes", "tensor types"})
_TEMPLATE = ("chat_template", "prompt format")
_DECODING = ("decoding", "option.")
_MACHINE = ("machine.", "kernel", "driver", "cpu")
_NO_BASELINE = frozenset({Verdict.UNBASELINED, Verdict.NOT_MEASURED, Verdict.ERROR, Verdict.INVALID})


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """One thing that differs."""

    kind: str
    """One of `KINDS`."""
    text: str
    """``field: old → new``."""


def kind_of(field: str) -> str:
    """What a recorded field is about: ``option.type_k`` → decoding; what is not known is of the backend."""
    if field.startswith("sha256 of ") or field in _WEIGHTS or "weights" in field:
        return "weights"
    for kind, starts in (("template", _TEMPLATE), ("tokenizer", ("tokenizer",)), ("decoding", _DECODING)):
        if field.startswith(starts):
            return kind
    return "machine" if field.startswith(_MACHINE) else "backend"


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What changed since something was accepted, or beside what a variant was measured."""

    accepted: str
    """When and why, for people."""
    hints: tuple[Hint, ...]

    @property
    def only_weights(self) -> bool:
        """Whether weights are all that changed."""
        return {hint.kind for hint in self.hints} == {"weights"}


def since_baseline(run: Run, result: VariantResult) -> Changes | None:
    """What changed since the answers of a variant were accepted; None when there is no baseline to look at."""
    own = [f.comparison for f in run.findings if f.variant == result.variant.name]
    compared = [c for c in own if _is_compared(c)]
    if not compared:
        return None
    said = [suspect for comparison in compared for suspect in comparison.suspects]
    for comparison in compared:
        if comparison.unresolved is Verdict.NOT_COMPARABLE:
            said += [part for part in comparison.reason.split("; ") if part.partition(": ")[0] in result.identity]
    return Changes(accepted=compared[0].accepted, hints=_sorted(said))


def _is_compared(comparison: Comparison) -> bool:
    """Whether answers or divergences were held against what was accepted; some gates need nothing accepted."""
    against = comparison.tier is not Tier.NONE and comparison.unresolved not in _NO_BASELINE
    return comparison.aspect is Aspect.QUALITY and against


def besides_weights(one: VariantResult, other: VariantResult) -> tuple[Hint, ...]:
    """What two variants of one run differ in, besides their weights, as far as both tell of it.

    Tokenizers of two backends are not compared, whose hashes are of other things; the token ids of prompts are.
    """
    mine, theirs = _facts(one), _facts(other)
    alike = one.variant.backend == other.variant.backend
    shared = [name for name in mine if name in theirs and (alike or kind_of(name) in ("template", "decoding"))]
    said = describe_differences({n: theirs[n] for n in shared}, {n: mine[n] for n in shared})
    return tuple(hint for hint in _sorted(said) if hint.kind != "weights")


def other_prompts(run: Run, variant: str, reference: str) -> str:
    """A sentence when prompts of a variant have other token ids than the reference's; else ""."""
    theirs = {trial.case: trial.prompt_sha256 for trial in run.trials if trial.variant == reference}
    own = [trial for trial in run.trials if trial.variant == variant]
    moved = [trial.case for trial in own if theirs.get(trial.case, trial.prompt_sha256) != trial.prompt_sha256]
    if not moved:
        return ""
    return (
        f"{counted(len(moved), 'prompt')} of {len(own)} have other token ids than {reference}'s: {listed(moved)}. "
        "Look at template and tokenizer first"
    )


def _facts(result: VariantResult) -> Mapping[str, str]:
    identity = {name: value for name, value in quality_identity(result).items() if name != "backend"}
    return {**identity, **result.suspects}


def _sorted(said: Iterable[str]) -> tuple[Hint, ...]:
    return tuple(sorted(_hints(said), key=lambda hint: KINDS.index(hint.kind)))


def _hints(said: Iterable[str]) -> Iterator[Hint]:
    for text in dict.fromkeys(said):
        yield Hint(kind=kind_of(text.partition(": ")[0]), text=text)
