"""`quantdrift plan` and `quantdrift calibrate` in a project, with workers of the scripted model."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.in_process import make_matrix, make_variant

from suite.cli import main
from suite.engine.environment import capture_environment
from suite.planning.stored import as_sessions, estimate_launch_s, read_runs
from suite.records import Artifact, ArtifactFile, Launch, Run, SpeedSample, VariantResult, Witness
from suite.store.baselines import BaselineStore

MATRIX = """
[model]
name = "toy"
source = "org/toy"

[variants.a]
backend = "fake"
options = { seed = 1, launch_noise = 0.01 }

[variants.b]
backend = "fake"
options = { seed = 2, launch_noise = 0.01 }

[scenarios.short]
prompt_tokens = 8
new_tokens = 12

[protocol]
rounds = 2
"""
CASE = """
[[case]]
id = "apples"
version = 1
prompt = "How many apples are 9 and 9?"
target = "18"
scorer = "number"
max_new_tokens = 8
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "cases" / "math").mkdir(parents=True)
    (tmp_path / "cases" / "math" / "few.toml").write_text(CASE)
    (tmp_path / "matrix.toml").write_text(MATRIX)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)
    return tmp_path


@pytest.mark.usefixtures("project")
def test_plan_prints_what_can_be_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--tolerance", "itl_s=0.03"]) == 0
    shown = capsys.readouterr().out
    assert "Plan for toy" in shown
    assert "itl_s within 3 %, duet: " in shown
    assert main(["plan", "--format", "json", "--variants", "a"]) == 0
    assert json.loads(capsys.readouterr().out)["variants"] == 1


@pytest.mark.usefixtures("project")
def test_a_wrong_wish_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--tolerance", "speed=0.03"]) == 2
    assert "no gate of this matrix tests it" in capsys.readouterr().err


def test_calibrate_writes_the_noise_of_this_machine_and_plan_uses_it(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["calibrate", "--sessions", "2", "--launches", "2", "--pause", "0"]) == 0
    said = capsys.readouterr()
    machine = capture_environment().machine
    noise = BaselineStore(project / "baselines").read_noise("toy", machine)
    assert noise is not None
    assert (noise.sessions, noise.launches) == (2, 2)
    assert noise.launch_s is not None
    assert 0 < noise.floors["itl_s"].launch_sd < 0.05
    assert f"written to baselines/toy/noise/{machine}.json" in said.out
    assert "Tolerances that fit" in said.out
    assert "session 2 of 2" in said.err
    main(["plan"])
    assert "measured on this machine" in capsys.readouterr().out


@pytest.mark.usefixtures("project")
def test_calibrate_is_refused_in_ci(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CI", "true")
    assert main(["calibrate"]) == 2
    assert "never written in CI" in capsys.readouterr().err


@pytest.mark.usefixtures("project")
def test_without_stored_runs_there_is_nothing_to_calibrate_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "--sessions", "0", "--from-runs"]) == 2
    assert "0 finished session(s)" in capsys.readouterr().err


@pytest.mark.usefixtures("project")
def test_planning_loads_nothing_that_runs_models() -> None:
    code = (
        "import sys; from suite.cli import main; main(['plan', '--format', 'json']); "
        "sys.stderr.write(str(sorted({'torch', 'llama_cpp', 'transformers', 'pytest'} & set(sys.modules))))"
    )
    environment = {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stderr == "[]"


def make_run(number: int, *, version: str = "1", sha256: str = "ab") -> Run:
    launches = tuple(
        Launch(
            variant="a", index=index, load_s=1.0, cold_ttft_s=0.5, cold_prompt_tokens=8, peak_rss_bytes=None,
            uss_bytes=None, peak_device_bytes=None, kv_cache_bytes=None, kv_cache_reported_bytes=None, facts={},
        )
        for index in range(2)
    )  # fmt: skip
    samples = tuple(
        SpeedSample(
            variant="a", scenario="short", launch=index, round=turn, prompt_tokens=8, evaluated_tokens=8, new_tokens=4,
            prefill_s=0.1, ttft_s=0.1, itl_s=(0.1,) * 3, witness=Witness(wall_s=2.0, cpu_s=2.0, threads=1),
        )
        for index in range(2)
        for turn in range(2)
    )  # fmt: skip
    artifact = Artifact(files=(ArtifactFile(name="a.gguf", size_bytes=1, sha256=sha256),), size_bytes=1)
    result = VariantResult(
        variant=make_variant("a"), artifact=artifact, measurements=(), launches=launches, failure=None, identity={},
        suspects={"llama-cpp-python": version},
    )  # fmt: skip
    return Run(
        id=f"r{number}", created=f"2026-11-2{number}T00:00:00+00:00", suite_version="0", model="toy",
        matrix=make_matrix(make_variant("a"), warmup=1), environment=capture_environment(), variants=(result,),
        trials=(), speed_samples=samples, settings={},
    )  # fmt: skip


def test_stored_runs_of_the_same_weights_and_libraries_are_sessions() -> None:
    runs = [make_run(4), make_run(3), make_run(2, sha256="cd"), make_run(1, version="0")]
    assert len(as_sessions(runs, "toy", ["a"])) == 2
    assert as_sessions(runs, "other", ["a"]) == []
    assert as_sessions(runs, "toy", ["b"]) == []


def test_the_time_of_a_launch_is_estimated_from_its_loads_and_slices() -> None:
    assert estimate_launch_s(make_run(1)) == pytest.approx(1.0 + 0.5 + 2 * 2.0 * 1.5)


def test_runs_that_cannot_be_read_are_told_and_left_out(project: Path) -> None:
    broken = project / ".quantdrift" / "runs" / "r1" / "run.json"
    broken.parent.mkdir(parents=True)
    broken.write_text("{")
    runs, faults = read_runs(project / ".quantdrift", capture_environment())
    assert runs == []
    assert "run.json: not JSON" in faults[0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", '[tool.pytest.ini_options]\nmatrix_file = "elsewhere/m.toml"\nmatrix_variants = "a"\n'),
        ("pytest.ini", "[pytest]\nmatrix_file = elsewhere/m.toml\nmatrix_variants = a\n"),
        ("setup.cfg", "[tool:pytest]\nmatrix_file = elsewhere/m.toml\nmatrix_variants = a\n"),
    ],
)
def test_plan_reads_what_the_pytest_configuration_sets(
    project: Path, capsys: pytest.CaptureFixture[str], name: str, text: str
) -> None:
    (project / "elsewhere").mkdir()
    (project / "matrix.toml").rename(project / "elsewhere" / "m.toml")
    (project / "cases").rename(project / "elsewhere" / "cases")
    (project / name).write_text(text)
    assert main(["plan", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["variants"] == 1
    assert main(["plan", "--format", "json", "--variants", "a,b"]) == 0
    assert json.loads(capsys.readouterr().out)["variants"] == 2


def test_a_broken_pytest_configuration_is_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "pyproject.toml").write_text("[tool")
    assert main(["plan"]) == 2
    assert "pyproject.toml: cannot be read" in capsys.readouterr().err
