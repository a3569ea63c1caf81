"""The reference trace: made from the reference's own answers, and the way of every other variant through it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from suite.engine.distributions import Rows, divergence
from suite.engine.launching import LiveVariant
from suite.errors import UsageError, VariantInvalid
from suite.packed import pack, unpack_floats, unpack_ints
from suite.records import Case, Departure, EvaluationPath, Forced, Generation, TracedCase

TOP = 64
"""Tokens that the trace tells of at each position. Together with one bucket for the rest they show 95 % of the divergence."""
LONGEST = 256
"""Tokens of an answer that are traced: an answer's beginning tells as much as its end, and files stay small."""
DECODED = 16
"""Cases that also go along the decode path, which costs a step for each token."""
DIGITS = 5
"""Significant digits that are kept of each number."""


def trace_case(live: LiveVariant, case: Case, prompt: Sequence[int], generation: Generation) -> TracedCase | None:
    """The reference's `generation` with the distribution at each position, along the batched path.

    None when its backend cannot be forced, or it said nothing. Raises VariantInvalid when logits are no numbers.
    """
    ids = generation.token_ids[:LONGEST]
    ended = generation.finish_reason == "stop" and len(ids) == len(generation.token_ids)
    asked = [*ids, 0] if ended else list(ids)  # what follows the last token is asked for: it should be the end
    rows = live.force(prompt, asked, batched=True, top=TOP) if asked else None
    if rows is None:
        return None
    if rows.broken:
        raise VariantInvalid(
            f"case {case.id}: the logits of the reference are no numbers at position {rows.broken[0]} of its answer; "
            "nothing can be held against it. Look at its weights and its dtype"
        )
    chosen = [float(value) for value in rows.chosen]
    if ended:
        ids, chosen[-1] = (*ids, int(rows.best[-1])), float(rows.best_logprob[-1])
    return TracedCase(
        case=case.id,
        version=case.version,
        domain=case.domain,
        family=case.family,
        prompt_ids=tuple(prompt),
        answer_ids=tuple(ids),
        logprobs=tuple(chosen),
        top=rows.ids.shape[1],
        top_ids=pack(rows.ids),
        top_logprobs=pack(rows.logprobs),
        rest=tuple(rows.rest.tolist()),
    )


def hash_traced(traced: TracedCase) -> str:
    """sha256 of a traced case, as hexadecimal digits: what was forced through another one is not comparable.

    Over the numbers themselves, in JSON: it does not depend on how they are packed.
    """
    rows = rows_of(traced)
    numbers = {"top_ids": rows.ids.tolist(), "top_logprobs": rows.logprobs.tolist()}
    told = {field.name: getattr(traced, field.name) for field in fields(traced) if field.name != "top"}
    return hashlib.sha256(json.dumps({**told, **numbers}).encode()).hexdigest()


def rows_of(traced: TracedCase) -> Rows:
    """The reference's own rows."""
    import numpy

    ids, logprobs = unpack_ints(traced.top_ids), unpack_floats(traced.top_logprobs)
    ids, logprobs = ids.reshape(-1, traced.top), logprobs.reshape(-1, traced.top)
    return Rows(
        chosen=numpy.array(traced.logprobs, "<f4"),
        best=ids[:, 0],
        best_logprob=logprobs[:, 0],
        ids=ids,
        logprobs=logprobs,
        rest=numpy.array(traced.rest, "<f4"),
        broken=(),
    )


def pick_decoded(cases: Iterable[str], count: int = DECODED) -> frozenset[str]:
    """The cases that go along the decode path too: always the same ones, chosen by the hash of their names."""
    return frozenset(sorted(cases, key=lambda case: hashlib.sha256(case.encode()).hexdigest())[:count])


@dataclass(frozen=True, slots=True)
class Peer:
    """The unquantized variant of the same engine, and its rows for the same case."""

    name: str
    rows: Rows


def force_case(
    live: LiveVariant, traced: TracedCase, *, decoded: bool, peer: Peer | None = None
) -> tuple[list[Forced], Rows] | None:
    """What a variant makes of one traced case along the batched path and, if `decoded`, along the other one too; and its
    rows along the batched path.

    None when its backend cannot be forced, or refuses since the answer is too long for its context. Raises WorkerDied and
    WorkerTimeout, and VariantInvalid for a trace of another vocabulary.
    """
    base = rows_of(traced)
    batched = _ask(live, traced, base, batched=True)
    if batched is None:
        return None
    start = _Start(traced, base, hash_traced(traced), live.variant.name)
    first = start.compare("batched", batched)
    if peer is not None:
        first = replace(first, peer=peer.name, peer_kld=_shorten(divergence(peer.rows, batched)))
    found = [first]
    if decoded and (rows := _ask(live, traced, base, batched=False)) is not None:
        found.append(replace(start.compare("decode", rows), distance=_distance(batched, rows)))
    return found, batched


@dataclass(frozen=True, slots=True)
class _Start:
    """What one variant is held against in one case."""

    traced: TracedCase
    base: Rows
    digest: str
    variant: str

    def compare(self, path: EvaluationPath, rows: Rows) -> Forced:
        """What the variant made of it along one path."""
        return Forced(
            variant=self.variant,
            case=self.traced.case,
            domain=self.traced.domain,
            family=self.traced.family,
            path=path,
            trace=self.digest,
            kld=_shorten(divergence(self.base, rows)),
            logprobs=_shorten(rows.chosen),
            reference_logprobs=_shorten(self.base.chosen),
            departures=tuple(_departures(self.base, rows)),
            broken=rows.broken,
            untold=_count_untold(rows) if rows.told else None,
        )


def _count_untold(rows: Rows) -> int:
    import numpy

    return int(numpy.isnan(rows.logprobs).sum())


def _ask(live: LiveVariant, traced: TracedCase, base: Rows, *, batched: bool) -> Rows | None:
    try:
        return live.force(traced.prompt_ids, traced.answer_ids, batched=batched, asked=base.ids.tolist())
    except UsageError as fault:
        raise VariantInvalid(f"case {traced.case}: {fault}") from fault


def _distance(batched: Rows, decoded: Rows) -> tuple[float | None, ...]:
    broken = {*batched.broken, *decoded.broken}
    found = enumerate(divergence(batched, decoded).tolist())
    return tuple(None if position in broken else _short(value) for position, value in found)


def _departures(base: Rows, rows: Rows) -> Iterable[Departure]:
    for position in (base.best != rows.best).nonzero()[0].tolist():
        if position not in rows.broken:
            yield Departure(
                position=position,
                token=int(rows.best[position]),
                logprob=_short(rows.best_logprob[position]),
                lead=_lead(rows, position),
                reference_logprob=_told_of(base, position, int(rows.best[position])),
            )


def _lead(rows: Rows, position: int) -> float:
    """How much likelier the variant finds its own token than the reference's; where a server does not tell of that one, it is
    no likelier than all untold ones together, and the lead at least this.
    """
    import numpy

    told = rows.logprobs[position, 0]
    return _short(max(rows.best_logprob[position] - (rows.rest[position] if numpy.isnan(told) else told), 0.0))


def _told_of(base: Rows, position: int, token: int) -> float | None:
    """The log-probability of a token, if it is among those that are told of."""
    found = (base.ids[position] == token).nonzero()[0]
    return _short(base.logprobs[position, found[0]]) if len(found) else None


def _shorten(values: Any) -> tuple[float, ...]:
    return tuple(map(_short, values.tolist()))


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
