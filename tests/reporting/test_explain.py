"""What ``quantdrift explain`` shows."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import replace

import pytest
from support import sample_fidelity as fidelity
from support import sample_runs as sample
from support import sample_stories as stories

from suite.records import Run, Verdict
from suite.reporting.explain import Asked, explain_lines
from suite.reporting.hostile import columns

CheckGolden = Callable[[str, str], None]


def shown(run: Run, variant: str | None = None, case: str | None = None, width: int = 100) -> str:
    return "\n".join(explain_lines(run, Asked(variant=variant, case=case, width=width))) + "\n"


@pytest.mark.parametrize(("name", "variant", "case", "width"), [
    ("damaged-explain-80.txt", None, None, 80),
    ("damaged-explain-variant-160.txt", "q4_k_m", None, 160),
    ("damaged-explain-case-80.txt", "q5_k_m", "math/apples", 80),
])  # fmt: skip
def test_explanation(name: str, variant: str | None, case: str | None, width: int, check_golden: CheckGolden) -> None:
    check_golden(name, shown(fidelity.damaged(), variant, case, width))


@pytest.mark.parametrize("width", [40, 60, 79, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    text = shown(fidelity.damaged(), width=width)
    assert all(columns(line) <= width for line in text.splitlines())


def test_hostile_answers_reach_no_terminal() -> None:
    run = fidelity.damaged()
    attack = "3 boxes\x1b[2J\x1b]0;owned\x07 \u202egnp.exe\x00\r\nand more"
    trials = tuple(
        replace(
            trial,
            generation=replace(trial.generation, text=attack),
            score=sample.score(correct=False, answer=attack),
        )
        if trial.variant == "q4_k_m" and trial.case == "math/apples" and trial.generation
        else trial
        for trial in run.trials
    )
    lost = sample.failed("q8_0", Verdict.ERROR, f"failed: {attack}")
    variants = tuple(lost if r.variant.name == "q8_0" else r for r in run.variants)
    text = shown(replace(run, trials=trials, variants=variants, model=f"m {attack}"))
    assert not [c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs")]
    assert "owned" not in text
    assert "⏎and more" in text


def test_only_some_flips_are_shown_whole_unless_a_variant_is_asked_for() -> None:
    run = fidelity.damaged()
    more = [
        fidelity.answered(name, f"code/case-{number}", name, ids, correct=right, answer="1")
        for number in range(6)
        for name, ids, right in (("fp16", (1, 2), True), ("q4_k_m", (1, 3), False))
    ]
    wide = replace(run, trials=(*run.trials, *more))
    text = shown(wide, width=300)
    assert "and 5 more: " in text
    assert "all of them with --variant q4_k_m" in text
    assert shown(wide, "q4_k_m").count("they part at position") == 8


def test_without_the_reference_the_baseline_is_what_answers_are_held_against() -> None:
    worse = stories.worse()
    names = [name for name in sample.VARIANTS if name != "fp16"]
    results = [fidelity.measured(name) for name in names]
    run = sample.run(results, findings=worse.findings, forced=fidelity.damaged().forced)
    text = shown(run, "q4_k_m")
    assert "The reference answered nothing in this run" in text
    assert "q4_k_m against the reference trace" in text
    assert "since the baseline 3 flipped to wrong: math/apples, math/ferry, math/korean-trains" in text
    assert "since the baseline 1 flipped to right: math/coins" in text
    assert "first departures: 4 of 6 answers" in text
    assert "The answer is 18." in shown(run, "q4_k_m", "math/apples")


def test_the_reference_is_shown_when_it_is_asked_for_and_not_otherwise() -> None:
    assert "fp16 is the reference" in shown(fidelity.damaged(), "fp16")
    assert "fp16 is the reference" not in shown(fidelity.damaged())


def test_a_failed_variant_says_why() -> None:
    text = shown(stories.invalid(), "q4_k_m")
    assert "INVALID: token ids differ from fp16's at position 3 of case code/reverse" in text


def test_prompts_of_other_token_ids_are_a_cause() -> None:
    run = fidelity.damaged()
    trials = tuple(replace(t, prompt_sha256="cd" * 32) if t.variant == "q4_k_m" else t for t in run.trials)
    text = shown(replace(run, trials=trials), "q4_k_m")
    assert "6 prompts of 6 have other token ids than fp16's" in text
    assert "how close it was is not known: the prompts have other token ids" in text


def test_a_run_without_fidelity_still_tells_what_flipped() -> None:
    text = shown(replace(fidelity.damaged(), forced=()), "q4_k_m")
    assert "math/apples: right → wrong" in text
    assert "it was not taken through the reference trace of this case" in text
    assert "first departures" not in text
    assert "fidelity was not measured of it in this run" in shown(sample.run(), "q4_k_m")


def test_broken_logits_are_told() -> None:
    run = fidelity.damaged()
    broken = tuple(replace(one, broken=(4, 5)) if one.variant == "q4_k_m" else one for one in run.forced)
    text = shown(replace(run, forced=broken), "q4_k_m", width=300)
    assert "logits are no numbers at 18 positions: code/apples from position 4 (batched)" in text


def test_fidelity_of_a_part_of_the_cases_is_told_and_not_denied() -> None:
    run = fidelity.damaged()
    part = replace(
        run,
        variants=tuple(
            replace(r, measurements=tuple(m for m in r.measurements if m.metric != "mean_kld")) for r in run.variants
        ),
    )
    text = shown(part, "q4_k_m")
    assert "fidelity was not measured" not in text
    assert "too few to be held against anything" in text
    assert "fidelity was not measured" in shown(replace(part, forced=()), "q4_k_m")
