"""One browser for all tests, and pages that are rendered once.

Without a browser, or without axe-core, these tests are skipped; in CI (the variable ``CI`` is set) they fail instead, so that
nobody believes in tests that did not run. ``make browser`` gets both.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.browser import PROGRAMS, Browser, find_browser, miss
from support.sample_pages import Pages

from suite.settings import find_cache

PIN = Path(__file__).with_name("axe-core.pin")


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    return Pages(tmp_path_factory.mktemp("pages"))


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = find_browser()
    if program is None:
        miss(f"none of {', '.join(PROGRAMS)} is installed")
    with Browser(program, tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture(scope="session")
def axe() -> str:
    """The program text of axe-core."""
    version = PIN.read_text(encoding="utf-8").split()[0]
    file = find_cache(os.environ) / f"axe-core-{version}" / "axe.min.js"
    if not file.is_file():
        miss(f"there is no {file}")
    return file.read_text(encoding="utf-8")
