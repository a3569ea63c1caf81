"""From settings to a session that is ready: everything is read and validated before anything is loaded or written."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import suite
from suite import backends, clock
from suite.cases import load_cases
from suite.engine.assembling import RESUMED, Ledger, RunHead, join_journals
from suite.engine.belongings import own_journals, remove_run
from suite.engine.environment import capture_environment
from suite.engine.launching import Launcher
from suite.engine.preparing import Preparer
from suite.engine.progress import Progress
from suite.engine.session import MatrixSession, Plan
from suite.errors import CaseFileError, StoreError
from suite.gate.plan import plan_gates
from suite.gate.policy import merge_policy
from suite.matrix import load_matrix, select_variants
from suite.records import Case, Environment, Matrix, Note
from suite.schema import dump
from suite.scorers import check_case
from suite.settings import Settings
from suite.store import layout
from suite.store.baselines import BaselineStore
from suite.store.journal import Journal, read_journal

KEY = "key"
XDIST_REASON = "tests run in parallel (xdist); speed needs the machine to itself: run without -n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What was asked, read and validated: nothing has been loaded and nothing written."""

    settings: Settings
    plan: Plan
    head: RunHead
    directory: Path
    """Where the run is, or will be, written down."""
    resumed: bool = False


def read_question(settings: Settings, *, directory: Path | None = None, parallel: bool = False) -> Question:
    """Read the matrix, the cases and the machine, and find the run to resume.

    `directory` is given by a controlling process that shares its run. Raises UsageError for anything that is wrong.
    """
    matrix = load_matrix(settings.matrix_file, added=settings.added, options_of=backends.options_of)
    matrix = select_variants(matrix, settings.variants)
    cases = load_cases(settings.cases, check=check_case)
    if not cases:
        raise CaseFileError(f"{settings.cases}: no case found; case files are {settings.cases.name}/<domain>/*.toml")
    policy = merge_policy(matrix.policy, where=str(settings.matrix_file))
    environment = capture_environment()
    accelerator = environment.identity["device"] != "cpu"
    _check_baselines(settings, matrix, environment)
    gates = plan_gates(matrix.scenarios, {case.domain for case in cases}, policy, has_accelerator=accelerator)
    plan = Plan(
        matrix=matrix,
        cases=cases,
        policy=policy,
        environment=environment,
        gates=gates,
        speed_excluded=_excluded(settings, parallel),
    )
    created = clock.now()
    resumable = _find_unfinished(settings, _key(matrix, cases, environment)) if settings.resume else None
    run_id = resumable.name if resumable else f"{created:%Y-%m-%dT%H-%M-%S}-{_suffix(created.isoformat())}"
    place = directory or resumable or settings.report or layout.run_directory(settings.runs, run_id)
    head = RunHead(
        id=place.name if directory else run_id,
        created=created.isoformat(),
        suite_version=suite.__version__,
        settings=_describe(settings),
    )
    return Question(settings=settings, plan=plan, head=head, directory=place, resumed=resumable is not None)


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
        journal.append(Note(text=KEY, data={KEY: _key(plan.matrix, plan.cases, plan.environment)}))
    return MatrixSession(plan, launcher, journal, BaselineStore(settings.baselines), ledger)


def read_ledger(directory: Path) -> Ledger:
    """What the journals of a run hold."""
    return join_journals([entry.record for entry in read_journal(file)] for file in own_journals(directory))


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


def find_resumable(runs: Path, key: str) -> Path | None:
    """The newest run that was begun with the same question and never finished."""
    if not runs.is_dir():
        return None
    return next((directory for directory in sorted(runs.iterdir(), reverse=True) if is_resumable(directory, key)), None)


def is_resumable(directory: Path, key: str) -> bool:
    """Whether a run lies there that was begun with the same question and never finished."""
    journals = own_journals(directory)
    return bool(journals) and not (directory / layout.RUN_FILE).exists() and _key_of(journals[0]) == key


def _find_unfinished(settings: Settings, key: str) -> Path | None:
    if settings.report is None:
        return find_resumable(settings.runs / "runs", key)
    return settings.report if is_resumable(settings.report, key) else None


def _key_of(journal: Path) -> str | None:
    notes = (entry.record for entry in read_journal(journal) if isinstance(entry.record, Note))
    return next((note.data.get(KEY) for note in notes if note.text == KEY), None)


def _key(matrix: Matrix, cases: Sequence[Case], environment: Environment) -> str:
    """Hash of everything that must be equal for a run to be continued."""
    asked = [dump(matrix), [dump(case) for case in cases], dict(environment.identity), suite.__version__]
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def _suffix(created: str) -> str:
    """Four digits that keep two runs of the same second apart."""
    return hashlib.sha256(f"{created}/{os.getpid()}/{clock.monotonic()}".encode()).hexdigest()[:4]


def _excluded(settings: Settings, parallel: bool) -> str | None:
    if parallel:
        return XDIST_REASON
    return "only answers were asked for (--matrix-only=answers)" if settings.only == "answers" else None


def _describe(settings: Settings) -> dict[str, str]:
    given = {
        "only": settings.only,
        "variants": ",".join(settings.variants),
        "added": ",".join(settings.added),
        "update": settings.update,
        "require baselines": "yes" if settings.require_baselines else None,
        "strict": "yes" if settings.strict else None,
    }
    return {name: value for name, value in given.items() if value}
