"""What each variant costs against the reference of the same run, for terminal and Markdown. Decided elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from suite.gate.loss_wording import suspicions
from suite.records import ALL, Loss
from suite.reporting import wording
from suite.reporting.hostile import markdown, markdown_code, one_line, wrapped
from suite.reporting.table import Column, fit, padded

_WORST_FIRST = ("over budget", "cannot tell", "not measured", "within budget", "no budget")
_TOLD = frozenset({"over budget", "cannot tell", "not measured"})
_MOST_TOLD = 4
_NOTE = (
    "Points of 100 and ratios, variant to reference. Brackets hold at least 95 %: of prompts like these, cases of one "
    "template counting once; of launches like these."
)


@dataclass(frozen=True, slots=True)
class _Row:
    """The losses of one variant."""

    variant: str
    losses: tuple[Loss, ...]
    scenario: str | None
    """That speeds are told of; None for the first that there is."""

    def find(self, metric: str, scope: str | None = ALL) -> Loss | None:
        """The loss in a scope, or the first one in any when `scope` is None."""
        return next((x for x in self.losses if x.metric == metric and scope in (None, x.scope)), None)


def loss_lines(
    losses: Sequence[Loss], width: int, *, reference: str | None = None, scenario: str | None = None
) -> list[str]:
    """A short section for a terminal: a table with one line a variant, none of which wraps, and under it what is odd, over
    a budget, or cannot be told; the speed-up is that of `scenario`. Nothing when there are no losses, as without a reference.
    """
    rows = _rows(losses, scenario)
    if not rows:
        return []
    fitted = fit(_columns(rows), width - 1)
    table = [(" " + (" " * fitted.gap).join(cells)).rstrip() for cells in padded(fitted)]
    return [
        *wrapped(
            f"against {_heading(reference)} (points of 100, ratios; brackets: 95 %)", width, first=" ", rest="   "
        ),
        *table,
        *(line for text in _remarks(rows) for line in wrapped(one_line(text), width, first="   ", rest="     ")),
    ]


def loss_markdown(losses: Sequence[Loss], *, reference: str | None = None, scenario: str | None = None) -> str:
    """The same as a section of a Markdown document, with the domains; empty when there are no losses."""
    rows = _rows(losses, scenario)
    if not rows:
        return ""
    columns = _columns(rows)
    table = [[column.heading for column in columns], ["---" if column.left else "---:" for column in columns]]
    table += [[_cell(column, number) for column in columns] for number in range(len(rows))]
    text = [f"## Against {markdown(_heading(reference))}", "", *map(_line, table), "", _NOTE, ""]
    told = [f"- {markdown(remark)}" for remark in _remarks(rows, most=None)]
    return "\n".join([*text, *told, *([""] if told else []), *_by_domain(rows)])


def _heading(reference: str | None) -> str:
    return f"the reference {one_line(reference)} in this run" if reference else "the reference of the stored trace"


def _rows(losses: Sequence[Loss], scenario: str | None) -> list[_Row]:
    names = dict.fromkeys(loss.variant for loss in losses)
    return [_Row(name, tuple(loss for loss in losses if loss.variant == name), scenario) for name in names]


def _columns(rows: Sequence[_Row]) -> list[Column]:
    def column(heading: str, keep: int, read: Callable[[_Row], str], *, left: bool = False) -> Column:
        return Column(heading=heading, cells=[read(row) for row in rows], keep=keep, left=left)

    return [
        column("variant", 100, lambda row: one_line(row.variant), left=True),
        column("lost", 80, lambda row: _count(row, "lost")),
        column("gained", 79, lambda row: _count(row, "gained")),
        column("net loss", 90, lambda row: _difference(row.find("score"))),
        column("length", 60, lambda row: _ratio(row.find("output_tokens"))),
        column("loops", 50, lambda row: _rise(row.find("looping"))),
        column("speed-up", 70, lambda row: _ratio(row.find("speedup", row.scenario), interval=True)),
        column("memory", 40, lambda row: _ratio(row.find("peak_rss_bytes"))),
        column("answer", 95, _answer, left=True),
    ]


def _count(row: _Row, field: str) -> str:
    loss = row.find("score")
    return wording.ABSENT if loss is None or loss.value is None else str(getattr(loss, field))


def _difference(loss: Loss | None) -> str:
    """``3.9 [-1.2, 9.9]``: positive is worse."""
    if loss is None or loss.value is None:
        return wording.ABSENT
    bounds = f" [{_points(loss.interval[0])}, {_points(loss.interval[1])}]" if loss.interval else ""
    return f"{_points(loss.value)}{bounds}"


def _points(share: float) -> str:
    return f"{round(100 * share, 1) + 0.0:.1f}".replace("-", "−")


def _ratio(loss: Loss | None, *, interval: bool = False) -> str:
    if loss is None or loss.value is None:
        return wording.ABSENT
    bounds = f" [{loss.interval[0]:.2f}, {loss.interval[1]:.2f}]" if interval and loss.interval else ""
    return f"{loss.value:.2f}×{bounds}"


def _rise(loss: Loss | None) -> str:
    """How many more answers end in a loop: ``+2``, ``0``, ``−1``."""
    if loss is None or loss.value is None:
        return wording.ABSENT
    rise = loss.lost - loss.gained
    return f"{rise:+d}".replace("-", "−") if rise else "0"


def _answer(row: _Row) -> str:
    """The worst answer of the variant's budgets; ``no budget`` when it has none."""
    said = {loss.answer for loss in row.losses if loss.budget or loss.answer == "not measured"}
    return next((word for word in _WORST_FIRST if word in said), "no budget")


def _remarks(rows: Sequence[_Row], most: int | None = _MOST_TOLD) -> list[str]:
    """What is odd, then the budgets that do not hold for sure, over before cannot tell."""
    odd = suspicions([loss for row in rows for loss in row.losses])
    open_ones = [x for row in rows for x in row.losses if x.answer in _TOLD and (x.budget or _speaks_for_all(x))]
    open_ones.sort(key=lambda loss: _WORST_FIRST.index(loss.answer))
    told = [f"{loss.answer.upper()} {loss.sentence}" for loss in open_ones[:most]]
    left = len(open_ones) - len(told)
    return [*told, *([f"and {left} more, in report.md"] if left else []), *odd, *_unseen(rows)]


def _unseen(rows: Sequence[_Row]) -> list[str]:
    """What could have been seen, where no budget's sentence says so; the worst of the variants speaks for all."""
    scores = [loss for row in rows if (loss := row.find("score")) and loss.value is not None and loss.budget is None]
    if not scores:
        return []
    seen = [loss.mde for loss in scores if loss.mde is not None]
    fewest = min(loss.n for loss in scores)
    if len(seen) < len(scores):
        return [f"with {wording.counted(fewest, 'independent case')} no loss of score, however large, would be seen"]
    cases = wording.counted(fewest, "independent case")
    return [f"with {cases} a loss of score below {_points(max(seen))} points would not be seen"]


def _speaks_for_all(loss: Loss) -> bool:
    """Without a budget, what was not measured is said once a variant."""
    return loss.metric == "score" and loss.scope == ALL


def _by_domain(rows: Sequence[_Row]) -> list[str]:
    scores = [x for row in rows for x in row.losses if x.metric == "score" and x.scope != ALL and x.value is not None]
    if not scores:
        return []
    heads = ["variant", "domain", "lost", "gained", "net loss", "could have seen", "answer"]
    table = [heads, ["---", "---", "---:", "---:", "---:", "---:", "---"]]
    for loss in scores:
        seen = wording.ABSENT if loss.mde is None else _points(loss.mde)
        counts = [str(loss.lost), str(loss.gained), _difference(loss), seen]
        table.append([markdown_code(loss.variant), markdown(loss.scope), *counts, loss.answer])
    return [*map(_line, table), ""]


def _cell(column: Column, number: int) -> str:
    text = column.cells[number]
    return markdown_code(text) if column.heading == "variant" else text


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
