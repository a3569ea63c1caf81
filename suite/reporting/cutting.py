"""Cut a Markdown document of ours to a limit, where GitHub would drop all of it, and say what was left out.

Only documents are cut whose every line is one of ours: hostile text in them is escaped, so that none of it looks like a
heading, a fence or a tag.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from suite.reporting.wording import counted, listed

Measure = Callable[[str], int]
"""The size of a text in what the limit counts: characters (`len`) or bytes (`utf8_bytes`)."""

LEAST = 4_000
"""A limit below this leaves no room to say what is missing."""
_ROOM = 2_500
"""Kept free for closing what is open, and for the notice."""
_NAMED, _NAME = 6, 80
_FOLDED = 2
"""A ``<details>`` is named like a section of this level."""

_HEADING = re.compile(r"(?P<level>#{1,6}) (?P<title>.*)")
_SUMMARY = re.compile(r"<details[^>]*><summary>(?P<title>.*)</summary>")
_DELIMITER = re.compile(r"\| :?-+:? (?:\| :?-+:? )*\|")


def utf8_bytes(text: str) -> int:
    """Bytes of `text` in UTF-8."""
    return len(text.encode("utf-8"))


def cut_markdown(text: str, limit: int, *, measure: Measure, whole: str) -> str:
    """`text`, if it measures at most `limit`; else its beginning, whole lines of it, and a notice.

    What is open at the cut is closed: a ``<details>``, a fence. A table keeps its heading with the line under it, or neither.
    The notice says how large the whole is, what was left out, and `whole`: where all of it is (a sentence of ours, in
    Markdown). Raises ValueError for a limit below `LEAST`.
    """
    if limit < LEAST:
        raise ValueError(f"limit {limit}: at least {LEAST} are needed to say what was left out")
    size = measure(text)
    if size <= limit:
        return text
    lines = text.split("\n")
    end = _whole_table(lines, _fitting(lines, limit - _ROOM, measure))
    kept, open_ones = lines[:end], _Open()
    for line in kept:
        open_ones.take(line)
    notice = _notice(lines, end, size, limit, whole)
    return "\n".join([*kept, *open_ones.closing(), *([""] if kept and kept[-1] else []), notice, ""])


def _fitting(lines: Sequence[str], room: int, measure: Measure) -> int:
    """How many lines fit into `room`, each with its line feed."""
    for number, line in enumerate(lines):
        room -= measure(line) + 1
        if room < 0:
            return number
    return len(lines)


def _whole_table(lines: Sequence[str], end: int) -> int:
    """`end`, moved before the heading of a table of which no row is kept, and before a title with nothing under it."""
    if end < len(lines) and _DELIMITER.fullmatch(lines[end]):
        end -= 1
    elif end > 1 and _DELIMITER.fullmatch(lines[end - 1]) and end < len(lines) and lines[end].startswith("|"):
        end -= 2
    # The title of the document itself stands, whatever follows.
    first = next((number for number, line in enumerate(lines) if _HEADING.match(line)), 0)
    while end and (not lines[end - 1] or _title(lines[end - 1]) is not None) and end != first + 1:
        end -= 1
    return end


@dataclass(slots=True)
class _Open:
    """What would swallow the notice if it were not closed first."""

    details: int = 0
    fence: str = field(default="")

    def take(self, line: str) -> None:
        if self.fence:
            self.fence = "" if line.strip() == self.fence else self.fence
        elif line.startswith("```"):
            self.fence = line[: len(line) - len(line.lstrip("`"))]
        elif line.startswith("<details"):
            self.details += 1
        elif line.startswith("</details>"):
            self.details -= 1

    def closing(self) -> list[str]:
        return [*([self.fence] if self.fence else []), *(["", "</details>"] * self.details)]


def _notice(lines: Sequence[str], end: int, size: int, limit: int, whole: str) -> str:
    """What was left out: the section that the cut goes through, then those after it."""
    through = next((title for line in reversed(lines[:end]) if (title := _title(line)) is not None), None)
    rest = _section_rest(lines, end)
    missing = [f"{counted(rest, 'line')} of “{_short(through)}”"] if rest and through is not None else []
    missing += [f"“{_short(title)}”" for title in _titles(lines[end:])]
    said = f" Left out: {listed(missing, _NAMED)}." if missing else ""
    return f"**Cut here**: the whole has {size:,} of at most {limit:,}.{said} {whole}"


def _section_rest(lines: Sequence[str], end: int) -> int:
    """Lines after the cut that belong to what was begun before it."""
    rest = 0
    for line in lines[end:]:
        if _title(line) is not None:
            break
        rest += bool(line) and not line.startswith("</details>")
    return rest


def _titles(lines: Sequence[str]) -> Iterator[str]:
    """Titles of sections that are left out whole; those within them are not named, and a title that returns is named once."""
    told: dict[str, None] = {}
    inside = 7
    for line in lines:
        title, heading = _title(line), _HEADING.match(line)
        level = len(heading["level"]) if heading else _FOLDED
        if title is not None and level <= inside:
            told[title] = None
            inside = level
    yield from told


def _title(line: str) -> str | None:
    """The title that a line gives to what follows it, as Markdown; None where it gives none."""
    found = _HEADING.match(line) or _SUMMARY.match(line)
    return found["title"] if found else None


def _short(title: str | None) -> str:
    """A title that may stand within a sentence; a long one is not quoted, since a cut could end within an escape."""
    return title if title is not None and len(title) <= _NAME else "a section with a long title"
