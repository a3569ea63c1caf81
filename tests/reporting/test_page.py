"""The report page: one file that opens anywhere, in which nothing that a model wrote acts."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from support import sample_pages, sample_stories
from support.html_page import Page, without_pictures

from suite.records import ALL, Budget, Loss, Tier, Verdict
from suite.reporting.model import build_report
from suite.reporting.page.bars import draw_memory
from suite.reporting.page.plane import find_spots
from suite.reporting.page.render import render_page
from suite.reporting.page.tables import costs_sheet
from suite.reporting.page.timing import draw_scenarios

MOST_BYTES = 1_000_000


@pytest.mark.parametrize("story", sample_stories.STORIES)
def test_a_page_is_whole_small_and_fetches_nothing(story: str) -> None:
    text = render_page(sample_stories.STORIES[story]())
    page = Page(text)
    assert len(text.encode()) < MOST_BYTES
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in page.tags:
        assert not any(attributes.get(name, "") for name in ("src", "srcset", "action", "onclick", "onload"))
        assert (attributes.get("href") or "#").startswith("#")
    assert not re.search(r"url\(\s*['\"]?https?:|@import", text)
    assert any("Content-Security-Policy" in (meta.get("http-equiv") or "") for meta in page.of("meta"))


@pytest.mark.parametrize("story", ["slower", "worse", "hostile"])
def test_a_page_says_what_was_agreed(story: str, check_golden: Callable[[str, str], None]) -> None:
    check_golden(f"{story}.html", without_pictures(render_page(sample_stories.STORIES[story]())))


@pytest.mark.parametrize("story", ["healthy", "hostile"])
def test_the_same_run_gives_the_same_bytes(story: str) -> None:
    assert render_page(sample_stories.STORIES[story]()) == render_page(sample_stories.STORIES[story]())


def test_what_a_model_wrote_is_text() -> None:
    run = sample_stories.STORIES["hostile"]()
    page = Page(render_page(run))
    plain = Page(render_page(sample_stories.STORIES["healthy"]()))
    assert len(page.of("script")) == len(plain.of("script")) <= 1
    assert not page.of("img")
    assert not page.of("iframe")


def test_without_answers_there_is_no_table_of_costs() -> None:
    """Speed-ups alone stand in the table of the variants."""
    report = build_report(sample_pages.everything())
    assert costs_sheet(report) is not None
    fast = Loss(variant="q8_0", metric="speedup", scope="short", value=2.0, interval=None, n=5)
    unknown = Loss(variant="q8_0", metric="score", scope=ALL, value=None, interval=None, n=0, answer="not measured")
    assert costs_sheet(replace(report, losses=(fast, unknown))) is None
    held = replace(unknown, budget=Budget(limit=0.02))
    assert costs_sheet(replace(report, losses=(fast, held))) is not None


def test_what_another_machine_accepted_is_drawn_as_nobodys_baseline() -> None:
    here = sample_pages.everything()
    moved = tuple(
        replace(found, comparison=replace(found.comparison, unresolved=Verdict.NOT_COMPARABLE, tier=Tier.FOREIGN))
        for found in here.findings
    )
    elsewhere = replace(here, findings=moved)
    for run, known in ((here, True), (elsewhere, False)):
        spots = find_spots(run, build_report(run), "mean_kld")
        assert any(spot.before for spot in spots) is known
        drawn = draw_scenarios(run)
        assert len(drawn) == 1
        assert ("Grey ring" in drawn[0].caption) is known


def test_the_axis_of_memory_ends_with_the_longest_bar() -> None:
    run = sample_pages.everything()
    huge = tuple(
        replace(
            one,
            measurements=(*one.measurements, replace(one.measurements[0], metric="load_s", scope="all", value=9e12)),
        )
        for one in run.variants
        if one.measurements
    )
    plain, beside = draw_memory(run), draw_memory(replace(run, variants=huge))
    assert plain is not None
    assert beside is not None
    assert plain.wide == beside.wide
