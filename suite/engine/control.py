"""The determinism control: the same cases again, under the same and another number of threads: which of them can testify?"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from suite.engine.answering import take_trial
from suite.engine.assembling import CONTROL
from suite.engine.launching import Launcher, options_in_force
from suite.gate.testimony import find_silent, which_to_ask_again
from suite.records import Case, QualityBaseline, Trial, Variant


def control_of(variant: Variant, control: str = CONTROL) -> Variant:
    """The variant as it is (`AGAIN`), or with one thread less, or two instead of one (`CONTROL`).

    It stays as it is where its backend takes no number of threads.
    """
    options = options_in_force(variant)
    threads = options.get("n_threads")
    if isinstance(threads, int) and control == CONTROL:
        options["n_threads"] = threads - 1 if threads > 1 else 2
    return dataclasses.replace(variant, name=variant.name + control, options=options)


def cases_to_control(
    trials: Sequence[Trial], baseline: QualityBaseline | None, old: Sequence[Trial] | None
) -> tuple[str, ...]:
    """Cases that are graded otherwise than by the `old` side of a duet or, without one, than in the baseline."""
    return which_to_ask_again(trials, baseline) if old is None else find_silent(trials, old)


def ask_again(launcher: Launcher, variant: Variant, cases: Sequence[Case], control: str = CONTROL) -> list[Trial]:
    """One launch of the control and its answers to `cases`; none for no cases.

    Raises what a launch and a request raise.
    """
    if not cases:
        return []
    with launcher.launch(control_of(variant, control)) as live:
        prompts = live.render(cases)
        return [take_trial(live, case, prompts[case.id]) for case in cases]
