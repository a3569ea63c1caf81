"""``quantdrift load`` against a scripted server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import fake_openai
from support.fake_openai import FakeOpenAI, Script

from suite.cli import main

QUICK = ["--requests", "2", "--prompt-tokens", "60", "--new-tokens", "8"]
METRICS = "vllm:kv_cache_usage_perc 0.5\nvllm:num_requests_waiting 3\n"


def sweep(tmp_path: Path, *arguments: str) -> dict[str, Any]:
    assert main(["load", *arguments, *QUICK, "--format", "json", "--output", str(tmp_path / "load.json")]) == 0
    document: dict[str, Any] = json.loads((tmp_path / "load.json").read_text())
    return document


def test_a_server_with_a_tokenizer_is_asked_for_exact_numbers(tmp_path: Path) -> None:
    with FakeOpenAI(scripts=[Script(gap_s=0.01)], metrics=METRICS).running() as fake:
        found = sweep(tmp_path, fake.url, "--concurrency", "4,1")
        one, four = found["levels"]
        assert (one["concurrency"], four["concurrency"]) == (1, 4)
        assert (one["requests"], four["requests"]) == (2, 8)
        assert one["prompt_tokens"] == 120
        assert not one["errors"]
        assert not four["errors"]
        assert four["new_tok_s"] > 1.5 * one["new_tok_s"]  # it answers side by side
        assert found["knee"]["reached"] is False
        prompts = ["".join(map(chr, body["prompt"])) for body in fake.bodies]
        assert len({prompt[:3] for prompt in prompts}) == len(prompts) == 11
        assert {body["max_tokens"] for body in fake.bodies} == {8}
        assert all(body["ignore_eos"] for body in fake.bodies)
        assert four["readings"]["server_kv_cache_usage"] == 0.5


def test_a_server_without_one_counts_itself(tmp_path: Path) -> None:
    with FakeOpenAI(kind="openai", scripts=[Script(reply="12345678", per_chunk=3)]).running() as fake:
        (one,) = sweep(tmp_path, fake.url, "--concurrency", "1")["levels"]
        assert one["new_tok_s"] * one["wall_s"] == pytest.approx(16)
        assert one["prompt_tokens"] > 0


def test_a_server_that_counts_nothing_is_refused_and_never_counted_by_chunks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with FakeOpenAI(kind="openai", scripts=[Script(usage=False)]).running() as fake:
        assert main(["load", fake.url, *QUICK, "--concurrency", "1"]) == 1
        assert "2 of 2 failed: the server counts no tokens (no usage)" in capsys.readouterr().out


def test_errors_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    scripts = [Script(), Script(status=429, body="full"), Script(fault="die"), Script()]
    with FakeOpenAI(scripts=scripts, metrics=METRICS).running() as fake:
        assert main(["load", fake.url, *QUICK, "--concurrency", "2", "--ttft", "5"]) == 0
        told = capsys.readouterr().out
        assert "1 of 4 failed: /v1/completions: HTTP status 429: full" in told
        assert "1 of 4 failed: /v1/completions: the connection broke" in told
        assert "met the target (TTFT ≤ 5000 ms)" in told
        assert "cannot tell from one level" in told
        assert max(map(len, told.splitlines())) < 100


def test_a_variant_is_started_asked_and_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["{python}", fake_openai.__file__, "--port", "{port}", "--gap", "0.001"]
    (tmp_path / "matrix.toml").write_text(
        'model = { name = "toy", source = "org/toy" }\n'
        "scenarios.short = { prompt_tokens = 8, new_tokens = 4 }\n"
        f'[variants.toy]\nbackend = "server"\noptions = {{ tokenizer = "server", command = {json.dumps(command)} }}\n'
        '[variants.other]\nbackend = "fake"\n'
    )
    (one,) = sweep(tmp_path, "toy", "--concurrency", "1")["levels"]
    assert one["request_s"] > 0


def test_what_cannot_be_asked_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "matrix.toml").write_text(
        'model = { name = "toy", source = "org/toy" }\nscenarios.s = { prompt_tokens = 8, new_tokens = 4 }\n'
        '[variants.other]\nbackend = "fake"\n'
    )
    for arguments, status, said in (
        (["other"], 2, "only a server has many clients"),
        (["otter"], 2, "did you mean 'other'?"),
        (["http://127.0.0.1:1"], 1, "no server answers at"),
        (["http://127.0.0.1:1", "--new-tokens", "1"], 2, "--new-tokens: at least 2"),
    ):
        assert main(["load", *arguments]) == status
        assert said in capsys.readouterr().err
