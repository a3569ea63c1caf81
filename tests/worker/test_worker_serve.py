"""What a worker does with each request, in this process: the scripted model has a clock of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import suite
from suite.backends.fake import Fake, FakeModel, FakeOptions
from suite.worker import memory, witness
from suite.worker.messages import Failed, Generate, Generated, Load, Loaded, Measure, Memory
from suite.worker.serve import Server

EXACT = {"launch_noise": 0.0, "token_noise": 0.0}


def serve(**options: Any) -> Server:
    server = Server()
    answer = server.answer(Load(backend="fake", weights=None, options={**EXACT, **options}, prompt_format="chat"))
    assert isinstance(answer, Loaded)
    return server


def generate(server: Server, prompt: int = 10, new: int = 5, **more: Any) -> Generated:
    answer = server.answer(Generate(prompt=[65] * prompt, max_new_tokens=new, **more))
    assert isinstance(answer, Generated)
    return answer


def test_times_are_those_of_the_models_own_clock() -> None:
    answer = generate(serve(reply="abc", prefill_tok_s=100.0, decode_tok_s=10.0), prompt=10, new=8)
    assert answer.prefill_s == pytest.approx(0.1)
    assert answer.token_times_s == pytest.approx([0.2, 0.3, 0.4])


def test_a_worker_tells_where_its_libraries_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fake, "requires", ("pytest", "suite"))
    answer = Server().answer(Load(backend="fake", weights=None, options={}, prompt_format="chat"))
    assert isinstance(answer, Loaded)
    assert answer.libraries["pytest"] == pytest.__file__
    assert answer.libraries["suite"].startswith(str(Path(suite.__path__[0])))
    assert {sys.prefix, sys.base_prefix} <= set(answer.prefixes)


def test_the_end_token_is_neither_counted_nor_timed() -> None:
    answer = generate(serve(reply="abc"), new=8)
    assert (answer.text, answer.finish_reason, len(answer.token_ids)) == ("abc", "stop", 3)


def test_a_full_budget_is_a_length() -> None:
    answer = generate(serve(reply="abcdef"), new=4)
    assert (answer.text, answer.finish_reason) == ("abcd", "length")


def test_timing_runs_on_behind_the_end() -> None:
    answer = generate(serve(reply="a"), new=6, stop_at_end=False)
    assert (len(answer.token_ids), len(answer.token_times_s), answer.finish_reason) == (6, 6, "length")


def test_no_answer_at_all_has_no_times() -> None:
    answer = generate(serve(reply=""), new=6)
    assert (answer.token_ids, answer.token_times_s, answer.finish_reason) == ([], [], "stop")


def test_evaluated_tokens_are_the_backends_own_count() -> None:
    server = serve(fault="cached", fault_at=1)
    assert generate(server).evaluated_tokens == 10
    assert generate(server).evaluated_tokens == 1


def test_a_failure_is_an_answer_and_the_server_goes_on() -> None:
    server = serve(fault="raise")
    assert server.answer(Generate(prompt=[1], max_new_tokens=1)) == Failed(
        kind="failure", message="RuntimeError: planted failure while generating"
    )
    assert generate(server).prompt_tokens == 10


def test_nothing_is_measured_before_a_model_is_loaded() -> None:
    answer = Server().answer(Measure())
    assert isinstance(answer, Failed)
    assert answer.kind == "usage"


def test_memory_of_the_kv_cache_is_told_with_its_tokens() -> None:
    server = serve(kv_bytes_per_token=100, reply="abcdef")
    generate(server, prompt=10, new=5)
    answer = server.answer(Measure())
    assert isinstance(answer, Memory)
    assert (answer.kv_cache_bytes, answer.kv_cache_tokens) == (1500, 15)


def test_what_shows_only_in_work_is_told_beside_what_the_worker_saw() -> None:
    answer = serve(seen={"inference mode": "no"}).answer(Measure())
    assert isinstance(answer, Memory)
    assert answer.seen["inference mode"] == "no"
    assert float(answer.seen["alive s"]) >= 0


def test_every_launch_has_its_own_luck_and_the_same_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def total(launch: int) -> float:
        monkeypatch.setenv("QUANTDRIFT_LAUNCH", str(launch))
        model = FakeModel(FakeOptions(launch_noise=0.1))
        list(model.stream([1] * 50, 20))
        return model.clock()

    assert total(0) == total(0) != total(1)


def test_a_script_stands_for_other_weights_under_the_same_declaration(tmp_path: Path) -> None:
    script = tmp_path / "weights.json"
    script.write_text('{"reply": "from the script"}')
    assert generate(serve(script=str(script), reply="declared"), new=40).text == "from the script"
    script.write_text('{"replay": 1}')
    answer = Server().answer(Load(backend="fake", weights=None, options={"script": str(script)}, prompt_format="chat"))
    assert isinstance(answer, Failed)
    assert answer.kind == "load"
    assert "not a script" in answer.message


def test_the_machine_says_nothing_about_simulated_time() -> None:
    seen = generate(serve()).witness
    assert seen["pressure"] is seen["steal"] is seen["involuntary_switches"] is None
    assert seen["threads"] == 1


def test_a_witness_sees_work_and_waiting() -> None:
    observer = witness.Observer(threads=2)
    observer.start()
    sum(range(300_000))
    seen = observer.stop()
    assert 0 < seen["cpu_s"] <= 1.5 * seen["wall_s"]  # type: ignore[operator]
    assert seen["involuntary_switches"] >= 0  # type: ignore[operator]


def test_a_witness_counts_the_work_of_a_server_as_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(witness, "PROCESSES", tmp_path)
    (tmp_path / "41").mkdir()
    stat = tmp_path / "41" / "stat"
    stat.write_text("41 (a (server) ) S 1 1 1 0 -1 0 0 0 0 0 100 20 7 7 20 0")
    observer = witness.Observer(threads=1, processes=[41, 42])
    observer.start()
    stat.write_text("41 (a (server) ) S 1 1 1 0 -1 0 0 0 0 0 400 120 7 7 20 0")
    assert observer.stop()["cpu_s"] == pytest.approx(400 / os.sysconf("SC_CLK_TCK"), abs=0.5)


def test_a_witness_reads_pressure_and_steal_from_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pressure, stat = tmp_path / "pressure", tmp_path / "stat"
    monkeypatch.setattr(witness, "PRESSURE", pressure)
    monkeypatch.setattr(witness, "STAT", stat)
    monkeypatch.setattr("suite.clock.monotonic", iter([0.0, 1.0, 3.0]).__next__)

    def write(waited_us: int, idle: int, stolen: int) -> None:
        pressure.write_text(f"some avg10=1.00 avg60=0.50 avg300=0.10 total={waited_us}\nfull avg10=0.00 total=9\n")
        stat.write_text(f"cpu 10 0 10 {idle} 0 0 0 {stolen} 0 0\ncpu0 1 2 3\n")

    write(1_000_000, 80, 0)
    observer = witness.Observer(threads=1)
    observer.start()
    write(1_500_000, 150, 30)
    seen = observer.stop()
    assert seen["pressure"] == pytest.approx(0.25)  # half a second of two
    assert seen["steal"] == pytest.approx(0.3)
    pressure.unlink()
    stat.write_text("nonsense")
    monkeypatch.setattr("suite.clock.monotonic", iter([0.0, 1.0]).__next__)
    blind = witness.Observer(threads=1).stop()
    assert blind["pressure"] is blind["steal"] is None


def test_peak_memory_is_that_of_this_process_and_not_of_its_parent() -> None:
    """``ru_maxrss`` survives exec on Linux: a small worker of a big pytest would report the size of pytest."""
    ballast = bytearray(os.urandom(1)) * (200 << 20)
    code = (
        "from suite.worker.memory import peak_rss_bytes as p; b = p(); x = bytearray(b'x') * (64 << 20); print(b, p())"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    before, after = map(int, told.split())
    assert len(ballast) > 100 << 20 > before
    assert 60 << 20 < after - before < 100 << 20


def test_peak_memory_has_the_pages_of_weights_and_not_those_of_libraries(tmp_path: Path) -> None:
    """How much of a library is resident is the page cache's doing: the same torch took 384 MB and, freshly read, 511 MB."""
    weights = tmp_path / "weights.gguf"
    weights.write_bytes(os.urandom(1 << 20) * 32)
    code = """
import mmap, sys
from pathlib import Path
from scipy.linalg import blas  # brings a library of tens of megabytes
from suite.worker.memory import peak_rss_bytes, program_bytes

def read_all(file):
    with open(file, "rb") as opened:
        held.append(mmap.mmap(opened.fileno(), 0, prot=mmap.PROT_READ))
    return len(held[-1]), sum(held[-1][::4096]) and (peak_rss_bytes(), program_bytes())

held = []
mapped = [line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if " r-xp " in line]
library = max((file for file in mapped if file.startswith("/")), key=lambda file: Path(file).stat().st_size)
begin = peak_rss_bytes(), program_bytes()
print(*begin)
for file in (library, sys.argv[1]):
    size, (peak, programs) = read_all(file)
    print(size, peak, programs)
"""
    done = subprocess.run([sys.executable, "-c", code, str(weights)], capture_output=True, text=True, check=True)
    (peak, programs), (size, of_library, read), (_, of_weights, _) = (
        tuple(map(int, line.split())) for line in done.stdout.splitlines()
    )
    assert read - programs > size / 2 > 5 << 20
    assert of_library - peak < 2 << 20
    assert of_weights - of_library > 30 << 20


def test_own_memory_is_read_from_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    smaps = tmp_path / "smaps_rollup"
    smaps.write_text("1-2 ---p 0 [rollup]\nRss: 900 kB\nPss: 500 kB\nPrivate_Clean: 100 kB\nPrivate_Dirty: 23 kB\n")
    monkeypatch.setattr(memory, "SMAPS", smaps)
    assert memory.uss_bytes() == 123 * 1024
    smaps.unlink()
    assert memory.uss_bytes() is None
