"""What may be to blame."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support import sample_fidelity as fidelity
from support import sample_runs as sample

from suite.records import Comparison, Tier, Verdict
from suite.reporting.hints import besides_weights, kind_of, other_prompts, since_baseline


@pytest.mark.parametrize(("field", "kind"), [
    ("chat_template.sha256", "template"),
    ("prompt format", "template"),
    ("tokenizer.pre", "tokenizer"),
    ("option.type_k", "decoding"),
    ("decoding", "decoding"),
    ("llama.cpp system", "backend"),
    ("torch", "backend"),
    ("machine.isa", "machine"),
    ("kernel", "machine"),
    ("sha256 of *.Q8_0.gguf", "weights"),
    ("revision", "weights"),
])  # fmt: skip
def test_a_recorded_field_is_about_something(field: str, kind: str) -> None:
    assert kind_of(field) == kind


def changed(*compared: Comparison) -> list[tuple[str, str]] | None:
    findings = tuple(sample.finding(c.unresolved or Verdict.REGRESSED, of=c) for c in compared)
    result = fidelity.measured("q4_k_m")
    changes = since_baseline(sample.run([result], findings=findings), result)
    return None if changes is None else [(hint.kind, hint.text) for hint in changes.hints]


def test_suspects_of_all_gates_on_quality_are_told_once_the_weights_last() -> None:
    one = sample.comparison("score", "math", suspects=("sha256 of a: 1 → 2", "torch: 2.9 → 2.10"))
    other = sample.comparison("mean_kld", "all", suspects=("torch: 2.9 → 2.10", "chat_template.sha256: 3 → 4"))
    speed = sample.comparison(suspects=("governor: a → b",))
    assert changed(one, other, speed) == [
        ("template", "chat_template.sha256: 3 → 4"),
        ("backend", "torch: 2.9 → 2.10"),
        ("weights", "sha256 of a: 1 → 2"),
    ]


def test_what_made_it_another_question_is_told_too() -> None:
    reason = 'option.type_k: "f16" → "q4_0"; every accepted case asks another question'
    asked = sample.comparison("score", "math", unresolved=Verdict.NOT_COMPARABLE, reason=reason)
    assert changed(asked) == [("decoding", 'option.type_k: "f16" → "q4_0"')]


def test_without_a_baseline_there_is_nothing_to_compare_with() -> None:
    assert changed(sample.comparison("score", "math", unresolved=Verdict.UNBASELINED)) is None
    assert changed(sample.comparison()) is None
    assert changed(sample.comparison("broken_logits", "all", tier=Tier.NONE)) is None
    assert changed(sample.comparison("score", "math")) == []


def test_only_weights_is_said_where_nothing_else_changed() -> None:
    result = fidelity.measured("q4_k_m")
    for suspects, only in (
        (("sha256 of a: 1 → 2",), True),
        (("sha256 of a: 1 → 2", "torch: 1 → 2"), False),
        ((), False),
    ):
        found = (sample.finding(of=sample.comparison("score", "math", suspects=suspects)),)
        changes = since_baseline(sample.run([result], findings=found), result)
        assert changes is not None
        assert changes.only_weights is only


def test_two_variants_of_one_engine_may_differ_by_more_than_weights() -> None:
    plain = fidelity.measured("f16", suspects={"llama-cpp-python": "0.3.35", "sha256 of a": "1", "model": "F16"})
    other = fidelity.measured(
        "q4_k_m",
        identity={"prompt format": "chat", "option.type_k": '"q4_0"'},
        suspects={"llama-cpp-python": "0.3.36", "sha256 of a": "2", "model": "Q4_K"},
    )
    assert [(hint.kind, hint.text) for hint in besides_weights(other, plain)] == [
        ("decoding", 'option.type_k: "f16" → "q4_0"'),
        ("backend", "llama-cpp-python: 0.3.35 → 0.3.36"),
    ]
    assert besides_weights(plain, plain) == ()


def test_between_engines_only_template_and_decoding_are_held_against_each_other() -> None:
    theirs = fidelity.measured(
        "fp16", suspects={"tokenizer.sha256": "1", "chat_template.sha256": "3", "n_threads": "2"}
    )
    mine = fidelity.measured("f16", suspects={"tokenizer.sha256": "2", "chat_template.sha256": "4", "n_threads": "1"})
    assert [hint.text for hint in besides_weights(mine, theirs)] == ["chat_template.sha256: 3 → 4"]


def test_prompts_of_other_token_ids_are_named() -> None:
    trials = (
        sample.trial("fp16", "math/a"),
        sample.trial("fp16", "math/b"),
        sample.trial("q4_k_m", "math/a"),
        replace(sample.trial("q4_k_m", "math/b"), prompt_sha256="cd" * 32),
        replace(sample.trial("q4_k_m", "math/alone"), prompt_sha256="ef" * 32),
    )
    said = other_prompts(sample.run(trials=trials), "q4_k_m", "fp16")
    assert said.startswith("1 prompt of 3 have other token ids than fp16's: math/b.")
    assert other_prompts(sample.run(trials=trials[:3]), "q4_k_m", "fp16") == ""
