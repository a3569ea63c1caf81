"""Many runs as series: of each model on each machine, what every variant measured from run to run, and where it shifted.

Pure. Series of two models or two machines are never joined. Nothing is compared with a baseline here, and none is changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from suite.errors import UsageError, nearest
from suite.metrics.catalog import SPECS
from suite.records import ALL, Direction, HistoryEntry
from suite.stats.changepoints import FEWEST_RUNS, Shift, fewest_to_see, find_shifts

ALPHA = 0.05
"""Chance that any of the series that are looked at together is told to have shifted when none has."""
WATCHED = ("decode_tok_s", "prefill_tok_s", "ttft_s", "peak_rss_bytes", "peak_device_bytes", "score", "mean_kld")
"""What is looked at unless something else is asked for: the more, the less can be seen of each."""
LAST = 100
"""Runs that are looked at, unless told otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What of the history is wanted. None is all of it."""

    variant: str | None = None
    metric: str | None = None
    machine: str | None = None
    last: int = LAST


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelShift:
    """A shift in a series, and the run that it began with."""

    entry: int
    """Index into `Trend.entries` of the first run of the new level."""
    shift: Shift
    runs_before: int
    runs_after: int
    change: float | None
    """Share of the level before; None when that was 0."""
    worse: bool | None
    """None when it is not known which way is better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One metric of one variant in one scope, from run to run."""

    variant: str
    metric: str
    scope: str
    entries: tuple[int, ...]
    """For each value, the index of its run into `Trend.entries`."""
    values: tuple[float, ...]
    """In the metric's unit, the oldest first; at least one."""
    shifts: tuple[LevelShift, ...] = ()

    @property
    def change(self) -> float | None:
        """From the first value to the last, as a share of the first; None when that is 0."""
        return relative_change(self.values[0], self.values[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """One model on one machine."""

    model: str
    machine: str
    entries: tuple[HistoryEntry, ...]
    """The oldest first."""
    left_out: int
    """Older runs that were not looked at."""
    changed: tuple[tuple[str, ...], ...]
    """For each run, what is not as it was in the run before: ``name: old → new``."""
    series: tuple[Series, ...]
    tested: int
    """Series among which `ALPHA` was divided, those of other machines and models included."""
    level: float
    """What one series is tested at."""
    needed: int
    """Fewer runs than that cannot show any shift at this level."""


@dataclass(slots=True)
class _Growing:
    """A series while it is collected."""

    entries: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)


_Key = tuple[str, str, str]
"""Variant, metric, scope."""


def build_trends(entries: Iterable[HistoryEntry], selection: Selection) -> tuple[Trend, ...]:
    """The trends of a history, by model and machine; newest activity last.

    The level is divided among all series of the watched metrics (or of the one that is asked for), whichever variant or machine
    is selected: so looking closer does not make a shift of what was none. Raises UsageError for a name that the history lacks.
    """
    apart: dict[tuple[str, str], list[HistoryEntry]] = {}
    for entry in sorted(entries, key=lambda entry: entry.created):
        apart.setdefault((entry.model, entry.machine), []).append(entry)
    _check_names(apart, selection)
    kept = {key: runs[-selection.last :] for key, runs in apart.items()}
    collected = {key: _collect(runs, selection.metric) for key, runs in kept.items()}
    tested = sum(_is_testable(one.values) for found in collected.values() for one in found.values())
    level = ALPHA / max(tested, 1)
    return tuple(
        Trend(
            model=model,
            machine=machine,
            entries=tuple(runs),
            left_out=len(apart[model, machine]) - len(runs),
            changed=tuple(changes_of(runs)),
            series=_series(collected[model, machine], selection.variant, level),
            tested=tested,
            level=level,
            needed=fewest_to_see(level),
        )
        for (model, machine), runs in kept.items()
        if selection.machine in (None, machine)
    )


def relative_change(was: float, now: float) -> float | None:
    """(now - was) / |was|; 0 when nothing changed, None when there is nothing to divide by."""
    if now == was:
        return 0.0
    return (now - was) / abs(was) if was else None


def changes_of(entries: Sequence[HistoryEntry]) -> list[tuple[str, ...]]:
    """For each run, what is not as it was when it was last told: ``name: old → new``. What was not told before is not new."""
    known: dict[str, str] = {}
    told = []
    for entry in entries:
        now = {"quantdrift": entry.suite_version, **entry.versions}
        told.append(
            tuple(f"{name}: {known[name]} → {text}" for name, text in now.items() if known.get(name, text) != text)
        )
        known |= now
    return told


def primary_scope(scopes: Iterable[str]) -> str:
    """The one that is shown: that of everything together, else the first."""
    found = list(scopes)
    return ALL if ALL in found else found[0]


def _collect(entries: Sequence[HistoryEntry], metric: str | None) -> dict[_Key, _Growing]:
    """The series of the metrics that are meant, by variant, then metric, as the newest run has them in order."""
    wanted = WATCHED if metric is None else (metric,)
    found: dict[_Key, _Growing] = {}
    for index, entry in enumerate(entries):
        for key, value in entry.values.items():
            variant, name, scope = key.split("/", 2)
            if name in wanted:
                series = found.setdefault((variant, name, scope), _Growing())
                series.entries.append(index)
                series.values.append(value)
    order = {key.split("/", 1)[0]: place for place, key in enumerate(reversed(list(entries[-1].values)))}
    return dict(
        sorted(found.items(), key=lambda item: (-order.get(item[0][0], -1), item[0][0], wanted.index(item[0][1])))
    )


def _is_testable(values: Sequence[float]) -> bool:
    """What never moved, or was seen a few times only, cannot be told to have shifted, so it takes no part of the level."""
    return len(values) >= 2 * FEWEST_RUNS and min(values) != max(values)


def _series(collected: Mapping[_Key, _Growing], variant: str | None, level: float) -> tuple[Series, ...]:
    return tuple(
        Series(
            variant=name,
            metric=metric,
            scope=scope,
            entries=tuple(one.entries),
            values=tuple(one.values),
            shifts=_shifts(metric, one, level),
        )
        for (name, metric, scope), one in collected.items()
        if variant in (None, name)
    )


def _shifts(metric: str, series: _Growing, level: float) -> tuple[LevelShift, ...]:
    found = find_shifts(series.values, level=level)
    edges = [0, *(shift.index for shift in found), len(series.values)]
    return tuple(
        LevelShift(
            entry=series.entries[shift.index],
            shift=shift,
            runs_before=shift.index - was,
            runs_after=then - shift.index,
            change=relative_change(shift.before, shift.after),
            worse=_is_worse(metric, shift),
        )
        for was, shift, then in zip(edges, found, edges[2:], strict=False)
    )


def _is_worse(metric: str, shift: Shift) -> bool | None:
    spec = SPECS.get(metric)
    if spec is None or shift.before == shift.after:
        return None
    return (shift.after < shift.before) is (spec.direction is Direction.HIGHER)


def _check_names(apart: Mapping[tuple[str, str], Sequence[HistoryEntry]], selection: Selection) -> None:
    keys = [key.split("/", 2) for runs in apart.values() for entry in runs for key in entry.values]
    asked = (
        ("--machine", selection.machine, {machine for _, machine in apart}),
        ("--variant", selection.variant, {variant for variant, _, _ in keys}),
        ("--metric", selection.metric, {metric for _, metric, _ in keys}),
    )
    for option, name, known in asked:
        if name is not None and name not in known:
            raise UsageError(f"{option}: the history holds no '{name}'; {nearest(name, known)}")
