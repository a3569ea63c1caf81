"""Advice for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from suite.gate.advice.advising import Advice
from suite.reporting.advice.story import TABLE, Entry, Section, Told, tell
from suite.reporting.hostile import columns, filled, one_line, plain, wrapped
from suite.reporting.table import Column, fit, padded

NARROWEST = 40
_LIMITED = 98
"""A column that was asked about goes after all others but the name."""
_KEEP = {"variant": 100, "position": 95, "speed-up": 90, "loss": 85, "mem": 80, "KLD": 70}
_WIDEST_NAME = 16


def advice_lines(advice: Advice, width: int) -> Iterator[str]:
    """Yield the advice line by line, without line feeds.

    Rows of the table never exceed the width; sentences are broken at spaces, commands and settings are not. Words carry every
    state.
    """
    told, width = tell(advice), max(width, NARROWEST)
    heading = [one_line(part) for part in told.heading]
    yield from filled([*(f"{part} ·" for part in heading[:-1]), heading[-1]], width)
    yield ""
    yield from _text(told.headline, width)
    if told.why:
        yield from _text(told.why, width, indent=3)
    yield ""
    for section in told.sections:
        yield from _section(section, width)
        yield ""
    yield from _table(told, width)
    for sentence in told.front:
        yield from _text(sentence, width)
    yield ""
    yield from _settings(told, width)
    if told.caveats:
        yield " Beside this"
        for caveat in told.caveats:
            yield from _text(caveat, width, indent=3)


def _text(text: str, width: int, *, indent: int = 1) -> list[str]:
    return wrapped(one_line(text), width, first=" " * indent, rest=" " * (indent + 2))


def _section(section: Section, width: int) -> Iterator[str]:
    yield f" {section.title}"
    names = [one_line(entry.name) for entry in section.entries]
    room = min(max(columns(name) for name in names), _WIDEST_NAME)
    for name, entry in zip(names, section.entries, strict=True):
        yield from _entry(name, entry, room, width)


def _entry(name: str, entry: Entry, room: int, width: int) -> Iterator[str]:
    """Its name, then its clauses beside it; commands keep their lines, since they are to be copied."""
    first, rest = f"   {name}{' ' * (room - columns(name))}  ", " " * (room + 5)
    if columns(name) > room:
        yield f"   {name}"
        first = rest
    said = "; ".join(entry.clauses) + (f" ← {entry.mark}" if entry.mark else "")
    told = [*([said] if said else []), *(f"? {point}" for point in entry.points)]
    for place, text in enumerate(told):
        inset = "  " if text.startswith("? ") else ""
        yield from wrapped(one_line(text), width, first=rest if place else first, rest=f"{rest}{inset}")
    for caveat in entry.caveats:
        yield from wrapped(one_line(f"but: {caveat}"), width, first=rest, rest=f"{rest}  ")
    for command in entry.commands:
        yield from (f"{rest}→ {one_line(line)}" for line in plain(command).splitlines() if line.strip())


def _table(told: Told, width: int) -> Iterator[str]:
    cells: Sequence[Sequence[str]] = list(zip(*told.rows, strict=True)) if told.rows else []
    table = fit(
        [
            Column(
                heading=heading,
                cells=[one_line(cell, 40) for cell in column],
                keep=_LIMITED if heading in told.limited else _KEEP.get(heading, 75),
                left=heading in ("variant", "position"),
            )
            for heading, column in zip(told.columns, cells, strict=False)
        ],
        width - 1,
    )
    if not table.kept:
        return
    yield from _text(TABLE, width)
    yield from ((" " + (" " * table.gap).join(row)).rstrip() for row in padded(table))
    if table.dropped:
        yield from _text(f"(no room for: {', '.join(table.dropped)})", width)


def _settings(told: Told, width: int) -> Iterator[str]:
    if told.settings is None:
        return
    yield from _text(f"{told.settings.variant} as it was measured, for a matrix file", width)
    yield from (f"   {line}" for line in told.settings.toml.splitlines())
    for sentence in told.described:
        yield from wrapped(sentence, width, first="   # ", rest="   #   ")
    yield ""
