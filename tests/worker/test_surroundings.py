"""What another interpreter finds: this package, the project, and nothing that is installed beside ours."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from pathlib import Path

import pytest

from suite.worker.surroundings import environment_of


def paths(python: str | None) -> list[str]:
    return environment_of(0, python=python)["PYTHONPATH"].split(os.pathsep)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project from one of whose directories pytest was started."""
    place = (tmp_path / "project").resolve()
    (place / "inner" / "own").mkdir(parents=True)
    monkeypatch.chdir(place / "inner")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return place


def test_own_backends_lie_in_the_project_alone(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = [project / "inner" / "own", project / "inner" / ".venv" / "lib" / "site-packages" / "extra"]
    inside += [project / "inner" / "dist-packages", project.parent / "site-packages", project.parent / "elsewhere"]
    for place in inside:
        place.mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr(sys, "path", ["", *map(str, inside), sysconfig.get_path("stdlib"), "/usr/lib/x.zip"])
    assert paths("/old/bin/python")[1:] == [str(project / "inner" / "own"), str(project / "inner")]
    assert str(project.parent / "elsewhere") in paths(None)


def test_the_root_that_pytest_put_first_is_the_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(project), str(project / "inner"), "/"])
    assert paths("/old/bin/python")[1:] == [str(project), str(project / "inner")]
    monkeypatch.setenv("PYTHONPATH", str(project))
    assert paths("/old/bin/python")[1:] == [str(project / "inner")]


def test_libraries_of_other_names_are_left_out_too(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "inner" / "lib").mkdir()
    (project / "inner" / "user").mkdir()
    monkeypatch.setattr(site, "getsitepackages", lambda: [str(project / "inner" / "lib")])
    monkeypatch.setattr(site, "getusersitepackages", lambda: str(project / "inner" / "user"))
    monkeypatch.setattr(sys, "path", [str(project / "inner" / name) for name in ("lib", "user", "own")])
    assert paths("/old/bin/python")[1:] == [str(project / "inner" / "own"), str(project / "inner")]


@pytest.mark.parametrize(
    "name", ["LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME", "PYTHONUSERBASE", "VIRTUAL_ENV"]
)
def test_what_would_lead_it_to_our_libraries_does_not_go_along(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "/somewhere")
    assert environment_of(0)[name] == "/somewhere"
    assert name not in environment_of(0, python="/old/bin/python")
