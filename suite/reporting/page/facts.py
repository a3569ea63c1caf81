"""The end of the page: machine, identity, suspects, readings, and the bytes of each variant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from suite.records import Run, VariantResult
from suite.reporting import wording
from suite.reporting.hostile import one_line
from suite.reporting.page.sheet import Head, Sheet, heads, named, said

_LONGEST = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A heading, what it is for, and its table."""

    title: str
    meaning: str
    sheet: Sheet


def gather_facts(run: Run) -> tuple[Facts, ...]:
    """Everything that makes the run the question it is, or may be to blame; empty tables left out."""
    environment = run.environment
    found = [
        _pairs("Machine", "Must be equal for two speeds to be compared.", environment.identity),
        _pairs("Settings", "Decoding parameters and options in force.", run.settings),
        _pairs("Suspects of the machine", "May differ, and be to blame.", environment.suspects),
        _pairs(
            "Readings",
            "How the machine happened to be; in no key.",
            {k: _reading(k, v) for k, v in environment.readings.items()},
        ),
        _weights(run),
        *_by_variant(run, "Identity", "What makes it the same question.", lambda result: result.identity),
        *_by_variant(run, "Suspects", "What may have changed and be to blame.", lambda result: result.suspects),
    ]
    return tuple(facts for facts in found if facts.sheet.rows)


def _reading(name: str, value: float | str) -> str:
    if isinstance(value, str):
        return value
    return wording.size(value) if name.endswith("_bytes") else f"{value:.4g}"


def _pairs(title: str, meaning: str, facts: Mapping[str, str]) -> Facts:
    rows = tuple((named(name), said(_short(value))) for name, value in facts.items())
    return Facts(title=title, meaning=meaning, sheet=_sheet(title, ("name", "value"), rows))


def _short(value: str) -> str:
    return one_line(value, _LONGEST)


def _sheet(caption: str, columns: tuple[str, ...], rows: tuple[tuple[object, ...], ...]) -> Sheet:
    return Sheet(caption=caption, heads=tuple(Head(text=c, number=False) for c in columns), rows=rows)  # type: ignore[arg-type]


def _weights(run: Run) -> Facts:
    rows = tuple(
        (
            named(result.variant.name),
            said(file.name),
            said(wording.size(file.size_bytes)),
            said(file.sha256),
        )
        for result in run.variants
        if result.artifact is not None
        for file in result.artifact.files
    )
    sheet = Sheet(
        caption="Weights", heads=heads("variant", "file", "size", "sha256", text=["file", "sha256"]), rows=rows
    )
    return Facts(title="Weights", meaning="The bytes that were measured.", sheet=sheet)


def _by_variant(
    run: Run, title: str, meaning: str, read: Callable[[VariantResult], Mapping[str, str]]
) -> tuple[Facts, Facts]:
    """What all variants share, told once, and what differs, side by side."""
    facts = {result.variant.name: read(result) for result in run.variants}
    names = list(dict.fromkeys(name for each in facts.values() for name in each))
    shared = {name for name in names if len({each.get(name) for each in facts.values()}) == 1}
    same = {name: next(iter(facts.values()))[name] for name in names if name in shared}
    differ = [name for name in names if name not in shared]
    rows = tuple(
        (named(name), *(said(_short(each[name])) if name in each else said("") for each in facts.values()))
        for name in differ
    )
    return (
        _pairs(f"{title}, shared by all variants", meaning, same),
        Facts(
            title=f"{title}, by variant",
            meaning=meaning,
            sheet=_sheet(title, ("name", *(one_line(name) for name in facts)), rows),
        ),
    )
