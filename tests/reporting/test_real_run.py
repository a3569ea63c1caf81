"""What people see of a real run: the default matrix on two cores, against stored baselines (``real/run.json.xz``)."""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from support.html_page import Page, without_pictures

from suite.doctor import examine
from suite.records import Run
from suite.reporting import markdown
from suite.reporting.doctor import checklist_lines
from suite.reporting.model import build_report
from suite.reporting.page.render import render_page
from suite.reporting.terminal import lines
from suite.store.runs import decode_run

FILE = Path(__file__).parent / "real" / "run.json.xz"
CheckGolden = Callable[[str, str], None]


@cache
def real_run() -> Run:
    return decode_run(json.loads(lzma.decompress(FILE.read_bytes())), where=FILE.name)


@pytest.mark.parametrize("width", [80, 160])
def test_terminal(width: int, check_golden: CheckGolden) -> None:
    check_golden(f"real-{width}.txt", "\n".join(lines(build_report(real_run()), width=width, color=False)) + "\n")


def test_markdown(check_golden: CheckGolden) -> None:
    check_golden("real.md", markdown.render(build_report(real_run())))


def test_a_label_that_its_tensors_belie_is_told_once() -> None:
    report = build_report(real_run())
    for text in ("\n".join(lines(report, width=160, color=False)), markdown.render(report), render_page(real_run())):
        assert len(re.findall(r"labelled\s+Q5(?:_|\\_)K", text)) == 1


def test_doctor(check_golden: CheckGolden) -> None:
    shown = checklist_lines(real_run(), examine(real_run()), width=100, everything=True)
    check_golden("real-doctor.txt", "\n".join(shown) + "\n")


def test_page(check_golden: CheckGolden) -> None:
    text = render_page(real_run())
    assert len(text.encode()) < 1_000_000
    assert not Page(text).open
    check_golden("real.html", without_pictures(text))
