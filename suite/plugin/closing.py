"""The end of a run: put together, written down, accepted where that was asked for, and told."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from suite.atomic import write_text
from suite.engine.accepting import accept_baselines
from suite.engine.answering import check_same_prompts
from suite.engine.assembling import OLD, Ledger, assemble
from suite.engine.belongings import own_journals, remove_run
from suite.engine.completing import complete
from suite.engine.locking import LOCK_FILE
from suite.engine.opening import Question
from suite.engine.resuming import read_ledger
from suite.engine.session import MatrixSession
from suite.errors import StoreError, VariantInvalid
from suite.metrics import SPECS
from suite.records import Run, Tier, Traced, VariantFailure, Verdict
from suite.reporting import markdown, terminal
from suite.reporting.hostile import one_line, plain
from suite.reporting.model import Report, build_report
from suite.store import layout
from suite.store.baselines import BaselineStore
from suite.store.runs import write_run

_GO_ON = "add --matrix-resume to the same command"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What is left to say when all the tests are done."""

    report: Report | None = None
    lines: tuple[str, ...] = ()
    """What is said under the report."""
    failed: bool = False
    """Something failed that no test could show."""
    broken: bool = False
    """Results are lost, or nothing was measured."""

    def render(self, width: int, *, color: bool) -> Iterator[str]:
        """The report, then what else there is to say."""
        if self.report is not None:
            yield from terminal.lines(self.report, width=width, color=color)
        yield from self.lines


def close_run(question: Question, session: MatrixSession | None, *, lost: int, interrupted: bool) -> Outcome:
    """Put the run together from its journals, write it, and accept baselines if that was asked for.

    An interrupted run stays a journal, which ``--matrix-resume`` goes on with. Raises StoreError for a full disk.
    """
    if interrupted:
        return _tell_interrupted(question)
    unsettled = _settle(session)
    ledger = read_ledger(question.directory)
    run = _complete(question, _put_together(question, ledger))
    if not (run.trials or run.speed_samples or ledger.artifacts.keys() - ledger.failures.keys()):
        return _tell_nothing(question, run)
    write_run(run, question.directory, specs=SPECS)
    report = build_report(run)
    write_text(question.directory / layout.REPORT_FILE, markdown.render(report))
    unlinked = _link_latest(question)
    traced = tuple(ledger.traced.values())
    refused, said, unwritten = _accept(run, question, traced)
    one_sided = _tell_one_sided(question, run)
    warned, written = _write_page(question, run)
    lines = [
        *question.remarks,
        *one_sided,
        *unsettled,
        *unlinked,
        *said,
        *unwritten,
        *_tell_edited(question),
        *warned,
        f" run     {_shown(question)}/{layout.RUN_FILE}",
        *(f" report  {_shown(question)}/{name}" for name in written),
    ]
    if lost:
        lines.insert(
            0, f" {lost} selected items have no result: a test process died. Their results are lost (exit status 3)."
        )
    failed = refused or bool(unsettled) or _holds_failure(ledger)
    return Outcome(report=report, lines=tuple(lines), failed=failed, broken=bool(lost or one_sided or unwritten))


def tell_unwritten(question: Question, fault: Exception) -> Outcome:
    """The run could not be written down: why, and that what the journal holds is not lost."""
    kept = f" what was measured is kept in {_shown(question)}: once that is mended, {_GO_ON}"
    told = (kept,) if own_journals(question.directory) else ()
    return Outcome(lines=(f"quantdrift: {plain(str(fault))}", *told), broken=True)


def _complete(question: Question, run: Run) -> Run:
    """The run with what only the whole tells. A damaged baseline leaves it out: judging has told it."""
    try:
        store = BaselineStore(question.settings.baselines)
        return complete(run, store, question.plan.policy, command=question.settings.command)
    except StoreError:
        return run


def _accept(run: Run, question: Question, traced: tuple[Traced, ...]) -> tuple[bool, tuple[str, ...], list[str]]:
    """Accept what an update asks for: whether anything was refused, what is said of it, and what could not be written.

    The run itself is written down by now, and is told whatever becomes of this.
    """
    try:
        return (*accept_baselines(run, question, traced), [])
    except StoreError as fault:
        said = f" not everything was accepted: {plain(str(fault))}"
        return (
            False,
            (),
            [said, f" nothing has to be measured again: once that is mended, {_GO_ON}"],
        )


def _settle(session: MatrixSession | None) -> list[str]:
    """Judge what is left. What was measured is written down even when that does not work; it is told, and fails."""
    try:
        if session is not None:
            session.settle()
    except StoreError as fault:
        return [f" not everything was judged: {plain(str(fault))}"]
    return []


def _tell_edited(question: Question) -> list[str]:
    """Baselines whose content does not match their digest: somebody changed them by hand."""
    plan, store = question.plan, BaselineStore(question.settings.baselines)
    said = []
    for variant in plan.matrix.variants:
        try:
            stored = store.read(plan.matrix.model, variant.name, plan.environment.machine)
        except StoreError:
            continue  # judging has told it
        for baseline in (stored.quality, stored.speed):
            if baseline is not None and baseline.edited:
                file = store.file_of(baseline)
                said.append(
                    f" edited by hand since it was accepted: {file}; accept it anew or restore it: git checkout {file}"
                )
    return said


def _tell_one_sided(question: Question, run: Run) -> list[str]:
    """Why nothing was compared with the old side of a duet, where no gate was."""
    shadows = question.plan.shadows
    failures = [result.failure for result in run.against if result.failure is not None]
    if not shadows or len(failures) < len(shadows):
        return []
    if any(finding.comparison.tier is Tier.DUET and finding.comparison.unresolved is None for finding in run.findings):
        return []
    return [
        f" nothing was compared with {question.settings.against}, which could not be measured (exit status 3): "
        f"{plain(failures[0].reason)}"
    ]


def _link_latest(question: Question) -> list[str]:
    """Point ``latest`` at this run: a convenience, without which the run is as good."""
    try:
        question.settings.runs.mkdir(parents=True, exist_ok=True)
        layout.link_latest(question.settings.runs, question.directory)
    except (StoreError, OSError) as fault:
        return [f" warning {plain(str(fault))}"]
    return []


def _write_page(question: Question, run: Run) -> tuple[list[str], list[str]]:
    """Write ``report.html``: what is to be warned of, and the names of the reports that there are now.

    It is a convenience, without which the run is as good: whatever goes wrong with it is told, and loses nothing.
    """
    file, history = question.directory / layout.PAGE_FILE, question.settings.runs / layout.HISTORY_FILE
    try:
        file.unlink(missing_ok=True)  # one of an earlier look would tell other verdicts
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of libraries, which a project may have made errors
            from suite.reporting.page.stored import render_stored  # loads what draws, which nothing else needs

            page, faults = render_stored(run, history if history.is_file() else None)
        write_text(file, page)
    except Exception as fault:  # noqa: BLE001 - whatever a library raises: the run is written, and its verdicts stand
        reason = one_line(str(fault)) or type(fault).__name__
        again = f"quantdrift report {_shown(question)} --format html --output {_shown(question)}/{layout.PAGE_FILE}"
        return [f" warning no {layout.PAGE_FILE}: {reason}; try again:  {again}"], [layout.REPORT_FILE]
    return [f" warning {one_line(fault)}" for fault in faults], [layout.REPORT_FILE, layout.PAGE_FILE]


def _holds_failure(ledger: Ledger) -> bool:
    """Whether a variant failed, whatever became of the one test that told it: caught, or run once more and skipped."""
    return any(
        failure.verdict in (Verdict.ERROR, Verdict.INVALID)
        for failure in ledger.failures.values()
        if not failure.variant.endswith(OLD)  # an old environment that does not work is no fault of the new one
    )


def _put_together(question: Question, ledger: Ledger) -> Run:
    """The run from all of its journals, with the variants that only together show that they were asked something else."""
    plan = question.plan
    unequal = []
    first = next(iter(v.name for v in plan.matrix.variants if v.name in ledger.prompts), None)
    for name, ids in ledger.prompts.items():
        if first is None or name == first or name in ledger.failures or name.endswith(OLD):
            continue
        try:
            check_same_prompts(ids, ledger.prompts[first], other=first)
        except VariantInvalid as fault:
            unequal.append(VariantFailure(variant=name, verdict=Verdict.INVALID, reason=str(fault)))
    for failure in unequal:
        ledger.add(failure)
    return assemble(question.head, ledger, plan.matrix, plan.cases, plan.environment, plan.shadows)


def _tell_interrupted(question: Question) -> Outcome:
    if not question.directory.exists():
        return Outcome(lines=(" interrupted before anything was measured",))
    kept = read_ledger(question.directory)
    return Outcome(
        lines=(
            f" interrupted: {len(kept.trials)} answers and {len(kept.launches)} launches are kept in {_shown(question)};",
            f" go on where it stopped:  {question.settings.command} --matrix-resume",
        )
    )


def _tell_nothing(question: Question, run: Run) -> Outcome:
    """Nothing was measured: say why, each reason once, and leave nothing behind. A failure keeps its logs."""
    told: dict[str, list[str]] = {}
    for result in run.variants:
        if failure := result.failure:
            told.setdefault(f"{failure.verdict}: {plain(failure.reason)}", []).append(result.variant.name)
    reasons = [f"   {', '.join(names)}: {why}" for why, names in told.items()]
    if all(r.failure is None or r.failure.verdict is Verdict.NOT_MEASURED for r in run.variants):
        _remove(question)
    elif (question.directory / "logs").is_dir():
        reasons.append(f" what the workers printed:  {_shown(question)}/logs")
    return Outcome(lines=(" nothing was measured (exit status 3)", *reasons), broken=True)


def _remove(question: Question) -> None:
    """Remove what this run wrote, and directories that are empty then: the directory may be one that a person named."""
    remove_run(question.directory)
    logs = question.directory / "logs"
    for variant in (*question.plan.matrix.variants, *question.plan.shadows):
        (logs / f"{variant.name}.log").unlink(missing_ok=True)
    (question.directory / LOCK_FILE).unlink(missing_ok=True)
    runs = question.settings.runs
    for directory in (logs, question.directory, runs / "runs", runs):
        with contextlib.suppress(OSError):
            directory.rmdir()


def _shown(question: Question) -> str:
    """The run's directory as a person would type it."""
    root = question.settings.runs.parent
    place = question.directory
    return str(place.relative_to(root) if place.is_relative_to(root) else place)
