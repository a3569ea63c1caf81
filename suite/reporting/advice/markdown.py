"""Advice as Markdown, for a pull request or a step summary. Names and reasons are escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from suite.gate.advice.advising import Advice
from suite.reporting.advice.story import TABLE, Entry, Section, Told, tell
from suite.reporting.hostile import markdown, markdown_code, one_line


def advice_markdown(advice: Advice) -> str:
    """One document, ending in a line feed."""
    return "\n".join(_document(tell(advice))).rstrip("\n") + "\n"


def _document(told: Told) -> Iterator[str]:
    yield f"## {markdown(told.headline)}"
    yield ""
    yield " · ".join(markdown(part) for part in told.heading)
    yield ""
    if told.why:
        yield from (f"{markdown(_sentence(told.why))}", "")
    for section in told.sections:
        yield from _section(section)
    yield from _table(told)
    yield from (f"- {markdown(sentence)}" for sentence in told.front)
    yield ""
    if told.settings is not None:
        yield f"### {markdown_code(told.settings.variant)} as it was measured"
        yield ""
        yield "```toml"
        yield from told.settings.toml.splitlines()
        yield from (f"# {one_line(sentence)}" for sentence in told.described)
        yield from ("```", "")
    if told.caveats:
        yield from ("### Beside this", "")
        yield from (f"- {markdown(caveat)}" for caveat in told.caveats)


def _sentence(text: str) -> str:
    """With a capital letter and a full stop; a name that begins it stays as it is."""
    return f"Why: {text}."


def _section(section: Section) -> Iterator[str]:
    yield f"### {section.title}"
    yield ""
    for entry in section.entries:
        yield from _entry(entry)
    yield ""


def _entry(entry: Entry) -> Iterator[str]:
    mark = f" **{markdown(entry.mark)}**" if entry.mark else ""
    yield f"- {markdown_code(entry.name)}{mark}: {markdown('; '.join(entry.clauses))}".removesuffix(": ")
    yield from (f"  - cannot tell: {markdown(point)}" for point in entry.points)
    yield from (f"  - but: {markdown(caveat)}" for caveat in entry.caveats)
    yield from (f"  - {markdown_code(command)}" for command in entry.commands)


def _table(told: Told) -> Iterator[str]:
    yield from (f"### {TABLE}", "")
    yield _line(markdown(heading) for heading in told.columns)
    yield _line("---" if heading in ("variant", "position") else "---:" for heading in told.columns)
    for name, *cells in told.rows:
        yield _line([markdown_code(name), *(markdown(cell) for cell in cells)])
    yield ""


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
