"""Other processes on the machine while it was timed."""

from __future__ import annotations

from statistics import median

from suite.doctor.phrases import percent
from suite.doctor.reading import number
from suite.doctor.rule import Rule, Said, cannot_be, found, passed
from suite.records import Run, SampleStatus, Witness

NOTABLE = 0.1
"""Share of the samples that others may spoil before it is told: a few are taken again, and cost nothing but time."""


def check_neighbours(run: Run) -> Said:
    """What the witnesses of the timed samples saw, and who was on the GPU before the run."""
    on_device = number(run.environment.readings, "device_processes") or 0
    if on_device:
        there = "process was" if on_device == 1 else "processes were"
        return found(f"{on_device:.0f} other {there} on the GPU when the run began", "stop them, or wait for them")
    witnesses = [sample.witness for sample in run.speed_samples]
    pressures = [witness.pressure for witness in witnesses if witness.pressure is not None]
    if not pressures and not any(witness.steal is not None for witness in witnesses):
        return cannot_be("no timed sample has a witness that could tell")
    spoilt = [sample for sample in run.speed_samples if sample.status is SampleStatus.CONTENDED]
    share = len(spoilt) / len(witnesses)
    told = f"{len(spoilt)} of {len(witnesses)} timed samples were disturbed ({_describe(witnesses)})"
    if share > NOTABLE:
        stolen = median([sample.witness.steal or 0.0 for sample in spoilt]) > run.matrix.protocol.max_steal
        return found(
            f"{percent(share)}: {told}",
            "a host with fewer neighbours" if stolen else "stop what else runs here, or run at a quieter hour",
        )
    return passed(told)


def _describe(witnesses: list[Witness]) -> str:
    """Middles over all samples, as far as the system tells them."""
    parts = []
    for name, values in (
        ("CPU pressure", [w.pressure for w in witnesses if w.pressure is not None]),
        ("steal", [w.steal for w in witnesses if w.steal is not None]),
    ):
        parts += [f"{name} {percent(median(values))} in the middle, {percent(max(values))} at worst"] if values else []
    return ", ".join(parts)


RULE = Rule(id="neighbours", title="other processes", of_run=check_neighbours)
