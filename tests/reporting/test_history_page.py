"""The history as a page: what shifted is marked and said, and nothing that a file said acts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from support import sample_history as sample
from support.html_page import Page, without_pictures

from suite.records import HistoryEntry
from suite.reporting.history_series import Selection, build_trends
from suite.reporting.history_text import Screen, history_lines
from suite.reporting.page.history import render_history

MOST_BYTES = 1_000_000
ATTACK = "\x1b[31m</script><script>alert(1)</script><img src=x onerror=alert(2)>\u202e"
FAULT = "h.jsonl, line 3: not JSON; the line is kept: delete it"


def page_of(entries: Sequence[HistoryEntry], selection: Selection | None = None, **given: Any) -> str:
    return render_history(build_trends(entries, selection or Selection()), **given)


def test_a_history_with_a_shift_looks_as_agreed(check_golden: Callable[[str, str], None]) -> None:
    text = page_of([*sample.slower(), *sample.elsewhere()], faults=[FAULT])
    check_golden("history-page.html", without_pictures(text))


@pytest.mark.parametrize("entries", [sample.slower(100), sample.steady(1), [], sample.elsewhere()])
def test_a_page_is_whole_small_and_fetches_nothing(entries: Sequence[HistoryEntry]) -> None:
    text = page_of(entries)
    page = Page(text)
    assert len(text.encode()) < MOST_BYTES
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in page.tags:
        assert not any(attributes.get(name, "") for name in ("src", "srcset", "action", "onclick", "onload", "style"))
        target = attributes.get("href") or "#"
        assert target.startswith("#")
        assert target == "#" or target[1:] in ids
    assert not re.search(r"url\(\s*['\"]?https?:|@import", text)
    (policy,) = (meta for meta in page.of("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in (policy["content"] or "")


def test_the_same_history_gives_the_same_bytes() -> None:
    assert page_of(sample.slower()) == page_of(sample.slower())


def test_what_shifted_is_said_as_in_a_terminal() -> None:
    entries = sample.slower()
    said = " ".join(re.sub(r"<[^>]+>", " ", page_of(entries)).split())
    shown = " ".join(" ".join(history_lines(build_trends(entries, Selection()), [], Screen(width=4000))).split())
    for sentence in re.findall(r"q4_k_m (?:decode|KLD|mean)[^;]*?p = [0-9.]+\)", shown):
        assert sentence in said
    assert "3 shifts of level, 3 for the worse, at 1 run" in said
    assert f"A level shifted at run {entries[sample.SLOWER_AT].run}" in said
    assert "changed with this run: llama-cpp-python: 0.3.35 → 0.3.36" in said


def strokes(text: str, kind: str) -> int:
    return len(re.findall(rf'class="[^"]*s-{kind}[^"]*"', text))


def test_shifts_and_accepted_baselines_and_versions_are_marked_in_the_lines() -> None:
    marked, steady = page_of(sample.slower()), page_of(sample.steady())
    accepted = page_of(tuple(replace(entry, accepted=True) for entry in sample.steady()))
    assert strokes(marked, "unsure") > strokes(steady, "unsure") == 0
    assert strokes(accepted, "ink") > strokes(steady, "ink")
    assert "stroke-dasharray" in marked
    assert "stroke-dasharray" not in steady


def test_every_scope_is_drawn_where_a_metric_is_asked_for_else_the_primary_one_and_what_shifted() -> None:
    every = Page(page_of(sample.slower(), Selection(metric="score"), scopes=True))
    primary = Page(page_of(sample.slower(), Selection(metric="score")))
    assert len(every.of("figure")) == len(primary.of("figure")) == 1
    text, shifted = page_of(sample.slower(), Selection(metric="score"), scopes=True), page_of(sample.slower())
    assert "score (math)" in text
    assert "score (math)" not in page_of(sample.slower(), Selection(metric="score"))
    assert "decode tok/s (long)" in shifted


def test_a_shift_for_the_better_is_not_marked_as_a_loss() -> None:
    factors = {"q4_k_m/decode_tok_s/short": 1.2}
    better = [sample.times(one, factors) if night >= 20 else one for night, one in enumerate(sample.steady())]
    assert "b-IMPROVED" in page_of(better)
    assert "b-REGRESSED" not in without_pictures(page_of(better))
    assert "b-REGRESSED" in without_pictures(page_of(sample.slower()))


def test_metrics_are_in_one_order_and_their_scopes_together() -> None:
    titles = re.findall(r"<h3>(.*?)</h3>", page_of(sample.slower()))
    assert "decode tok/s, decode tok/s (long), prefill tok/s" in titles


def test_too_few_runs_are_said_to_have_shown_nothing() -> None:
    assert "<h1>Too few runs to see a level shift</h1>" in page_of(sample.steady(6))
    assert "<h1>No level shifted</h1>" in page_of(sample.steady())
    alone = page_of(sample.steady(1))
    assert "There is no line to draw" in alone
    assert "One run shows no trend" in alone
    assert "All series" not in alone
    assert "No run could be read" in page_of([], faults=[FAULT])


def attacked(key: str) -> str:
    """The same value of a variant with a hostile name."""
    variant, rest = key.split("/", 1)
    return f"{variant}{ATTACK.replace('/', '')}/{rest}"


def test_what_a_file_said_is_text() -> None:
    entries = [
        replace(
            entry,
            run=f"{entry.run}{ATTACK}",
            model=f"m{ATTACK}",
            machine=f"x{ATTACK}",
            commit=ATTACK,
            versions={ATTACK: f"{ATTACK}{number}"},
            verdicts={ATTACK: ATTACK},
            values={
                f"{key.split('/')[0]}{ATTACK.replace('/', '')}/{key.split('/', 1)[1]}": v
                for key, v in entry.values.items()
            },
        )
        for number, entry in enumerate(sample.slower())
    ]
    text = page_of(entries, faults=[ATTACK])
    page, plain = Page(text), Page(page_of(sample.slower()))
    assert len(page.of("script")) == len(plain.of("script")) == 1
    assert not page.of("img")
    assert "\x1b" not in text
    assert "\u202e" not in text
