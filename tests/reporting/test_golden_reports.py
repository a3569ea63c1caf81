"""What people see, compared whole."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support import sample_stories

from suite.reporting import markdown
from suite.reporting.failure import explain
from suite.reporting.model import build_report
from suite.reporting.terminal import lines

CheckGolden = Callable[[str, str], None]


@pytest.mark.parametrize("width", [80, 160])
@pytest.mark.parametrize("story", sample_stories.STORIES)
def test_terminal(story: str, width: int, check_golden: CheckGolden) -> None:
    report = build_report(sample_stories.STORIES[story]())
    check_golden(f"{story}-{width}.txt", "\n".join(lines(report, width=width, color=False)) + "\n")


@pytest.mark.parametrize("story", sample_stories.STORIES)
def test_markdown(story: str, check_golden: CheckGolden) -> None:
    check_golden(f"{story}.md", markdown.render(build_report(sample_stories.STORIES[story]())))


@pytest.mark.parametrize("story", ["slower", "worse", "killed", "first", "hostile"])
def test_failure_screen(story: str, check_golden: CheckGolden) -> None:
    run = sample_stories.STORIES[story]()
    worst = build_report(run).findings[0]
    scenario = run.matrix.scenarios[0] if worst.scope == "short" else None
    check_golden(f"{story}-failure.txt", explain(worst, scenario=scenario) + "\n")
