"""One run: measures what is asked for, once; writes down everything at once; judges everything together.

pytest (or anything else) says which gates it will ask for, and then asks for trials and gates in whatever order it likes.
The first gate measures what all of them need, since 5 % of false alarms are shared by everything that a run judges.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Sequence

from suite.engine.assembling import AGAIN, CONTROL, CONTROLS, LOOK, Ledger, result_of
from suite.engine.control import ask_again, cases_to_control
from suite.engine.failures import VariantFailed
from suite.engine.keeping import still_holds
from suite.engine.launching import Launcher
from suite.engine.measuring import Measuring
from suite.engine.plan import Plan
from suite.errors import QuantdriftError, StoreError
from suite.gate.budget_plan import FIDELITY as KLD
from suite.gate.budget_plan import QUALITY, BudgetItem, find_loss
from suite.gate.compare import compare
from suite.gate.compare_fidelity import FIDELITY
from suite.gate.compare_fidelity import Beside as Fidelity
from suite.gate.duet import OldSide
from suite.gate.family import ALPHA
from suite.gate.judge import judge_all, needs_more
from suite.gate.loss import divergences, losses
from suite.gate.plan import GateItem
from suite.gate.policy import tolerance_for
from suite.gate.testimony import find_silent
from suite.metrics import add_speedups
from suite.records import (
    ALL,
    Aspect,
    Case,
    Comparison,
    Finding,
    Loss,
    Measurement,
    Note,
    Variant,
    VariantResult,
)
from suite.store.baselines import BaselineStore
from suite.store.journal import Journal

__all__ = ["MatrixSession", "Plan", "VariantFailed", "covers"]

Gates = Sequence[tuple[Variant, GateItem]]
"""Gates, each with its variant."""
Found = dict[tuple[str, GateItem], list[Finding]]
"""Findings by variant and gate."""


class MatrixSession(Measuring):
    """Measures, and judges all gates that were selected in one go."""

    def __init__(
        self, plan: Plan, launcher: Launcher, journal: Journal, baselines: BaselineStore, ledger: Ledger
    ) -> None:
        super().__init__(plan, launcher, journal, baselines, ledger)
        self._selected: tuple[tuple[Variant, GateItem], ...] = ()
        self._judged: Found = {}
        self._looked_before = frozenset(ledger.looks)

    def select(self, gates: Iterable[tuple[Variant, GateItem]]) -> None:
        """Say which gates will be asked for: they are measured and judged together."""
        self._selected = tuple(gates)

    def findings(self, variant: Variant, item: GateItem) -> tuple[Finding, ...]:
        """What a gate comes to, after everything that was selected with it was measured.

        Raises VariantFailed; StoreError for a gate on what is timed, when the speed pass broke off.
        """
        self._raise_failure(variant)
        if item.aspect is not Aspect.QUALITY:
            self.check_timed()
        if (variant.name, item) not in self._judged:
            self._judge_together(self._asked_with(variant, item))
            self._raise_failure(variant)
            if item.aspect is not Aspect.QUALITY:
                self.check_timed()
        return tuple(self._judged[variant.name, item])

    def cost(self, variant: Variant, item: BudgetItem) -> Loss | None:
        """What the variant costs against the reference in the quantity of a budget; both are measured if they were not.

        None where this run holds nothing of it. Raises VariantFailed when either of them failed.
        """
        if item.metric in KLD:
            return self._divergence(variant, item)
        reference = self.plan.matrix.reference
        if reference is None:
            return None
        pair = (reference, variant)
        if item.metric in QUALITY:
            for side in pair:
                for case in self.plan.cases:
                    self.trial(side, case)
        elif self.plan.speed_excluded is None:
            self.time_variants(pair)
        for side in pair:
            self._raise_failure(side)
        base, mine = add_speedups([self._result_of(side) for side in pair], reference.name)
        answers = [*self._trials_of(reference), *self._trials_of(variant)]
        looks = max(self.ledger.looks_of(variant.name) + self.ledger.is_newer_than_its_looks(variant.name), 1)
        found = losses(mine, answers, base, answers, self.plan.matrix.budgets, looks=looks)
        return find_loss(found, variant.name, item)

    def _divergence(self, variant: Variant, item: BudgetItem) -> Loss | None:
        """How far the variant is from the reference, which need not be here where its trace is."""
        self.follow_rest(variant, self.plan.cases)
        self._raise_failure(variant)
        forced = self.ledger.forced_of(variant.name)
        found = divergences(self._result_of(variant), forced, self._following.reference, self.plan.matrix.budgets)
        return find_loss(found, variant.name, item)

    def settle(self) -> None:
        """Judge what has no gate of its own and was measured all the same: it informs, and fails nothing."""
        if self._aborted:
            return
        gated = {(item.metric, item.scope) for item in self.plan.gates}
        known = {(f.variant, f.metric, f.scope) for found in self._judged.values() for f in found}
        for variant in self.plan.matrix.variants:
            if variant.name not in self.ledger.failures and self.ledger.launches_of(variant.name):
                found = [c for c in self._compare(variant) if (c.metric, c.scope) not in gated and c.unresolved is None]
                rest = [c for c in found if (c.variant, c.metric, c.scope) not in known]
                for finding in judge_all(rest, self.plan.policy, command=self.plan.command):
                    self._record(finding)

    # ------------------------------------------------------------------------------------------ together

    def _asked_with(self, variant: Variant, item: GateItem) -> Gates:
        """The gates that are judged in one go with this one."""
        if (variant, item) not in self._selected:
            return ((variant, item),)
        return [(v, i) for v, i in self._selected if not self.plan.apart or v.name == variant.name]

    def _judge_together(self, gates: Gates) -> None:
        self._answer(gates)
        try:
            found = self._time_and_judge(gates)
        except StoreError:
            if not self._aborted:
                raise
            found = self._judge([(v, item) for v, item in gates if item.aspect is Aspect.QUALITY])
        self._judged.update(found)

    def _time_and_judge(self, gates: Gates) -> Found:
        """Measure the launches of the protocol and judge; measure more of what is undecided, and judge again."""
        timed = [] if self.plan.speed_excluded else _variants_of(gates, quality=False)
        if timed and not self._aborted:
            self.time_variants(timed)
        found = self._judge(gates)
        upto = self._launches_to_add(timed, found)
        if not upto:
            return found
        self.time_variants([variant for variant in timed if variant.name in upto], upto)
        return self._judge(gates)

    def _launches_to_add(self, timed: Sequence[Variant], found: Found) -> dict[str, int]:
        """Variant → the launches that it gets in all, for those of which a gate on speed is undecided."""
        undecided = {
            name
            for (name, item), findings in found.items()
            if item.aspect is not Aspect.QUALITY and any(needs_more(finding) for finding in findings)
        }
        done = {v.name: self.ledger.launches_of(v.name) for v in timed if v.name in undecided}
        goals = {name: self._most_launches(name, count) for name, count in done.items()}
        return {name: goal for name, goal in goals.items() if goal > done[name]}

    def _most_launches(self, variant: str, done: int) -> int:
        """Up to the protocol's limit; each time that a finished run is taken up again, as many as it began with."""
        protocol = self.plan.matrix.protocol
        if self.plan.finished and variant in self._looked_before:
            return done + protocol.launches
        return max(protocol.max_launches, protocol.launches)

    # ------------------------------------------------------------------------------------------ answers

    def _answer(self, gates: Gates) -> None:
        """Ask all that the gates on answers need, of both sides of a duet, and of the control what has changed."""
        for variant in _variants_of(gates, quality=True):
            own = [item for v, item in gates if v.name == variant.name and item.aspect is Aspect.QUALITY]
            cases = self._cases_in({item.scope for item in own if item.metric not in FIDELITY})
            shadow = self.plan.shadow_of(variant.name)
            if self._ask_all(variant, cases):
                if shadow is not None:
                    self._ask_all(shadow, cases)
                if self._weigh(variant):
                    self._control(variant)
            followed = self._cases_in({item.scope for item in own if item.metric in FIDELITY})
            for side in (variant, shadow):
                if side is not None and followed and variant.name not in self.ledger.failures:
                    self._follow(side, followed)

    def _cases_in(self, scopes: Collection[str]) -> list[Case]:
        return [case for case in self.plan.cases if {ALL, case.domain} & {*scopes}]

    def _ask_all(self, variant: Variant, cases: Sequence[Case]) -> bool:
        """Whether all were asked; a failure is entered, and told by the variant's own items."""
        try:
            for case in cases:
                self.trial(variant, case)
        except VariantFailed as failed:
            if failed.first:
                self._told.discard(variant.name)
            return False
        return True

    def _weigh(self, variant: Variant) -> bool:
        """Whether nothing failed; a failure is told by the variant's own items."""
        try:
            self.weigh_rest(variant)
        except VariantFailed as failed:
            if failed.first:
                self._told.discard(variant.name)
            return False
        return True

    def _follow(self, variant: Variant, cases: Sequence[Case]) -> None:
        """Complete its way through the trace; a failure, also of the reference, is told by the failed variant's own items."""
        try:
            self.follow_rest(variant, cases)
        except VariantFailed as failed:
            if failed.first:
                self._told.discard(failed.failure.variant)

    def _control(self, variant: Variant) -> None:
        """Ask again what is graded otherwise than before. A control that fails silences nobody."""
        old = self._old_side(variant)
        baseline = self._read_baselines(variant).quality
        wanted = cases_to_control(self._trials_of(variant), baseline, None if old is None else old.trials)
        for control in CONTROLS:
            known = {trial.case for trial in self.ledger.trials_of(variant.name + control)}
            cases = [case for case in self.plan.cases if case.id in wanted and case.id not in known]
            if not cases:
                continue
            self._close_live()
            try:
                for trial in ask_again(self._launcher, variant, cases, control):
                    self._record(trial)
            except StoreError:
                raise
            except QuantdriftError as fault:
                self._journal.append(Note(text="control failed", data={"variant": variant.name, "reason": str(fault)}))

    # ------------------------------------------------------------------------------------------ judging

    def _judge(self, gates: Gates) -> Found:
        """Judge the gates of all variants that did not fail, as one family, and count the look at what was timed.

        What this run judged before (it was taken up again with less selected) stays in the family: choosing among data that
        were seen makes no level more generous. Where each process sees some variants only, each has its part of the level.
        What was decided at an earlier look stands as it was decided, and takes its old place in the family.
        """
        alive = [(v, item) for v, item in gates if v.name not in self.ledger.failures]
        family = [*alive, *self._judged_before(alive)]
        compared = {variant.name: self._compare(variant) for variant in _variants_of(family)}
        chosen = [(v.name, item, c, self._kept(c)) for v, item in family for c in compared[v.name] if covers(item, c)]
        asked = {(v.name, item) for v, item in alive}
        looked = {
            name for name, item, c, kept in chosen if (name, item) in asked and kept is None and _is_look(item, c)
        }
        self._count_looks(looked)
        found: Found = {key: [] for key in asked}
        alpha = ALPHA / len(self.plan.matrix.variants) if self.plan.apart else ALPHA
        family_of = [c if kept is None else kept.comparison for _, _, c, kept in chosen]
        judged = judge_all(family_of, self.plan.policy, command=self.plan.command, alpha=alpha)
        for (name, item, _, kept), finding in zip(chosen, judged, strict=True):
            if (name, item) in asked:
                found[name, item].append(kept or finding)
                if kept is None:
                    self._record(finding)  # at once: a kill before the next look must not undo what was decided
        return found

    def _kept(self, comparison: Comparison) -> Finding | None:
        """What was decided of it at an earlier look at these data, and still holds."""
        found = self.ledger.findings.get((comparison.variant, comparison.metric, comparison.scope))
        tolerance = tolerance_for(self.plan.policy, comparison.metric, comparison.scope)
        return found if found is not None and still_holds(found, comparison, tolerance) else None

    def _judged_before(self, gates: Gates) -> Gates:
        """Gates of which this run holds a finding already, beside `gates`."""
        asked = {(variant.name, item) for variant, item in gates}
        return [
            (variant, item)
            for variant in self.plan.matrix.variants
            for item in self.plan.gates
            if (variant.name, item) not in asked and variant.name not in self.ledger.failures
            if (variant.name, item.metric, item.scope) in self.ledger.findings
        ]

    def _count_looks(self, variants: Iterable[str]) -> None:
        for name in sorted(variants):
            if self.ledger.is_newer_than_its_looks(name):
                launches = self.ledger.launches_of(name)
                self._record(Note(text=LOOK, data={"variant": name, "launches": str(launches)}))

    def _compare(self, variant: Variant) -> tuple[Comparison, ...]:
        plan = self.plan
        result = self._result_of(variant)
        looks = self.ledger.looks_of(variant.name) + self.ledger.is_newer_than_its_looks(variant.name)
        trials = self._trials_of(variant)
        return compare(
            without_speed(result, plan) if plan.speed_excluded else result,
            trials,
            self._read_baselines(variant),
            plan.environment,
            planned=plan.gates,
            samples=self.ledger.samples_of(variant.name),
            old=self._old_side(variant),
            looks=max(looks, 1),
            silent=find_silent(trials, self.ledger.trials_of(variant.name + CONTROL)),
            unsteady=find_silent(trials, self.ledger.trials_of(variant.name + AGAIN)),
            fidelity=self._fidelity_of(variant) if plan.fidelity else None,
        )

    def _fidelity_of(self, variant: Variant) -> Fidelity:
        return Fidelity(
            forced=self.ledger.forced_of(variant.name),
            old=self._old_side(variant),
            missing=self._following.why_missing(variant),
            cases=self._case_ids,
            remade=self._following.remade,
        )

    def _old_side(self, variant: Variant) -> OldSide | None:
        shadow = self.plan.shadow_of(variant.name)
        if shadow is None:
            return None
        return OldSide(
            result=self._result_of(shadow),
            samples=self.ledger.samples_of(shadow.name),
            trials=self._trials_of(shadow),
            forced=self.ledger.forced_of(shadow.name),
            described=shadow.python or shadow.source,
        )

    def _result_of(self, variant: Variant) -> VariantResult:
        plan = self.plan
        return result_of(variant, self.ledger, plan.matrix, plan.cases, plan.environment)

    def _raise_failure(self, variant: Variant) -> None:
        failure = self.ledger.failures.get(variant.name)
        if failure is not None:
            raise VariantFailed(failure, first=self._is_news(failure))


def _variants_of(gates: Gates, *, quality: bool | None = None) -> list[Variant]:
    """The variants of the gates, each once, in their order; only of gates on answers, or only of others."""
    wanted = [v for v, item in gates if quality is None or (item.aspect is Aspect.QUALITY) == quality]
    return list({variant.name: variant for variant in wanted}.values())


def _is_look(item: GateItem, comparison: Comparison) -> bool:
    """Whether judging it spends a level: it is timed, and there is something to compare it with."""
    return item.aspect is Aspect.SPEED and comparison.unresolved is None


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
