"""A diff of baselines for a pull request. What files hold is escaped; what does not fit is left out, which is said."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from suite.records import Diff, ToleranceChange
from suite.reporting.diff.figures import Row
from suite.reporting.diff.story import Flipped, Story, tell
from suite.reporting.hostile import apart, cut, markdown, markdown_code, one_line
from suite.reporting.wording import ABSENT, counted

LIMIT = 60_000
"""Characters: GitHub refuses a comment of more than 65 536."""
_MOST_ROWS, _MOST_POINTS = 150, 50
_ANSWER, _TEXT = 200, 400
_HEADS = ("variant", "metric", "was", "now", "change (95 %)", "noise", "")
_NOTHING = "\N{ZERO WIDTH SPACE}"
_SHORT = "*Left out, since there is no room: {}. Everything: `quantdrift diff`, or its JSON.*"


@dataclass(frozen=True, slots=True)
class _Block:
    """A piece of the document that stands or is left out whole."""

    name: str
    text: str


def diff_markdown(diff: Diff, limit: int = LIMIT) -> str:
    """The diff as one Markdown document of at most `limit` characters (2 000 at least), ending in a line feed.

    Pieces that do not fit are left out, the later ones first, and named at the end.
    """
    story = tell(diff)
    room = max(limit, 2000) - 500  # for what was left out
    kept: list[str] = []
    missing: list[str] = []
    for block in _blocks(diff, story):
        if len(block.text) + 2 <= room:
            kept.append(block.text)
            room -= len(block.text) + 2
        else:
            missing.append(block.name)
    if missing:
        kept.append(_SHORT.format(cut(", ".join(dict.fromkeys(missing)), 300)))
    return "\n\n".join(kept) + "\n"


def _blocks(diff: Diff, story: Story) -> Iterator[_Block]:
    yield _Block("headline", f"### {_cut(story.headline)}")
    yield _Block("states", f"{markdown_code(cut(diff.base, _TEXT))} → {markdown_code(cut(diff.head, _TEXT))}")
    if story.sentences:
        yield _Block("summary", " ".join(_cut(sentence) for sentence in story.sentences[:_MOST_POINTS]))
    if story.asked:
        yield _Block("what to ask", _points("**Ask before approving**", story.asked))
    if story.loosened:
        yield _Block(
            "loosened tolerances", _tolerances("**Loosened: the same drift passes more easily now**", story.loosened)
        )
    yield from _tables("Quality", story.quality)
    yield from _tables("Speed and memory", story.speed)
    yield from _beneath(story)
    yield from _details(story)


def _beneath(story: Story) -> Iterator[_Block]:
    if story.another:
        yield _Block("what was not compared", _points("Not compared:", story.another))
    if story.causes:
        yield _Block("what changed with it", _points("Changed with it:", story.causes))
    if story.cases:
        yield _Block("cases", _points("Cases:", story.cases))
    if story.reasons:
        yield _Block("reasons", _points("Reason given:", story.reasons))
    yield _Block("tolerances", _cut(story.tolerances_said))


def _details(story: Story) -> Iterator[_Block]:
    if story.tolerances:
        changed = counted(len(story.tolerances), "setting")
        yield _Block(
            "settings that changed", _folded(f"{changed} changed, and none looser", _tolerances("", story.tolerances))
        )
    for flipped in story.flipped:
        title = f"{counted(len(flipped.flips), 'flipped answer')} of {one_line(flipped.variant)}"
        yield _Block(f"flipped answers of {flipped.variant}", _folded(title, _flips(flipped)))
    if story.minor:
        title = f"{counted(len(story.minor), 'more figure')} moved within the noise, or only inform"
        yield _Block("figures within the noise", _folded(title, _table(story.minor)))
    if story.unchanged:
        yield _Block("what is unchanged", _folded(f"{story.unchanged_figures} unchanged", _points("", story.unchanged)))


def _tables(title: str, rows: Sequence[Row]) -> Iterator[_Block]:
    if rows:
        yield _Block(f"table of {title.lower()}", f"**{title}**\n\n{_table(rows)}")


def _table(rows: Sequence[Row]) -> str:
    lines = [_line(_HEADS), _line("---" if head in ("variant", "metric", "noise", "") else "---:" for head in _HEADS)]
    lines += [_line(_cells(row)) for row in rows[:_MOST_ROWS]]
    if len(rows) > _MOST_ROWS:
        lines += ["", f"{len(rows) - _MOST_ROWS} more are in the JSON."]
    return "\n".join(lines)


def _cells(row: Row) -> list[str]:
    interval = f" ({row.interval})" if row.interval != ABSENT else ""
    emphasis = "**" if row.verdict.startswith(("worse", "gone", "better")) else ""
    tolerance = f", tolerance {row.tolerance}" if row.tolerance != ABSENT else ""
    why = f": {_cut(row.why)}" if row.why else ""
    return [
        markdown_code(cut(row.variant, _ANSWER)),
        markdown(row.metric),
        markdown(row.was),
        markdown(row.now),
        markdown(f"{row.change}{interval}"),
        row.noise,
        f"{emphasis}{markdown(row.verdict)}{emphasis}{markdown(tolerance)}{why}",
    ]


def _flips(flipped: Flipped) -> str:
    lines = [_line(["case", "was", "now", ""]), _line("---" for _ in range(4))]
    for flip in flipped.flips[:_MOST_POINTS]:
        became = "now right" if flip.is_correct else "now wrong"
        was, now = apart(flip.was, flip.now, _ANSWER)
        lines.append(_line([markdown_code(cut(flip.case, _ANSWER)), _answer(was), _answer(now), became]))
    if len(flipped.flips) > _MOST_POINTS:
        lines += ["", f"{len(flipped.flips) - _MOST_POINTS} more are in the JSON."]
    return "\n".join(lines)


def _answer(text: str | None) -> str:
    return "no answer" if text is None else markdown_code(cut(one_line(text), _ANSWER))


def _points(title: str, texts: Sequence[str]) -> str:
    lines = [f"- {_cut(text)}" for text in texts[:_MOST_POINTS]]
    if len(texts) > _MOST_POINTS:
        lines.append(f"- and {len(texts) - _MOST_POINTS} more")
    return "\n".join([*([title, ""] if title else []), *lines])


def _tolerances(title: str, changes: Sequence[ToleranceChange]) -> str:
    lines = [_line(["setting", "was", "now"]), _line("---" for _ in range(3))]
    lines += [
        _line([markdown_code(cut(c.key, _ANSWER)), markdown(c.old), markdown(c.new)]) for c in changes[:_MOST_POINTS]
    ]
    if len(changes) > _MOST_POINTS:
        lines += ["", f"{len(changes) - _MOST_POINTS} more are in the JSON."]
    return "\n".join([*([title, ""] if title else []), *lines])


def _folded(title: str, text: str) -> str:
    """Inside of HTML no Markdown is read, escapes included."""
    return f"<details><summary>{_html(title)}</summary>\n\n{text}\n\n</details>"


def _html(text: str) -> str:
    """`text` as one line inside an HTML element, without mentions and references."""
    safe = html.escape(one_line(text), quote=False)
    return safe.replace("@", f"@{_NOTHING}").replace("#", f"#{_NOTHING}")


def _cut(text: str) -> str:
    return markdown(cut(one_line(text), _TEXT))


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
