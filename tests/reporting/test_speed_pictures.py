"""Pictures of speed: any number of scenarios, each told from the others, and gaps of tokens that came in chunks."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from support import sample_pages
from support.sample_runs import matrix, measurement, result, run

from suite.records import Run, Scenario, SpeedSample, Witness
from suite.reporting.page.render import render_page
from suite.reporting.page.sheet import NARROW, WHOLE, Picture
from suite.reporting.page.timing import draw_gaps, draw_scenarios
from suite.reporting.wording import metric_name

PAGE_HIGH = 1000
"""Pixels of a printed page, between its margins, at the width of a telephone."""
LETTER = 6.2
"""Pixels of a letter of these pictures, at least."""


def pictures(run_: Run) -> list[tuple[int, ElementTree.Element]]:
    """The width of each picture of its scenarios, and the picture."""
    drawn = draw_scenarios(run_)
    both = [(width, text) for one in drawn for width, text in ((WHOLE, one.wide), (NARROW, one.narrow))]
    return [(width, ElementTree.fromstring(text)) for width, text in both]


def texts(svg: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in svg.iter("text")]


def marks(svg: ElementTree.Element) -> int:
    """How many colours tell series apart."""
    return len(set(re.findall(r"[fs]-(c\d)", ElementTree.tostring(svg, encoding="unicode"))))


def timed_in(*scenarios: str) -> Run:
    speeds = [measurement("decode_tok_s", scenario, 100.0) for scenario in scenarios]
    return run([result("q8_0", measurements=tuple(speeds))])


def test_more_scenarios_than_colours_have_a_titled_panel_each() -> None:
    many = sample_pages.many_scenarios()
    names = {scenario.name for scenario in many.matrix.scenarios if not scenario.reloads}
    assert len(names) == 15
    for at in (WHOLE, NARROW):
        shown = [text for width, svg in pictures(many) if width == at for text in texts(svg)]
        titles = [text for text in shown if any(name.startswith(text.removesuffix("…")) for name in names) and text]
        assert len(titles) == len(set(titles)) == len(names)
        assert all(marks(svg) == 1 for width, svg in pictures(many) if width == at)


def test_pictures_of_many_scenarios_fit_a_page_and_lose_no_number() -> None:
    drawn = draw_scenarios(sample_pages.many_scenarios())
    for _, svg in pictures(sample_pages.many_scenarios()):
        assert float(svg.attrib["height"]) <= PAGE_HIGH
    rows = [tuple(cell.text for cell in row[:3]) for picture in drawn for row in picture.sheet.rows]
    assert len(rows) == len(set(rows)) == 6 * (15 + 14)
    assert len({picture.ident for picture in drawn}) == len(drawn) == 3
    assert len(render_page(sample_pages.many_scenarios()).encode()) < 1_000_000


def test_a_scenario_without_a_speed_says_so_in_its_panel() -> None:
    assert sum(texts(svg).count("not timed") for width, svg in pictures(sample_pages.many_scenarios())) == 2


@pytest.mark.parametrize("scenarios", [
    ("short",), tuple(f"a_scenario_with_a_long_name_{n}" for n in range(5)), ("시나리오시나리오시나리오", "a" * 18, "b" * 18),
])  # fmt: skip
def test_the_legend_of_a_few_scenarios_stays_within_the_picture(scenarios: tuple[str, ...]) -> None:
    for width, svg in pictures(timed_in(*scenarios)):
        legend = [text for text in svg.iter("text") if (text.text or "").removesuffix("…") in cut(scenarios)]
        assert len(legend) == len(scenarios)
        for text in legend:
            wide = sum(LETTER * (1 if letter.isascii() else 2) for letter in text.text or "")
            assert float(text.attrib["x"]) + wide <= width
        assert marks(svg) == len(scenarios)
        panels = min(float(text.attrib["y"]) for text in svg.iter("text") if text.text == metric_name("decode_tok_s"))
        assert max(float(text.attrib["y"]) for text in legend) < panels


def cut(scenarios: tuple[str, ...]) -> set[str]:
    """Their beginnings."""
    return {scenario[:end] for scenario in scenarios for end in range(1, len(scenario) + 1)}


# ------------------------------------------------------------------------------------------------------------ gaps

ONE_BY_ONE = (0.01,) * 64
IN_EIGHTS = (0.0,) * 7 + (0.08, *(0.0,) * 7) * 8


def sampled(scenario: str = "short", **gaps: tuple[float, ...]) -> Run:
    samples = tuple(
        SpeedSample(
            variant=name, scenario=scenario, launch=0, round=0, prompt_tokens=128, evaluated_tokens=128,
            new_tokens=len(found) + 1, prefill_s=0.1, ttft_s=0.1, itl_s=found,
            witness=Witness(wall_s=1.0, cpu_s=1.0, threads=2),
        )
        for name, found in gaps.items()
    )  # fmt: skip
    return run([result(name) for name in gaps], speed_samples=samples)


def drawn_gaps(run_: Run) -> Picture:
    drawn = draw_gaps(run_)
    assert drawn is not None
    return drawn


def test_tokens_that_come_in_chunks_share_the_time_since_the_chunk_before() -> None:
    drawn = drawn_gaps(sampled(q8_0=IN_EIGHTS, q4_k_m=ONE_BY_ONE))
    medians = {row[0].text: row[2].sort for row in drawn.sheet.rows}
    assert medians == {"q8_0": pytest.approx(0.01), "q4_k_m": pytest.approx(0.01)}


def test_it_is_said_whose_tokens_came_in_chunks() -> None:
    drawn = drawn_gaps(sampled(q8_0=IN_EIGHTS, q4_k_m=ONE_BY_ONE))
    assert "Tokens of q8_0 came in chunks" in drawn.caption
    assert [row[0].note for row in drawn.sheet.rows] == ["in chunks", ""]
    assert "chunk" not in drawn_gaps(sampled(q4_k_m=ONE_BY_ONE)).caption


def test_gaps_are_those_of_the_first_scenario_with_enough_of_them() -> None:
    few, enough = sampled("two tokens", q8_0=(0.01,)), sampled("short", q8_0=ONE_BY_ONE)
    scenarios = tuple(Scenario(name=name, prompt_tokens=9, new_tokens=9) for name in ("two tokens", "short"))
    both = replace(
        enough,
        matrix=matrix(["q8_0"], scenarios=scenarios),
        speed_samples=(*few.speed_samples, *enough.speed_samples),
    )
    assert drawn_gaps(both).caption.startswith("Scenario short,")
    assert draw_gaps(few) is None
