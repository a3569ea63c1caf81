"""More threads than cores: they wait for one another, and a decode step waits for the last."""

from __future__ import annotations

from suite.doctor.reading import facts_of, number, physical_cores, threads_of
from suite.doctor.rule import Rule, Said, cannot_be, found, passed
from suite.records import Run, VariantResult


def check_threads(run: Run, result: VariantResult) -> Said:
    """Threads of decoding and of prefilling, against physical cores and a quota of CPU time."""
    threads = threads_of(result)
    if threads is None:
        return cannot_be("the backend does not tell its threads")
    prefilling = number(facts_of(result), "n_threads_batch") or 0
    most = max(threads, int(prefilling))
    quota = number(run.environment.readings, "cpu_quota")
    if quota is not None and most > quota + 0.01:
        return found(
            f"{most} threads share a quota of {quota:g} CPUs: the kernel stops them all when it is used up",
            f"n_threads = {max(1, int(quota))}, or a larger quota",
        )
    cores = physical_cores(run)
    if cores is None:
        return cannot_be("the machine does not tell its physical cores")
    if most > cores:
        return found(f"{most} threads on {_counted(cores)}", f"n_threads = {cores}, and compare")
    return passed(f"{threads} {'thread' if threads == 1 else 'threads'} on {_counted(cores)}")


def _counted(cores: int) -> str:
    return f"{cores} physical {'core' if cores == 1 else 'cores'}"


RULE = Rule(id="threads", title="threads", of_variant=check_threads)
