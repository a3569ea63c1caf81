"""A server that is started for a variant: ready when it is, told when it dies, and gone whenever its worker is."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from support import fake_openai
from support.served import QUICK, ids_of

from suite.errors import LoadError, VariantError
from suite.worker.messages import Generate, Load, Measure
from suite.worker.process import Worker

COMMAND = ["{python}", fake_openai.__file__, "--port", "{port}"]


def wait_until(holds: Callable[[], bool], seconds: float = 20.0) -> None:
    for _ in range(round(seconds / 0.05)):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come to that in time")


def alive(pid: int) -> bool:
    return bool(psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)


def load(command: list[str], **options: object) -> Load:
    chosen = {**QUICK, "tokenizer": "server", "command": command, "startup_s": 20.0, **options}
    return Load(backend="server", weights=None, options=chosen, prompt_format="chat")


def generate() -> Generate:
    return Generate(prompt=ids_of("What is in the sea?"), max_new_tokens=32)


def test_it_is_started_measured_and_ended(tmp_path: Path) -> None:
    pids, log = tmp_path / "pids", tmp_path / "worker.log"
    with Worker("v", log=log) as worker:
        loaded = worker.ask(load([*COMMAND, "--child", "--pids", str(pids)]), 60)
        assert loaded.facts["server"] == "vllm"
        assert str(loaded.load_s)
        answer = worker.ask(generate(), 30)
        assert answer.text == "The sea is salt."
        assert 0 < answer.witness["cpu_s"] < 4
        holders = [int(pid) for pid in pids.read_text().split()]
        assert all(alive(pid) for pid in holders)
        memory = worker.ask(Measure(), 30)
        # The server and its child, and not the worker: each has an interpreter of its own.
        assert 8e6 < memory.peak_rss_bytes < 200e6
        assert memory.peak_rss_bytes >= sum(psutil.Process(pid).memory_info().rss for pid in holders) * 0.5
    assert not any(alive(pid) for pid in holders)
    assert "toy server: listening" in log.read_text()


@pytest.mark.parametrize("how", ["worker killed", "group killed", "kept busy"])
def test_it_does_not_outlive_its_worker(tmp_path: Path, how: str) -> None:
    pids = tmp_path / "pids"
    worker = Worker("v")
    try:
        worker.ask(load([*COMMAND, "--child", "--pids", str(pids), "--gap", "0.2"]), 60)
        holders = [int(pid) for pid in pids.read_text().split()]
        if how == "worker killed":
            os.kill(worker.pid, signal.SIGKILL)
        elif how == "group killed":
            worker.kill()
        else:
            with pytest.raises(VariantError):
                worker.ask(generate(), 0.3)
        wait_until(lambda: not any(alive(pid) for pid in holders))
    finally:
        worker.close()


@pytest.mark.skipif(sys.platform != "linux", reason="nobody else can end a process with its parent")
def test_it_does_not_outlive_its_keeper(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    with Worker("v") as worker:
        worker.ask(load([*COMMAND, "--pids", str(pids)]), 60)
        (server,) = [int(pid) for pid in pids.read_text().split()]
        keeper = psutil.Process(server).parent()
        assert keeper is not None
        keeper.kill()
        wait_until(lambda: not alive(server))
        with pytest.raises(VariantError, match=r"the server .* is gone, and its keeper with it"):
            worker.ask(generate(), 30)


def test_a_program_that_is_not_there_is_named() -> None:
    says = (
        r"could not be started: No such file or directory: llama-server-nope; install the program, or correct `command`"
    )
    with Worker("v") as worker, pytest.raises(LoadError, match=says):
        worker.ask(load(["llama-server-nope", "--port", "{port}"]), 60)


def test_one_that_dies_while_it_starts_is_told_with_its_last_lines() -> None:
    code = "import sys; sys.stderr.write('no such quantization: q9\\n'); sys.exit(4)"
    with (
        Worker("v") as worker,
        pytest.raises(LoadError, match=r"ended with status 4 while it started(.|\n)*no such quant"),
    ):
        worker.ask(load(["{python}", "-c", code]), 60)


def test_one_that_cannot_be_started_is_told() -> None:
    with Worker("v") as worker, pytest.raises(LoadError, match=r"No such file or directory: no-such-server"):
        worker.ask(load(["no-such-server", "{port}"]), 60)


def test_one_that_is_never_ready_is_given_up_and_ended(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    code = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    with Worker("v") as worker:
        with pytest.raises(LoadError, match=r"was not ready within 1 s \(startup_s\)"):
            worker.ask(load(["{python}", "-c", code], startup_s=1.0), 60)
        assert not alive(int(pid.read_text()))


def test_one_that_dies_in_the_middle_is_told_with_its_last_lines() -> None:
    with Worker("v") as worker:
        worker.ask(load([*COMMAND, "--exit-after", "1", "--gap", "0.05"]), 60)
        with pytest.raises(VariantError, match=r"connection broke(.|\n)*ended with status 3(.|\n)*planted failure"):
            worker.ask(generate(), 30)
        assert worker.alive


def test_it_gets_its_own_variables_and_not_the_way_to_this_package(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    code = f"import os; open({str(seen)!r}, 'w').write(repr(dict(os.environ)))"
    with Worker("v") as worker, pytest.raises(LoadError):
        worker.ask(load(["{python}", "-c", code], env={"TOY_CACHE_GB": "1"}), 60)
    text = seen.read_text()
    assert "'TOY_CACHE_GB': '1'" in text
    assert "PYTHONPATH" not in text
    assert "QUANTDRIFT_LAUNCH" not in text


def test_the_key_reaches_the_worker_that_needs_it_and_no_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TOY_KEY", "very-secret-key")
    seen = tmp_path / "seen"
    code = f"import os; open({str(seen)!r}, 'w').write(os.environ.get('TOY_KEY', 'none')); print('very-secret-key')"
    command = ["{python}", "-c", code]
    with Worker("v", passing=["TOY_KEY"]) as worker, pytest.raises(LoadError, match=r"last lines of its log:\n\*\*\*"):
        worker.ask(load(command, api_key_env="TOY_KEY"), 60)
    assert seen.read_text() == "very-secret-key"
    with Worker("v") as worker, pytest.raises(LoadError):
        worker.ask(load(command), 60)
    assert seen.read_text() == "none"


def test_a_long_log_is_read_from_its_end_and_never_from_within_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_KEY", "very-secret-key")
    code = "import sys; sys.stderr.write('very-secret-key ' * 100_000 + '\\nlast words\\n'); sys.exit(4)"
    with Worker("v", passing=["TOY_KEY"]) as worker, pytest.raises(LoadError) as failed:
        worker.ask(load(["{python}", "-c", code], api_key_env="TOY_KEY"), 60)
    assert str(failed.value).endswith("last lines of its log:\nlast words")
