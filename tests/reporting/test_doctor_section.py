"""The doctor in reports: findings only, and nothing that a stranger wrote acts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from support import sample_health as health

from suite.doctor import examine, findings
from suite.records import Diagnosis, Health, Run
from suite.reporting import markdown
from suite.reporting.doctor import (
    checklist_json,
    checklist_lines,
    checklist_markdown,
    doctor_lines,
    doctor_markdown,
    fold_items,
)
from suite.reporting.model import build_report
from suite.reporting.terminal import lines

HOSTILE = "\x1b[31m|<script>alert(1)</script> @everyone `x`\n# heading"


def ailing() -> Run:
    """Six faults in every variant: more than the end of a run shows."""
    told = {**health.OF_LLAMA_CPP, "n_threads": "8", "KV types": "q4_0 q4_0", "llama.cpp system": "CPU : SSE3 = 1 | "}
    launch = {"facts": told, "peak_rss_bytes": 7_900_000_000, "kv_cache_reported_bytes": 10**9, "cold_ttft_s": 9.0}
    results = tuple(
        health.result_of(name, launches=tuple(health.launch_of(name, n, **launch) for n in range(3)), suspects=told)
        for name in health.VARIANTS
    )
    return replace(health.run(), variants=results)


def test_a_healthy_run_has_no_such_section() -> None:
    report = build_report(health.run())
    assert report.doctor == ()
    assert not any("Doctor" in line for line in lines(report, width=80, color=False))
    assert "Doctor" not in markdown.render(report)


def test_the_end_of_a_run_shows_five_and_where_the_others_are() -> None:
    shown = list(doctor_lines(fold_items(findings(ailing())), 200))
    assert len(shown) == 7
    assert shown[0] == " Doctor: 22 findings of 8 kinds, none of which fails the run"
    assert "memory headroom of fp16, q8_0, q4_k_m, e.g. fp16: 7.9 GB" in shown[5]
    assert shown[6] == "   and 3 more: quantdrift doctor"


def test_what_is_said_alike_of_several_variants_is_said_once() -> None:
    threads = [one for one in fold_items(findings(ailing())) if one.title == "threads"]
    assert [one.variants for one in threads] == [health.VARIANTS]


def test_the_sections_of_both_reports_say_the_same() -> None:
    report = build_report(ailing())
    text = " ".join(" ".join(lines(report, width=100, color=False)).split())
    document = markdown.render(report)
    assert "threads of fp16, q8_0, q4_k_m: 8 threads on 2 physical cores → n_threads = 2" in text
    assert "- threads of `fp16`, `q8_0`, `q4_k_m`: 8 threads on 2 physical cores → n\\_threads = 2" in document
    assert document.count("\n- ") >= len(report.doctor)


def test_nothing_that_a_file_says_acts() -> None:
    item = Diagnosis(rule="x", title="x", variant=None, status=Health.FINDING, evidence=HOSTILE, remedy=HOSTILE)
    run = health.run(model=HOSTILE)
    told = [*doctor_lines(fold_items([item]), 80), *checklist_lines(run, [item], width=120, everything=True)]
    assert not any("\x1b" in line or "\n" in line for line in told)
    for document in ("\n".join(doctor_markdown(fold_items([item]))), checklist_markdown(run, [item], everything=True)):
        assert "<script>" not in document
        assert "@everyone" not in document
        assert "\n# heading" not in document


def test_narrow_terminals_break_lines_and_lose_nothing() -> None:
    items = examine(ailing())
    narrow, wide = (list(checklist_lines(ailing(), items, width=width, everything=True)) for width in (60, 160))
    words = [" ".join(" ".join(shown).split()) for shown in (narrow, wide)]
    assert all(item.evidence in words[0] for item in items if "  " not in item.evidence)
    assert all(item.evidence in words[1] for item in items if "  " not in item.evidence)


@pytest.mark.parametrize("width", [80, 160])
def test_the_whole_check_list_of_a_healthy_run(width: int, check_golden: Callable[[str, str], None]) -> None:
    run = health.run()
    shown = checklist_lines(run, examine(run), width=width, everything=True)
    check_golden(f"doctor-healthy-{width}.txt", "\n".join(shown) + "\n")


@pytest.mark.parametrize("width", [80, 160])
def test_the_findings_of_an_ailing_run(width: int, check_golden: Callable[[str, str], None]) -> None:
    shown = checklist_lines(ailing(), examine(ailing()), width=width, everything=False)
    check_golden(f"doctor-ailing-{width}.txt", "\n".join(shown) + "\n")


def test_the_findings_of_an_ailing_run_as_a_document(check_golden: Callable[[str, str], None]) -> None:
    check_golden("doctor-ailing.md", checklist_markdown(ailing(), examine(ailing()), everything=False))


def test_json_of_a_strangers_run_repaints_no_terminal() -> None:
    attack = "\x1b[31m\x9b31m\x7f\u202e\u2066"
    run = replace(health.run(), model=attack)
    items = [replace(item, evidence=f"{attack}{item.evidence}") for item in examine(run)]
    text = checklist_json(run, items)
    assert text.isascii()
    assert text.replace("\n", "").isprintable()
    document = json.loads(text)
    assert document["model"] == attack
    assert all(item["evidence"].startswith(attack) for item in document["items"])
