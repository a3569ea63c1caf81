"""A foreign project for each test."""

from __future__ import annotations

# Imported here once: pytester forgets what a run inside this process imported, and numpy cannot be loaded twice.
import jinja2  # noqa: F401
import matplotlib.backends.backend_svg  # noqa: F401
import numpy as np  # noqa: F401
import pytest
import scipy.special
import scipy.stats  # noqa: F401
from support.foreign_project import ForeignProject

import suite.plugin.active  # noqa: F401


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> ForeignProject:
    """A directory with cases, outside of CI, whose cache is its own."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("QUANTDRIFT_CACHE", str(pytester.path / "cache"))
    made = ForeignProject(pytester)
    made.write_cases()
    return made
