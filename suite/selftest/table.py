"""The table of operating characteristics: what was asked, what came out, how sure that is, and whether it holds."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from suite.stats.binomial import share_interval

WIDTH = 100
Outcome = Literal["holds", "FAILS", "open", ""]
"""``open``: not as asked, but too few trials to say that it is not. Empty: shown beside, nothing was promised."""
_COLUMNS = (46, 14, 25, 6, 5)
_HEADS = ("check", "asked", "result (95 % interval)", "trials", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    check: str
    asked: str
    result: str
    trials: int
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Some rows under one heading."""

    title: str
    rows: tuple[Row, ...]


def share_text(count: int, trials: int) -> str:
    """``12: 0.4 % (0.2–0.7)``: a count, its share and the Clopper-Pearson interval of that, in per cent."""
    if not trials:
        return "no trials"
    low, high = share_interval(count, trials)
    return f"{count}: {_percent(count / trials)} % ({_percent(low)}–{_percent(high)})"


def rate_row(check: str, count: int, trials: int, *, least: float = 0.0, most: float = 1.0) -> Row:
    """A row about how often something happens.

    It holds when the observed share is within its limits, and fails when its interval has no part within them; what may
    happen never (`most` is 0) fails when it happens once.
    """
    asked = f"at least {_percent(least)} %" if least > 0 else "never" if most == 0 else f"at most {_percent(most)} %"
    if least > 0 and most < 1:
        asked = f"{_percent(least)} to {_percent(most)} %"
    return Row(
        check=check,
        asked=asked,
        result=share_text(count, trials),
        trials=trials,
        outcome=_outcome(count, trials, least, most),
    )


def _outcome(count: int, trials: int, least: float, most: float) -> Outcome:
    if not trials:
        return "open"
    if least <= count / trials <= most:
        return "holds"
    low, high = share_interval(count, trials)
    return "open" if low <= most and high >= least and most > 0 else "FAILS"


def told_row(check: str, result: str, trials: int) -> Row:
    """What is shown beside: nothing was promised."""
    return Row(check=check, asked="", result=result, trials=trials, outcome="")


def failed(sections: Iterable[Section]) -> list[Row]:
    """The rows that do not hold."""
    return [row for section in sections for row in section.rows if row.outcome == "FAILS"]


def render_table(sections: Sequence[Section]) -> list[str]:
    """Lines of plain text, at most `WIDTH` columns."""
    lines = [_line(_HEADS), "-" * WIDTH]
    for section in sections:
        lines += ["", section.title]
        for row in section.rows:
            lines += _wrapped((f"  {row.check}", row.asked, row.result, str(row.trials or ""), row.outcome))
    return [*lines, "-" * WIDTH, _ending([row.outcome for section in sections for row in section.rows if row.outcome])]


def _ending(outcomes: Sequence[Outcome]) -> str:
    bad, unsure = outcomes.count("FAILS"), outcomes.count("open")
    told = (
        f"{bad} of {len(outcomes)} do not hold"
        if bad
        else f"{len(outcomes) - unsure} of {len(outcomes)} hold, none fails"
    )
    return f"{told}; {unsure} with too few trials to tell" if unsure else told


def _wrapped(cells: Sequence[str]) -> list[str]:
    """One or more lines: cells that are too long go on below."""
    columns = [
        textwrap.wrap(cell, width, subsequent_indent="    " if index == 0 else "") or [""]
        for index, (cell, width) in enumerate(zip(cells, _COLUMNS, strict=True))
    ]
    if cells[0].startswith("  "):
        columns[0] = [f"  {part}" for part in textwrap.wrap(cells[0].strip(), _COLUMNS[0] - 2)]
    height = max(map(len, columns))
    return [_line([column[at] if at < len(column) else "" for column in columns]) for at in range(height)]


def _line(cells: Sequence[str]) -> str:
    return " ".join(cell.ljust(width) for cell, width in zip(cells, _COLUMNS, strict=True)).rstrip()


def _percent(share: float) -> str:
    text = f"{100 * share:.2f}" if share < 0.01 else f"{100 * share:.1f}"
    return text.rstrip("0").rstrip(".")
