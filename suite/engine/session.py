"""One run: measures what is asked for, once; writes down everything at once; judges when asked.

The session decides nothing by itself. pytest (or anything else) asks for trials and gates in whatever order it likes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from suite.backends.base import FOOTPRINT
from suite.engine.answering import OWN_TEST, Prompts, answer_once, check_same_prompts, make_trial, take_trial
from suite.engine.assembling import VOIDED, Ledger, describe_loaded, result_of
from suite.engine.launching import Launcher, LiveVariant
from suite.engine.timing import SpeedPass, SpeedSink
from suite.errors import QuantdriftError, StoreError, Unavailable, UsageError, VariantError, VariantInvalid
from suite.gate.compare import compare
from suite.gate.judge import judge
from suite.gate.plan import GateItem
from suite.records import (
    ALL,
    Aspect,
    Case,
    Comparison,
    Environment,
    Finding,
    Generation,
    Matrix,
    Measurement,
    Note,
    RenderedPrompts,
    ResolvedArtifact,
    Score,
    ScorerSpec,
    Tolerance,
    Trial,
    TrialStatus,
    Variant,
    VariantFailure,
    VariantResult,
    Verdict,
)
from suite.store.baselines import BaselineStore
from suite.store.journal import Journal


class VariantFailed(QuantdriftError):
    """A variant cannot be measured. `first` is True for the request that found out: the others only repeat it."""

    def __init__(self, failure: VariantFailure, *, first: bool) -> None:
        super().__init__(failure.reason)
        self.failure = failure
        self.first = first


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run may be asked for."""

    matrix: Matrix
    cases: tuple[Case, ...]
    policy: Mapping[str, Tolerance]
    environment: Environment
    gates: tuple[GateItem, ...]
    """The gates of every variant."""
    speed_excluded: str | None = None
    """Why speed is not measured in this run, e.g. because tests run in parallel; None when it is."""


class MatrixSession:
    """Owns at most one worker outside the speed pass; `close` ends it, and the journal with it."""

    def __init__(
        self, plan: Plan, launcher: Launcher, journal: Journal, baselines: BaselineStore, ledger: Ledger
    ) -> None:
        self.plan = plan
        self.ledger = ledger
        self._launcher = launcher
        self._journal = journal
        self._baselines = baselines
        self._live: LiveVariant | None = None
        self._stack = ExitStack()
        self._prompts: Prompts = {}
        self._case_ids = frozenset(case.id for case in plan.cases)
        self._timed: set[str] = set()
        self._aborted = ""
        """Why the speed pass broke off."""
        self._told: set[str] = set()
        self._recorded: dict[tuple[str, str], str] = {}
        """Variant and trial of a user's own test → that test."""
        self._inherited = set(ledger.artifacts)
        """Variants of which a resumed run holds results that nobody has yet seen to be of the weights that are there now."""

    # ------------------------------------------------------------------------------------------ answers

    def trial(self, variant: Variant, case: Case) -> Trial:
        """The graded answer of `variant` to `case`: from this run's journal, or else generated now.

        Raises VariantFailed.
        """
        known = self.ledger.trials.get((variant.name, case.id))
        if known is not None and variant.name not in self._inherited:
            return known
        with self._blame(variant):
            live = self._open(variant)
            known = self.ledger.trials.get((variant.name, case.id))
            if known is not None:
                return known
            trial = take_trial(live, case, self._prompts[case.id])
            self._record(trial)
            return trial

    def ask(self, variant: Variant, prompt: str, *, max_new_tokens: int, system: str | None = None) -> Generation:
        """One greedy answer to a prompt of the user's own.

        Raises VariantFailed, or VariantError for a request that failed while the worker lives on.
        """
        with self._blame(variant):
            live = self._open(variant)
            answer = answer_once(live, live.render_one(prompt, system), max_new_tokens, what="the prompt")
        if isinstance(answer, VariantError):
            raise answer
        return answer

    def claim(self, variant: Variant, trial: str, test: str) -> None:
        """Reserve the trial ``domain/name`` for one of the user's own tests, which may enter it again.

        Raises UsageError when another test entered it already: one of the two scores would be lost.
        """
        owner = self._recorded.setdefault((variant.name, trial), test)
        if owner != test:
            raise UsageError(f"'{trial}' was recorded by {owner} already; give record() another name= or domain=")

    def record_own(
        self, variant: Variant, name: str, *, score: float, domain: str, generation: Generation | None
    ) -> Trial:
        """Enter a score that a user's own test gave, as a trial of ``domain/name``.

        Raises UsageError when a case has that id already.
        """
        if f"{domain}/{name}" in self._case_ids:
            raise UsageError(
                f"'{domain}/{name}' is a case of the matrix; record the score under another domain or name"
            )
        case = Case(
            id=f"{domain}/{name}", domain=domain, version=1, prompt="", target="", scorer=ScorerSpec(name=OWN_TEST),
            max_new_tokens=len(generation.token_ids) if generation else 0,
        )  # fmt: skip
        graded = Score(
            status=TrialStatus.SCORED,
            value=score,
            correct=score >= 1.0,
            answer=generation.text if generation else None,
            rule=OWN_TEST,
        )
        trial = make_trial(variant.name, case, (), graded, generation)
        self._record(trial)
        return trial

    def _open(self, variant: Variant) -> LiveVariant:
        """The worker for answers: one variant at a time, in the order in which they are asked for."""
        if self._live is not None and self._live.variant.name == variant.name and self._live.worker.alive:
            return self._live
        self._close_live()
        live = self._stack.enter_context(self._launcher.launch(variant))
        self._note_artifact(live)
        prompts = live.render(self.plan.cases)
        for other, ids in self.ledger.prompts.items():
            if other != variant.name and other not in self._inherited:
                check_same_prompts(prompts, ids, other=other)
        self._record(RenderedPrompts(variant=variant.name, ids=prompts))
        self._live, self._prompts = live, prompts
        return live

    def _close_live(self) -> None:
        self._live = None
        self._stack.close()

    def _note_artifact(self, live: LiveVariant) -> None:
        name = live.variant.name
        known = self.ledger.artifacts.get(name)
        if known is not None and name not in self._inherited:
            return
        footprint = live.loaded.facts.get(FOOTPRINT)
        artifact = describe_loaded(live.prepared.artifact, int(footprint) if footprint else None)
        facts = {key: value for key, value in live.loaded.facts.items() if key != FOOTPRINT}
        now = ResolvedArtifact(variant=name, artifact=artifact, suspects={**live.prepared.tokenizer, **facts})
        self._inherited.discard(name)
        if known is not None and not self._void_changed(known, now):
            return
        self._record(now)

    def _void_changed(self, known: ResolvedArtifact, now: ResolvedArtifact) -> bool:
        """Void what a resumed run holds of a variant when it was measured with other weights or libraries."""
        changed = changes_between(known, now)
        if not changed:
            return False
        self._journal.append(Note(text=VOIDED, data={"variant": now.variant, "changed": ", ".join(changed)}))
        self.ledger.void(now.variant)
        self._launcher.progress(
            f"{now.variant} is measured anew: since the run was interrupted, {', '.join(changed)} changed"
        )
        return True

    # ------------------------------------------------------------------------------------------ speed

    def time_variants(self, variants: Sequence[Variant]) -> None:
        """The speed pass over `variants` that have not been timed in this run. Failures are entered, not raised.

        Raises StoreError when the journal takes no more, and again whenever it is asked for anything after that.
        """
        if self._aborted:
            raise StoreError(f"the speed pass broke off, and its part is not judged as the whole: {self._aborted}")
        self._confirm(variants)
        names = {v.name for v in variants} - self._timed - self.ledger.failures.keys()
        todo = [variant for variant in variants if variant.name in names]
        self._timed |= names
        if not todo:
            return
        self._close_live()
        sink = SpeedSink(
            sample=self._record,
            launch=self._record,
            failure=self._enter_failure,
            opened=self._note_artifact,
        )
        done = {variant.name: self.ledger.launches_of(variant.name) for variant in todo}
        self._aborted = "the first gate that failed says why"  # until the pass is through, whatever ends it
        try:
            SpeedPass(self.plan.matrix, self._launcher, sink).run(todo, done)
        except StoreError as fault:
            self._aborted = str(fault)
            raise
        self._aborted = ""

    def _confirm(self, variants: Sequence[Variant]) -> None:
        """Load each variant of which a resumed run holds results, to see whether they are of the same weights."""
        for variant in variants:
            if variant.name in self._inherited and variant.name not in self.ledger.failures:
                try:
                    self._open(variant)
                except StoreError:
                    raise
                except QuantdriftError as fault:
                    self._enter_failure(variant, fault)

    # ------------------------------------------------------------------------------------------ gates

    def findings(self, variant: Variant, item: GateItem, timed_together: Sequence[Variant]) -> tuple[Finding, ...]:
        """Measure what the gate needs, compare and judge; `timed_together` share the speed pass. Raises VariantFailed."""
        self._measure(variant, item, timed_together)
        failure = self.ledger.failures.get(variant.name)
        if failure is not None:
            raise VariantFailed(failure, first=self._is_news(failure))
        return self._judge([found for found in self._compare(variant) if covers(item, found)])

    def settle(self) -> None:
        """Judge what has no gate of its own and was measured all the same: it informs, and fails nothing."""
        if self._aborted:
            return
        gated = {(item.metric, item.scope) for item in self.plan.gates}
        for variant in self.plan.matrix.variants:
            if variant.name not in self.ledger.failures and self.ledger.launches_of(variant.name):
                found = [c for c in self._compare(variant) if (c.metric, c.scope) not in gated and c.unresolved is None]
                self._judge([c for c in found if (variant.name, c.metric, c.scope) not in self.ledger.findings])

    def _measure(self, variant: Variant, item: GateItem, timed_together: Sequence[Variant]) -> None:
        if item.aspect is Aspect.QUALITY:
            for case in self.plan.cases:
                if item.scope in (ALL, case.domain):
                    self.trial(variant, case)
        elif self.plan.speed_excluded is None:
            self.time_variants(timed_together)

    def _compare(self, variant: Variant) -> tuple[Comparison, ...]:
        plan = self.plan
        result = result_of(variant, self.ledger, plan.matrix, plan.cases, plan.environment)
        if plan.speed_excluded:
            result = without_speed(result, plan)
        own = {case.id for case in plan.cases}
        trials = [t for (name, case), t in self.ledger.trials.items() if name == variant.name and case in own]
        stored = self._baselines.read(plan.matrix.model, variant.name, plan.environment.machine)
        return compare(result, trials, stored, plan.environment, planned=plan.gates)

    def _judge(self, comparisons: Sequence[Comparison]) -> tuple[Finding, ...]:
        found = tuple(judge(comparison, self.plan.policy) for comparison in comparisons)
        for finding in found:
            self._record(finding)
        return found

    def _is_news(self, failure: VariantFailure) -> bool:
        """Whether this failure is told for the first time."""
        if failure.variant in self._told:
            return False
        self._told.add(failure.variant)
        return True

    # ------------------------------------------------------------------------------------------ failures, the end

    @contextmanager
    def _blame(self, variant: Variant) -> Iterator[None]:
        """Turn what goes wrong with a variant into its failure."""
        known = self.ledger.failures.get(variant.name)
        if known is not None:
            raise VariantFailed(known, first=self._is_news(known))
        try:
            yield
        except (VariantFailed, StoreError):
            raise  # a full disk is no fault of the variant
        except QuantdriftError as fault:
            if self._live is not None and self._live.variant.name == variant.name:
                self._close_live()
            self._enter_failure(variant, fault)
            failure = self.ledger.failures[variant.name]
            raise VariantFailed(failure, first=self._is_news(failure)) from fault

    def _enter_failure(self, variant: Variant, fault: QuantdriftError) -> None:
        reason, _, detail = str(fault).partition("\n")
        self._record(VariantFailure(variant=variant.name, verdict=verdict_of(fault), reason=reason, detail=detail))

    def _record(self, record: object) -> None:
        """Write it down at once, then use it."""
        self._journal.append(record)
        self.ledger.add(record)

    def close(self) -> None:
        """End the workers and the journal."""
        self._close_live()
        self._journal.close()


def changes_between(known: ResolvedArtifact, now: ResolvedArtifact) -> list[str]:
    """What differs in the files' hashes and in what may be to blame, by name. No files is a fact like any other."""
    old, new = (
        {f"sha256 of {file.name}": file.sha256 for file in (resolved.artifact.files if resolved.artifact else ())}
        | dict(resolved.suspects)
        for resolved in (known, now)
    )
    return sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))


def covers(item: GateItem, comparison: Comparison) -> bool:
    """Whether a comparison decides a gate: its own, or one of a single case that could not be paired in its domain."""
    if comparison.metric != item.metric:
        return False
    return comparison.scope == item.scope or (item.metric == "score" and comparison.scope.startswith(f"{item.scope}/"))


def without_speed(result: VariantResult, plan: Plan) -> VariantResult:
    """The result with every gated speed and memory metric marked as not measured, and why."""
    missing = tuple(
        Measurement(metric=item.metric, scope=item.scope, value=None, status="not_measured", reason=plan.speed_excluded)
        for item in plan.gates
        if item.aspect is not Aspect.QUALITY
    )
    return dataclasses.replace(result, measurements=(*result.measurements, *missing))


def verdict_of(fault: QuantdriftError) -> Verdict:
    """What a failure says about the variant."""
    match fault:
        case Unavailable():
            return Verdict.NOT_MEASURED
        case VariantInvalid():
            return Verdict.INVALID
        case _:
            return Verdict.ERROR
