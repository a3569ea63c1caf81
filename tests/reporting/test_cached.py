"""What a report says of answers that were taken from earlier runs."""

from __future__ import annotations

import dataclasses

from support import sample_runs

from suite.records import Trial
from suite.reporting.cached import DROPPED, tell_cached


def mark(trials: tuple[Trial, ...], *, fresh: int, origin: str = "run-1") -> tuple[Trial, ...]:
    """All but the first `fresh` were taken."""
    return tuple(
        trial if at < fresh else dataclasses.replace(trial, cached_from=origin) for at, trial in enumerate(trials)
    )


def test_a_run_that_took_nothing_says_nothing() -> None:
    assert tell_cached(sample_runs.run()) == ()


def test_variants_of_which_as_much_was_taken_share_a_sentence() -> None:
    run = sample_runs.run()
    names = [result.variant.name for result in run.variants]
    trials = {name: tuple(trial for trial in run.trials if trial.variant == name) for name in names}
    total = len(trials[names[0]])
    assert total > 1
    marked = [*mark(trials[names[0]], fresh=1), *mark(trials[names[1]], fresh=1), *trials[names[-1]]]
    told = tell_cached(dataclasses.replace(run, trials=tuple(marked)))
    assert told == (
        f"from earlier runs (--matrix-cached): {total - 1} of {total} answers, of run-1: {names[0]}, {names[1]}",
        "of each of these a sample was computed again as a control, and came out the same; no speed is from a cache",
    )


def test_a_dropped_cache_is_said_with_its_reason() -> None:
    run = sample_runs.run()
    run = dataclasses.replace(run, settings={**run.settings, DROPPED: "q4_k_m: case math/a: another answer"})
    (told,) = tell_cached(run)
    assert told.endswith("since the control differed: q4_k_m: case math/a: another answer")
