"""A worker seen from its parent: each way in which it can go wrong has its own name, and none takes the parent down."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from suite.backends import BUILT_IN
from suite.errors import LoadError, UsageError, VariantError, WorkerDied, WorkerTimeout
from suite.worker.messages import Encode, Generate, Generated, Load, Make, Measure, Memory, Render
from suite.worker.process import Worker, describe_exit
from suite.worker.surroundings import environment_of, package_root

ASK = Generate(prompt=[65, 66, 67], max_new_tokens=4)
PATIENCE_S = 30.0


def load(**options: Any) -> Load:
    return Load(backend="fake", weights=None, options=options, prompt_format="chat")


def loaded(worker: Worker, **options: Any) -> Worker:
    worker.ask(load(**options), PATIENCE_S)
    return worker


def test_one_worker_answers_everything(tmp_path: Path) -> None:
    with Worker("fine", log=tmp_path / "fine.log") as worker:
        assert worker.alive
        assert worker.ask(load(reply="yes"), PATIENCE_S).context_tokens == 4096
        assert worker.ask(Encode(text="AB"), PATIENCE_S).ids == [65, 66]
        chat = [{"role": "user", "content": "x"}]
        assert list(worker.ask(Render(chats={"a/b": chat}), PATIENCE_S).ids) == ["a/b"]
        first: Generated = worker.ask(Generate(prompt=[1, 2], max_new_tokens=9), PATIENCE_S)
        assert (first.text, first.finish_reason, first.evaluated_tokens) == ("yes", "stop", 2)
        memory: Memory = worker.ask(Measure(), PATIENCE_S)
        assert memory.kv_cache_tokens == 2 + 4
    assert not worker.alive


@pytest.mark.parametrize(("fault", "words"), [
    ("exit", "exited with status 7 while it worked on 'generate'"),
    ("kill", "was killed by SIGKILL (most often: out of memory; see the kernel log)"),
    ("abort", "was killed by SIGABRT"),
])  # fmt: skip
def test_how_a_worker_died_is_told(tmp_path: Path, fault: str, words: str) -> None:
    with Worker("q4", log=tmp_path / "log") as worker:
        loaded(worker, fault=fault)
        with pytest.raises(WorkerDied) as died:
            worker.ask(ASK, PATIENCE_S)
        assert f"worker of q4 {words}" in str(died.value)
        if fault == "abort":
            assert "GGML_ASSERT(planted) failed" in str(died.value)
        with pytest.raises(WorkerDied):  # and it is still dead
            worker.ask(ASK, PATIENCE_S)


def test_a_hang_ends_at_the_deadline_and_the_worker_is_gone() -> None:
    with Worker("q4") as worker:
        loaded(worker, fault="hang")
        begin = time.monotonic()
        with pytest.raises(
            WorkerTimeout, match=r"did not answer 'generate' within 0\.3 s and was killed; raise the deadline"
        ):
            worker.ask(ASK, 0.3)
        assert time.monotonic() - begin < 5
        assert not worker.alive


def test_a_failed_request_leaves_the_worker_alive() -> None:
    with Worker("q4") as worker:
        with pytest.raises(UsageError, match="no model is loaded"):
            worker.ask(ASK, PATIENCE_S)
        loaded(worker, fault="raise")
        with pytest.raises(VariantError, match="RuntimeError: planted failure while generating"):
            worker.ask(ASK, PATIENCE_S)
        with pytest.raises(VariantError, match="do not fit a context of 4096"):
            worker.ask(Generate(prompt=[1], max_new_tokens=4096), PATIENCE_S)
        assert worker.ask(ASK, PATIENCE_S).prompt_tokens == 3


def test_a_model_that_does_not_load_says_why() -> None:
    with Worker("q4") as worker:
        with pytest.raises(LoadError, match="planted failure while loading"):
            worker.ask(load(fault="load"), PATIENCE_S)
        with pytest.raises(UsageError, match="unknown backend 'fakes'"):
            worker.ask(Load(backend="fakes", weights=None, options={}, prompt_format="chat"), PATIENCE_S)
        with pytest.raises(VariantError, match="unexpected keyword argument 'n_ctxx'"):
            worker.ask(load(n_ctxx=1), PATIENCE_S)
        with pytest.raises(UsageError, match="cannot make 'Q4_K_M'"):
            worker.ask(Make(backend="fake", recipe="Q4_K_M", source="a", destination="b"), PATIENCE_S)


@pytest.mark.parametrize("fault", ["stdout", "flood"])
def test_output_of_libraries_goes_to_the_log_and_not_into_the_channel(tmp_path: Path, fault: str) -> None:
    with Worker("q4", log=tmp_path / "log") as worker:
        loaded(worker, fault=fault)
        assert worker.ask(ASK, PATIENCE_S).prompt_tokens == 3
        assert len(worker.stderr_tail().encode()) <= 4000
    assert (b"prints to standard output" if fault == "stdout" else b"x" * 4000) in (tmp_path / "log").read_bytes()


def test_the_tail_is_the_last_lines_of_this_worker_alone(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("from an earlier launch\n")
    with Worker("q4", log=log) as worker:
        loaded(worker)
        assert worker.stderr_tail() == ""
        with log.open("a") as other:
            other.write("\n".join(f"line {number}" for number in range(40)))
        assert worker.stderr_tail().splitlines() == [f"line {number}" for number in range(25, 40)]


def test_a_kill_from_outside_in_the_middle_of_a_request_is_told_at_once() -> None:
    with Worker("q4") as worker:
        loaded(worker, fault="hang")
        threading.Timer(0.3, os.kill, (worker.pid, signal.SIGKILL)).start()
        begin = time.monotonic()
        with pytest.raises(WorkerDied, match="was killed by SIGKILL"):
            worker.ask(ASK, PATIENCE_S)
        assert time.monotonic() - begin < PATIENCE_S / 2


def test_leaving_a_worker_that_is_at_work_does_not_wait_for_it() -> None:
    begin = time.monotonic()
    with Worker("q4") as worker:
        loaded(worker, fault="hang")
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            worker.ask(ASK, PATIENCE_S)
    assert time.monotonic() - begin < 4
    assert not worker.alive


def test_a_worker_that_hangs_up_without_exiting_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suite.worker.process.EXIT_S", 0.2)
    write_backend(tmp_path, "os.closerange(3, 64); time.sleep(3600)")
    monkeypatch.chdir(tmp_path)
    with Worker("q4") as worker:
        with pytest.raises(WorkerDied, match=r"closed its channel, did not exit within 0\.2 s and was killed"):
            worker.ask(Load(backend="odd:BACKEND", weights=None, options={}, prompt_format="chat"), PATIENCE_S)
        assert not worker.alive


def test_a_worker_that_breaks_the_protocol_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_backend(
        tmp_path, "[os.write(fd, b'nonsense\\n') for fd in range(3, 9) if os.path.exists(f'/proc/self/fd/{fd}')]"
    )
    monkeypatch.chdir(tmp_path)
    with Worker("q4") as worker:
        with pytest.raises(WorkerDied, match="broke the protocol: not a message: b'nonsense'"):
            worker.ask(Load(backend="odd:BACKEND", weights=None, options={}, prompt_format="chat"), PATIENCE_S)
        assert not worker.alive


def write_backend(directory: Path, statement: str) -> None:
    """A backend that does something odd when it is loaded."""
    (directory / "odd.py").write_text(
        "import os, time\nfrom suite.backends.fake import Fake\n\nclass Odd(Fake):\n"
        f"    def load(self, weights, options, prompt_format):\n        {statement}\n"
        "        return super().load(weights, options, prompt_format)\n\nBACKEND = Odd()\n"
    )


def test_a_worker_ends_when_its_parent_is_killed() -> None:
    code = (
        "from suite.worker.messages import *; from suite.worker.process import Worker\n"
        "worker = Worker('q4')\n"
        "worker.ask(Load(backend='fake', weights=None, options={'fault': 'hang'}, prompt_format='chat'), 30)\n"
        "print(worker.pid, flush=True)\n"
        "worker.ask(Generate(prompt=[1], max_new_tokens=1), 600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
    end = time.monotonic() + 10
    while time.monotonic() < end and is_running(pid):
        time.sleep(0.02)
    assert not is_running(pid)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in ("Z", "X")


def test_secrets_stay_with_the_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = ("HF_TOKEN", "GITHUB_TOKEN", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "DB_PASSWORD",
              "PGPASSWORD", "GOOGLE_APPLICATION_CREDENTIALS", "GH_PAT", "SSH_AUTH_SOCK", "SIGNING_PRIVATE_KEY",
              "MYSQL_PWD", "DATABASE_URL", "SLACK_WEBHOOK_URL")  # fmt: skip
    for name in (*secret, "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, "7")
    write_backend(tmp_path, "raise RuntimeError(' '.join(os.environ))")
    monkeypatch.chdir(tmp_path)
    with Worker("q4", launch=3) as worker, pytest.raises(VariantError) as told:
        worker.ask(Load(backend="odd:BACKEND", weights=None, options={}, prompt_format="chat"), PATIENCE_S)
    seen = set(str(told.value).split())
    assert seen & set(secret) == set()
    assert {"OMP_NUM_THREADS", "PATH", "HF_HUB_OFFLINE", "QUANTDRIFT_LAUNCH"} <= seen


def test_a_backend_beside_the_tests_is_found_by_the_worker_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_backend(tmp_path, "pass")
    monkeypatch.syspath_prepend(str(tmp_path))
    with Worker("q4") as worker:
        assert worker.ask(Load(backend="odd:BACKEND", weights=None, options={}, prompt_format="chat"), PATIENCE_S)


@pytest.mark.parametrize(("status", "words"), [
    (0, "exited with status 0"),
    (-11, "was killed by SIGSEGV"),
    (-4, "was killed by SIGILL"),
    (-127, "was killed by signal 127"),
])  # fmt: skip
def test_ends_in_words(status: int, words: str) -> None:
    assert describe_exit(status) == words


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system cannot pin processes")
def test_a_worker_runs_on_the_cpus_that_it_was_told() -> None:
    usable = os.sched_getaffinity(0)
    for cpus in ((min(usable),), ()):
        with Worker("pinned", cpus=cpus) as worker:
            loaded(worker)
            assert os.sched_getaffinity(worker.pid) == (set(cpus) or usable)


def test_another_interpreter_finds_this_package_and_nothing_that_lies_beside_it() -> None:
    ours = environment_of(0)["PYTHONPATH"].split(os.pathsep)
    theirs = environment_of(0, python="/usr/bin/other")["PYTHONPATH"].split(os.pathsep)
    assert ours[0] == str(package_root())
    assert theirs[0] != ours[0]
    assert [path.name for path in Path(theirs[0]).iterdir()] == ["suite"]


def test_a_worker_and_all_backends_need_nothing_but_the_standard_library() -> None:
    """Another interpreter has the libraries of one backend, and none of ours."""
    modules = ["suite.worker.serve", *(path.partition(":")[0] for path in BUILT_IN.values())]
    code = f"import sys, {', '.join(modules)}; print('pydantic' in sys.modules, len(sys.modules))"
    asked = subprocess.run(
        [sys.executable, "-S", "-P", "-c", code],
        env={"PYTHONPATH": environment_of(0, python="other")["PYTHONPATH"].partition(os.pathsep)[0]},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert asked.returncode == 0, asked.stderr
    assert asked.stdout.startswith("False")
