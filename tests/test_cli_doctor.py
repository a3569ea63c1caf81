"""``quantdrift doctor``, on a stored run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support import sample_health
from support.laid_out import lay_out

from suite.cli import main
from suite.doctor import RULES
from suite.records import Run

RUN = "2026-11-29T18-04-11-7c1f"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose last run has two faults, as the working directory."""
    lay_out(tmp_path, ailing())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ailing() -> Run:
    return sample_health.with_options("q8_0", {"n_threads": "8", "attention": None}, flash_attn=True)


@pytest.mark.parametrize("given", [[], [RUN], [".quantdrift/latest"], [".quantdrift/latest/run.json"]])
@pytest.mark.parametrize("width", ["80", "160"])
@pytest.mark.usefixtures("project")
def test_findings_with_evidence_and_remedy(given: list[str], width: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", *given, "--width", width]) == 0
    shown = capsys.readouterr().out
    assert "q8_0: 8 threads on 2 physical cores" in shown
    assert "→ n_threads = 2, and compare" in shown
    assert "asked flash_attn, got the plain path" in " ".join(shown.split())
    assert "all modules are in eval mode" not in shown
    assert "2 FINDING" in shown
    assert "--all shows the evidence of all" in " ".join(shown.split())
    assert max(map(len, shown.splitlines())) <= int(width)


@pytest.mark.usefixtures("project")
def test_all_shows_what_passed_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--all", "--width", "160"]) == 0
    shown = capsys.readouterr().out
    assert "PASS            eval and inference mode          fp16: all modules are in eval mode" in shown
    assert "NOT_APPLICABLE  padding waste" in shown
    assert "--all" not in shown


@pytest.mark.usefixtures("project")
def test_one_variant(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--variant", "fp16", "--all", "--width", "160"]) == 0
    shown = capsys.readouterr().out
    assert "fp16: 2 threads on 2 physical cores" in shown
    assert "q8_0: " not in shown
    assert "2 prompts have the same token ids in every variant" in shown


def test_json_holds_everything(project: Path) -> None:
    assert main(["doctor", "--format", "json", "--output", "doctor.json"]) == 0
    document = json.loads((project / "doctor.json").read_text())
    assert {item["rule"] for item in document["items"]} == {rule.id for rule in RULES}
    assert {item["status"] for item in document["items"]} == {"PASS", "FINDING", "NOT_APPLICABLE"}
    threads = next(i for i in document["items"] if (i["rule"], i["variant"]) == ("threads", "q8_0"))
    assert threads["status"] == "FINDING"
    assert (document["kind"], document["run"]) == ("doctor", RUN)


@pytest.mark.usefixtures("project")
def test_markdown_is_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--format", "markdown"]) == 0
    shown = capsys.readouterr().out
    assert "| FINDING | threads | `q8_0` | 8 threads on 2 physical cores | n\\_threads = 2, and compare |" in shown


@pytest.mark.usefixtures("project")
def test_a_variant_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--variant", "q8"]) == 2
    assert "did you mean 'q8_0'?" in capsys.readouterr().err


def test_a_healthy_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lay_out(tmp_path, sample_health.run())
    monkeypatch.chdir(tmp_path)
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert "FINDING" not in shown
    assert "PASS" in shown


@pytest.mark.usefixtures("project")
def test_it_needs_nothing_that_runs_models() -> None:
    code = (
        "import sys; from suite.cli import main; main(['doctor']); "
        "sys.stderr.write(repr(sorted({'torch', 'transformers', 'llama_cpp', 'pytest', 'matplotlib'} & set(sys.modules))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={"PYTHONIOENCODING": "ascii", "PYTHONPATH": str(Path(__file__).parent.parent)},
        check=True,
    )
    assert done.stderr == "[]"
    assert "8 threads on 2 physical cores" in done.stdout
