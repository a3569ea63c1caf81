"""Every answer in answers.toml is graded as it says."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from suite.records import Case, Generation, ScorerSpec
from suite.scorers import grade

TABLE = tomllib.loads((Path(__file__).parent / "answers.toml").read_text(encoding="utf-8"))
ROWS = [pytest.param(scorer, row, id=f"{scorer}-{row['why']}") for scorer, rows in TABLE.items() for row in rows]


def make_case(scorer: str, target: str, options: dict[str, Any]) -> Case:
    return Case(
        id="math/example",
        domain="math",
        version=1,
        prompt="How many?",
        target=target,
        scorer=ScorerSpec(name=scorer, options=options),
        max_new_tokens=16,
    )


def make_generation(text: str, *, truncated: bool = False) -> Generation:
    return Generation(
        token_ids=(1,),
        text=text,
        finish_reason="length" if truncated else "stop",
        prompt_tokens=1,
        evaluated_tokens=1,
        prefill_s=0.1,
        token_times_s=(0.1,),
    )


@pytest.mark.parametrize(("scorer", "row"), ROWS)
def test_an_answer_is_graded_as_the_table_says(scorer: str, row: dict[str, Any]) -> None:
    case = make_case(scorer, row["target"], row.get("options", {}))
    score = grade(case, make_generation(row["answer"], truncated=row.get("truncated", False)))
    assert score.status == row.get("status", "scored"), score
    assert score.correct == row.get("correct"), score
    if "status" in row:
        assert score.value is None
        assert score.explanation or row["answer"].isspace()
    else:
        assert score.value is not None
        assert 0 <= score.value <= 1
        assert score.rule
    for key, field in (("rule", "rule"), ("found", "answer"), ("value", "value")):
        if key in row:
            assert getattr(score, field) == row[key]
