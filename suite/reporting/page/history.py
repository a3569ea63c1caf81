"""The trends of a history as one file that fetches nothing, in which nothing that a file said can run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from suite.records import VERDICTS_WORST_FIRST, HistoryEntry
from suite.reporting import wording
from suite.reporting.history_series import WATCHED, Series, Trend, primary_scope
from suite.reporting.history_story import (
    ACCEPT,
    ADVICE,
    ToldTrend,
    level_word,
    series_name,
    share,
    shown_series,
    tell_trend,
)
from suite.reporting.hostile import one_line
from suite.reporting.page.render import content_policy, environment, read_template
from suite.reporting.page.sheet import Cell, Picture, Sheet, heads, named, number, said
from suite.reporting.page.trend import draw_lines

_COLUMNS = 3
"""Metrics beside each other in one picture: more have no room on a telephone."""
_MOST_RUNS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One model on one machine."""

    ident: str
    model: str
    machine: str
    told: ToldTrend
    pictures: tuple[Picture, ...]
    series: Sheet
    runs: Sheet


def render_history(trends: Sequence[Trend], faults: Sequence[str] = (), *, scopes: bool = False) -> str:
    """The page of some trends, ending in a line feed; the same trends give the same bytes.

    `faults` are the sentences about lines that cannot be read; `scopes` shows every scope of each metric, as in a terminal.
    """
    style, script = read_template("style.css"), read_template("page.js")
    return (
        environment()
        .get_template("history.html")
        .render(
            headline=_headline(trends),
            summary=_summary(trends),
            parts=[_part(trend, place, scopes=scopes) for place, trend in enumerate(trends)],
            faults=faults,
            advice=ADVICE,
            accept=ACCEPT,
            style=style,
            script=script,
            policy=content_policy(style, script),
        )
        + "\n"
    )


def _headline(trends: Sequence[Trend]) -> str:
    """What shifted in all of it; or that nothing did, or that nothing could have been seen."""
    shifts = [(place, one) for place, t in enumerate(trends) for series in t.series for one in series.shifts]
    if shifts:
        worse = sum(one.worse is True for _, one in shifts)
        runs = len({(place, one.entry) for place, one in shifts})
        ways = f", {worse} for the worse" if worse else ""
        return f"{wording.counted(len(shifts), 'shift')} of level{ways}, at {wording.counted(runs, 'run')}"
    if trends and all(len(trend.entries) < trend.needed for trend in trends):
        return "Too few runs to see a level shift"
    return "No level shifted"


def _summary(trends: Sequence[Trend]) -> str:
    machines = {trend.machine for trend in trends}
    runs = sum(len(trend.entries) for trend in trends)
    return f"{wording.counted(runs, 'run')} on {wording.counted(len(machines), 'machine')}"


def _part(trend: Trend, place: int, *, scopes: bool) -> _Part:
    rows = shown_series(trend, scopes=scopes)
    return _Part(
        ident=f"t{place}",
        model=one_line(trend.model),
        machine=one_line(trend.machine),
        told=tell_trend(trend),
        pictures=tuple(_draw(trend, rows, f"t{place}")),
        series=_series_sheet(trend, rows),
        runs=_runs_sheet(trend),
    )


# ------------------------------------------------------------------------------------------------------- pictures


def _draw(trend: Trend, rows: Sequence[Series], ident: str) -> list[Picture]:
    """A few metrics a picture, one row a variant; what was seen only once has no line."""
    lines = [one for one in rows if len(one.values) > 1]
    labels = {(one.metric, one.scope): _label(one, lines) for one in lines}
    names = list(dict.fromkeys(one.variant for one in lines))
    order = [*WATCHED, *dict.fromkeys(metric for metric, _ in labels)]
    wanted = sorted(labels, key=lambda pair: order.index(pair[0]))
    found = []
    for start in range(0, len(wanted), _COLUMNS):
        few = {pair: labels[pair] for pair in wanted[start : start + _COLUMNS]}
        picture = draw_lines((f"{ident}-{start}", ", ".join(few.values())), trend, names, few)
        found += [picture] if picture is not None else []
    return found


def _label(series: Series, lines: Sequence[Series]) -> str:
    """The metric; with its scope where it is not the one that is shown anyway."""
    scopes = list(dict.fromkeys(one.scope for one in lines if one.metric == series.metric))
    shown = "all" if series.scope == primary_scope(scopes) else series.scope
    return series_name(series.metric, shown)


# ------------------------------------------------------------------------------------------------------- tables


def _series_sheet(trend: Trend, rows: Sequence[Series]) -> Sheet:
    return Sheet(
        caption="From the first run to the last",
        heads=heads("variant", "metric", "first", "last", "change", "level", text=["metric", "level"]),
        rows=tuple(
            (
                named(one.variant),
                said(series_name(one.metric, one.scope)),
                number(one.values[0], wording.value(one.metric, one.values[0])),
                number(one.values[-1], wording.value(one.metric, one.values[-1])),
                number(one.change, share(one.change)),
                said(level_word(one, trend.needed)),
            )
            for one in rows
        ),
        sortable=True,
    )


def _runs_sheet(trend: Trend) -> Sheet:
    """The latest first."""
    pairs = list(zip(trend.entries, trend.changed, strict=True))[::-1]
    left = len(pairs) - _MOST_RUNS
    return Sheet(
        caption="Runs, the latest first" + (f"; {left} older ones are in the file" if left > 0 else ""),
        heads=heads(
            "run", "created", "commit", "baselines", "changed", "verdicts",
            text=["created", "commit", "baselines", "changed", "verdicts"],
        ),
        rows=tuple(_run(entry, changed) for entry, changed in pairs[:_MOST_RUNS]),
    )  # fmt: skip


def _run(entry: HistoryEntry, changed: Sequence[str]) -> tuple[Cell, ...]:
    return (
        named(entry.run),
        said(entry.created[:10]),
        said(entry.commit or ""),
        said("accepted" if entry.accepted else ""),
        said("; ".join([*([f"a part of the cases: {entry.cases}"] if entry.cases else []), *changed])),
        said(_verdicts(entry)),
    )


def _verdicts(entry: HistoryEntry) -> str:
    """``2 PASS, 1 REGRESSED``, the worst first; what is no verdict comes last."""
    counts = Counter(entry.verdicts.values())
    known = [str(verdict) for verdict in VERDICTS_WORST_FIRST if verdict in counts]
    return ", ".join(f"{counts[name]} {name}" for name in (*known, *sorted(set(counts) - set(known))))
