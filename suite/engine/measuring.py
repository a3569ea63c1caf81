"""The half of a session that measures what is asked for, once, and writes down everything at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from suite.backends.base import FOOTPRINT
from suite.engine.answering import Prompts, answer_once, check_same_prompts, take_trial
from suite.engine.assembling import GROUPS, LONE, VOIDED, Ledger, describe_loaded
from suite.engine.caching import Caching
from suite.engine.earlier import EarlierRuns, changes_between
from suite.engine.failures import VariantFailed, failure_of
from suite.engine.following import Following
from suite.engine.launching import Launcher, LiveVariant
from suite.engine.own_trials import OwnTrials
from suite.engine.plan import Plan
from suite.engine.timing import SpeedPass, SpeedSink
from suite.engine.weighing import Accepted, find_unweighed, weigh_trial
from suite.errors import QuantdriftError, StoreError, VariantError
from suite.gate.answers import answer_of
from suite.records import (
    Baselines,
    Case,
    Generation,
    Matrix,
    Note,
    RenderedPrompts,
    ResolvedArtifact,
    Trial,
    Variant,
    VariantFailure,
)
from suite.store.baselines import BaselineStore
from suite.store.journal import Journal


class Measuring:
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
        self._aborted = ""
        """Why the speed pass broke off."""
        self._accepted: dict[str, Accepted] = {}
        """Variant → its accepted answers, as they were when they were first needed."""
        self._told: set[str] = set()
        self.own = OwnTrials(self._case_ids, self._record)
        """Scores that the user's own tests give."""
        self._following = Following(plan, ledger, self._record, launcher.progress)
        self._cache = Caching(plan, ledger, self._following, self._record, launcher.progress)
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
            self._cache.control(live, self._prompts, self._give_answer)
            known = self.ledger.trials.get((variant.name, case.id))
            return known if known is not None else self._give_answer(live, case)

    def _give_answer(self, live: LiveVariant, case: Case) -> Trial:
        """The answer of a loaded variant, of an earlier run where that is allowed; and its way through the trace."""
        prompt = self._prompts[case.id]
        answered = self._cache.trial(live.variant, case) or take_trial(live, case, prompt)
        trial = weigh_trial(live, answered, self._accepted_of(live.variant), prompt)
        self._record(trial)
        self._cache.follow(live, case, prompt, trial.generation)
        return trial

    def take_from(self, runs: EarlierRuns) -> None:
        """Take from earlier `runs` what has not changed since."""
        self._cache.runs = runs

    def follow_rest(self, variant: Variant, cases: Sequence[Case]) -> None:
        """Take the variant through those of `cases` that it was not taken through when it answered: the trace was not there
        yet, or the run was resumed. What is missing of the trace is asked of the reference.

        Raises VariantFailed, also of the reference.
        """
        reference, wanted = self.plan.matrix.reference, {case.id for case in cases}
        for side in (reference, variant):
            if side is not None and side.name in self._inherited and (side is variant or self.ledger.traced):
                with self._blame(side):
                    self._open(side)  # which voids what was measured of other weights
        if reference is not None:
            try:
                for case in self._following.untraced():
                    if case.id in wanted:
                        self._trace(reference, case)
            except VariantFailed as failed:  # what is traced can be followed all the same
                if failed.first:
                    self._told.discard(failed.failure.variant)  # by its own items
        lacking = [case for case in self._following.lacks(variant) if case.id in wanted]
        if lacking:
            with self._blame(variant):
                live = self._open(variant)
                self._cache.control(live, self._prompts, self._give_answer, answering=False)
                for case in lacking:
                    self._cache.follow(live, case, self._prompts[case.id], None)

    def _trace(self, reference: Variant, case: Case) -> None:
        """Have the reference answer, which writes down the trace; or write it down of an answer that it gave before."""
        trial = self.trial(reference, case)
        if self._following.traced(case) is None and trial.generation is not None:
            with self._blame(reference):
                live = self._open(reference)
                self._cache.follow(live, case, self._prompts[case.id], trial.generation)

    def weigh_rest(self, variant: Variant) -> None:
        """Weigh what could not be weighed when it was answered: the old side of a duet answers later, and a baseline may be
        another one when a run is resumed.

        Raises VariantFailed.
        """
        accepted = self._accepted_of(variant)
        if not find_unweighed(self._trials_of(variant), accepted):
            return
        with self._blame(variant):
            live = self._open(variant)  # which may void answers of other weights
            for trial in find_unweighed(self._trials_of(variant), accepted):
                self._record(weigh_trial(live, trial, accepted, self._prompts[trial.case]))

    def _trials_of(self, variant: Variant) -> tuple[Trial, ...]:
        """Its answers to the cases, without the user's own tests."""
        return tuple(trial for trial in self.ledger.trials_of(variant.name) if trial.case in self._case_ids)

    def _accepted_of(self, variant: Variant) -> Accepted:
        """What the answers of a variant are held against: those of its old side, or else the accepted ones."""
        shadow = self.plan.shadow_of(variant.name)
        if shadow is not None:
            return {trial.case: answer_of(trial) for trial in self._trials_of(shadow)}
        if variant.old_of is not None:
            return {}
        if variant.name not in self._accepted:
            try:
                quality = self._baselines.read_quality(self.plan.matrix.model, variant.name)
            except StoreError:  # told by the gates, which cannot do without it; answering can
                quality = None
            self._accepted[variant.name] = quality.cases if quality else {}
        return self._accepted[variant.name]

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

    def _open(self, variant: Variant) -> LiveVariant:
        """The worker for answers: one variant at a time, in the order in which they are asked for."""
        if self._live is not None and self._live.variant.name == variant.name and self._live.worker.alive:
            return self._live
        self._close_live()
        live = self._stack.enter_context(self._launcher.launch(variant))
        self._note_artifact(live)
        self._following.welcome(live)
        prompts = live.render(self.plan.cases)
        self._following.check_prompts(live, prompts)
        for other, ids in self.ledger.prompts.items():
            if other not in self._inherited and self._asks_the_same(variant, other):
                check_same_prompts(prompts, ids, other=other)
        self._record(RenderedPrompts(variant=variant.name, ids=prompts))
        self._live, self._prompts = live, prompts
        return live

    def _asks_the_same(self, variant: Variant, other: str) -> bool:
        """Whether the prompts of `other` are what those of `variant` must be: an old side answers for nobody else."""
        if variant.old_of is not None:
            return other == variant.old_of
        return other != variant.name and other not in {shadow.name for shadow in self.plan.shadows}

    def _close_live(self) -> None:
        self._live = None
        self._stack.close()

    def _note_artifact(self, live: LiveVariant) -> None:
        name = live.variant.name
        known = self.ledger.artifacts.get(name)
        if known is not None and name not in self._inherited:
            return
        footprint = live.loaded.facts.get(FOOTPRINT)
        artifact = describe_loaded(live.prepared.artifact, int(footprint) if footprint else None, live.demand())
        facts = {key: value for key, value in live.loaded.facts.items() if key != FOOTPRINT}
        if live.variant.python is not None:
            facts["python"] = live.loaded.python
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
        for name in self._both_sides(now.variant):
            self._journal.append(Note(text=VOIDED, data={"variant": name, "changed": ", ".join(changed)}))
            self.ledger.void(name)
        self._launcher.progress(
            f"{now.variant} is measured anew: since the run was interrupted, {', '.join(changed)} changed"
        )
        return True

    def _both_sides(self, name: str) -> list[str]:
        """A variant and its old side, given either: their launches only count together."""
        pair = next((s for s in self.plan.shadows if name in (s.name, s.old_of)), None)
        return [name] if pair is None else [str(pair.old_of), pair.name]

    # ------------------------------------------------------------------------------------------ speed

    def time_variants(self, variants: Sequence[Variant], upto: Mapping[str, int] | None = None) -> None:
        """The speed pass over `variants` and their old sides, until each has the launches that the protocol wants.

        `upto` asks for another number, by variant. Failures are entered, not raised. Raises StoreError when the journal
        takes no more, and again whenever it is asked for anything after that.
        """
        self.check_timed()
        everybody = [side for v in variants for side in (v, self.plan.shadow_of(v.name)) if side is not None]
        self._confirm(everybody)
        todo = [side for side in everybody if not self._is_out(side)]
        self._drop_lone_launches(todo)
        done, wanted = self._count(todo), self._matrix_in_force().protocol.launches
        goal = {side.name: (upto or {}).get(side.old_of or side.name, wanted) for side in todo}
        todo = [side for side in todo if done[side.name] < goal[side.name]]
        if todo:
            self._close_live()
            self._run_speed_pass(todo, done, goal)

    def check_timed(self) -> None:
        """Raise StoreError when the speed pass broke off."""
        if self._aborted:
            raise StoreError(f"the speed pass broke off, and its part is not judged as the whole: {self._aborted}")

    def _run_speed_pass(self, todo: Sequence[Variant], done: Mapping[str, int], goal: Mapping[str, int]) -> None:
        sink = SpeedSink(
            sample=self._record,
            launch=self._record,
            failure=self._enter_failure,
            opened=self._note_artifact,
            parted=self._note_groups,
        )
        self._aborted = "the first gate that failed says why"  # until the pass is through, whatever ends it
        try:
            SpeedPass(self._matrix_in_force(), self._launcher, sink, self.plan.cpus).run(todo, done, goal)
        except StoreError as fault:
            self._aborted = str(fault)
            raise
        self._aborted = ""

    def _note_groups(self, groups: Sequence[Sequence[Variant]]) -> None:
        """Variants that were never in memory together share less of the machine's luck: the run tells it."""
        told = " | ".join(" ".join(sorted(variant.name for variant in group)) for group in groups)
        if told not in self.ledger.groups:
            self._record(Note(text=GROUPS, data={GROUPS: told}))

    def _is_out(self, side: Variant) -> bool:
        return side.name in self.ledger.failures or side.old_of in self.ledger.failures

    def _count(self, sides: Sequence[Variant]) -> dict[str, int]:
        """The launches that each has; both sides of a duet go on at the same one, so that they stay adjacent."""
        return {side.name: max(map(self.ledger.next_launch_of, self._both_sides(side.name))) for side in sides}

    def _drop_lone_launches(self, todo: Sequence[Variant]) -> None:
        """A launch that one side of a duet has and the other lacks (a kill came in between) is measured again, of both."""
        names = {side.name for side in todo}
        for old in todo:
            if old.old_of not in names:
                continue
            new, then = (
                {launch.index for launch in self.ledger.launches if launch.variant == name}
                for name in (old.old_of, old.name)
            )
            for name, lone in ((old.old_of, new - then), (old.name, then - new)):
                for index in sorted(lone):
                    self._record(Note(text=LONE, data={"variant": str(name), "launch": str(index)}))

    def _read_baselines(self, variant: Variant) -> Baselines:
        return self._baselines.read(self.plan.matrix.model, variant.name, self.plan.environment.machine)

    def _matrix_in_force(self) -> Matrix:
        """The matrix, with the limits of a clean slice that were found for this machine where they are narrower."""
        matrix = self.plan.matrix
        noise = self._read_baselines(matrix.variants[0]).noise
        found = {"max_pressure": noise.max_pressure, "max_steal": noise.max_steal} if noise else {}
        limits: dict[str, Any] = {
            name: min(limit, getattr(matrix.protocol, name)) for name, limit in found.items() if limit is not None
        }
        return dataclasses.replace(matrix, protocol=dataclasses.replace(matrix.protocol, **limits))

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

    # ------------------------------------------------------------------------------------------ failures, the end

    def _is_news(self, failure: VariantFailure) -> bool:
        """Whether this failure is told for the first time."""
        if failure.variant in self._told:
            return False
        self._told.add(failure.variant)
        return True

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
        self._record(failure_of(variant, fault))

    def _record(self, record: object) -> None:
        """Write it down at once, then use it."""
        self._journal.append(record)
        self.ledger.add(record)

    def close(self) -> None:
        """End the workers and the journal."""
        self._close_live()
        self._journal.close()
