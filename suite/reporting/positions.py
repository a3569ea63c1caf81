"""The reference trace, position by position: where a variant is farthest from the reference, and where it departs first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from suite.metrics.fidelity import percentile
from suite.records import Departure, Forced
from suite.reporting import wording
from suite.reporting.hostile import one_line, wrapped
from suite.reporting.parting import NEAR_TIE
from suite.reporting.table import Column, fit, padded


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One position of the trace, as a variant sees it."""

    case: str
    position: int
    kld: float
    reference_p: float
    """Probability of the reference's token, as the reference has it."""
    p: float
    """The same, as the variant has it."""
    departure: Departure | None


def places_of(forced: Sequence[Forced]) -> list[Place]:
    """Every position along the batched path whose logits are numbers."""
    return [place for one in forced if one.path == "batched" for place in _places(one)]


def _places(one: Forced) -> Iterator[Place]:
    departures = {departure.position: departure for departure in one.departures}
    for at, kld in enumerate(one.kld):
        if at not in one.broken:
            yield Place(
                case=one.case,
                position=at,
                kld=kld,
                reference_p=math.exp(one.reference_logprobs[at]),
                p=math.exp(one.logprobs[at]),
                departure=departures.get(at),
            )


def worst_lines(places: Sequence[Place], most: int, width: int) -> Iterator[str]:
    """The positions with the largest divergence; nothing where there is none."""
    chosen = sorted((p for p in places if p.kld > 0), key=lambda p: (-p.kld, p.case, p.position))[:most]
    if not chosen:
        return
    share = math.fsum(place.kld for place in chosen) / math.fsum(place.kld for place in places)
    yield from _said(
        f"worst positions of the trace: {len(chosen)} of {len(places)} hold {100 * share:.0f} % of the whole divergence",
        width,
    )
    yield from _table(chosen, width)


def first_departures(places: Sequence[Place]) -> list[Place]:
    """The first position of each case at which the variant's likeliest token is another one."""
    found: dict[str, Place] = {}
    for place in places:
        if place.departure is not None and place.case not in found:
            found[place.case] = place
    return list(found.values())


def departure_lines(places: Sequence[Place], most: int, width: int) -> Iterator[str]:
    """The first departure of each case, the clearest first, and how many are near ties."""
    cases = {place.case for place in places}
    found = first_departures(places)
    if not found:
        if cases:
            yield from _said(f"first departures: none in {wording.counted(len(cases), 'answer')} of the trace", width)
        return
    ties = sum(_lead(place) < NEAR_TIE for place in found)
    usual = int(percentile([place.position for place in found], 0.5))
    yield from _said(
        f"first departures: {len(found)} of {wording.counted(len(cases), 'answer')} of the trace, {ties} of them at a near "
        f"tie (below {NEAR_TIE} nat); half of them by position {usual}",
        width,
    )
    yield from _table(sorted(found, key=lambda p: (-_lead(p), p.case))[:most], width)
    if len(found) > most:
        yield f"    and {len(found) - most} more with smaller leads"


def case_lines(places: Sequence[Place], most: int, width: int) -> Iterator[str]:
    """Every departure of one case, in order."""
    found = [place for place in places if place.departure is not None]
    if not places:
        return
    yield from _said(f"departures: {len(found)} of {wording.counted(len(places), 'position')} of the trace", width)
    if found:
        yield from _table(found[:most], width)
    if len(found) > most:
        yield f"    and {len(found) - most} more"


def broken_lines(forced: Sequence[Forced], width: int) -> Iterator[str]:
    """Where logits are no numbers."""
    broken = [one for one in forced if one.broken]
    if broken:
        where = wording.listed([f"{one_line(one.case)} from position {min(one.broken)} ({one.path})" for one in broken])
        count = sum(len(one.broken) for one in broken)
        text = f"logits are no numbers at {wording.counted(count, 'position')}: {where}"
        yield from _said(text, width)


def _said(text: str, width: int) -> list[str]:
    return wrapped(text, width, first="  ", rest="    ")


def _lead(place: Place) -> float:
    return place.departure.lead if place.departure is not None else 0.0


def _table(places: Sequence[Place], width: int) -> Iterator[str]:
    def column(heading: str, keep: int, read: Callable[[Place], str], *, left: bool = False) -> Column:
        return Column(heading=heading, cells=[read(place) for place in places], keep=keep, left=left)

    several = len({place.case for place in places}) > 1
    fitted = fit(
        [
            *([column("case", 100, lambda p: one_line(p.case), left=True)] if several else []),
            column("position", 90, lambda p: str(p.position)),
            column("KLD", 80, lambda p: wording.short_nats(p.kld)),
            column("p ref", 60, lambda p: f"{p.reference_p:.3f}"),
            column("p here", 61, lambda p: f"{p.p:.3f}"),
            column("prefers", 50, lambda p: str(p.departure.token) if p.departure else wording.ABSENT),
            column("its p", 40, lambda p: f"{math.exp(p.departure.logprob):.3f}" if p.departure else wording.ABSENT),
            column("lead", 70, lambda p: wording.lead(p.departure.lead) if p.departure else wording.ABSENT),
            column("", 30, lambda p: "near tie" if p.departure and p.departure.lead < NEAR_TIE else "", left=True),
        ],
        width - 4,
    )
    for cells in padded(fitted):
        yield ("    " + (" " * fitted.gap).join(cells)).rstrip()
