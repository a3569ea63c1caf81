"""Every scenario with every variant: the model of it, and its section in Markdown. Only where there is more to tell than the
table above it does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from suite.records import Measurement, Run, Scenario
from suite.reporting import wording
from suite.reporting.hostile import markdown, markdown_code

FEWEST = 3
"""Plain scenarios from which on they get a section; the first one of fewer is in the table, the others in the findings."""

_NOTE = (
    "Medians over launches. Prefill counts newly evaluated tokens; decode is that of all sequences of a batch, the gaps are "
    "its steps; p95 and p99 are over all gaps of a launch, from 20 and 100 gaps on. Memory is what the worker holds "
    "besides mapped files."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedScenario:
    """One scenario with one variant."""

    scenario: str
    described: str
    variant: str
    values: Mapping[str, float]
    """By metric; what was not measured is absent."""
    reason: str
    """Why nothing was measured, if that is so."""


def timed_scenarios(run: Run) -> tuple[TimedScenario, ...]:
    """Scenario by scenario, the variants in the order of the run. Empty where the table of the report says it all."""
    scenarios = run.matrix.scenarios
    if len(scenarios) < FEWEST and all(scenario.is_plain for scenario in scenarios):
        return ()
    return tuple(
        row
        for scenario in scenarios
        for result in run.variants
        if (row := _row(scenario, result.variant.name, result.measurements)) is not None
    )


def _row(scenario: Scenario, variant: str, measurements: Sequence[Measurement]) -> TimedScenario | None:
    own = [measurement for measurement in measurements if measurement.scope == scenario.name]
    values = {measurement.metric: measurement.value for measurement in own if measurement.value is not None}
    reasons = [measurement.reason for measurement in own if measurement.value is None and measurement.reason]
    if not own:
        return None
    return TimedScenario(
        scenario=scenario.name,
        described=scenario.described,
        variant=variant,
        values=values,
        reason=reasons[0] if reasons and not values else "",
    )


def scenario_markdown(rows: Sequence[TimedScenario]) -> str:
    """The section, ending in an empty line."""
    return "\n".join(_section(rows))


def _section(rows: Sequence[TimedScenario]) -> Iterator[str]:
    yield "## Scenarios"
    yield ""
    yield _NOTE
    yield ""
    heads = ["prefill tok/s", "TTFT", "decode tok/s", "gap p50", "p95", "p99", "memory"]
    yield f"| scenario | variant | {' | '.join(heads)} | besides |"
    yield f"|---|---|{'---:|' * len(heads)}---|"
    seen: set[str] = set()
    for row in rows:
        name = markdown_code(row.scenario)
        first = name if row.scenario in seen else f"{name} {markdown(row.described)}"
        seen.add(row.scenario)
        yield f"| {first} | {markdown_code(row.variant)} | {' | '.join(_cells(row))} | {markdown(besides(row))} |"
    yield ""


def _cells(row: TimedScenario) -> list[str]:
    get = row.values.get
    return [
        wording.rate(get("prefill_tok_s")),
        wording.duration(get("ttft_s")),
        wording.rate(get("decode_tok_s")),
        *(wording.duration(get(metric)) for metric in ("itl_s", "itl_p95_s", "itl_p99_s")),
        wording.size(get("held_bytes")),
    ]


def besides(row: TimedScenario) -> str:
    """What a scenario of its kind tells besides, in words; or why nothing was measured."""
    get = row.values.get
    parts = [row.reason]
    if (gain := get("turn_gain")) is not None:
        parts.append(
            f"sent again: TTFT {wording.duration(get('resent_ttft_s'))}, {gain:.3g} times as long; "
            f"{get('evaluated_tokens', 0.0):.0f} of {get('resent_tokens', 0.0):.0f} tokens evaluated with the state kept"
        )
    if (grown := get("growth_bytes")) is not None:
        parts.append(f"memory grew by {wording.size(grown)} over the second half")
    if (slowdown := get("late_slowdown")) is not None:
        parts.append(f"its last gaps are {slowdown:.3g} times its first")
    if (unreturned := get("unreturned_bytes")) is not None:
        parts.append(f"{wording.size(unreturned)} not given back a cycle")
    return "; ".join(filter(None, parts))
