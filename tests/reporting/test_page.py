"""The report page: one file that opens anywhere, in which nothing that a model wrote acts."""

from __future__ import annotations

import re

import pytest
from support import sample_stories
from support.html_page import Page

from suite.reporting.page.render import render_page

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
