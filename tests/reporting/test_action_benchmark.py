"""JSON for github-action-benchmark."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from support import sample_runs as sample
from support import sample_stories as stories

from suite.metrics.catalog import SPECS
from suite.records import Direction, Run
from suite.reporting.action_benchmark import TOOLS, Better, render_benchmark


def entries(run: Run, better: Better) -> dict[str, Any]:
    found = json.loads(render_benchmark(run, better))
    assert len({entry["name"] for entry in found}) == len(found)
    return {entry["name"]: entry for entry in found}


def test_each_direction_has_a_file_and_a_tool_of_its_own() -> None:
    run = stories.slower()
    bigger, smaller = entries(run, "bigger"), entries(run, "smaller")
    assert "q4_k_m/decode_tok_s/short" in bigger
    assert "q4_k_m/ttft_s/short" in smaller
    assert "q4_k_m/peak_rss_bytes/all" in smaller
    assert {SPECS[name.split("/")[1]].direction for name in bigger} == {Direction.HIGHER}
    assert {SPECS[name.split("/")[1]].direction for name in smaller} == {Direction.LOWER}
    assert TOOLS == {"bigger": "customBiggerIsBetter", "smaller": "customSmallerIsBetter"}


def test_an_entry_has_unit_spread_of_launches_and_verdict() -> None:
    entry = entries(stories.slower(), "bigger")["q4_k_m/decode_tok_s/short"]
    assert (entry["value"], entry["unit"], entry["range"]) == (152.7, "tok/s", "± 1.73")
    assert "3 launches" in entry["extra"]
    assert "REGRESSED" in entry["extra"]


def test_what_the_action_could_not_tell_apart_is_left_out() -> None:
    measured = (
        sample.measurement("decode_tok_s", "short", 100.0),
        replace(sample.measurement("decode_tok_s", "long", 50.0), status="contended"),
        replace(sample.measurement("prefill_tok_s", "short", None), status="not_measured"),
        sample.measurement("yardstick_hash_bytes_s", "all", 1e9),
        sample.measurement("score", "math", 0.4),
        sample.measurement("score", "all", 0.5),
    )
    run = sample.run([sample.result("q8_0", measurements=measured)])
    assert set(entries(run, "bigger")) == {"q8_0/decode_tok_s/short", "q8_0/score/all"}


def test_a_run_of_nothing_is_an_empty_list() -> None:
    assert render_benchmark(sample.run([]), "bigger") == "[]\n"
