"""Environment variables that steer thread pools behind the back of the options."""

from __future__ import annotations

import re
from statistics import median

from suite.doctor.reading import physical_cores, samples_of, threads_of
from suite.doctor.rule import Rule, Said, cannot_be, found, passed
from suite.records import Run, VariantResult

IDLE = 0.7
"""Share of the CPU time that its threads could have had, below which fewer of them ran than were asked for."""


def check_variables(run: Run, result: VariantResult) -> Said:
    """OpenMP's, MKL's and OpenBLAS's, against the threads in force and the cores."""
    told = run.environment.readings.get("thread variables")
    if not isinstance(told, str):
        return cannot_be("the run does not tell which variables were set")
    variables = dict(item.split("=", 1) for item in told.split("; ") if "=" in item)
    if not variables:
        return passed("no OMP_, MKL_, OPENBLAS_ or similar variable was set")
    threads = threads_of(result)
    fights = [*_policies(variables), *_counts(variables, threads, physical_cores(run), _busy(run, result))]
    if fights:
        return found("; ".join(text for text, _ in fights), f"unset {', '.join(dict.fromkeys(n for _, n in fights))}")
    return passed(f"{told}: in no conflict with {threads if threads is not None else 'the'} threads")


def _policies(variables: dict[str, str]) -> list[tuple[str, str]]:
    fights = []
    if variables.get("OMP_WAIT_POLICY", "").lower() == "passive":
        fights.append(
            ("OMP_WAIT_POLICY=passive puts threads to sleep at each barrier, several times a layer", "OMP_WAIT_POLICY")
        )
    if variables.get("OMP_DYNAMIC", "").lower() == "true":
        fights.append(("OMP_DYNAMIC=true lets OpenMP take fewer threads than were asked for", "OMP_DYNAMIC"))
    return fights


def _counts(
    variables: dict[str, str], threads: int | None, cores: int | None, busy: float | None
) -> list[tuple[str, str]]:
    fights = []
    for name, value in variables.items():
        count = int(value) if re.fullmatch(r"[0-9]{1,6}", value) else None
        if count is None or not name.endswith(("_NUM_THREADS", "_THREAD_LIMIT")):
            continue
        if cores is not None and count > cores and name.endswith("_NUM_THREADS"):
            fights.append((f"{name}={count} starts more threads than there are cores ({cores})", name))
        elif (
            threads is not None and count < threads and (name.endswith("_LIMIT") or (busy is not None and busy < IDLE))
        ):
            ran = "" if busy is None else f", which had {busy * threads:.1f} CPUs"
            fights.append((f"{name}={count} holds back {threads} threads{ran}", name))
    return fights


def _busy(run: Run, result: VariantResult) -> float | None:
    """CPU time of the worker over what its threads could have had, in the middle of its clean samples."""
    witnesses = [sample.witness for sample in samples_of(run, result)]
    shares = [w.cpu_s / (w.wall_s * w.threads) for w in witnesses if w.wall_s > 0 and w.threads]
    return median(shares) if shares else None


RULE = Rule(id="thread-variables", title="BLAS and OpenMP variables", of_variant=check_variables)
