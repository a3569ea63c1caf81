"""What is installed elsewhere: the wheel holds everything, and nothing of this repository's own data."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    pytest.importorskip("setuptools", minversion="77")
    place = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--wheel-dir", str(place), str(ROOT)], check=True, capture_output=True)
    return zipfile.ZipFile(next(place.glob("quantdrift-*.whl")))


def test_every_module_example_and_marker_is_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    tracked = {path.relative_to(ROOT).as_posix() for path in (ROOT / "suite").rglob("*.py")}
    shipped = set(wheel.namelist())
    assert tracked <= shipped
    assert {"suite/py.typed", "suite/examples/llama-3.1-8b-gpu.toml"} <= shipped
    assert {f"suite/reporting/page/templates/{name}" for name in ("page.html", "style.css", "page.js")} <= shipped
    assert not [name for name in shipped if name.startswith(("tests/", "cases/", "baselines/", "benchmarks/"))]


def test_the_wheel_brings_the_plugin_and_the_command(wheel: zipfile.ZipFile) -> None:
    (points,) = [name for name in wheel.namelist() if name.endswith("entry_points.txt")]
    text = wheel.read(points).decode()
    assert "suite.plugin = suite.plugin" in text
    assert "quantdrift = suite.cli:main" in text
