"""What is told of a history, decided once: the levels that shifted, what happened meanwhile, and what could be seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from suite.records import HistoryEntry
from suite.reporting.history_series import ALPHA, LevelShift, Series, Trend, primary_scope
from suite.reporting.hostile import one_line
from suite.reporting.wording import ABSENT, counted, listed, metric_name, value

NEAR = 2
"""So many runs beside a shift, changes are told as perhaps belonging to it: its place is known to about a run."""
ACCEPT = 'pytest --model-matrix --matrix-update=changed --matrix-reason "..."'
ADVICE = "Baselines stay as they are: mend what shifted, or accept the new level with"
APPEND = "quantdrift history --append latest"
_MOST_EVENTS, _MOST_CHANGES = 5, 6
_CHANCE = f"the chance that one of them is told to have shifted by luck is {ALPHA:.0%}".replace("%", " %")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldShifts:
    """The shifts that began with one run. All text is safe to show as it is, but for markup."""

    run: str
    series: tuple[str, ...]
    """A sentence for each series."""
    beside: tuple[str, ...]
    """What changed, and was accepted, in that run or near it."""
    worse: bool | None
    """Whether any of them is for the worse; None where it is not known of one, and of none that it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldTrend:
    """One model on one machine."""

    period: str
    """``34 runs, 2026-09-01 … 2026-10-04``."""
    shifts: tuple[ToldShifts, ...]
    """The newest first."""
    accepted: tuple[str, ...]
    """The newest runs from which baselines were accepted."""
    changed: tuple[str, ...]
    """The newest runs at which a version changed, with what did."""
    partial: tuple[str, ...]
    """The newest runs in which only a part of the cases was answered."""
    verdict: str
    """The one sentence: what shifted, or what could have been seen."""
    command: str
    """What the sentence asks for; else empty."""

    @property
    def events(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """What else happened: a title, and the runs."""
        told = (
            ("Baselines were accepted from", self.accepted),
            ("Versions changed at", self.changed),
            ("A part of the cases was answered in", self.partial),
        )
        return tuple((title, runs) for title, runs in told if runs)


def tell_trend(trend: Trend) -> ToldTrend:
    """Put a trend into words."""
    by_run: dict[int, list[tuple[Series, LevelShift]]] = {}
    for series in trend.series:
        for shift in series.shifts:
            by_run.setdefault(shift.entry, []).append((series, shift))
    return ToldTrend(
        period=_period(trend),
        shifts=tuple(
            ToldShifts(
                run=run_label(trend.entries[place]),
                series=tuple(_shift(*one) for one in by_run[place]),
                beside=tuple(_beside(trend, place)),
                worse=_sum_up([shift.worse for _, shift in by_run[place]]),
            )
            for place in sorted(by_run, reverse=True)
        ),
        accepted=_newest([run_label(entry) for entry in trend.entries if entry.accepted]),
        changed=_newest(
            [
                f"{run_label(entry)}: {_changes(changes)}"
                for entry, changes in zip(trend.entries, trend.changed, strict=True)
                if changes
            ]
        ),
        partial=_newest([f"{run_label(entry)}: {one_line(entry.cases)}" for entry in trend.entries if entry.cases]),
        verdict=_verdict(trend, by_run),
        command=APPEND if len(trend.entries) < 2 else "",
    )


def _sum_up(ways: Sequence[bool | None]) -> bool | None:
    return True if True in ways else None if None in ways else False


def shown_series(trend: Trend, *, scopes: bool = False) -> list[Series]:
    """Of each metric of a variant the scope of everything together, or the first one, and whatever shifted; with `scopes` all.

    None of a single run, which shows no trend.
    """
    if len(trend.entries) < 2:
        return []
    known: dict[tuple[str, str], list[str]] = {}
    for one in trend.series:
        known.setdefault((one.variant, one.metric), []).append(one.scope)
    return [
        one
        for one in trend.series
        if scopes or one.shifts or one.scope == primary_scope(known[one.variant, one.metric])
    ]


def series_name(metric: str, scope: str) -> str:
    """``decode tok/s (short)``; a metric that is not one of ours as it is."""
    name = metric_name(metric) if metric.isidentifier() else metric
    return one_line(name if scope == "all" else f"{name} ({scope})")


def level_word(series: Series, needed: int) -> str:
    """What the last shift did, and how many there were; or why there is none."""
    if not series.shifts:
        if len(set(series.values)) == 1:
            return "the same" if len(series.values) > 1 else "one run"
        return "steady" if len(series.values) >= needed else "too few runs"
    words = {True: "worse", False: "better", None: "moved"}[series.shifts[-1].worse]
    return words if len(series.shifts) == 1 else f"{words}, {len(series.shifts)} shifts"


def short_value(metric: str, number: float) -> str:
    """The value; its unit is left out where the name beside it says it, and of divergences."""
    return value(metric, number).removesuffix(" tok/s").removesuffix(" nats")


def share(change: float | None) -> str:
    """A relative change: ``+4.1 %``, ``−11.8 %``, ``0 %``, ``+<0.1 %``."""
    if change is None:
        return ABSENT
    if not change:
        return "0 %"
    sign = "+" if change > 0 else "−"
    percent = abs(change) * 100
    if 0 < percent < 0.05:
        return f"{sign}<0.1 %"
    return f"{sign}{percent:.1f} %" if percent < 99.95 else f"{sign}{percent:.0f} %"


def run_label(entry: HistoryEntry) -> str:
    """A run with its day, where its name does not tell it, and its commit."""
    told = [] if entry.run.startswith(entry.created[:10]) else [_day(entry)]
    told += [f"commit {one_line(entry.commit)}"] if entry.commit else []
    return f"{one_line(entry.run)} ({', '.join(told)})" if told else one_line(entry.run)


def _period(trend: Trend) -> str:
    runs = counted(len(trend.entries), "run")
    if trend.left_out:
        runs = f"the last {runs} of {len(trend.entries) + trend.left_out}"
    first, last = (_day(trend.entries[place]) for place in (0, -1))
    return f"{runs}, {first if first == last else f'{first} … {last}'}"


def _day(entry: HistoryEntry) -> str:
    return one_line(entry.created[:10])


def _verdict(trend: Trend, by_run: dict[int, list[tuple[Series, LevelShift]]]) -> str:
    among = f"{trend.tested} series"
    if len(trend.entries) < 2:
        return "One run shows no trend: it takes a second one. After it:"
    if by_run:
        shifts = counted(sum(len(found) for found in by_run.values()), "shift")
        return f"{shifts} of level, at {counted(len(by_run), 'run')}, among {among}; {_CHANCE}."
    if len(trend.entries) < trend.needed and trend.tested:
        return (
            f"No level shifted, but none could have been seen: among {among}, {trend.needed} runs are needed and there are "
            f"{len(trend.entries)}."
        )
    if not trend.tested:
        return "No level shifted: nothing moved, or there are too few runs to tell."
    return f"No level shifted among {among}; {_CHANCE}."


def _shift(series: Series, found: LevelShift) -> str:
    before, after = value(series.metric, found.shift.before), value(series.metric, found.shift.after)
    worse = {True: ", worse", False: ", better", None: ""}[found.worse]
    return (
        f"{one_line(series.variant)} {series_name(series.metric, series.scope)}: {before} → {after}, "
        f"{share(found.change)}{worse} (medians of {counted(found.runs_before, 'run')} and {found.runs_after}; "
        f"p = {found.shift.p_value:.2g})"
    )


def _beside(trend: Trend, place: int) -> Iterator[str]:
    """What changed, and was accepted, in that run, or in one so near that it may be meant."""
    changed = False
    for other in sorted(range(len(trend.entries)), key=lambda other: abs(other - place)):
        if abs(other - place) > NEAR:
            break
        when = _when(other - place)
        if trend.changed[other]:
            changed = True
            yield f"changed {when}: {_changes(trend.changed[other])}"
        if trend.entries[other].accepted:
            yield f"baselines were accepted {when}"
    if not changed:
        yield "nothing that is recorded changed there"


def _when(distance: int) -> str:
    if distance == 0:
        return "with this run"
    return f"{counted(abs(distance), 'run')} {'later' if distance > 0 else 'earlier'}"


def _newest(events: Sequence[str]) -> tuple[str, ...]:
    left = len(events) - _MOST_EVENTS
    return (*reversed(events[-_MOST_EVENTS:]), *([f"and {counted(left, 'earlier run')}"] if left > 0 else []))


def _changes(changes: Iterable[str]) -> str:
    return listed([one_line(change) for change in changes], _MOST_CHANGES)
