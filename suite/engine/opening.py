"""From settings to a session that is ready: everything is read and validated before anything is loaded or written."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import suite
from suite import backends, clock
from suite.cases import load_cases
from suite.engine.against import make_shadows
from suite.engine.assembling import RESUMED, TRACE_OF, Ledger, RunHead, identity_of
from suite.engine.belongings import own_journals, own_run_file, remove_run
from suite.engine.earlier import EarlierRuns
from suite.engine.environment import capture_environment
from suite.engine.launching import Launcher
from suite.engine.pinning import choose_cpus, threads_of
from suite.engine.plan import Plan
from suite.engine.preparing import Preparer
from suite.engine.progress import Progress
from suite.engine.resuming import KEY, key_of, newest_first, read_ledger, take_up
from suite.engine.session import MatrixSession
from suite.errors import CaseFileError, MatrixFileError, StoreError
from suite.gate.budget_plan import FIDELITY, BudgetItem, merge_budgets, plan_budgets
from suite.gate.differences import describe_differences
from suite.gate.plan import plan_gates
from suite.gate.policy import merge_policy
from suite.matrix import load_matrix, select_variants
from suite.records import Aspect, Case, Environment, Matrix, Note, Trace
from suite.scorers import check_case
from suite.settings import Settings
from suite.store import layout
from suite.store.baselines import BaselineStore
from suite.store.journal import Journal
from suite.store.traces import read_trace

QUICK_LAUNCHES = 3
QUICK_ROUNDS = 4
XDIST_REASON = "tests run in parallel (xdist); speed needs the machine to itself: run without -n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What was asked, read and validated: nothing has been loaded and nothing written."""

    settings: Settings
    plan: Plan
    head: RunHead
    directory: Path
    """Where the run is, or will be, written down."""
    key: str
    """Hash of what must be equal for the run to be taken up again."""
    resumed: bool = False
    remarks: tuple[str, ...] = ()
    """What is to be said of it, a line each."""


def read_question(settings: Settings, *, directory: Path | None = None, parallel: bool = False) -> Question:
    """Read the matrix, the cases and the machine, and find the run to resume.

    `directory` is given by a controlling process that shares its run. Raises UsageError for anything that is wrong.
    """
    whole = load_matrix(settings.matrix_file, added=settings.added, options_of=backends.options_of)
    chosen = select_variants(whole, settings.variants)
    cases = load_cases(settings.cases, check=check_case)
    if not cases:
        raise CaseFileError(f"{settings.cases}: no case found; case files are {settings.cases.name}/<domain>/*.toml")
    environment = capture_environment()
    key = key_of(whole, cases, environment, settings)
    found, remarks = take_up(settings, key, whole, environment)
    held = _hold(whole, chosen, found)
    trace, foreign = _find_trace(settings, whole, held)
    plan = _plan(
        settings,
        held,
        cases,
        environment,
        parallel=parallel,
        fidelity=settings.only != "speed" and (trace is not None or whole.reference is not None),
        referenced=whole.reference is not None,
    )
    plan = dataclasses.replace(
        plan,
        selected=frozenset(variant.name for variant in chosen.variants),
        trace=trace,
        foreign_trace=foreign,
        shadows=make_shadows(settings.against, chosen.variants) if settings.against else (),
        cpus=choose_cpus(threads_of(whole.variants)),
        command=settings.command,
        finished=found is not None and own_run_file(found) is not None,
    )
    _check_baselines(settings, plan.matrix, environment)
    head, place = _head(settings, plan, found, directory)
    return Question(
        settings=settings,
        plan=plan,
        head=head,
        directory=place,
        key=key,
        resumed=found is not None,
        remarks=remarks,
    )


def _head(settings: Settings, plan: Plan, found: Path | None, directory: Path | None) -> tuple[RunHead, Path]:
    """What a run knows about itself from the start, and where it lies."""
    created = clock.now()
    run_id = found.name if found else f"{created:%Y-%m-%dT%H-%M-%S}-{_suffix(created.isoformat())}"
    place = directory or found or settings.report or layout.run_directory(settings.runs, run_id)
    head = RunHead(
        id=place.name if directory else run_id,
        created=created.isoformat(),
        suite_version=suite.__version__,
        settings=_describe(settings, plan),
    )
    return head, place


def _plan(  # noqa: PLR0913 - what was read, each of its own kind
    settings: Settings,
    matrix: Matrix,
    cases: tuple[Case, ...],
    environment: Environment,
    *,
    parallel: bool,
    fidelity: bool,
    referenced: bool,
) -> Plan:
    """What may be asked for, before variants are selected."""
    matrix = make_quick(matrix) if settings.quick else matrix
    policy = merge_policy(matrix.policy, where=str(settings.matrix_file))
    accelerator = environment.identity["device"] != "cpu"
    domains = {case.domain for case in cases}
    gates = plan_gates(matrix.scenarios, domains, policy, has_accelerator=accelerator, fidelity=fidelity)
    if settings.quick and settings.against is None:
        # Memory grows with the longest scenario: of fewer scenarios it is not what was accepted.
        gates = tuple(gate for gate in gates if gate.aspect is not Aspect.MEMORY)
    return Plan(
        matrix=matrix,
        cases=cases,
        policy=policy,
        environment=environment,
        gates=gates,
        fidelity=fidelity,
        budgets=_plan_budgets(settings, matrix, cases, fidelity=fidelity, referenced=referenced),
        speed_excluded=_excluded(settings, parallel),
        apart=parallel,
    )


def _find_trace(settings: Settings, whole: Matrix, held: Matrix) -> tuple[Trace | None, str]:
    """The stored trace; without one, or with one that is not of this model's reference, None and why.

    Only what is declared can be looked at here. A reference that is part of the run is looked at when it is loaded.
    """
    trace = read_trace(settings.baselines, whole.model) if settings.only != "speed" else None
    if trace is None or whole.reference is None or held.reference is not None:
        return trace, ""
    declared = {name: value for name, value in identity_of(whole.reference, whole).items() if name in trace.key}
    changed = describe_differences({name: trace.key[name] for name in declared}, declared)
    if not changed:
        return trace, ""
    return None, f"the stored trace is of another reference ({'; '.join(changed)}): run it with the reference once"


def _plan_budgets(
    settings: Settings, matrix: Matrix, cases: tuple[Case, ...], *, fidelity: bool, referenced: bool
) -> tuple[BudgetItem, ...]:
    """The budgets that are tests: without the reference in the run, those on divergence, which go by its trace.

    Raises MatrixFileError for a wrong one, and for one that has nothing to be held against.
    """
    budgets = merge_budgets(matrix.budgets, where=str(settings.matrix_file))
    items = plan_budgets(budgets, matrix.scenarios, {case.domain for case in cases})
    if matrix.reference is not None:
        return items
    traced = tuple(item for item in items if item.metric in FIDELITY and fidelity)
    if len(traced) < len(items) and not referenced:
        raise MatrixFileError(
            f"{settings.matrix_file}: [budget] holds variants against the reference, and none is marked reference = true"
        )
    return traced


def make_quick(matrix: Matrix) -> Matrix:
    """The same matrix measured for a pull request: few launches, none added, the first scenario alone."""
    few = min(QUICK_LAUNCHES, matrix.protocol.launches)
    rounds = min(QUICK_ROUNDS, matrix.protocol.rounds)
    protocol = dataclasses.replace(matrix.protocol, launches=few, max_launches=few, rounds=rounds)
    return dataclasses.replace(matrix, scenarios=matrix.scenarios[:1], protocol=protocol)


def _hold(whole: Matrix, chosen: Matrix, found: Path | None) -> Matrix:
    """The matrix of this run: what was chosen, and what a run that is taken up again has measured already."""
    measured = {record.variant for record in read_ledger(found).artifacts.values()} if found else set()
    names = measured | {variant.name for variant in chosen.variants}
    return dataclasses.replace(whole, variants=tuple(v for v in whole.variants if v.name in names))


def _check_baselines(settings: Settings, matrix: Matrix, environment: Environment) -> None:
    """Read every baseline once: a damaged one is told now, not when everything has been measured."""
    store, faults = BaselineStore(settings.baselines), []
    for variant in matrix.variants:
        try:
            store.read(matrix.model, variant.name, environment.machine)
        except StoreError as fault:
            faults.append(str(fault))
    if faults:
        raise StoreError("\n".join(faults))


def open_session(question: Question, progress: Progress, *, worker: str | None = None) -> MatrixSession:
    """Begin, or go on with, the run. `worker` names one of several processes that write one journal each."""
    settings, plan = question.settings, question.plan
    preparer = Preparer(
        base=settings.matrix_file.parent, cache=settings.cache, deadlines=plan.matrix.deadlines, progress=progress
    )
    launcher = Launcher(
        preparer=preparer, deadlines=plan.matrix.deadlines, logs=question.directory / "logs", progress=progress
    )
    if worker is None:
        prepare_directory(question)
    ledger = read_ledger(question.directory) if question.resumed else Ledger()
    journal = Journal(layout.journal_file(question.directory, worker))
    if not question.resumed:
        journal.append(plan.environment)
        journal.append(Note(text=KEY, data={KEY: question.key}))
    session = MatrixSession(plan, launcher, journal, BaselineStore(settings.baselines), ledger)
    if settings.cached:
        others = (path for path in newest_first(settings.runs / "runs") if path != question.directory)
        session.take_from(EarlierRuns(others, plan.environment, question.head))
    return session


def prepare_directory(question: Question) -> None:
    """Make the directory ready, once for each run, before any of its processes appends to a journal.

    Journals of a run that is resumed are marked; those that an earlier run left in a directory named by the person go,
    and nothing else in there.
    """
    if not question.resumed:
        remove_run(question.directory)
        return
    for file in own_journals(question.directory):
        with Journal(file) as journal:
            journal.append(Note(text=RESUMED))


def _suffix(created: str) -> str:
    """Four digits that keep two runs of the same second apart."""
    return hashlib.sha256(f"{created}/{os.getpid()}/{clock.monotonic()}".encode()).hexdigest()[:4]


def _excluded(settings: Settings, parallel: bool) -> str | None:
    if parallel:
        return XDIST_REASON
    if settings.only in ("answers", "fidelity"):
        said = "were" if settings.only == "answers" else "was"
        return f"only {settings.only} {said} asked for (--matrix-only={settings.only})"
    return None


def _describe(settings: Settings, plan: Plan) -> dict[str, str]:
    pinned = plan.matrix.protocol.pin and plan.speed_excluded is None
    given = {
        "only": settings.only,
        "variants": ",".join(settings.variants),
        "added": ",".join(settings.added),
        "update": settings.update,
        "against": str(settings.against) if settings.against else None,
        "quick": "yes" if settings.quick else None,
        "cached": "yes" if settings.cached else None,
        "require baselines": "yes" if settings.require_baselines else None,
        "strict": "yes" if settings.strict else None,
        TRACE_OF: plan.trace.reference if plan.fidelity and plan.trace else None,
        "cpus": ",".join(map(str, plan.cpus or ())) if pinned else None,
    }
    return {name: value for name, value in given.items() if value}
