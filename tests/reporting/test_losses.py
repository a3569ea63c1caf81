"""The section on the reference: one line a variant, in any width, and words for what is not within its budget."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from suite.records import Budget, Gate, Loss
from suite.reporting.hostile import columns
from suite.reporting.losses import loss_lines, loss_markdown


def loss(metric: str, value: float | None, scope: str = "all", **changes: Any) -> Loss:
    made = Loss(variant="q4_k_m", metric=metric, scope=scope, value=value, interval=None, n=77)
    return replace(made, **changes)


def usual(variant: str = "q4_k_m", **changes: Any) -> list[Loss]:
    """The losses of one variant; `changes` are those of its score over all."""
    score = loss("score", 0.039, interval=(-0.012, 0.099), lost=5, gained=2, mde=0.101)
    made = [
        replace(score, **changes),
        loss("score", 0.1, "math", interval=(-0.02, 0.3), lost=3, gained=1, mde=0.3),
        loss("output_tokens", 1.02, interval=(0.98, 1.06)),
        loss("looping", 0.026, interval=(-0.02, 0.09), lost=3, gained=1),
        loss("speedup", 2.38, "short", interval=(2.31, 2.45), n=5),
        loss("speedup", 1.5, "long_prompt", interval=(1.4, 1.6), n=5),
        loss("peak_rss_bytes", 0.27, n=5),
    ]
    return [replace(one, variant=variant) for one in made]


def test_the_speed_up_is_that_of_the_scenario_that_the_report_speaks_of() -> None:
    """Whatever comes first: a variant may be unable to do another one."""
    losses = [loss("speedup", None, "deep", answer="not measured"), *usual()]
    for told in (loss_lines(losses, 160, scenario="short")[2], loss_markdown(losses, scenario="short")):
        assert "2.38× [2.31, 2.45]" in told
    assert "1.50×" in loss_lines(losses, 160, scenario="long_prompt")[2]


def test_without_a_reference_there_is_no_section() -> None:
    assert loss_lines([], 80) == []
    assert loss_markdown([]) == ""


def test_one_line_tells_flips_net_loss_length_loops_speed_and_memory() -> None:
    heading, heads, row, *_ = loss_lines(usual(), 160, reference="fp16")
    assert heading.startswith(" against the reference fp16 in this run")
    assert loss_lines(usual(), 160)[0].startswith(" against the reference of the stored trace (")
    assert heads.split() == [
        "variant",
        "lost",
        "gained",
        "net",
        "loss",
        "length",
        "loops",
        "speed-up",
        "memory",
        "answer",
    ]
    assert " ".join(row.split()) == "q4_k_m 5 2 3.9 [−1.2, 9.9] 1.02× +2 2.38× [2.31, 2.45] 0.27× no budget"


@pytest.mark.parametrize("width", [40, 60, 80, 100, 160])
def test_the_table_never_wraps_and_keeps_loss_and_answer(width: int) -> None:
    _, *text = loss_lines([*usual(), *usual("q8_0")], width, reference="fp16")
    table = [line for line in text if line.startswith((" variant", " q4_k_m", " q8_0"))]
    assert len(table) == 3
    assert all(columns(line) <= width for line in text)
    assert all("no budget" in line and "3.9 [−1.2, 9.9]" in line for line in table[1:])


def test_a_broken_budget_is_told_in_words_before_one_that_cannot_be_told() -> None:
    budget = Budget(limit=0.05, gate=Gate.BLOCK)
    unsure = usual("q8_0", budget=budget, answer="cannot tell", sentence="q8_0: cannot tell with 77 cases")
    broken = usual(budget=budget, answer="over budget", sentence="q4_k_m: over the budget of 5.0 points")
    text = loss_lines([*unsure, *broken], 100)
    told = [line.strip() for line in text if line.startswith("   ")]
    assert told[0] == "OVER BUDGET q4_k_m: over the budget of 5.0 points"
    assert told[1] == "CANNOT TELL q8_0: cannot tell with 77 cases"


def test_the_answer_of_a_variant_is_its_worst() -> None:
    held = [replace(one, budget=Budget(limit=1.0), answer="within budget") for one in usual()]
    held[2] = replace(held[2], answer="over budget")
    assert loss_lines(held, 160)[2].endswith("over budget")
    assert loss_lines(usual(budget=Budget(limit=1.0), answer="within budget"), 160)[2].endswith("within budget")


def test_what_could_not_have_been_seen_is_said_where_no_budget_says_it() -> None:
    assert "   with 77 independent cases a loss of score below 10.1 points would not be seen" in loss_lines(
        usual(), 160
    )
    assert any("no loss of score, however large" in line for line in loss_lines(usual(mde=None), 160))


def test_a_variant_that_failed_is_a_row_of_dashes_with_the_reason() -> None:
    failed = loss("score", None, n=0, answer="not measured", sentence="q4_k_m: score (all) was not measured: ERROR")
    _, _, row, *told = loss_lines([failed], 120)
    assert row.split() == ["q4_k_m", *"–––––––", "not", "measured"]
    assert told == ["   NOT MEASURED q4_k_m: score (all) was not measured: ERROR"]


def test_markdown_adds_the_domains_and_escapes_what_libraries_said() -> None:
    failed = loss("score", None, variant="q8_0", answer="not measured", sentence="<b>|\x1b[31m broken")
    text = loss_markdown([*usual(), failed], reference="fp16")
    assert "## Against the reference fp16 in this run" in text
    assert "| `q4_k_m` | math | 3 | 1 | 10.0 [−2.0, 30.0] | 30.0 | no budget |" in text
    assert "&lt;b&gt;\\|" in text
    assert "\x1b" not in text
    widths = {line.count(" | ") for line in text.splitlines() if line.startswith(("| `q4_k_m` |", "| variant"))}
    assert widths == {8, 6}


def test_hostile_text_reaches_no_terminal() -> None:
    failed = loss("score", None, answer="not measured", sentence="died\x1b]0;owned\x07 here")
    assert "\x1b" not in "".join(loss_lines([failed], 80))
