"""Annotations on the files of a pull request. What a runner makes of a line is decoded here as its own source does."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import sample_runs as sample
from support import sample_stories as stories

from suite.records import Aspect, Finding, Gate, Run, Verdict
from suite.reporting.annotations import MOST, annotate, command

COMMAND = re.compile(r"::(?P<kind>[a-z]+)(?: (?P<properties>[^:]*))?::(?P<message>.*)")


def decode(line: str) -> tuple[str, dict[str, str], str]:
    """As the runner does (actions/runner, src/Runner.Common/ActionCommand.cs): properties end at the next ``::``."""
    found = COMMAND.fullmatch(line)
    assert found, line
    pairs = (pair.split("=", 1) for pair in (found["properties"] or "").split(",") if pair)
    properties = {name: unescape(value, ("%2C", ","), ("%3A", ":")) for name, value in pairs}
    return found["kind"], properties, unescape(found["message"])


def unescape(text: str, *more: tuple[str, str]) -> str:
    for escaped, character in (*more, ("%0A", "\n"), ("%0D", "\r"), ("%25", "%")):
        text = text.replace(escaped, character)
    return text


def at(variant: str, aspect: Aspect) -> str:
    return f"baselines/m/{aspect.value}/{variant}.json"


def told(run: Run) -> list[tuple[str, dict[str, str], str]]:
    return [decode(line) for line in annotate(run, at)]


def lost(variant: str, metric: str = "decode_tok_s", **changes: Any) -> Finding:
    scope = "short" if metric == "decode_tok_s" else "math"
    of = replace(sample.comparison(metric, scope), variant=variant, drift=0.118)
    return replace(sample.finding(Verdict.REGRESSED, f"{variant}: {metric} fell", of=of), **changes)


def many(number: int, **changes: Any) -> Run:
    names = [f"v{position:02}" for position in range(number)]
    results = [sample.result("q8_0", variant=replace(sample.variant("q8_0"), name=name)) for name in names]
    return sample.run(results, trials=(), findings=tuple(lost(name, **changes) for name in names))


def test_a_failed_variant_is_told_once_on_its_baseline() -> None:
    run = stories.slower()
    also = lost("q4_k_m", "score", next_step="")
    found = told(replace(run, findings=(*run.findings, also)))
    errors = [one for one in found if one[0] == "error"]
    ((_, properties, message),) = errors
    assert properties["title"] == "q4_k_m is REGRESSED"
    assert properties["file"].endswith("/q4_k_m.json")
    assert "decode rate (short) fell by 11.8 %" in message
    assert "score fell" in message
    assert "--matrix-update=changed" in message


def test_the_file_is_of_the_aspect_that_regressed() -> None:
    (first, *_) = told(stories.slower())
    assert first[1]["file"] == "baselines/m/speed/q4_k_m.json"
    (first, *_) = told(stories.worse())
    assert first[1]["file"] == "baselines/m/quality/q4_k_m.json"


def test_a_variant_that_failed_as_a_whole_gives_its_reason() -> None:
    ((kind, properties, message),) = told(stories.killed())
    assert (kind, properties["title"]) == ("error", "int8 is ERROR")
    assert message.startswith("its worker was killed by SIGKILL")
    assert "--matrix-resume" in message


def test_an_improvement_is_a_notice_and_a_gate_that_warns_a_warning() -> None:
    kinds = {properties["title"]: kind for kind, properties, _ in told(stories.slower())}
    assert kinds == {"q4_k_m is REGRESSED": "error", "q5_k_m is IMPROVED": "notice"}
    assert [kind for kind, _, _ in told(many(1, gate=Gate.WARN))] == ["warning"]


@pytest.mark.parametrize("story", [stories.healthy, stories.first, stories.elsewhere])
def test_what_failed_nothing_is_not_annotated(story) -> None:  # type: ignore[no-untyped-def]
    assert told(story()) == []


def test_what_an_update_accepts_is_not_annotated() -> None:
    run = stories.worse()
    assert told(replace(run, settings={**run.settings, "update": "changed"})) == []


def test_the_tenth_counts_and_names_those_that_github_does_not_show() -> None:
    found = told(many(13))
    assert len(found) == MOST
    assert [properties["title"] for _, properties, _ in found][-1] == "v09 is REGRESSED"
    assert "3 more variants" in found[-1][2]
    assert "v10 REGRESSED, v11 REGRESSED, v12 REGRESSED" in found[-1][2]
    assert "more variant" not in found[-2][2]
    assert len(told(many(10))) == MOST
    assert "more variant" not in told(many(10))[-1][2]


def test_each_kind_is_counted_by_itself() -> None:
    run = many(12)
    findings = [replace(f, gate=Gate.WARN) if number < 11 else f for number, f in enumerate(run.findings)]
    kinds = [kind for kind, _, _ in told(replace(run, findings=tuple(findings)))]
    assert kinds == ["error", *["warning"] * 10]


def test_without_a_file_the_annotation_has_none() -> None:
    (line,) = annotate(stories.killed(), lambda variant, aspect: None)
    assert line.startswith("::error title=int8 is ERROR::")


def test_characters_that_end_a_property_or_a_line_are_escaped() -> None:
    line = command("error", "50 %, a: b\r\nnext", {"file": "a,b:c%.json", "title": "x: y, z"})
    assert line == "::error file=a%2Cb%3Ac%25.json,title=x%3A y%2C z::50 %25, a: b%0D%0Anext"


@given(st.text(), st.text(), st.text())
def test_whatever_is_said_comes_back_and_is_one_command(message: str, title: str, file: str) -> None:
    line = command("error", message, {"file": file, "title": title})
    assert "\n" not in line
    assert "\r" not in line
    if all(c.isprintable() for c in message + title + file):
        assert decode(line) == ("error", {"file": file, "title": title}, message)


@given(st.text(max_size=300))
def test_hostile_text_starts_no_command_of_its_own(text: str) -> None:
    attack = f"{text}\n::stop-commands::x\r\n::set-output name=a::b%0A::error::"
    run = sample.run([sample.result("q8_0")], findings=(lost("q8_0", sentence=attack, next_step=attack),))
    (line,) = annotate(run, at)
    assert line.splitlines() == [line]
    assert len(line) < 10_000
    kind, properties, _ = decode(line)
    assert (kind, set(properties)) == ("error", {"file", "title"})
