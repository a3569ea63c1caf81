"""Names of scorers become scorers, and cases that do not fit them are refused."""

from __future__ import annotations

import re
from typing import Any

import pytest

from suite.errors import CaseFileError, UsageError
from suite.records import Case, Generation, ScorerSpec
from suite.scorers import BUILT_IN, check_case, grade, identify, resolve


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """The module of a user's own scorers, importable as it would be beside a user's tests."""
    monkeypatch.syspath_prepend(str(request.path.parent))
    return "own_scorers"


def make_case(name: str, target: str = "18", **options: Any) -> Case:
    return Case(
        id="math/example",
        domain="math",
        version=1,
        prompt="How many?",
        target=target,
        scorer=ScorerSpec(name=name, options=options),
        max_new_tokens=16,
        source="cases/math/a.toml: case 'example'",
    )


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


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_every_built_in_scorer_resolves_under_its_own_name(name: str) -> None:
    scorer = resolve(name)
    assert (scorer.name, scorer.version) == (name, 1)


def test_a_class_of_ones_own_takes_the_options_of_the_case(own: str) -> None:
    case = make_case(f"{own}:Polite", word="thanks")
    assert grade(case, answer("18, thanks")).value == 1.0
    assert identify(case.scorer) == f"{own}:Polite@3(word='thanks')"


def test_a_plain_function_is_a_scorer(own: str) -> None:
    assert grade(make_case(f"{own}:short"), answer("18")).value == 1.0
    assert grade(make_case(f"{own}:short", limit=1), answer("18")).value == 0.0


def test_a_ready_made_object_is_a_scorer(own: str) -> None:
    assert grade(make_case(f"{own}:ready"), answer("thanks")).value == 1.0


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("nubmer", {}, "unknown scorer 'nubmer'; did you mean 'number'?"),
        ("number", {"tolerence": 1}, "unknown key 'tolerence'; did you mean 'tolerance'?"),
        ("fuzzy", {"method": "partial"}, "key 'method'"),
        ("fuzzy", {"threshold": "high"}, "key 'threshold'"),
        ("no_such_module:Scorer", {}, "module 'no_such_module' cannot be imported"),
        ("own_scorers:Rude", {}, "module 'own_scorers' has no 'Rude'"),
        ("own_scorers:Polite", {"wrd": "x"}, "does not take the options ['wrd']"),
        ("own_scorers:short", {"limt": 1}, "does not take the options ['limt']"),
        ("own_scorers:ready", {"word": "x"}, "takes no options"),
        ("own_scorers:nonsense", {}, "is no scorer"),
    ],
)
@pytest.mark.usefixtures("own")
def test_what_cannot_be_resolved_is_refused(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        resolve(name, options)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (make_case("number", "eighteen"), "target 'eighteen' holds no number"),
        (make_case("number", tolerance=-1.0), "'tolerance' must not be below 0"),
        (make_case("choice", "E"), "target 'E' is none of the choices: A, B, C, D"),
        (make_case("choice", "A", choices=["A"]), "needs at least two labels"),
        (make_case("exact", "..."), "only punctuation"),
        (make_case("fuzzy", "?"), "only punctuation"),
        (make_case("fuzzy", threshold=80.0), "'threshold' must be above 0 and at most 1"),
        (make_case("nubmer"), "did you mean 'number'?"),
    ],
)
def test_a_case_that_does_not_fit_its_scorer_is_refused_with_its_place(case: Case, message: str) -> None:
    with pytest.raises(CaseFileError, match=re.escape(message)) as refused:
        check_case(case)
    assert all(line.startswith(case.source) for line in str(refused.value).splitlines())


def test_a_case_that_fits_passes_the_check() -> None:
    check_case(make_case("number", "1,000"))


def test_the_same_options_in_another_order_are_the_same_scorer() -> None:
    one = ScorerSpec(name="fuzzy", options={"threshold": 0.9, "method": "ratio"})
    other = ScorerSpec(name="fuzzy", options={"method": "ratio", "threshold": 0.9})
    assert identify(one) == identify(other) == "fuzzy@1(method='ratio', threshold=0.9)"
    assert identify(ScorerSpec(name="fuzzy")) != identify(one)
