"""Code answers are taken out, parsed and compared, and never run."""

from __future__ import annotations

import pytest

from suite.records import Case, ScorerSpec, TrialStatus
from suite.scorers.code import NOT_RUN, Code, extract

SOLUTION = "def double(values):\n    return [value * 2 for value in values]\n"
OTHER = "def double(values):\n    result = []\n    for v in values:\n        result.append(v * 2)\n    return result\n"


def make_case(solution: str | None = SOLUTION, target: str = "double") -> Case:
    return Case(
        id="code/double",
        domain="code",
        version=1,
        prompt="Write double(values).",
        target=target,
        scorer=ScorerSpec(name="code"),
        max_new_tokens=64,
        solution=solution,
    )


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(SOLUTION, id="raw"),
        pytest.param(f"```python\n{SOLUTION}```", id="fenced"),
        pytest.param(f"Sure!\n\n```\n{SOLUTION}```\nIt doubles each value.", id="fenced-in-text"),
        pytest.param(f"Here it is:\n{SOLUTION}\nThis doubles each value.", id="raw-in-text"),
        pytest.param(f"```python\nprint(1)\n```\nand\n```python\n{SOLUTION}```", id="second-fence-defines-it"),
        pytest.param(
            "def double(xs: list) -> list:\n    '''Docs.'''\n    return [x * 2 for x in xs]  # fine", id="renamed"
        ),
    ],
)
def test_the_solution_in_any_wrapping_gets_full_score(answer: str) -> None:
    score = Code()(answer, make_case(), truncated=False)
    assert (score.status, score.value, score.correct) == (TrialStatus.SCORED, 1.0, True)
    assert score.rule is not None
    assert NOT_RUN in score.rule
    assert NOT_RUN in score.explanation


def test_another_way_to_write_it_gets_part_of_the_credit_unless_listed() -> None:
    partly = Code()(OTHER, make_case(), truncated=False)
    assert partly.value is not None
    assert 0 < partly.value < 0.5
    assert partly.correct is False
    assert Code(alternatives=(OTHER,))(OTHER, make_case(), truncated=False).correct is True


def test_one_wrong_operator_never_gets_more_than_the_partial_credit() -> None:
    score = Code()(SOLUTION.replace("*", "+"), make_case(), truncated=False)
    assert score.value is not None
    assert score.value <= 0.5
    assert score.correct is False


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(SOLUTION.replace("double", "twice"), id="another-name"),
        pytest.param(SOLUTION.replace("(values)", "(values, factor)"), id="another-number-of-arguments"),
    ],
)
def test_a_wrong_signature_scores_zero(answer: str) -> None:
    score = Code()(answer, make_case(), truncated=False)
    assert (score.value, score.correct) == (0.0, False)


def test_prose_is_unparsable() -> None:
    score = Code()("I would multiply every value by two.", make_case(), truncated=False)
    assert (score.status, score.value) == (TrialStatus.UNPARSABLE, None)


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        pytest.param(f"```python\n{SOLUTION}```\nIt doubles", TrialStatus.SCORED, id="closed-fence-stands"),
        pytest.param(f"{SOLUTION}\nThis doub", TrialStatus.SCORED, id="followed-by-prose"),
        pytest.param(f"```python\n{SOLUTION}", TrialStatus.TRUNCATED, id="open-fence"),
        pytest.param(OTHER.removesuffix("    return result\n"), TrialStatus.TRUNCATED, id="parses-but-cut-short"),
    ],
)
def test_what_was_cut_short_is_truncated_and_what_stands_is_scored(answer: str, status: TrialStatus) -> None:
    assert Code()(answer, make_case(), truncated=True).status is status


def test_nothing_of_an_answer_is_run(capsys: pytest.CaptureFixture[str]) -> None:
    Code()(f"print('ran')\n{SOLUTION}\nraise SystemExit(3)", make_case(), truncated=False)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("answer", ["```python\n" + "(" * 5000 + "\n```", "def f():\n    return '\x00'", "```\n\n```"])
def test_hostile_source_is_no_source(answer: str) -> None:
    assert extract(answer, "f") is None


@pytest.mark.parametrize(
    ("case", "fault"),
    [
        (make_case(solution=None), "'solution' is missing"),
        (make_case(solution="def double(:"), "is not Python"),
        (make_case(target="triple"), "defines no function 'triple'"),
    ],
)
def test_a_case_that_cannot_be_scored_is_refused(case: Case, fault: str) -> None:
    assert fault in "\n".join(Code().faults(case))
