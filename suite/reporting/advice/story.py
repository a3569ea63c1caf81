"""What is told, in which order: decided once, rendered for a terminal and as Markdown. Text is as it was found: escape it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from suite.gate.advice.advising import Advice, Advised
from suite.gate.advice.answering import Answer, Held
from suite.gate.advice.asked import SHOWN, Name
from suite.gate.advice.fronts import Front, Placed
from suite.reporting import wording
from suite.reporting.advice import words
from suite.reporting.advice.settings import Settings, describe_settings, settings_of

EXAMPLE = "quantdrift recommend --max-loss 2 --min-speedup 1.5 --memory 300MB"
_MOST = 12
TABLE = "All variants (loss in points, KLD in nats, decode in tok/s; brackets: 95 %)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One variant of a section."""

    name: str
    clauses: tuple[str, ...]
    """What is known; none where nothing is."""
    mark: str = ""
    points: tuple[str, ...] = ()
    """What cannot be told, each with what would settle it."""
    commands: tuple[str, ...] = ()
    """Which do."""
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Variants with the same answer."""

    title: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Everything that is told."""

    heading: tuple[str, ...]
    headline: str
    why: str
    """Why that variant is taken; empty where none is."""
    sections: tuple[Section, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """The table of all variants: name, one cell a quantity, position; `columns` are their headings."""
    limited: frozenset[str]
    """Headings of the quantities that have a limit."""
    front: tuple[str, ...]
    """Sentences about who is better than whom."""
    settings: Settings | None
    """Of what is taken."""
    described: tuple[str, ...]
    """What its table for the matrix file cannot hold."""
    caveats: tuple[str, ...]


def tell(advice: Advice) -> Told:
    """Put the advice into words."""
    run = advice.run
    taken = next((one for one in advice.variants if advice.choice and one.variant == advice.choice.variant), None)
    settings = settings_of(taken.result) if taken else None
    shown = _shown(advice)
    return Told(
        heading=(run.model, wording.counted(len(run.variants), "variant"), run.environment.machine, f"run {run.id}"),
        headline=_headline(advice),
        why="; ".join(words.reasons(advice.choice)) if advice.choice else "",
        sections=tuple(section for section in _sections(advice) if section.entries),
        columns=("variant", *(words.HEADINGS[name] for name in shown), "position"),
        rows=tuple(_row(one, advice.front, shown) for one in advice.variants),
        limited=frozenset(words.HEADINGS[limit.quantity.name] for limit in advice.asked.limits),
        front=tuple(_front(advice.front)),
        settings=settings,
        described=tuple(describe_settings(settings)) if settings else (),
        caveats=advice.caveats,
    )


# ------------------------------------------------------------------------------------------------------ the answer


def _headline(advice: Advice) -> str:
    asked = ", ".join(words.limit(limit) for limit in advice.asked.limits)
    if not asked:
        return f"No limits were given, so nothing is recommended. Say what you need, for example: {EXAMPLE}"
    if advice.choice is not None:
        return f"Take {advice.choice.variant}: it keeps within your limits ({asked})"
    if advice.nearest is None:
        return f"Nothing that was measured can be held against your limits ({asked})"
    near = next(one for one in advice.variants if one.variant == advice.nearest)
    way = "for sure satisfies" if near.answer is Answer.CANNOT_TELL else "satisfies"
    return f"Nothing {way} your limits ({asked}). The nearest is {near.variant}: {'; '.join(_in_the_way(near))}"


def _in_the_way(near: Advised) -> Iterator[str]:
    for held in near.held:
        if held.answer is not Answer.SATISFIES:
            title = words.TITLES[held.limit.quantity.name]
            if held.off is None:
                yield f"{title} is not known"
            elif held.answer is Answer.FAILS:
                yield f"{title} is {words.short_of(held)}"
            else:
                yield f"{title} is {words.short_of(held)} by its estimate alone"


def _sections(advice: Advice) -> Iterator[Section]:
    if advice.asked.limits:
        within = advice.of(Answer.SATISFIES)
        yield Section(title="Within your limits", entries=tuple(_within(one, advice) for one in within))
        unsure = advice.of(Answer.CANNOT_TELL)
        yield Section(title="Cannot tell", entries=tuple(_unsure(one) for one in unsure))
        yield Section(title="Outside", entries=tuple(_outside(one) for one in advice.of(Answer.FAILS)))
    else:
        noted = tuple(Entry(name=one.variant, clauses=one.caveats) for one in advice.variants if one.caveats)
        yield Section(title="To be minded", entries=noted)
    excluded = (one for one in advice.variants if one.excluded)
    yield Section(
        title="Not advised", entries=tuple(Entry(name=one.variant, clauses=(one.excluded,)) for one in excluded)
    )


def _within(one: Advised, advice: Advice) -> Entry:
    limited = {held.limit.quantity.name for held in one.held}
    others = [words.measured(one.estimates[name]) for name in SHOWN if name not in limited]
    known = [text for text in others if "is not known" not in text]
    mark = "take this" if advice.choice and advice.choice.variant == one.variant else ""
    placed = advice.front.find(one.variant)
    if not mark and placed is not None and placed.is_dominated:
        mark = f"dominated by {wording.listed(placed.standing.dominated_by)}"
    return Entry(
        name=one.variant,
        clauses=(*(words.told(held) for held in one.held), *known),
        mark=mark,
        caveats=one.caveats,
    )


def _unsure(one: Advised) -> Entry:
    unsure = [held for held in one.held if held.answer is Answer.CANNOT_TELL]
    steps = [held.step.command for held in unsure if held.step is not None and held.step.command]
    return Entry(
        name=one.variant,
        clauses=tuple(words.told(held) for held in one.held if held.answer is Answer.SATISFIES),
        points=tuple(_points(unsure)),
        commands=tuple(dict.fromkeys(steps)),
        caveats=one.caveats,
    )


def _points(unsure: Sequence[Held]) -> Iterator[str]:
    """A sentence for each limit; what is not known for the same reason is one."""
    unknown: dict[str, list[Held]] = {}
    for held in unsure:
        if held.estimate.value is None:
            unknown.setdefault(held.estimate.doubt, []).append(held)
    for why, several in unknown.items():
        titles = " and ".join(words.TITLES[held.limit.quantity.name] for held in several)
        yield _with_step(f"{titles} {'is' if len(several) == 1 else 'are'} not known: {why}", several[0])
    for held in unsure:
        if held.estimate.value is not None:
            yield _with_step(f"{words.told(held)}; {words.limit_amount(held.limit)} asked", held)


def _with_step(said: str, held: Held) -> str:
    return f"{said}. {held.step.sentence[:1].upper()}{held.step.sentence[1:]}" if held.step is not None else said


def _outside(one: Advised) -> Entry:
    """Only what is in the way: what would settle the rest changes nothing."""
    failed = [words.told(held) for held in one.held if held.answer is Answer.FAILS]
    unsure = [words.TITLES[held.limit.quantity.name] for held in one.held if held.answer is Answer.CANNOT_TELL]
    rest = (f"{', '.join(unsure)} cannot be told either",) if unsure else ()
    return Entry(name=one.variant, clauses=(*failed, *rest))


# ------------------------------------------------------------------------------------------------------ the front


def _shown(advice: Advice) -> tuple[Name, ...]:
    limited = tuple(limit.quantity.name for limit in advice.asked.limits if limit.quantity.name not in SHOWN)
    return (*SHOWN, *limited)


def _row(one: Advised, front: Front, shown: tuple[Name, ...]) -> tuple[str, ...]:
    return (one.variant, *(_cell(one, name) for name in shown), _position(one, front))


def _cell(one: Advised, name: Name) -> str:
    """``2.38 [2.31, 2.45]``: the heading says the unit. A question mark: the machine was not ours."""
    estimate = one.estimates[name]
    if estimate.value is None:
        return wording.ABSENT
    text = words.short(name, estimate.value)
    if estimate.exact or name == "memory" or estimate.interval is None:
        return text
    low, high = (words.short(name, end) for end in estimate.interval)
    bounds = "" if low == text == high else f" [{low}, {high}]"
    return f"{text}{bounds}{'?' if estimate.doubt else ''}"


def _position(one: Advised, front: Front) -> str:
    placed = front.find(one.variant)
    if placed is None:
        return wording.ABSENT
    if placed.is_dominated:
        return "dominated"
    return "front" if placed.standing.on_front else "untold"


def _front(front: Front) -> Iterator[str]:
    if not front.quantities or not front.placed:
        yield "There is no Pareto front: it takes two variants of which two of quality, speed-up and memory are known"
        return
    titles = ", ".join(words.TITLES[name] for name in front.quantities)
    on_it = [one.variant for one in front.placed if one.standing.on_front]
    yield f"Pareto front of {titles}: {wording.listed(on_it, _MOST)}"
    for one in front.placed:
        yield from _beaten(one)
    for name, missing in front.missing.items():
        yield f"{name} is not placed: {', '.join(words.TITLES[m] for m in missing)} not known"


def _beaten(one: Placed) -> Iterator[str]:
    if one.is_dominated:
        by = one.standing.dominated_by[0]
        more = one.standing.dominated_by[1:]
        also = f"; also by {wording.listed(more, _MOST)}" if more else ""
        yield f"{one.variant} is dominated by {by}: {words.relations(one.apart[by])}{also}"
    elif one.standing.beaten_by:
        by = one.standing.beaten_by[0]
        yield f"{one.variant} is behind {by}, but by estimates alone: {words.relations(one.apart[by])}"
