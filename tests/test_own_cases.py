"""The cases that ship with the repository are sound: they validate, and their own solutions and targets score fully."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from suite.cases import load_cases
from suite.records import Case, Generation
from suite.scorers import check_case, grade

DIRECTORY = Path(__file__).resolve().parents[1] / "cases"
CASES = load_cases(DIRECTORY, check=check_case)
WITH_CODE = [case for case in CASES if case.solution is not None]


def by_id(cases: list[Case]) -> list[object]:
    return [pytest.param(case, id=case.id) for case in cases]


def answer(text: str) -> Generation:
    return Generation(
        token_ids=(1,),
        text=text,
        finish_reason="stop",
        prompt_tokens=1,
        evaluated_tokens=1,
        prefill_s=0.1,
        token_times_s=(0.1,),
    )


def count(domain: str, tag: str | None = None) -> int:
    return sum(case.domain == domain and (tag is None or tag in case.tags) for case in CASES)


@pytest.mark.parametrize("domain", ["code", "math", "reasoning"])
def test_each_domain_has_at_least_24_cases(domain: str) -> None:
    assert count(domain) >= 24


@pytest.mark.parametrize(("domain", "least"), [("code", 2), ("math", 3), ("reasoning", 3)])
def test_each_domain_has_korean_cases_that_are_korean(domain: str, least: int) -> None:
    assert count(domain, "korean") >= least
    for case in CASES:
        in_hangul = any("가" <= letter <= "힣" for letter in case.prompt)
        assert in_hangul == ("korean" in case.tags) == (case.language == "ko"), case.id


@pytest.mark.parametrize("domain", ["math", "reasoning"])
def test_long_answers_end_in_an_anchor_that_the_prompt_asks_for(domain: str) -> None:
    long = [case for case in CASES if case.domain == domain and "long" in case.tags]
    assert len(long) >= 2
    assert all("####" in case.prompt or "answer is" in case.prompt for case in long)
    assert all(case.max_new_tokens >= 96 for case in long)


def test_all_the_cases_fit_into_a_short_run() -> None:
    budgets = [case.max_new_tokens for case in CASES]
    assert max(budgets) <= 160
    assert sum(budgets) / len(budgets) <= 48


def test_no_choice_is_right_so_often_that_a_constant_answer_pays() -> None:
    for domain in ("math", "reasoning", "code"):
        targets = Counter(case.target for case in CASES if case.domain == domain)
        assert targets.most_common(1)[0][1] / targets.total() <= 0.25


def test_a_family_is_more_than_one_case_of_one_domain() -> None:
    families = {(case.family, case.domain) for case in CASES if case.family}
    sizes = Counter(case.family for case in CASES if case.family)
    assert len(families) == len(sizes)
    assert all(size > 1 for size in sizes.values())


def test_prompts_are_not_repeated() -> None:
    assert len({case.prompt for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", by_id([case for case in CASES if case.scorer.name != "code"]))
def test_the_target_as_an_answer_gets_full_score(case: Case) -> None:
    score = grade(case, answer(case.target))
    assert (score.value, score.correct) == (1.0, True), score


@pytest.mark.parametrize("case", by_id(WITH_CODE))
def test_the_solution_as_an_answer_gets_full_score(case: Case) -> None:
    score = grade(case, answer(f"```python\n{case.solution}```"))
    assert (score.value, score.correct) == (1.0, True), score


def test_solutions_and_alternatives_pass_the_asserts_of_their_case() -> None:
    programs = {}
    for case in WITH_CODE:
        assert case.asserts, f"{case.id} has no asserts"
        for index, source in enumerate([case.solution or "", *case.scorer.options.get("alternatives", ())]):
            programs[f"{case.id}, source {index}"] = source + "\n" + "\n".join(case.asserts)
    # one process for all of them: each runs in a namespace of its own
    run = "try: exec({text!r}, {{}})\nexcept BaseException as failure: print({name!r}, repr(failure))"
    lines = [run.format(name=name, text=text) for name, text in programs.items()]
    done = subprocess.run([sys.executable, "-I", "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    assert done.stdout == ""
