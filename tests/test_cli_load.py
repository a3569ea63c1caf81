"""``quantdrift load`` against a scripted server."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support import fake_openai
from support.fake_openai import FakeOpenAI, Script

import suite
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


CAPACITY = 'vllm:cache_config_info{block_size="16",num_gpu_blocks="40"} 1\n'


@pytest.mark.parametrize(
    ("metrics", "says"),
    [
        (
            CAPACITY,
            [
                " KV budget: 640 tokens, room for 8 requests of 68 tokens at once",
                "   the last level (1 client) takes 12% of it",
            ],
        ),
        (
            "vllm:kv_cache_usage_perc 0.5\n",
            [" KV budget: at most about 2 requests of 68 tokens at once, by what 1 client took", "takes 50% of it"],
        ),
        ("", [" KV budget: not told by the server's metrics"]),
    ],
)
def test_the_kv_budget_behind_the_knee_is_told(
    metrics: str, says: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeOpenAI(scripts=[Script(gap_s=0.04)], metrics=metrics).running() as fake:
        assert main(["load", fake.url, *QUICK, "--requests", "4", "--concurrency", "1"]) == 0
        told = capsys.readouterr().out
        budget = sweep(tmp_path, fake.url, "--concurrency", "1")["budget"]
    assert all(said in told for said in says), told
    assert max(map(len, told.splitlines())) < 100
    assert (budget is None) is (not metrics)
    if metrics == CAPACITY:
        assert (budget["requests"], budget["request_tokens"], budget["cache_tokens"]) == (8, 68, 640)


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


@pytest.mark.parametrize("kind", ["vllm", "openai"])
def test_a_second_sweep_asks_nothing_that_the_first_one_asked(tmp_path: Path, kind: str) -> None:
    with FakeOpenAI(kind=kind, scripts=[Script(reply="12345678")]).running() as fake:
        for _ in range(2):
            sweep(tmp_path, fake.url, "--concurrency", "1,2")
        prompts = [body["prompt"] for body in fake.bodies]
    heads = {text[:8] for text in (p if isinstance(p, str) else "".join(map(chr, p)) for p in prompts)}
    assert len(heads) == len(prompts) == 14


def test_a_server_that_dies_costs_the_level_that_it_died_in_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    # One request to warm up, two of one client: it is gone while two clients ask, whose tokenizer it was, too.
    command = ["{python}", fake_openai.__file__, "--port", "{port}", "--gap", "0.02", "--exit-after", "5"]
    (tmp_path / "matrix.toml").write_text(
        'model = { name = "toy", source = "org/toy" }\nscenarios.s = { prompt_tokens = 8, new_tokens = 4 }\n'
        f'[variants.toy]\nbackend = "server"\noptions = {{ tokenizer = "server", command = {json.dumps(command)} }}\n'
    )
    to = ["--format", "json", "--output", str(tmp_path / "load.json")]
    assert main(["load", "toy", *QUICK, "--concurrency", "1,2,4", *to]) == 1
    found = json.loads((tmp_path / "load.json").read_text())
    one, two = found["levels"]
    assert (one["concurrency"], one["request_s"] > 0, one["errors"]) == (1, True, {})
    assert two["errors"]
    assert found["stopped"].startswith("stopped at 4 clients: 127.0.0.1:")
    assert "quantdrift: stopped at 4 clients: " in capsys.readouterr().err


def test_an_interrupt_sends_nothing_further_and_tells_what_was_over(tmp_path: Path) -> None:
    arguments = ["--concurrency", "1,2", "--requests", "8", "--prompt-tokens", "60", "--new-tokens", "8"]
    # A shell that starts this in the background has interrupts ignored, and that is inherited.
    listen = "signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"import signal, sys; from suite.cli import main; {listen}; sys.exit(main(sys.argv[1:]))"
    with FakeOpenAI(scripts=[Script(first_s=0.1)]).running() as fake:
        call = [sys.executable, "-c", code, "load", fake.url, *arguments, "--output", str(tmp_path / "load.txt")]
        with subprocess.Popen(call, stderr=subprocess.PIPE, cwd=Path(suite.__file__).parents[1]) as process:
            for _ in range(600):
                if len(fake.requests) >= 11:  # one to warm up, eight of one client, the first two of two
                    break
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=30)
    assert len(fake.requests) <= 15
    assert (process.returncode, b"Traceback" in said) == (1, False), said
    told = (tmp_path / "load.txt").read_text()
    assert " stopped at 2 clients: interrupted" in told
    assert sum(line.startswith("       1 ") for line in told.splitlines()) == 1


def test_hostile_numbers_are_a_failed_request_and_end_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    timed = '{"choices": [], "timings": {"prompt_n": 1, "prompt_ms": 1, "predicted_n": 2, "predicted_ms": %s}}'
    scripts = [
        Script(),
        Script(events=(timed % ("9" * 400),)),
        Script(status=503, headers={"Retry-After": "\u00b2"}, body="later"),
        Script(told={"completion_tokens": 2**53}),
        Script(),
    ]
    metrics = 'vllm:cache_config_info{block_size="16",num_gpu_blocks="\u00b2"} 1\n' + METRICS
    with FakeOpenAI(kind="openai", scripts=scripts, metrics=metrics).running() as fake:
        assert main(["load", fake.url, *QUICK, "--requests", "4", "--concurrency", "1"]) == 0
    told = capsys.readouterr().out
    assert "1 of 4 failed: /v1/completions: a time that is no number of milliseconds" in told
    assert "1 of 4 failed: /v1/completions: HTTP status 503: later" in told
    assert "1 of 4 failed: the server counts 9007199254740992 new tokens, and 8 were asked for" in told


def test_a_server_that_is_started_finds_what_it_would_find_in_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOY_KEY", "named")
    monkeypatch.setenv("AWS_TOY_SECRET", "of nobody's concern")
    code = "import json, os; json.dump(dict(os.environ), open('seen', 'w'))"
    (tmp_path / "matrix.toml").write_text(
        'model = { name = "toy", source = "org/toy" }\nscenarios.s = { prompt_tokens = 8, new_tokens = 4 }\n'
        '[variants.toy]\nbackend = "server"\n[variants.toy.options]\ntokenizer = "server"\napi_key_env = "TOY_KEY"\n'
        f'env = {{ MINE = "1" }}\ncommand = {json.dumps(["{python}", "-c", code])}\n'
    )
    assert main(["load", "toy", *QUICK]) == 1
    assert "ended with status 0 while it started" in capsys.readouterr().err
    seen = json.loads((tmp_path / "seen").read_text())
    assert (seen["TOY_KEY"], seen["MINE"], seen["HF_HUB_OFFLINE"]) == ("named", "1", "1")
    assert not {"AWS_TOY_SECRET", "PYTHONPATH"} & seen.keys()
