"""A budget that blocks is a test: what a variant may cost against the reference of the same run."""

from __future__ import annotations

import pytest
from support.foreign_project import ForeignProject, junit_properties

BUDGET = """
[budget.speedup]
limit = {limit}
gate = "block"
"""


def with_budget(project: ForeignProject, limit: float) -> None:
    project.write_matrix({"f16": {"reference": True}, "q4": {"options": {"decode_tok_s": 200.0}}})
    file = project.root / "matrix.toml"
    file.write_text(file.read_text() + BUDGET.format(limit=limit))


def test_a_speed_up_within_its_budget_passes_and_one_below_it_fails(project: ForeignProject) -> None:
    with_budget(project, 1.5)
    assert project.run("-k", "test_budget").ret == 0

    with_budget(project, 3.0)
    broken = project.run("-k", "test_budget")
    assert broken.ret == 1
    broken.stdout.fnmatch_lines(["*test_budget[[]q4-short-speedup[]]*", "*over budget: *"])


def test_junit_tells_what_it_costs(project: ForeignProject) -> None:
    with_budget(project, 3.0)
    project.run("-k", "test_budget", "--junitxml=junit.xml")
    told = junit_properties(project.root / "junit.xml", "test_budget[q4-short-speedup]")
    assert (told["quantdrift.answer"], told["quantdrift.limit"], told["quantdrift.gate"]) == (
        "over budget",
        "3",
        "block",
    )
    assert float(told["quantdrift.loss"]) == pytest.approx(2, rel=0.05)


def test_the_price_is_told_beside_the_table_and_in_the_run(project: ForeignProject) -> None:
    with_budget(project, 1.5)
    result = project.run()
    result.stdout.fnmatch_lines(["*against the reference f16*"])
    losses = {(loss["metric"], loss["scope"]): loss for loss in project.read_run()["losses"]}
    assert losses["speedup", "short"]["answer"] == "within budget"
    assert losses["score", "all"]["answer"] == "no budget"


def test_a_budget_needs_a_reference(project: ForeignProject) -> None:
    project.write_matrix({"q4": {}})
    file = project.root / "matrix.toml"
    file.write_text(file.read_text() + BUDGET.format(limit=1.5))
    status, told = project.refuse()
    assert status == 2
    assert "none is marked reference = true" in told
