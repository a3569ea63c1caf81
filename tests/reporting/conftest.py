"""Golden files: ``pytest tests/reporting --update-golden`` rewrites them, and fails so that none passes by accident."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"
FLAG = "--update-golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(FLAG, action="store_true", default=False, help="rewrite the golden files (and fail)")


@pytest.fixture
def check_golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with a golden file, whole."""
    update = bool(request.config.getoption(FLAG, default=False))

    def check(name: str, text: str) -> None:
        file = GOLDEN / name
        expected = file.read_text(encoding="utf-8") if file.is_file() else ""
        if text == expected:
            return
        if update:
            file.write_text(text, encoding="utf-8")
            pytest.fail(f"{file} was rewritten: read the difference, then run again without {FLAG}")
        assert text == expected, f"{file} differs; if that is meant: pytest tests/reporting {FLAG}"

    return check
