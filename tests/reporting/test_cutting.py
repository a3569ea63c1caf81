"""A document that is too long for GitHub: what is kept of it is whole, and what is left out is named."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.reporting.cutting import LEAST, cut_markdown, utf8_bytes

WHOLE = "All of it is elsewhere."
NOTICE = "**Cut here**"


def table(rows: int, cell: str = "x") -> list[str]:
    return ["| a | b |", "| --- | ---: |", *(f"| {cell} | {number} |" for number in range(rows)), ""]


def section(title: str, body: list[str]) -> list[str]:
    return [f"## {title}", "", *body]


def folded(title: str, body: list[str]) -> list[str]:
    return [f"<details><summary>{title}</summary>", "", *body, "</details>", ""]


def cut(lines: list[str], limit: int = LEAST) -> str:
    return cut_markdown("\n".join(lines), limit, measure=utf8_bytes, whole=WHOLE)


def test_what_fits_is_left_alone() -> None:
    text = "\n".join(["# title", "", *table(3)])
    assert cut_markdown(text, LEAST, measure=len, whole=WHOLE) == text


def test_the_notice_says_how_much_there_is_and_what_is_missing() -> None:
    shown = cut(
        ["# title", "", *section("First", table(20)), *section("Second", table(900)), *section("Third", ["text"])]
    )
    assert "“Third”" in shown
    assert re.search(r"\d+ lines of “Second”", shown)
    assert "“First”" not in shown
    assert f"of at most {LEAST:,}" in shown
    assert WHOLE in shown


def test_a_folded_part_is_closed_before_the_notice() -> None:
    shown = cut(["# title", "", *folded("many rows", table(900))])
    assert shown.count("<details>") == shown.count("</details>") == 1
    assert shown.index("</details>") < shown.index(NOTICE)


def test_a_fence_is_closed_before_the_notice() -> None:
    shown = cut(["# title", "", "````text", *(f"line {number}" for number in range(900)), "````"])
    assert [line for line in shown.split("\n") if line.startswith("`")] == ["````text", "````"]


def test_a_table_without_rows_and_a_title_without_text_are_left_out() -> None:
    long = "y" * LEAST
    shown = cut(["# title", "", *section("Kept", ["text"]), *section("Rows", table(1, long))])
    assert "| a | b |" not in shown
    assert "## Rows" not in shown
    assert "## Kept" in shown
    assert "“Rows”" in shown


def test_the_title_of_the_document_stands_though_nothing_else_fits() -> None:
    shown = cut(["<!-- mark -->", "### the title", "", "y" * LEAST])
    assert shown.startswith("<!-- mark -->\n### the title\n")
    assert NOTICE in shown


def test_a_long_title_is_not_cut_in_two() -> None:
    shown = cut(["# title", "", *["text"] * 900, *section("\\_" * 200, ["more"])])
    assert "“a section with a long title”" in shown


def test_bytes_are_counted_where_bytes_are_the_limit() -> None:
    text = "\n".join(["# title", *["시속" * 20] * 40])
    assert len(text) < LEAST < utf8_bytes(text)
    assert NOTICE in cut_markdown(text, LEAST, measure=utf8_bytes, whole=WHOLE)
    assert NOTICE not in cut_markdown(text, LEAST, measure=len, whole=WHOLE)


def test_a_limit_without_room_for_the_notice_is_refused() -> None:
    with pytest.raises(ValueError, match="at least"):
        cut_markdown("text", 10, measure=len, whole=WHOLE)


_text = st.text(st.sampled_from("ab시é\\_ "), max_size=90).map(lambda text: f"- {text.strip()}")
_parts = st.one_of(
    st.lists(_text, max_size=40).map(lambda lines: [*lines, ""]),
    st.integers(0, 80).map(table),
    st.builds(section, _text, st.integers(0, 60).map(table)),
    st.builds(folded, _text, st.integers(0, 60).map(table)),
    st.just(["    code", "    more code", ""]),
)


@given(st.lists(_parts, max_size=12), st.integers(LEAST, 2 * LEAST), st.sampled_from([len, utf8_bytes]))
def test_whatever_is_cut_is_within_the_limit_whole_and_in_order(parts, limit, measure) -> None:  # type: ignore[no-untyped-def]
    lines = ["# title", "", *(line for part in parts for line in part)]
    text = "\n".join(lines)
    shown = cut_markdown(text, limit, measure=measure, whole=WHOLE)
    assert measure(shown) <= limit
    if measure(text) <= limit:
        assert shown == text
        return
    kept = shown[: shown.index(NOTICE)].removesuffix("\n").removesuffix("\n</details>\n").rstrip("\n").split("\n")
    assert kept == lines[: len(kept)]
    assert shown.count("<details>") == shown.count("</details>")
    rows = shown.split("\n")
    for number, line in enumerate(rows):
        if line == "| a | b |":
            assert rows[number + 1] == "| --- | ---: |"
