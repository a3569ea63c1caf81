"""A diff of baselines for a terminal: the verdict, what to ask, tables of quality and speed; the rest in a line each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from suite.records import Diff, Flip
from suite.reporting.diff.figures import Row
from suite.reporting.diff.story import Story, tell, tolerance_text
from suite.reporting.hostile import became, one_line, wrapped
from suite.reporting.table import Column, fit, padded
from suite.reporting.terminal import painted
from suite.reporting.wording import ABSENT, counted, listed

_MOST_ROWS, _MOST_LINES, _MOST_FLIPS = 30, 12, 8
_ANSWER = 24
_NARROWEST = 40


def diff_lines(diff: Diff, width: int, color: bool, *, everything: bool = False) -> Iterator[str]:
    """Yield the diff line by line, without line feeds.

    Rows of a table never exceed `width` columns: columns are dropped, the least important first. Words carry every state;
    `color` only repeats it. `everything` expands what is folded.
    """
    story, width = tell(diff), max(width, _NARROWEST)
    yield from _text(story.headline, width, first="", rest="  ")
    yield from _text(f"{one_line(diff.base)} → {one_line(diff.head)}", width, first="", rest="  ")
    for sentence in story.sentences:
        yield from _text(sentence, width)
    yield from _asked(story, width)
    yield from _table("Quality", story.quality, width, color, everything)
    yield from _table("Speed and memory", story.speed, width, color, everything)
    if everything:
        yield from _table("Also moved", story.minor, width, color, everything)
    yield from _beneath(story, width, everything)
    yield from _folded(story, width, everything)


def _text(text: str, width: int, *, first: str = " ", rest: str = "   ") -> list[str]:
    return wrapped(one_line(text), width, first=first, rest=rest)


def _asked(story: Story, width: int) -> Iterator[str]:
    if story.asked:
        yield ""
        yield " Ask before approving"
        yield from _points(story.asked, width, len(story.asked))
    if story.loosened:
        yield ""
        yield from _text("LOOSENED: the same drift passes more easily now", width)
        yield from _points([tolerance_text(change) for change in story.loosened], width, len(story.loosened))


def _points(texts: Sequence[str], width: int, most: int) -> Iterator[str]:
    for text in texts[:most]:
        yield from _text(text, width, first="   ", rest="     ")
    if len(texts) > most:
        yield f"   and {len(texts) - most} more; all of them with --all"


def _table(title: str, rows: Sequence[Row], width: int, color: bool, everything: bool) -> Iterator[str]:
    if not rows:
        return
    yield ""
    yield f" {title}"
    shown = rows if everything else rows[:_MOST_ROWS]
    fitted = fit(_columns(shown), width - 1)
    for number, cells in enumerate(padded(fitted)):
        painting = [column.verdicts[number - 1] if number and column.verdicts else None for column in fitted.kept]
        told = [
            painted(cell, verdict, color) if verdict else cell for cell, verdict in zip(cells, painting, strict=True)
        ]
        yield (" " + (" " * fitted.gap).join(told)).rstrip()
    if fitted.dropped:
        yield from _text(f"(no room for: {', '.join(fitted.dropped)})", width)
    if len(rows) > len(shown):
        yield f" and {len(rows) - len(shown)} more; all of them with --all"
    yield from _doubts(shown, width)


def _columns(rows: Sequence[Row]) -> list[Column]:
    columns = [
        Column(heading="variant", cells=[one_line(row.variant) for row in rows], keep=100, left=True),
        Column(heading="metric", cells=[row.metric for row in rows], keep=99, left=True),
        Column(heading="was", cells=[row.was for row in rows], keep=60),
        Column(heading="now", cells=[row.now for row in rows], keep=70),
        Column(heading="change", cells=[row.change for row in rows], keep=90),
        Column(heading="95 %", cells=[row.interval for row in rows], keep=50),
        Column(heading="noise", cells=[row.noise for row in rows], keep=80, left=True),
        Column(heading="tolerance", cells=[row.tolerance for row in rows], keep=40),
    ]
    verdicts = Column(
        heading="verdict", cells=[row.verdict for row in rows], keep=98, left=True, verdicts=[r.colour for r in rows]
    )
    return [*(column for column in columns if any(cell != ABSENT for cell in column.cells)), verdicts]


def _doubts(rows: Iterable[Row], width: int) -> Iterator[str]:
    """Why some of them cannot be told, once for each reason."""
    found: dict[str, list[str]] = {}
    for row in rows:
        if row.why:
            found.setdefault(row.why, []).append(f"{one_line(row.variant)} {row.metric}")
    for why, figures in found.items():
        yield from _text(f"cannot tell, since {why}: {listed(figures, 4)}", width)


def _beneath(story: Story, width: int, everything: bool) -> Iterator[str]:
    """What else changed, why it was accepted, and the flipped answers."""
    most = 10**6 if everything else _MOST_LINES
    blocks = (
        ("Not compared", story.another),
        ("Changed with it", story.causes),
        ("Cases", story.cases),
        ("Reason given", story.reasons),
    )
    for title, texts in blocks:
        if texts:
            yield ""
            yield f" {title}"
            yield from _points(texts, width, most)
    for flipped in story.flipped:
        yield ""
        yield from _flips(one_line(flipped.variant), flipped.flips, width, 10**6 if everything else _MOST_FLIPS)


def _flips(variant: str, flips: Sequence[Flip], width: int, most: int) -> Iterator[str]:
    lost = sum(flip.was_correct for flip in flips)
    yield from _text(
        f"{counted(len(flips), 'answer')} of {variant} flipped: {lost} to wrong, {len(flips) - lost} to right", width
    )
    room = max((width - 30) // 2, _ANSWER) if width > 2 * _ANSWER + 30 else _ANSWER
    for flip in flips[:most]:
        grade = "now right" if flip.is_correct else "now wrong"
        line = f"{one_line(flip.case)} {grade}: {became(flip.was, flip.now, room)}"
        yield from wrapped(line, width, first="   ", rest="     ")
    if len(flips) > most:
        yield f"   and {len(flips) - most} more; all of them with --all"


def _folded(story: Story, width: int, everything: bool) -> Iterator[str]:
    yield ""
    yield from _text(story.tolerances_said, width)
    yield from _points(
        [tolerance_text(change) for change in story.tolerances], width, 10**6 if everything else _MOST_LINES
    )
    if story.minor and not everything:
        moved = [f"{one_line(row.variant)} {row.metric} {row.change}" for row in story.minor]
        said = "moved within the noise, or only inform"
        yield from _text(f"{counted(len(story.minor), 'more figure')} {said}: {listed(moved, 4)}; see --all", width)
    if story.unchanged:
        yield from _text(f"Unchanged: {counted(story.unchanged_figures, 'figure')}", width)
        for text in story.unchanged:
            yield from _text(text, width, first="   ", rest="     ")
