"""Which figures of answers a run has cases enough for: a part is not the whole."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from suite.metrics import SPECS
from suite.metrics.fidelity import BROKEN, measure_fidelity
from suite.records import ALL, Aspect, Case, Forced, Measurement, Trial


def keep_complete(
    measurements: Iterable[Measurement], trials: Iterable[Trial], cases: Sequence[Case]
) -> tuple[Measurement, ...]:
    """Leave out quality figures of scopes of which not every case was answered: a part is not the whole."""
    answered = {trial.case for trial in trials}
    missing = {case.domain for case in cases if case.id not in answered}
    partial = missing | ({ALL} if missing else set())
    return tuple(m for m in measurements if m.scope not in partial or SPECS[m.metric].aspect is not Aspect.QUALITY)


def keep_covered(forced: Sequence[Forced], cases: Sequence[Case]) -> tuple[Measurement, ...]:
    """Measurements of fidelity, without the scopes of which fewer than half of the cases were forced; of the others it is said
    when some are missing. Logits that are no numbers are told in any case.
    """
    known = {one.case for one in forced if one.path == "batched"}
    found = []
    for measured in measure_fidelity(forced):
        asked = [case.id for case in cases if measured.scope in (ALL, case.domain)]
        there = sum(case in known for case in asked)
        if measured.metric == BROKEN or there == len(asked):
            found.append(measured)
        elif 2 * there >= len(asked):
            found.append(dataclasses.replace(measured, reason=f"{there} of {len(asked)} cases"))
    return tuple(found)
