"""Stored runs of this machine as sessions: unchanged by construction, where machine, weights and libraries are the same."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from suite.errors import StoreError
from suite.planning.floors import Session
from suite.records import Environment, Run, VariantResult
from suite.store.layout import RUN_FILE
from suite.store.runs import read_run


def read_runs(root: Path, environment: Environment) -> tuple[list[Run], list[str]]:
    """The runs below `root` (``.quantdrift``) with speed of this machine and system as it is now, newest first.

    Also returns one line for each run that could not be read.
    """
    runs, faults = [], []
    for file in sorted(root.glob(f"runs/*/{RUN_FILE}")):
        try:
            run = read_run(file)
        except StoreError as fault:
            faults.append(str(fault).partition("\n")[0])
            continue
        same = (run.environment.identity, run.environment.suspects) == (environment.identity, environment.suspects)
        if same and run.speed_samples:
            runs.append(run)
    return sorted(runs, key=lambda run: run.created, reverse=True), faults


def as_sessions(runs: Sequence[Run], model: str, variants: Sequence[str]) -> list[Session]:
    """One session a run, oldest first: of `variants`, as far as each is what it was in the newest run that holds it."""
    latest: dict[str, str] = {}
    for run in (run for run in runs if run.model == model):
        for result in _usable(run, variants):
            latest.setdefault(result.variant.name, what_it_is(result))
    sessions = [_session(run, latest, variants) for run in reversed(runs) if run.model == model]
    return [session for session in sessions if session.launches]


def latest_launch_s(root: Path, environment: Environment, model: str, variants: Collection[str]) -> float | None:
    """`estimate_launch_s` of the newest run of just these variants; None when there is none of this machine."""
    for run in read_runs(root, environment)[0]:
        if run.model == model and {result.variant.name for result in run.variants} == set(variants):
            return estimate_launch_s(run)
    return None


def estimate_launch_s(run: Run) -> float | None:
    """Seconds that one launch of every variant took: loads, cold requests, and slices, warming up included.

    The journal keeps no times of the clock, so that what lies between is missing: an estimate from below.
    """
    launches = [launch for result in run.variants for launch in result.launches]
    rounds = max((len({launch.index for launch in result.launches}) for result in run.variants), default=0)
    if not rounds:
        return None
    loads = math.fsum(launch.load_s + (launch.cold_ttft_s or 0.0) for launch in launches)
    slices = math.fsum(sample.witness.wall_s for sample in run.speed_samples)
    protocol = run.matrix.protocol
    return (loads + slices * (1 + protocol.warmup / max(protocol.rounds, 1))) / rounds


def what_it_is(result: VariantResult) -> str:
    """Everything that must be equal for two results to be of the same thing, as text."""
    hashes = sorted(file.sha256 for file in result.artifact.files) if result.artifact else []
    return json.dumps([dict(result.identity), dict(result.suspects), hashes], sort_keys=True)


def _session(run: Run, latest: Mapping[str, str], variants: Sequence[str]) -> Session:
    same = [r for r in _usable(run, variants) if what_it_is(r) == latest[r.variant.name]]
    names = {result.variant.name for result in same}
    return Session(
        samples=tuple(sample for sample in run.speed_samples if sample.variant in names),
        launches=tuple(launch for result in same for launch in result.launches),
    )


def _usable(run: Run, variants: Sequence[str]) -> Iterator[VariantResult]:
    return (r for r in run.variants if r.variant.name in variants and r.failure is None and r.launches)
