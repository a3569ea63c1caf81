"""What people see of changed baselines, compared whole, and what it may never do."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from support import sample_diffs as samples

from suite.gate.diffing import diff_snapshots
from suite.records import Diff
from suite.reporting.diff.json import diff_json
from suite.reporting.diff.markdown import diff_markdown
from suite.reporting.diff.story import tell
from suite.reporting.diff.terminal import diff_lines
from suite.reporting.hostile import columns

CheckGolden = Callable[[str, str], None]


@pytest.mark.parametrize("width", [80, 160])
@pytest.mark.parametrize("story", samples.STORIES)
def test_terminal(story: str, width: int, check_golden: CheckGolden) -> None:
    lines = diff_lines(samples.STORIES[story](), width, color=False)
    check_golden(f"diff/{story}-{width}.txt", "\n".join(lines) + "\n")


@pytest.mark.parametrize("story", samples.STORIES)
def test_markdown(story: str, check_golden: CheckGolden) -> None:
    check_golden(f"diff/{story}.md", diff_markdown(samples.STORIES[story]()))


@pytest.mark.parametrize("story", samples.STORIES)
def test_json(story: str, check_golden: CheckGolden) -> None:
    check_golden(f"diff/{story}.json", diff_json(samples.STORIES[story]()))


@pytest.mark.parametrize(("story", "headline"), [
    ("unchanged", "Baselines: nothing changed (6 baselines, 21 figures)"),
    ("regression", "Baselines: 2 losses"),
    ("improvement", "Baselines: 2 gains"),
    ("new-variant", "Baselines: 1 variant new"),
    ("removed-variant", "Baselines: 1 variant gone"),
    ("other-machine", "Baselines: 3 variants from another machine"),
    ("edited", "Baselines: 1 edited by hand"),
])  # fmt: skip
def test_the_first_line_is_the_verdict(story: str, headline: str) -> None:
    diff = samples.STORIES[story]()
    assert tell(diff).headline.startswith(headline)
    assert next(iter(diff_lines(diff, 200, color=False))).startswith(headline)
    assert diff_markdown(diff).startswith(f"### {headline}")


def test_a_loosened_tolerance_is_as_loud_as_the_loss_that_it_hides() -> None:
    diff = samples.loosened()
    headline = tell(diff).headline
    assert "loss" in headline
    assert "4 settings loosened" in headline
    shown = "\n".join(diff_lines(diff, 160, color=False))
    assert "LOOSENED" in shown
    assert "policy.itl_s: 5 %, 3 % side by side (block) → 20 %, 3 % side by side (block)" in shown
    assert "protocol.launches: 5 → 3" in shown


@pytest.mark.parametrize("width", [40, 60, 80, 120, 160])
@pytest.mark.parametrize("story", samples.STORIES)
def test_rows_of_tables_fit_into_the_terminal(story: str, width: int) -> None:
    for line in diff_lines(samples.STORIES[story](), width, color=False, everything=True):
        longest = max((columns(word) for word in line.split()), default=0)
        assert columns(line) <= max(width, longest + 6), line


def test_colour_only_repeats_what_words_say() -> None:
    plain = list(diff_lines(samples.both(), 120, color=False))
    coloured = list(diff_lines(samples.both(), 120, color=True))
    assert any("\x1b[" in line for line in coloured)
    assert [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in coloured] == plain


def test_what_files_hold_is_inert_in_terminals() -> None:
    for width in (80, 160):
        shown = "\n".join(diff_lines(samples.hostile(), width, color=False, everything=True))
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert "now wrong" in shown


def test_what_files_hold_is_inert_in_markdown() -> None:
    document = diff_markdown(samples.hostile())
    outside = re.sub(r"(`+).+?\1", "", document.replace("\\`", ""))
    assert "<script" not in outside
    assert "@everyone" not in outside
    assert not re.search(r"(?<!\\)\]\(", outside)
    assert "\n# heading" not in document
    assert "\x1b" not in document
    rows = [line for line in document.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} <= {5, 8}


def test_what_is_expanded_on_demand_is_folded_otherwise() -> None:
    folded = "\n".join(diff_lines(samples.accepted_anew(), 160, color=False))
    expanded = "\n".join(diff_lines(samples.accepted_anew(), 160, color=False, everything=True))
    assert "decode tok/s (short)" not in folded.split("Reason given")[0]
    assert "decode tok/s (short)" in expanded.split("Reason given")[0]


@pytest.mark.parametrize("limit", [2_000, 5_000, 60_000])
def test_markdown_stays_within_its_limit_and_says_what_it_left_out(limit: int) -> None:
    document = diff_markdown(crowded(), limit)
    assert len(document) <= limit
    assert document.startswith("### Baselines: ")
    assert document.count("<details>") == document.count("</details>")
    assert "Left out, since there is no room" in document


def test_an_answer_of_a_megabyte_fits_too() -> None:
    cases = samples.answers().cases
    long = {name: samples.case(n, right=False, text="x" * 10**6) for n, name in enumerate(samples.CASES) if n < 6}
    diff = diff_snapshots(samples.then(), samples.now(samples.answers(cases={**cases, **long}, provenance=samples.NOW)))
    assert len(diff_markdown(diff)) <= 60_000
    assert max(len(line) for line in diff_lines(diff, 80, color=False)) < 400


def crowded() -> Diff:
    """Two hundred variants that all got worse, with reasons of their own."""
    names = [f"variant_{number}" for number in range(200)]
    worse = [
        samples.answers(
            name, wrong=(2, 3, 7, 9, 19, 22, 25, 27, 33, 36), kld=1.3 * samples.KLD,
            provenance=replace(samples.NOW, reason=f"reason of {name}: {'because ' * 50}"),
        )
        for name in names
    ]  # fmt: skip
    return diff_snapshots(samples.then(variants=names), samples.now(*worse, variants=names))


def test_json_is_complete_and_plain() -> None:
    document = json.loads(diff_json(samples.both()))
    assert (document["schema"], document["kind"], document["changed"]) == (1, "baseline-diff", True)
    quality = next(one for one in document["baselines"] if (one["variant"], one["aspect"]) == ("q4_k_m", "quality"))
    kld = next(one for one in quality["figures"] if (one["metric"], one["scope"]) == ("mean_kld", "all"))
    assert kld["state"] == "worse"
    assert kld["beyond_noise"] is True
    assert kld["drift"] == pytest.approx(0.26, abs=0.01)
    assert kld["verdict"] == "REGRESSED"
    assert quality["flips"][0] == {"case": "code/02", "was_correct": True, "is_correct": False, "was": "2", "now": "3"}
    assert json.loads(diff_json(samples.unchanged()))["changed"] is False
