"""What is said of a whole run knows how often its speed was judged: intervals widen with every look."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.bench import CASES, Bench
from support.in_process import make_variant

from suite.engine.assembling import RunHead, assemble
from suite.engine.completing import find_losses
from suite.gate.budget_plan import BudgetItem
from suite.records import Finding, Loss, Run, Variant


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    reference: Variant = dataclasses.replace(make_variant("fp16"), reference=True)
    made = Bench(tmp_path, reference, make_variant("q4", decode_tok_s=150.0, seed=3))
    yield made
    made.session.close()


def width_of(loss: Loss | None) -> float:
    assert loss is not None
    assert loss.interval is not None
    return loss.interval[1] - loss.interval[0]


def test_the_price_of_a_budget_is_told_for_as_many_looks_as_were_spent(bench: Bench) -> None:
    item, (_, variant) = BudgetItem("speedup", "short"), bench.matrix.variants
    once = width_of(bench.session.cost(variant, item))
    ledger = bench.session.ledger
    widths = []
    for looks in (1, 2, 3):
        ledger.looks["q4"] = looks, ledger.launches_of("q4")
        widths.append(width_of(bench.session.cost(variant, item)))
    assert widths[0] == once
    assert widths == sorted(set(widths))
    ledger.looks["q4"] = 1, 0  # launches were added since
    assert width_of(bench.session.cost(variant, item)) == widths[1]


def looked_at(run: Run, finding: Finding, looks: int) -> Run:
    compared = dataclasses.replace(finding.comparison, looks=looks)
    return dataclasses.replace(run, findings=(*run.findings, dataclasses.replace(finding, comparison=compared)))


def test_the_losses_of_a_run_are_told_for_as_many_looks_as_its_findings_saw(bench: Bench) -> None:
    bench.session.time_variants(bench.matrix.variants)
    (finding,) = bench.session.findings(bench.matrix.variants[1], bench.gate("decode_tok_s", "short"))
    head = RunHead(id="r", created="now", suite_version="0", settings={})
    run = assemble(head, bench.session.ledger, bench.matrix, CASES, bench.plan.environment)

    def price(run: Run) -> float:
        found = (loss for loss in find_losses(run) if (loss.metric, loss.scope) == ("speedup", "short"))
        return width_of(next(found))

    once = price(run)
    twice = looked_at(run, finding, 2)
    assert price(twice) > once
    assert price(looked_at(twice, dataclasses.replace(finding, variant="fp16"), 5)) == price(twice)
    assert price(looked_at(twice, finding, 1)) == price(twice)
