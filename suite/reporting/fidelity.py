"""How far each variant is from the reference: the model of it, and its section in Markdown. Measured elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from suite.metrics.fidelity import BROKEN, DECODE_KLD, OF_POSITIONS, PATH_DISTANCE, kld_interval
from suite.metrics.legs import UNQUANTIZED_BPW, Leg, Legs, split_legs
from suite.records import ALL, Forced, Run
from suite.reporting import wording
from suite.reporting.hostile import markdown, markdown_code

_KLD = "mean_kld"
_NOTE = (
    "KL divergence from the reference in nats a token, along the reference's own answers, evaluated in batches; over its 64 "
    "likeliest tokens and one bucket for the rest, which is a lower bound. Brackets hold 95 % of prompts like these, cases of "
    "one template counting once. Decode KLD is the same, evaluated token by token on a fixed sample; the path distance is how "
    "far a variant's two paths are from each other there. Answers token by token: `quantdrift explain`."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fidelity:
    """How far one variant is from the reference."""

    variant: str
    reference: bool
    values: Mapping[str, float]
    """By metric, over all cases; what was not measured is absent."""
    interval: tuple[float, float] | None
    """95 %, of the mean KLD."""
    domains: Mapping[str, float]
    """Mean KLD by domain."""
    cases: int
    positions: int
    """Along the batched path, broken ones left out."""
    untold: float | None
    """Tokens that the reference tells of and a server did not, a position; None where logits were read."""
    legs: Legs | None
    """None for the reference itself, and where all logits are broken."""

    @property
    def tail(self) -> float | None:
        """99th percentile / mean: how much of the damage is in few places."""
        mean, p99 = self.values.get(_KLD), self.values.get("p99_kld")
        return p99 / mean if mean and p99 is not None else None


def measured_fidelity(run: Run) -> tuple[Fidelity, ...]:
    """Fidelity of each variant that was forced through the reference trace, in the order of the run."""
    reference = run.matrix.reference.name if run.matrix.reference else None
    legs = {one.variant: one for one in legs_of(run)}
    found = []
    for result in run.variants:
        name = result.variant.name
        own = [one for one in run.forced if one.variant == name]
        if not own:
            continue
        measured = {(m.metric, m.scope): m.value for m in result.measurements if m.value is not None}
        batched = [one for one in own if one.path == "batched"]
        found.append(
            Fidelity(
                variant=name,
                reference=name == reference,
                values={
                    metric: value for (metric, scope), value in measured.items() if scope == ALL and _is_own(metric)
                },
                interval=kld_interval(own),
                domains={s: value for (metric, s), value in measured.items() if metric == _KLD and s != ALL},
                cases=len(batched),
                positions=sum(len(one.kld) - len(one.broken) for one in batched),
                untold=_a_position(batched),
                legs=legs.get(name),
            )
        )
    return tuple(found)


def _a_position(forced: Sequence[Forced]) -> float | None:
    told = [(one.untold, len(one.kld)) for one in forced if one.untold is not None]
    positions = sum(count for _, count in told)
    return sum(untold for untold, _ in told) / positions if positions else None


def legs_of(run: Run) -> tuple[Legs, ...]:
    """What the divergence of each variant of the run is made of."""
    reference = run.matrix.reference
    served = {one.variant for one in run.forced if one.untold is not None}  # weights that nobody here knows
    return split_legs(
        _own_forced(run),
        [result.variant.name for result in run.variants],
        reference=reference.name if reference else None,
        engine_mates={r.variant.name for r in run.variants if reference and r.variant.backend == reference.backend},
        unquantized={
            result.variant.name
            for result in run.variants
            if result.artifact and result.artifact.bpw is not None and result.artifact.bpw >= UNQUANTIZED_BPW
            if result.variant.name not in served
        },
    )


def _own_forced(run: Run) -> Iterable[Forced]:
    """Without the old sides of a duet."""
    names = {result.variant.name for result in run.variants}
    return (one for one in run.forced if one.variant in names)


def _is_own(metric: str) -> bool:
    return metric in OF_POSITIONS or metric in (DECODE_KLD, PATH_DISTANCE, BROKEN)


def describe_legs(legs: Legs) -> str:
    """What a divergence is made of, in words: ``engine <.0001 (as of f16), quantization .0580 (from f16)``."""
    if legs.made == "mixed":
        return "engine and quantization mixed: no unquantized variant of its engine was taken through the same cases"
    if legs.made == "engine":
        return "engine alone: its weights are not quantized"
    if legs.quantization is None or legs.made == "quantization":
        return f"quantization alone: the reference {legs.peer} is of the same engine"
    engine = wording.short_nats(legs.engine.value if legs.engine else None)
    part = f", over {legs.quantization.cases} of {legs.total.cases} cases" if legs.partial else ""
    quantization = wording.short_nats(legs.quantization.value)
    return f"engine {engine} (as of {legs.peer}), quantization {quantization} (from {legs.peer}){part}"


def fidelity_remarks(rows: Sequence[Fidelity]) -> tuple[str, ...]:
    """What a reader of the table must know about its KLD; nothing where none was measured."""
    if not rows:
        return ()
    said = [
        "KLD is the mean divergence from the reference along its own answers, nats a token, a lower bound; its parts and "
        "tails are in report.md, answers token by token in: quantdrift explain"
    ]
    said += [f"{row.variant}: {describe_untold(row)}" for row in rows if row.untold]
    mixed = [row.variant for row in rows if row.legs and row.legs.made == "mixed" and row.untold is None]
    if mixed:
        said.append(
            f"KLD of {wording.listed(mixed)} mixes what the engine does and what quantization does: have the unquantized "
            "variant of the same engine in the matrix, before them, to tell them apart"
        )
    return tuple(said)


def describe_untold(row: Fidelity) -> str:
    """What a server leaves open, in words."""
    return (
        f"of the reference's likeliest tokens its server does not tell {row.untold:.2g} a position; they count as one with the "
        "rest, which makes its KLD a lower bound of that of the others (raise prompt_logprobs)"
    )


# ------------------------------------------------------------------------------------------------------- Markdown


def fidelity_markdown(rows: Sequence[Fidelity], domains: Sequence[str]) -> str:
    """A section of a Markdown document, `domains` in the order of the report; empty when nothing was measured."""
    return "\n".join(_section(rows, domains)) if rows else ""


def _section(rows: Sequence[Fidelity], domains: Sequence[str]) -> Iterator[str]:
    yield "## Fidelity"
    yield ""
    heads = [
        "variant",
        "mean KLD (95 %)",
        "median",
        "p99",
        "p99 / mean",
        "same top-1",
        "RMS Δp",
        "PPL ratio",
        "decode KLD",
    ]
    yield from _table([*heads, "path distance"], [_overall(row) for row in rows])
    yield _NOTE
    yield ""
    notes = [f"- {_of(row)}" for row in rows if row.values.get(BROKEN)]
    notes += [f"- {markdown_code(row.variant)}: {markdown(describe_untold(row))}." for row in rows if row.untold]
    yield from [*notes, ""] if notes else []
    if any(row.legs for row in rows):
        yield "What it is made of, each leg a mean KLD; legs do not add up exactly, since divergences do not:"
        yield ""
        yield from _table(
            ["variant", "engine leg (95 %)", "quantization leg (95 %)", ""],
            [_legs(row.legs) for row in rows if row.legs],
        )
    named = [domain for domain in domains if any(domain in row.domains for row in rows)]
    if named:
        yield "Mean KLD by domain:"
        yield ""
        cells = [[markdown_code(r.variant), *(wording.nats(r.domains.get(d)) for d in named)] for r in rows]
        yield from _table(["variant", *(markdown(domain) for domain in named)], cells)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"| {' | '.join('---' if head in ('variant', '') else '---:' for head in heads)} |"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def _overall(row: Fidelity) -> list[str]:
    values = row.values
    same, ratio = values.get("same_top_1"), values.get("ppl_ratio")
    return [
        f"{markdown_code(row.variant)}{' (reference)' if row.reference else ''}",
        _mean(values.get(_KLD), row.interval),
        wording.nats(values.get("median_kld")),
        wording.nats(values.get("p99_kld")),
        wording.ABSENT if row.tail is None else f"{row.tail:.1f}",
        wording.ABSENT if same is None else f"{100 * same:.1f} %",
        wording.nats(values.get("rms_delta_p")),
        wording.ABSENT if ratio is None else f"{ratio:.4f}",
        wording.nats(values.get(DECODE_KLD)),
        wording.nats(values.get(PATH_DISTANCE)),
    ]


def _mean(value: float | None, interval: tuple[float, float] | None) -> str:
    bounds = f" [{wording.nats(interval[0])}, {wording.nats(interval[1])}]" if interval and value else ""
    return f"{wording.nats(value)}{bounds}"


def _of(row: Fidelity) -> str:
    share = 100 * row.values[BROKEN]
    return f"{markdown_code(row.variant)}: {share:.2g} % of its logits are no numbers; they count into nothing else."


def _legs(legs: Legs) -> list[str]:
    return [markdown_code(legs.variant), _leg(legs.engine), _leg(legs.quantization), markdown(describe_legs(legs))]


def _leg(leg: Leg | None) -> str:
    return wording.ABSENT if leg is None else _mean(leg.value, leg.interval())
