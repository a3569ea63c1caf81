"""Accepting baselines: reads what is stored, asks the gate what an update would write, and writes it."""

from __future__ import annotations

import dataclasses
import subprocess
from collections.abc import Collection, Sequence
from pathlib import Path

import suite
from suite import clock
from suite.engine.opening import Question
from suite.engine.tracing import hash_traced
from suite.gate.accept import Request, accept
from suite.gate.accept_trace import accept_trace
from suite.records import Aspect, Run, Trace, Traced
from suite.store.baselines import BaselineStore
from suite.store.traces import write_trace


def accept_baselines(run: Run, question: Question, traced: Sequence[Traced] = ()) -> tuple[bool, tuple[str, ...]]:
    """Write what the update mode accepts, the reference trace among it, of which this run wrote down `traced`.

    Returns whether anything was refused, and what to say about it. Raises StoreError when a file cannot be written; the old
    ones are intact then.
    """
    settings, plan = question.settings, question.plan
    if settings.update is None or settings.reason is None:
        return False, ()
    known = {case.id for case in plan.cases}
    run = dataclasses.replace(run, trials=tuple(trial for trial in run.trials if trial.case in known))  # no own tests
    store = BaselineStore(settings.baselines)
    stored = {
        variant.name: store.read(plan.matrix.model, variant.name, plan.environment.machine)
        for variant in plan.matrix.variants
    }
    request = Request(
        mode=settings.update,
        reason=settings.reason,
        accepted=clock.now().isoformat(),
        commit=read_commit(settings.matrix_file.parent),
    )
    acceptance = accept(run, run.findings, stored, known, request)
    refused = {refusal.variant for refusal in acceptance.refusals if refusal.aspect is Aspect.QUALITY}
    trace = _take_trace(traced, refused, question, request)
    if isinstance(trace, str):  # what was measured along a trace that is not kept is nobody's baseline
        acceptance = accept(_along_stored(run, plan.trace), run.findings, stored, known, request)
    written = [write_trace(trace, settings.baselines)] if isinstance(trace, Trace) else []
    written += [store.write(baseline, anew=settings.update == "all") for baseline in acceptance.writes]
    lines = [f" accepted {_shown(file, question)}" for file in written]
    lines += [
        f" refused {refusal.variant} ({refusal.aspect}): {refusal.reason}"
        for refusal in acceptance.refusals
        if _was_asked(str(refusal.aspect), question)
    ]
    if isinstance(trace, str):
        lines.append(f" refused the reference trace: {trace}")
    failed = any(_was_asked(str(refusal.aspect), question) for refusal in acceptance.refusals) or isinstance(trace, str)
    return failed, tuple(lines or [" nothing to accept: every baseline is in place and nothing drifted"])


def _take_trace(
    traced: Sequence[Traced], refused: Collection[str], question: Question, request: Request
) -> Trace | str | None:
    """The reference trace to write; why it is refused; None when the stored one stays."""
    mine = sorted({one.variant for one in traced} & {*refused})
    if mine:
        return f"what '{mine[0]}' says was refused"
    if traced and question.plan.apart:
        return "tests ran in parallel (xdist), where not all were held against it: accept in a run without -n"
    made = {"accepted": request.accepted, "reason": request.reason.strip(), "suite": suite.__version__}
    cases = {case.id for case in question.plan.cases}
    return accept_trace(traced, question.plan.trace, cases, request.mode, made)


def _along_stored(run: Run, trace: Trace | None) -> Run:
    """The run with what was forced along the stored trace, and nothing else of it."""
    hashes = {case: hash_traced(traced) for case, traced in trace.cases.items()} if trace else {}
    forced = tuple(one for one in run.forced if hashes.get(one.case) == one.trace)
    return dataclasses.replace(run, forced=forced)


def _was_asked(aspect: str, question: Question) -> bool:
    """A run of answers only refuses nothing about speed."""
    return not (question.settings.only in ("answers", "fidelity") and aspect != "quality")


def read_commit(directory: Path) -> str | None:
    """The commit that is checked out around `directory`; None outside of git."""
    try:
        asked = subprocess.run(
            ["git", "-C", str(directory), "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return asked.stdout.strip() or None


def _shown(file: Path, question: Question) -> str:
    root = question.settings.matrix_file.parent
    return str(file.relative_to(root) if file.is_relative_to(root) else file)
