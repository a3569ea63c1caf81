"""Make text that a model (or a library) wrote safe to show.

Model output is hostile: escape sequences that repaint a terminal, bidirectional overrides that reorder a line, pipes
and HTML that break a Markdown table.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movement
    r"|[\x1b\x9d](?:\]|(?<=\x9d))[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # OSC: window title, hyperlinks, clipboard
    r"|\x1b[PX^_][^\x1b\x9c]*(?:\x1b\\|\x9c)?"  # DCS, SOS, PM, APC strings
    r"|\x9b[0-?]*[ -/]*[@-~]"  # CSI as one 8-bit character
    r"|\x1b[ -/]*[0-~]?"  # every other escape
)
_DROPPED = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_MARKDOWN = re.compile(r"([\\`*_\[\]#|~]|^[-+])")
_BREAK = "\N{ZERO WIDTH SPACE}"
_ACTIVE = re.compile(
    r"@"  # a mention, which notifies whoever is meant; an address of mail
    r"|(?:#|\bgh-)(?=\d)"  # an issue, which then shows where it was named
    r"|:(?=//)|www(?=\.)|(?:mailto|xmpp)(?=:)"  # a link
    r"|:(?=(?:[a-z_][\w+-]*|[+-]1):)",  # a picture
    re.IGNORECASE,
)
"""What GitHub looks for in text, escaped or not; behind each, something that nobody sees takes it apart."""
_COMMIT = re.compile(r"\b(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,40}\b")
"""What GitHub makes a link, if a commit is called so. Code is left alone, and can still be copied."""
_FENCE = re.compile(r"`+")
_LONGEST_FENCE = 16
"""GitHub takes no more than 80 back-ticks for the start of code (MAXBACKTICKS in cmark-gfm): beyond, it would be text again."""
_INVISIBLE = re.compile(
    r"[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)
"""Shown as nothing, or as a space, although they are letters and marks (Default_Ignorable_Code_Point, Braille blank)."""
_MOST_MARKS = 4
"""Marks on one letter: no writing needs more, and a pile of them covers the lines around it."""


def plain(text: str) -> str:
    """`text` without escape sequences, control, format and surrogate characters; line feeds stay, tabs are spaces."""
    kept = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n").replace("\t", "    ")
    return "".join(c for c in kept if c == "\n" or unicodedata.category(c) not in _DROPPED)


def one_line(text: str, width: int | None = None) -> str:
    """`text` as one safe line: white space collapsed, cut to `width` columns with an ellipsis."""
    line = " ".join(plain(text).split())
    return line if width is None else cut(line, width)


def quoted(answer: str | None, width: int) -> str:
    """A model's answer in quotation marks, or a word for its absence, in at most `width` columns."""
    if answer is None:
        return "no answer"
    line = one_line(answer)
    return f'"{cut(line, max(width - 2, 1))}"' if line else "an empty answer"


def became(was: str | None, now: str | None, width: int) -> str:
    """Two answers of a model to one question, each quoted in at most `width` columns: ``"18" → "24"``."""
    if was == now:
        return f"{quoted(was, width)} both times, graded otherwise"
    then, here = apart(was, now, width)
    return f"{quoted(then, width)} → {quoted(here, width)}"


def apart(was: str | None, now: str | None, width: int) -> tuple[str | None, str | None]:
    """Both answers, from shortly before they part where `width` columns would show the same of both."""
    if was is None or now is None:
        return was, now
    one, other = one_line(was), one_line(now)
    if one == other or cut(one, width - 2) != cut(other, width - 2):
        return was, now
    parting = next(
        (n for n, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), min(len(one), len(other))
    )
    start = max(parting - width // 3, 0)
    return f"…{one[start:]}", f"…{other[start:]}"


def columns(text: str) -> int:
    """Terminal columns that `text` takes: two for East Asian wide characters, none for combining marks."""
    return sum(_character_columns(character) for character in text)


def _character_columns(character: str) -> int:
    if character.isascii():
        return 1
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, width: int) -> str:
    """`text` in at most `width` columns; what does not fit is replaced by an ellipsis."""
    if columns(text) <= width:
        return text
    kept: list[str] = []
    left = width - 1
    for character in text:
        left -= _character_columns(character)
        if left < 0:
            break
        kept.append(character)
    return "".join(kept).rstrip() + "…"


def wrapped(text: str, width: int, *, first: str = "", rest: str = "") -> list[str]:
    """Break `text` at spaces into lines of at most `width` columns, prefixed by `first` and then by `rest`.

    A word longer than a line keeps its line to itself, uncut, because it is likely a command or a path to copy.
    """
    return filled(text.split(), width, first=first, rest=rest)


def filled(words: Iterable[str], width: int, *, first: str = "", rest: str = "") -> list[str]:
    """Lines of `words`, none of which is broken, joined by spaces; see `wrapped`."""
    lines: list[str] = []
    line, empty = first, True
    for word in words:
        if not empty and columns(line) + 1 + columns(word) > width:
            lines.append(line)
            line, empty = rest, True
        line, empty = (line + word if empty else f"{line} {word}"), False
    return [*lines, line] if not empty else lines


def markdown(text: str) -> str:
    """`text` as one line of literal text inside Markdown, table cells included.

    Nothing in it is mark-up, HTML or mathematics, and GitHub makes no mention, reference, link or picture of any of it.
    """
    inert = _ACTIVE.sub(rf"\g<0>{_BREAK}", one_line(text))
    escaped = _MARKDOWN.sub(r"\\\1", html.escape(inert, quote=False)).replace("$", "&#36;")
    return _COMMIT.sub(r"`\g<0>`", escaped)


def markdown_code(text: str) -> str:
    """`text` as one line of code inside a Markdown table cell, whatever back-ticks and pipes it holds."""
    line = _FENCE.sub(lambda run: run[0][:_LONGEST_FENCE], one_line(text)).replace("|", "\\|")
    if not line:
        return "(empty)"
    fence = "`" * (max((len(run) for run in _FENCE.findall(line)), default=0) + 1)
    padding = " " if line[0] == "`" or line[-1] == "`" else ""
    return f"{fence}{padding}{line}{padding}{fence}"


def inert_code(text: str, most: int) -> str:
    """What a stranger wrote, as code of at most `most` characters of it, cut with an ellipsis.

    GitHub looks for mentions, references, links and shortcodes outside of code only, and no mark-up is read within. Characters
    that nobody sees, and piles of marks, are dropped first.
    """
    shown = []
    marks = 0
    for character in _INVISIBLE.sub("", one_line(text[: 8 * most])):
        marks = marks + 1 if unicodedata.category(character) in ("Mn", "Me") else 0
        if marks <= _MOST_MARKS and unicodedata.category(character) != "Cn":
            shown.append(character)
    line = "".join(shown).strip()
    whole = len(line) <= most and len(text) <= 8 * most
    return markdown_code(line if whole else line[: most - 1].rstrip() + "…")
