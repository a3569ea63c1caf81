"""What a run measured, as the JSON of github-action-benchmark, which draws it over commits.

https://github.com/benchmark-action/github-action-benchmark, tools ``customBiggerIsBetter`` and ``customSmallerIsBetter``: a
list of ``name``, ``unit``, ``value``, ``range`` and ``extra``. One file has one direction, so a run makes two.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Literal

from suite.metrics.catalog import SPECS
from suite.metrics.limits import SHARES
from suite.metrics.speed import YARDSTICKS, launch_values
from suite.records import ALL, Aspect, Direction, Finding, Measurement, Run
from suite.reporting.hostile import one_line

Better = Literal["bigger", "smaller"]
TOOLS: Mapping[Better, str] = {"bigger": "customBiggerIsBetter", "smaller": "customSmallerIsBetter"}
"""Which way is better → the value of the action's input ``tool``."""

_DIRECTIONS: Mapping[Better, Direction] = {"bigger": Direction.HIGHER, "smaller": Direction.LOWER}

_LONGEST = 200

Entry = dict[str, str | float]


def render_benchmark(run: Run, better: Better) -> str:
    """A JSON list of what was measured and of which `better` is better, ending in a line feed.

    Names are ``variant/metric/scope`` and stay the same from run to run, which the action needs to draw a line. Left out:
    what was not measured, or only while the machine was busy, since the action knows no status; domains, since it
    draws a chart for each name; and yardsticks and shares of what a device gave, which move with the machine.
    """
    return json.dumps(list(_entries(run, _DIRECTIONS[better])), ensure_ascii=True, allow_nan=False, indent=2) + "\n"


def _entries(run: Run, direction: Direction) -> Iterator[Entry]:
    judged = {(f.variant, f.metric, f.scope): f for f in run.findings}
    for result in run.variants:
        for measured in result.measurements:
            if not _is_drawn(measured, direction) or measured.value is None:
                continue
            key = (result.variant.name, measured.metric, measured.scope)
            yield {
                "name": one_line("/".join(key), _LONGEST),
                "unit": SPECS[measured.metric].unit,
                "value": measured.value,
                **_range(measured),
                "extra": _extra(measured, judged.get(key), run),
            }


def _is_drawn(measured: Measurement, direction: Direction) -> bool:
    spec = SPECS.get(measured.metric)
    if spec is None or spec.direction is not direction or measured.metric in (*YARDSTICKS, *SHARES):
        return False
    return measured.status == "measured" and (spec.aspect is not Aspect.QUALITY or measured.scope == ALL)


def _range(measured: Measurement) -> Entry:
    """Half the distance between the least and the largest launch; nothing for fewer than two."""
    launches = launch_values(measured).values()
    return {"range": f"± {(max(launches) - min(launches)) / 2:.3g}"} if len(launches) > 1 else {}


def _extra(measured: Measurement, finding: Finding | None, run: Run) -> str:
    """What is shown where one points at a dot."""
    number = len(launch_values(measured))
    told = [f"run {run.id}", f"machine {run.environment.machine}"]
    told += [f"{number} launch{'es' if number > 1 else ''}"] if number else []
    told += [str(finding.verdict)] if finding else []
    return "\n".join(one_line(text, _LONGEST) for text in told)
