"""The summary of a GitHub step."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support import sample_stories as stories

from suite.reporting.cutting import LEAST
from suite.reporting.markdown import render
from suite.reporting.model import build_report
from suite.reporting.summary import LIMIT, render_summary


def test_long_tables_are_folded_and_all_else_is_as_in_the_report() -> None:
    report = build_report(stories.worse())
    shown = render_summary(report)
    assert "<details><summary>What was compared</summary>\n\n| variant" in shown
    assert "<details><summary>Flipped answers</summary>" in shown
    assert shown.count("<details>") == shown.count("</details>") == 2
    assert "### q4\\_k\\_m is REGRESSED" in shown
    without = [line for line in shown.split("\n") if line and not line.startswith(("<details>", "</details>"))]
    headings = ("## What was compared", "## Flipped answers")
    assert without == [line for line in render(report).split("\n") if line and line not in headings]


def test_the_limit_is_below_that_of_github_and_counts_bytes() -> None:
    assert LIMIT < 2**20
    worse = stories.worse()
    flips = tuple(
        replace(flip, case=f"math/{number}", now="시속 육십 " * 30)
        for number in range(100)
        for flip in worse.findings[-1].comparison.flips[:1]
    )
    lost = replace(worse.findings[-1], comparison=replace(worse.findings[-1].comparison, flips=flips))
    report = build_report(replace(worse, findings=(*worse.findings[:-1], lost)))
    limit = len(render(report)) + 100  # all its characters would fit
    shown = render_summary(report, limit)
    assert len(shown.encode("utf-8")) <= limit
    assert "**Cut here**" in shown
    assert shown.count("<details>") == shown.count("</details>")


def test_a_cut_summary_keeps_the_verdict_and_names_what_is_missing() -> None:
    shown = render_summary(build_report(stories.slower()), LEAST)
    assert shown.startswith("# smollm2-135m-instruct: 1 of 42 gates failed: q4\\_k\\_m REGRESSED.")
    assert "What was compared" in shown[shown.index("**Cut here**") :]
    assert "quantdrift report" in shown


@pytest.mark.parametrize("story", stories.STORIES)
def test_every_story_opens_and_closes_what_it_folds(story: str) -> None:
    shown = render_summary(build_report(stories.STORIES[story]()))
    assert shown.count("<details>") == shown.count("</details>")
