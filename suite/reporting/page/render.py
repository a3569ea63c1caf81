"""``report.html``: the whole report as one file that fetches nothing, and in which nothing that a model wrote can run."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from suite.records import HistoryEntry, Run
from suite.reporting import wording
from suite.reporting.folding import Group
from suite.reporting.hostile import one_line, plain
from suite.reporting.model import Report, build_report
from suite.reporting.page.answers import compare_answers
from suite.reporting.page.bars import draw_domains, draw_memory
from suite.reporting.page.doctor import doctor_sheet
from suite.reporting.page.facts import gather_facts
from suite.reporting.page.forest import draw_drifts
from suite.reporting.page.limits import limits_sheet
from suite.reporting.page.plane import Quantity, find_spots
from suite.reporting.page.plane_plot import draw_plane
from suite.reporting.page.servers import servers_sheet
from suite.reporting.page.sheet import Picture
from suite.reporting.page.tables import compared_sheet, costs_sheet, open_costs, variants_sheet
from suite.reporting.page.timing import draw_gaps, draw_scenarios
from suite.reporting.page.trend import describe_shifts, draw_trend, follow
from suite.reporting.servers import NOTE as SERVERS_NOTE

if TYPE_CHECKING:
    from jinja2 import Environment

_TEMPLATES = "templates"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plane:
    """The pictures of the plane, or why there are none, and who is on neither."""

    pictures: tuple[Picture, ...]
    missing: str


def render_page(run: Run, history: Sequence[HistoryEntry] = ()) -> str:
    """The page of a run, ending in a line feed; `history` (oldest first) adds the trend of its machine.

    The same run and history give the same bytes.
    """
    report = build_report(run)
    style, script = read_template("style.css"), read_template("page.js")
    trend = follow(run, history) if history else None
    compared, left_out = compared_sheet(report)
    return (
        environment()
        .get_template("page.html")
        .render(
            report=report,
            run=run,
            style=style,
            script=script,
            policy=content_policy(style, script),
            plane=_plane(run, report),
            domains=draw_domains(report),
            costs=costs_sheet(report),
            open_costs=open_costs(report),
            drifts=draw_drifts(report.findings),
            doctor=doctor_sheet(report),
            variants=variants_sheet(report),
            compared=compared,
            compared_left_out=left_out,
            answers=compare_answers(run),
            scenarios=draw_scenarios(run),
            gaps=draw_gaps(run),
            memory=draw_memory(run),
            limits=limits_sheet(report.limits),
            servers=servers_sheet(report.servers),
            servers_note=SERVERS_NOTE,
            trend=draw_trend(run, trend) if trend else None,
            shifts=describe_shifts(trend) if trend else (),
            asked_history=bool(history),
            facts=gather_facts(run),
        )
        + "\n"
    )


def _plane(run: Run, report: Report) -> _Plane:
    """What can be placed; one dot alone is no plane."""
    reference = next((row.variant for row in report.rows if row.reference), None)
    quantities: tuple[Quantity, ...] = ("score", "mean_kld")
    found = {quantity: find_spots(run, report, quantity) for quantity in quantities}
    found = {quantity: spots for quantity, spots in found.items() if len(spots) > 1}
    pictures = tuple(draw_plane(spots, quantity, reference or "") for quantity, spots in found.items())
    placed = {spot.variant for spots in found.values() for spot in spots}
    absent = [one_line(row.variant) for row in report.rows if row.variant not in placed]
    return _Plane(pictures=pictures, missing=_missing(report, reference, absent, drawn=bool(pictures)))


def _missing(report: Report, reference: str | None, absent: Sequence[str], *, drawn: bool) -> str:
    if drawn:
        which = wording.listed(list(absent))
        return f"Not on the plane, since speed-up or loss was not measured: {which}." if absent else ""
    if reference is None:
        return "There is no plane: the matrix has no reference that variants could be held against."
    if not any(row.decode_tok_s is not None for row in report.rows):
        return "There is no plane: no speed was measured in this run."
    if not any(row.speedup is not None for row in report.rows):
        return f"There is no plane: no variant was timed beside the reference {one_line(reference)} in this run."
    return f"There is no plane: no loss against the reference {one_line(reference)} is known from this run."


def content_policy(style: str, script: str) -> str:
    """A Content-Security-Policy that lets nothing through but this style and this script."""
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def read_template(name: str) -> str:
    """A file that pages are made of: template, style or script."""
    return (resources.files(__package__) / _TEMPLATES / name).read_text(encoding="utf-8")


@cache
def environment() -> Environment:
    """What renders templates: everything is escaped that was not made here."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    made = Environment(
        loader=FunctionLoader(read_template),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = {
        "line": one_line,
        "plain": plain,
        "ours": Markup,  # for what was made here: SVG, style, script
        "counted": wording.counted,
        "breakable": lambda name: Markup("_<wbr>").join(str(name).split("_")),
        "when": _when,
        "steps": _steps,
        "split_at": str.partition,
        "tail": _tail,
    }
    made.filters.update(filters)
    return made


def _when(created: str) -> str:
    """``2026-11-29 18:04 UTC`` of an ISO 8601 time; anything else as it is."""
    line = one_line(created)
    return f"{line[:10]} {line[11:16]} UTC" if line[10:11] == "T" and line.endswith("+00:00") else line


def _steps(group: Group) -> list[str]:
    """Commands and advice, one a line."""
    return [one_line(line) for step in group.next_steps for line in plain(step).splitlines() if line.strip()]


def _tail(detail: str) -> str:
    """The last lines of a worker's standard error that say something."""
    return "\n".join([line.rstrip() for line in plain(detail).splitlines() if line.strip()][-12:])
