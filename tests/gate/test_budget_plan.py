"""Budgets of the matrix file: checked by name, planned as test items, judged from losses."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from suite.errors import MatrixFileError
from suite.gate.budget_plan import BUDGETED, BudgetItem, find_loss, judge_budget, merge_budgets, plan_budgets
from suite.metrics.catalog import SPECS
from suite.records import Budget, Gate, Loss, Scenario

BLOCK, WARN, INFO = (Budget(limit=0.05, gate=gate) for gate in (Gate.BLOCK, Gate.WARN, Gate.INFO))
SCENARIOS = [Scenario(name=name, prompt_tokens=8, new_tokens=4) for name in ("short", "long")]
ITEM = BudgetItem("score", "all")


def loss(**changes: Any) -> Loss:
    made = Loss(
        variant="q4", metric="score", scope="all", value=0.2, interval=(0.1, 0.3), n=50, budget=BLOCK,
        answer="over budget", sentence="20 points below",
    )  # fmt: skip
    return dataclasses.replace(made, **changes)


def test_there_are_no_budgets_by_default() -> None:
    assert merge_budgets({}, where="matrix.toml") == {}


def test_every_name_that_can_have_a_budget_is_in_the_catalogue() -> None:
    assert set(BUDGETED) <= set(SPECS)
    assert set(merge_budgets(dict.fromkeys(BUDGETED, INFO), where="m")) == set(BUDGETED)


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("scores", "did you mean 'score'?"),
        ("decode_tok_s", "'decode_tok_s' cannot have a budget"),
        ("loops/math", "'loops' cannot have a budget"),
        ("peak_rss_bytes/short", "write 'budget.peak_rss_bytes'"),
        ("score/", "write 'budget.score'"),
    ],
)
def test_an_unknown_name_is_an_error_that_says_where_and_what_is_known(key: str, told: str) -> None:
    with pytest.raises(MatrixFileError, match=r"matrix\.toml") as raised:
        merge_budgets({key: INFO}, where="matrix.toml")
    assert told in str(raised.value)
    assert f"budget.{key}" in str(raised.value)


def test_every_fault_is_told_at_once() -> None:
    with pytest.raises(MatrixFileError) as raised:
        merge_budgets({"scores": INFO, "exact": Budget(limit=float("nan")), "empty": Budget(limit=-1.0)}, where="m")
    assert len(str(raised.value).splitlines()) == 3


def test_only_budgets_that_block_or_warn_are_items() -> None:
    budgets = {"score": BLOCK, "score/math": WARN, "exact": INFO, "peak_rss_bytes": BLOCK}
    assert plan_budgets(budgets, SCENARIOS, ["math", "code"]) == (
        BudgetItem("score", "all"),
        BudgetItem("score", "math"),
        BudgetItem("peak_rss_bytes", "all"),
    )


def test_a_speed_up_is_an_item_of_each_scenario_that_has_none_of_its_own() -> None:
    items = plan_budgets({"speedup": BLOCK, "speedup/long": INFO}, SCENARIOS, [])
    assert items == (BudgetItem("speedup", "short"),)


def test_without_cases_no_answer_has_an_item() -> None:
    assert plan_budgets({"score": BLOCK, "peak_rss_bytes": BLOCK}, SCENARIOS, []) == (
        BudgetItem("peak_rss_bytes", "all"),
    )


def test_the_test_id_is_readable() -> None:
    assert ITEM.name("q4_k_m") == "test_budget[q4_k_m-all-score]"


@pytest.mark.parametrize(
    ("answer", "budget", "outcome", "strictly"),
    [
        ("within budget", BLOCK, "passes", "passes"),
        ("over budget", BLOCK, "fails", "fails"),
        ("over budget", WARN, "skips", "skips"),
        ("cannot tell", BLOCK, "skips", "fails"),
        ("cannot tell", WARN, "skips", "skips"),
        ("not measured", BLOCK, "skips", "fails"),
    ],
)
def test_only_a_blocking_budget_that_is_surely_broken_fails(
    answer: Any, budget: Budget, outcome: str, strictly: str
) -> None:
    found = loss(answer=answer, budget=budget)
    item = BudgetItem("score", "all", budget.gate)
    judged = judge_budget(found, item)
    assert (judged.outcome, judged.text) == (outcome, f"{answer}: 20 points below")
    assert judge_budget(found, item, strict=True).outcome == strictly


@pytest.mark.parametrize(("gate", "strictly"), [(Gate.BLOCK, "fails"), (Gate.WARN, "skips")])
def test_a_budget_that_warns_fails_nothing_for_want_of_numbers_either(gate: Gate, strictly: str) -> None:
    (item,) = plan_budgets({"score": Budget(limit=0.05, gate=gate)}, SCENARIOS, ["math"])
    whole = loss(answer="not measured", value=None, budget=None)
    assert judge_budget(None, item, strict=True).outcome == strictly
    assert judge_budget(whole, item, strict=True).outcome == strictly


def test_a_scope_that_the_run_does_not_hold_is_skipped_by_name() -> None:
    judged = judge_budget(None, BudgetItem("score", "mth"))
    assert judged.outcome == "skips"
    assert "'mth'" in judged.text


def test_a_variant_without_any_numbers_answers_all_its_items_with_the_reason() -> None:
    whole = loss(answer="not measured", value=None, sentence="q4 is ERROR")
    assert find_loss([whole], "q4", BudgetItem("speedup", "short")) is whole
    assert find_loss([whole], "q8", BudgetItem("speedup", "short")) is None
    assert find_loss([loss()], "q4", BudgetItem("speedup", "short")) is None
