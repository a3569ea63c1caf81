"""What a variant may cost against the reference of the same run: budgets of the matrix file, and the test items they make.

Nothing has a budget unless the matrix file names one: what a loss is worth is for people to say. A budget that only informs
has no test item. Each budget is judged alone: "over budget" leaves a chance of at most 2.5 % that the truth is within it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from suite.errors import MatrixFileError
from suite.gate.policy import metric_of
from suite.metrics.kinds import belongs
from suite.records import ALL, Budget, Gate, Loss, Scenario
from suite.schema import nearest

ANSWERS = ("score", "exact", "output_tokens", "truncated", "empty", "unparsable", "looping")
"""Quantities of a variant's answers, for every domain and over all."""

FIDELITY = ("mean_kld",)
"""Quantities of how far a variant is from the reference, likewise."""

QUALITY = (*ANSWERS, *FIDELITY)

MEMORY = ("peak_rss_bytes", "peak_device_bytes")

BUDGETED = (*QUALITY, "speedup", *MEMORY)
"""What can have a budget: ``metric``, or ``metric/domain`` for answers and fidelity, and ``speedup/scenario``."""


@dataclass(frozen=True, slots=True, order=True)
class BudgetItem:
    """One budget of one variant that is a test item of its own."""

    metric: str
    scope: str
    gate: Gate = field(default=Gate.BLOCK, compare=False)

    def name(self, variant: str) -> str:
        """The test id: ``test_budget[q4_k_m-all-score]``."""
        return f"test_budget[{variant}-{self.scope}-{self.metric}]"


@dataclass(frozen=True, slots=True)
class Judged:
    """What a budget's test item does, and the text that it shows."""

    outcome: Literal["passes", "fails", "skips"]
    text: str


def merge_budgets(overrides: Mapping[str, Budget], *, where: str) -> Mapping[str, Budget]:
    """The budgets of a matrix file, checked. There are none by default.

    Raises MatrixFileError, with one line for each fault, for an unknown metric, for a scope that its metric does not have,
    and for a limit that is negative or not finite.
    """
    faults = [fault for key, budget in overrides.items() for fault in _faults(key, budget)]
    if faults:
        raise MatrixFileError("\n".join(f"{where}: {fault}" for fault in faults))
    return MappingProxyType(dict(overrides))


def budget_for(budgets: Mapping[str, Budget], metric: str, scope: str) -> Budget | None:
    """The budget of ``metric/scope``, else that of ``metric``, which for answers means all of them and no single domain."""
    return budgets.get(f"{metric}/{scope}") or (budgets.get(metric) if scope == ALL or metric == "speedup" else None)


def plan_budgets(
    budgets: Mapping[str, Budget], scenarios: Sequence[Scenario], domains: Iterable[str]
) -> tuple[BudgetItem, ...]:
    """The budgets that block or warn, as items of every variant but the reference; call it only where there is one.

    Without any case there are none on answers. A scope that no case or scenario has still makes an item, which then says
    that nothing was measured: a budget never goes unheard because of a misspelt name.
    """
    answered = bool(list(domains))
    return tuple(
        BudgetItem(metric_of(key), scope, budget.gate)
        for key, budget in budgets.items()
        if budget.gate is not Gate.INFO
        if answered or metric_of(key) not in QUALITY
        for scope in _scopes(key, budgets, scenarios)
    )


def find_loss(losses: Iterable[Loss], variant: str, item: BudgetItem) -> Loss | None:
    """The loss that decides an item; that of the whole variant when it has no numbers at all; None when there is neither."""
    own = {(loss.metric, loss.scope): loss for loss in losses if loss.variant == variant}
    whole = own.get(("score", ALL))
    return own.get((item.metric, item.scope)) or (whole if whole and whole.answer == "not measured" else None)


def judge_budget(loss: Loss | None, item: BudgetItem, *, strict: bool = False) -> Judged:
    """What the item of a budget does with the loss that `find_loss` found.

    It fails when a budget that blocks is broken even by the most favourable value of the interval; one that warns is
    skipped with the sentence. What cannot be told, or was not measured, is skipped too, and fails under `strict` if it blocks.
    """
    blocks = item.gate is Gate.BLOCK
    if loss is None:
        return Judged(
            "fails" if strict and blocks else "skips",
            f"not measured: this run holds no {item.metric} of '{item.scope}'",
        )
    text = f"{loss.answer}: {loss.sentence}"
    match loss.answer:
        case "within budget" | "no budget":
            return Judged("passes", text)
        case "over budget":
            return Judged("fails" if blocks else "skips", text)
        case "cannot tell" | "not measured":
            return Judged("fails" if strict and blocks else "skips", text)


def _scopes(key: str, budgets: Mapping[str, Budget], scenarios: Sequence[Scenario]) -> list[str]:
    metric, _, scope = key.partition("/")
    if scope:
        return [scope]
    if metric != "speedup":
        return [] if f"{metric}/{ALL}" in budgets else [ALL]
    timed = [scenario.name for scenario in scenarios if belongs("decode_tok_s", scenario)]
    return [name for name in timed if f"{metric}/{name}" not in budgets]


def _faults(key: str, budget: Budget) -> list[str]:
    metric, slash, scope = key.partition("/")
    faults = []
    if metric not in BUDGETED:
        faults.append(f"key 'budget.{key}': '{metric}' cannot have a budget; {nearest(metric, BUDGETED)}")
    elif slash and (not scope or (metric in MEMORY and scope != ALL)):
        faults.append(f"key 'budget.{key}': no such scope; write 'budget.{metric}'")
    if not math.isfinite(budget.limit) or budget.limit < 0:
        faults.append(f"key 'budget.{key}.limit': must be a finite number, 0 or more (got {budget.limit!r})")
    return faults
