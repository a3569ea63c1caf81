"""The test items of a matrix: a case that measures, a gate that judges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from suite.engine.failures import VariantFailed
from suite.errors import QuantdriftError
from suite.gate import failing
from suite.gate.budget_plan import QUALITY, BudgetItem, judge_budget
from suite.gate.compare_fidelity import FIDELITY
from suite.gate.plan import GateItem
from suite.records import Aspect, Case, Finding, TrialStatus, Variant, Verdict
from suite.reporting.failure import explain
from suite.reporting.hostile import plain
from suite.reporting.junit import budget_properties, case_properties, failure_properties, gate_properties
from suite.settings import Phase, Settings

if TYPE_CHECKING:
    from suite.plugin.active import MatrixPlugin


class GateFailed(Exception):
    """A gate did not hold; the message is the finding, in full."""


class MatrixItem(pytest.Item):
    """What case and gate items share: their variant, and how a failure reads."""

    def __init__(self, *, plugin: MatrixPlugin, variant: Variant, name: str, parent: pytest.Collector) -> None:
        # Given as text, the id is parsed: pytest then knows the brackets for parameters, as --lf and --sw need since 9.2.
        super().__init__(name=name, parent=parent, nodeid=f"{parent.nodeid}::{name}")
        self.plugin = plugin
        self.variant = variant
        self.add_marker("matrix")

    def end_with(self, failed: VariantFailed) -> NoReturn:
        """Note for JUnit that the variant failed as a whole, and say so, see `raise_failed`."""
        self.user_properties.extend(failure_properties(failed.failure))
        raise_failed(failed, self.plugin.settings)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The message alone: a traceback through the suite tells nobody anything."""
        if isinstance(excinfo.value, (GateFailed, QuantdriftError)):
            return plain(str(excinfo.value))  # libraries and models wrote parts of it
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where pytest says that the item is."""
        return self.path, None, self.name


class CaseItem(MatrixItem):
    """One case answered by one variant. Fails only when there is no answer: a wrong answer is data."""

    def __init__(self, *, case: Case, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.case = case
        self.add_marker("matrix_case")
        for tag in (case.domain, *case.tags):
            self.extra_keyword_matches.add(tag)

    def runtest(self) -> None:
        """Ask, grade, and note the result for JUnit."""
        try:
            trial = self.plugin.session.trial(self.variant, self.case)
        except VariantFailed as failed:
            self.end_with(failed)
        self.user_properties.extend(case_properties(trial))
        if trial.score.status is TrialStatus.ERROR:
            raise GateFailed(f"{self.variant.name} could not answer {self.case.id}: {plain(str(trial.error))}")


class GateTest(MatrixItem):
    """One gate of one variant: passes when it holds, and is skipped with the reason when it cannot tell."""

    def __init__(self, *, gate: GateItem, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.gate = gate
        self.add_marker(f"matrix_{gate.aspect}")

    def runtest(self) -> None:
        """Measure what the selected gates need, judge them together, and tell what this one comes to."""
        try:
            findings = self.plugin.session.findings(self.variant, self.gate)
        except VariantFailed as failed:
            self.end_with(failed)
        self.user_properties.extend(gate_properties(findings, self.gate.scope))
        conclude(findings, self.plugin.settings)


class BudgetTest(MatrixItem):
    """One budget of one variant against the reference: fails when even the most favourable value breaks it."""

    def __init__(self, *, budget: BudgetItem, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.budget = budget
        self.add_marker("matrix_budget")

    def runtest(self) -> None:
        """Measure both sides if they were not, and hold one against the other."""
        try:
            loss = self.plugin.session.cost(self.variant, self.budget)
        except VariantFailed as failed:
            self.end_with(failed)
        if loss is not None:
            self.user_properties.extend(budget_properties(loss))
        judged = judge_budget(loss, self.budget, strict=self.plugin.settings.strict)
        if judged.outcome == "fails":
            raise GateFailed(plain(judged.text))
        if judged.outcome == "skips":
            pytest.skip(plain(judged.text))


def conclude(findings: Sequence[Finding], settings: Settings) -> None:
    """Fail, skip or pass a gate. The worst finding of a gate speaks for it."""
    order = {verdict: rank for rank, verdict in enumerate(Verdict)}
    ranked = sorted(findings, key=lambda finding: order[finding.verdict])
    broken = [
        finding
        for finding in ranked
        if failing.fails(finding, strict=settings.strict, require_baselines=settings.require_baselines)
        and not failing.is_accepted(finding, settings.update)
    ]
    if broken:
        raise GateFailed("\n\n".join(explain(finding) for finding in broken))
    if not ranked:
        pytest.skip("NOT_MEASURED: this run holds nothing that the gate could judge")
    worst = ranked[0]
    if worst.verdict not in (Verdict.PASS, Verdict.IMPROVED):
        accepting = f" (being accepted: {settings.reason})" if failing.is_accepted(worst, settings.update) else ""
        pytest.skip(f"{worst.verdict}: {worst.sentence}{accepting}")


def raise_failed(failed: VariantFailed, settings: Settings) -> NoReturn:
    """The first item of a failed variant fails and tells all; the others only point at it."""
    failure = failed.failure
    lenient = failure.verdict is Verdict.NOT_MEASURED and not (settings.strict or settings.require_baselines)
    if lenient or not failed.first:
        told = plain(failure.reason) if lenient else "its first failure says why"
        pytest.skip(f"{failure.variant} is {failure.verdict}: {told}")
    detail = f"\n\n{plain(failure.detail)}" if failure.detail else ""
    raise GateFailed(f"{failure.variant} is {failure.verdict}: {plain(failure.reason)}{detail}")


class MatrixFile(pytest.File):
    """The matrix file as a collector: cases × variants, then the gates."""

    plugin: MatrixPlugin

    def collect(self) -> Iterator[MatrixItem]:
        """Every item, readable by its name: ``test_case[q4_k_m-math/apples]``, ``test_speed[q4_k_m-short-decode_tok_s]``."""
        plan, only = self.plugin.question.plan, self.plugin.settings.only
        for variant in plan.asked_for:
            common: dict[str, Any] = {"plugin": self.plugin, "variant": variant}
            if only in (None, "answers"):
                for case in plan.cases:
                    yield CaseItem.from_parent(self, name=f"test_case[{variant.name}-{case.id}]", case=case, **common)
            for gate in plan.gates:
                if only in (None, *parts_of(gate.aspect is Aspect.QUALITY, gate.metric in FIDELITY)):
                    yield GateTest.from_parent(self, name=name_gate(variant, gate), gate=gate, **common)
            for budget in plan.budgets if variant.old_of is None and not variant.reference else ():
                if only in (None, *parts_of(budget.metric in QUALITY, budget.metric in FIDELITY)):
                    yield BudgetTest.from_parent(self, name=budget.name(variant.name), budget=budget, **common)


def parts_of(quality: bool, fidelity: bool) -> tuple[Phase, ...]:
    """The parts of the work, as ``--matrix-only`` names them, that a gate belongs to."""
    if not quality:
        return ("speed",)
    return ("answers", "fidelity") if fidelity else ("answers",)


def name_gate(variant: Variant, gate: GateItem) -> str:
    """``test_quality[q4_k_m-math-score]``; memory has one scope only, which is left out."""
    scope = "" if gate.aspect is Aspect.MEMORY else f"-{gate.scope}"
    return f"test_{gate.aspect}[{variant.name}{scope}-{gate.metric}]"
