"""The report page: one file that opens anywhere, in which nothing that a model wrote acts."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from support import sample_stories

from suite.reporting.page.render import render_page

MOST_BYTES = 1_000_000
VOID = {"meta", "link", "br", "hr", "img", "input", "wbr", "col"}


class Page(HTMLParser):
    """What is in a page; raises AssertionError for an element that is not closed where it was opened."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


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
