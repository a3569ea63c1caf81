"""Another interpreter beside the present one: both are measured in one run and compared with each other."""

from __future__ import annotations

import venv
from pathlib import Path

import pytest
from support.foreign_project import ForeignProject, verdicts

BACKEND = """
import sys
from dataclasses import replace
from suite.backends.fake import Fake, FakeModel, FakeOptions

IS_OLD = "old-environment" in sys.prefix

class Library(Fake):
    def load(self, weights, options, prompt_format):
        assert not IS_OLD or "pydantic" not in sys.modules
        rate = 100.0 if IS_OLD else options.decode_tok_s
        model = super().load(weights, replace(options, decode_tok_s=rate, script=""), prompt_format)
        model.facts = {**model.facts, "library": "1.0" if IS_OLD else "2.0"}
        return model

BACKEND = Library()
"""


@pytest.fixture
def old(project: ForeignProject) -> Path:
    """An environment without any package: not even the ones that the suite itself needs."""
    venv.create(project.root / "old-environment", with_pip=False, symlinks=True)
    return project.root / "old-environment"


def write_project(project: ForeignProject, **options: object) -> None:
    project.pytester.makepyfile(library_backend=BACKEND)
    project.write_matrix({"q4": {"backend": "library_backend:BACKEND", "options": options}, "q5": {}})


def test_a_slower_library_is_found_beside_the_old_one(project: ForeignProject, old: Path) -> None:
    write_project(project, decode_tok_s=80.0)
    result = project.run("--matrix-against=old-environment", "--matrix-variants=q4")
    assert result.ret == 1, result.outlines
    run = project.read_run()
    assert [v["name"] for v in run["variants"]] == ["q4"]
    found = verdicts(run, "q4")
    assert found["decode_tok_s/short"] == "REGRESSED"
    assert found["score/math"] == "PASS"
    (slower,) = (f for f in run["findings"] if (f["metric"], f["scope"]) == ("decode_tok_s", "short"))
    assert slower["tier"] == "duet"
    assert "library: 1.0 → 2.0" in slower["comparison"]["suspects"]
    assert run["settings"]["against"] == str(old)
    assert {t["variant"] for t in run["trials"]} == {"q4", "q4@old"}
    pairs = [(s["launch"], s["round"], s["variant"]) for s in run["speed_samples"]]
    assert pairs == [
        (launch, turn, name)
        for launch in (0, 1, 2)
        for turn in (0, 1)
        for name in (("q4", "q4@old") if (launch + turn) % 2 == 0 else ("q4@old", "q4"))
    ]


def test_an_unchanged_library_passes_without_any_baseline(project: ForeignProject, old: Path) -> None:
    write_project(project)
    result = project.run(f"--matrix-against={old / 'bin' / 'python'}", "--matrix-variants=q4", "--matrix-quick")
    assert result.ret == 0, result.outlines
    assert verdicts(project.read_run(), "q4")["decode_tok_s/short"] == "PASS"


def test_an_old_side_that_breaks_is_no_fault_of_the_variant(project: ForeignProject, old: Path) -> None:
    write_project(project)
    file = project.root / "library_backend.py"
    file.write_text(file.read_text().replace('assert not IS_OLD or "pydantic" not in sys.modules', "assert not IS_OLD"))
    result = project.run("--matrix-against=old-environment", "--matrix-variants=q4", "-rs")
    assert result.ret == 3, result.outlines
    result.stdout.fnmatch_lines(["*nothing was compared with *old-environment*(exit status 3): AssertionError*"])
    run = project.read_run()
    assert run["variants"][0]["failure"] is None
    assert set(verdicts(run, "q4").values()) == {"NOT_MEASURED"}
    result.stdout.fnmatch_lines(["*could not be measured: AssertionError*"])


def test_an_old_side_that_loads_our_library_is_not_measured(project: ForeignProject, old: Path) -> None:
    project.pytester.makepyfile(ours="")
    write_project(project)
    file = project.root / "library_backend.py"
    file.write_text(file.read_text().replace("    def load(", '    requires = ("ours",)\n\n    def load(', 1))
    result = project.run("--matrix-against=old-environment", "--matrix-variants=q4", "-k", "math")
    assert result.ret == 3, result.outlines
    result.stdout.fnmatch_lines(["*nothing was compared with *imports ours from *ours.py, which is not its own*"])


@pytest.mark.parametrize(("against", "told"), [
    ("", "names nothing"),
    ("nowhere", "does not exist"),
    ("cases", "holds neither an environment"),
    ("matrix.toml", "neither a program that can be run"),
    ("tool", "is no Python 3.11 or newer"),
    ("weights.gguf", "holds gguf weights, which no selected variant loads"),
])  # fmt: skip
def test_what_can_be_no_old_side_is_refused(project: ForeignProject, against: str, told: str) -> None:
    project.write_matrix({"q4": {}})
    (project.root / "weights.gguf").write_bytes(b"GGUF")
    (project.root / "tool").write_text("#!/bin/sh\necho no python here\n")
    (project.root / "tool").chmod(0o755)
    status, message = project.refuse(f"--matrix-against={against}")
    assert status == 2
    assert told in message


@pytest.mark.parametrize(("option", "told"), [
    ("--matrix-quick", "sees too little to be accepted"), ("--matrix-against=matrix.toml", "leaves baselines alone")
])  # fmt: skip
def test_quick_runs_and_duets_accept_nothing(project: ForeignProject, option: str, told: str) -> None:
    project.write_matrix({"q4": {}})
    status, message = project.refuse(option, "--matrix-update=new", "--matrix-reason=why")
    assert (status, told in message) == (2, True)
