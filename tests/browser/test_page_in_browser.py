"""The page as a browser shows it: quiet, self-contained, fitting, usable from a keyboard, deaf to what models wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from support.browser import Browser, Tab
from support.sample_pages import PAGES, RAN, Pages

NARROW, WIDE, PAPER = 390, 1280, 688
"""CSS pixels: a telephone, a desk, A4 between its margins."""
UNFOLD = "document.querySelectorAll('details').forEach(details => details.open = true)"
SETTLE = "new Promise(done => requestAnimationFrame(() => setTimeout(done, 30)))"


@pytest.fixture(params=list(PAGES))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_page_is_quiet_fetches_nothing_and_fits(browser: Browser, pages: Pages, name: str) -> None:
    for width in (NARROW, WIDE):
        with browser.open(pages[name], width=width) as tab:
            assert overflow(tab) == []
            tab.evaluate(UNFOLD)
            tab.evaluate(SETTLE)
            assert overflow(tab) == []
            assert tab.problems == []
            assert tab.requests == [pages[name].as_uri()]


def overflow(tab: Tab) -> list[str]:
    """What sticks out of the page to the right, if that makes it scroll."""
    told: list[str] = tab.evaluate("""(() => {
      const page = document.documentElement, room = page.clientWidth;
      if (page.scrollWidth <= room && innerWidth <= Math.max(room, 390) + 20) return [];
      const out = [...document.body.querySelectorAll("*")].filter(e =>
        e.getBoundingClientRect().right > room + 1 && !e.closest(".scroll, .hidden, svg *"));
      return [`${page.scrollWidth} > ${room}`, ...out.slice(0, 5).map(e => e.outerHTML.slice(0, 120))];
    })()""")
    return told


def test_sentences_in_tables_have_the_width_of_a_telephone(browser: Browser, pages: Pages) -> None:
    cells = "[...document.querySelectorAll('.stacked td:not(.number)')].map(cell => cell.getBoundingClientRect().width)"
    with browser.open(pages["everything"], width=NARROW) as tab:
        widths: list[float] = tab.evaluate(cells)
    assert len(widths) > 5
    assert min(widths) > 0.75 * NARROW


@pytest.mark.parametrize("page", ["attacked", "attacked-history"])
def test_nothing_that_somebody_else_wrote_runs(browser: Browser, pages: Pages, page: str) -> None:
    text = pages[page].read_text(encoding="utf-8")
    assert text.count(RAN.split(".")[-1].split(" ")[0]) > 5  # the attacks are in there
    bare = pages[page].with_name(f"{page}-without-policy.html")
    bare.write_text(re.sub(r"<meta http-equiv=.Content-Security-Policy[^>]*>", "", text), encoding="utf-8")
    assert bare.stat().st_size < pages[page].stat().st_size
    for file in (pages[page], bare):  # escaping is enough by itself
        with browser.open(file) as tab:
            tab.evaluate(UNFOLD)
            tab.evaluate(SETTLE)
            assert tab.evaluate("document.documentElement.dataset.ran ?? null") is None
            assert tab.evaluate("document.querySelectorAll('img, iframe, svg[onload], [onmouseover]').length") == 0
            assert tab.evaluate("document.scripts.length") == 1
            assert tab.problems == []
            assert tab.requests == [file.as_uri()]


def test_a_table_is_sorted_from_the_keyboard(browser: Browser, pages: Pages) -> None:
    with browser.open(pages["everything"]) as tab:
        button = "document.activeElement.closest('#table th button')?.textContent.trim() ?? null"
        heads = list(tabs_through(tab, button))
        assert len(heads) > 5  # each is reached by Tab alone
        column = tab.evaluate(
            "[...document.querySelectorAll('#table th')].findIndex(h => h.innerText.includes('decode'))"
        )
        tab.evaluate(f"document.querySelectorAll('#table th')[{column}].querySelector('button').focus()")
        before = rows(tab)
        orders = {}
        for key, order in (("Enter", "ascending"), (" ", "descending")):
            tab.press(key)
            assert tab.evaluate("document.activeElement.closest('th').ariaSort") == order
            assert order in tab.evaluate("document.getElementById('told').textContent")
            orders[order] = [float(value) for value in cells(tab, column)]
            assert rows(tab) != before
        assert orders["ascending"] == sorted(orders["ascending"])
        assert orders["descending"] == sorted(orders["ascending"], reverse=True)
        assert rows(tab)[-1] == "q2_k"  # it failed and has no number: last either way
        assert tab.evaluate("document.querySelectorAll('#table th[aria-sort=ascending]').length") == 0


def tabs_through(tab: Tab, what: str) -> Iterator[str]:
    """Press Tab until the page ends; give what `what` says of each stop, where it says anything."""
    for _ in range(300):
        tab.press("Tab")
        if tab.evaluate("document.activeElement === document.body"):
            return
        found = tab.evaluate(what)
        if found:
            yield found


def rows(tab: Tab) -> list[str]:
    found: list[str] = tab.evaluate(
        "[...document.querySelectorAll('#table tbody th')].map(h => h.firstChild.textContent.trim())"
    )
    return found


def cells(tab: Tab, column: int) -> list[str]:
    """What the cells of a column are sorted by, from top to bottom, where they have anything."""
    found: list[str] = tab.evaluate(
        f"[...document.querySelectorAll('#table tbody tr')].map(r => r.cells[{column}].dataset.sort).filter(Boolean)"
    )
    return found


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(
    "page", ["everything", "scenarios", "attacked", "first", "killed", "limited", "history", "attacked-history"]
)
def test_axe_finds_no_violation(browser: Browser, pages: Pages, axe: str, page: str, dark: bool) -> None:
    for width in (NARROW, WIDE):
        with browser.open(pages[page], width=width, dark=dark) as tab:
            tab.evaluate(UNFOLD)
            tab.evaluate(f"{axe}; 0")
            assert violations(tab) == []


def violations(tab: Tab) -> list[str]:
    found: list[dict[str, Any]] = json.loads(
        tab.evaluate("axe.run(document, {resultTypes: ['violations']}).then(r => JSON.stringify(r.violations))")
    )
    return [f"{one['id']}: {node['html'][:160]} {node['failureSummary']}" for one in found for node in one["nodes"][:3]]


def test_the_page_is_dark_where_a_person_prefers_that(browser: Browser, pages: Pages) -> None:
    shade = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)"
    for dark in (False, True):
        with browser.open(pages["everything"], dark=dark) as tab:
            assert (max(tab.evaluate(shade)) < 80) is dark
            tab.show_as("print", dark=dark)
            assert min(tab.evaluate(shade)) > 240


def test_what_is_printed_is_not_cut(browser: Browser, pages: Pages, name: str) -> None:
    with browser.open(pages[name]) as tab:
        made = tab.to_pdf()
        assert made.startswith(b"%PDF")
        assert 1 <= len(re.findall(rb"/Type\s*/Page\b", made)) <= 30
        tab.resize(PAPER)
        tab.show_as("print")
        tab.evaluate("dispatchEvent(new Event('beforeprint'))")
        tab.evaluate(SETTLE)
        cut = tab.evaluate(
            "[...document.querySelectorAll('table, figure, pre')].filter(e => e.checkVisibility()"
            f" && e.getBoundingClientRect().right > {PAPER} + 1).map(e => e.outerHTML.slice(0, 100))"
        )
        assert cut == []
