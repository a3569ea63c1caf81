"""Is the memory bandwidth that a roofline is drawn from the machine's? Our probe beside tools that others wrote.

    apt-get install mbw likwid
    .venv/bin/python benchmarks/bandwidth.py --rounds 10 --size-mb 145 --size-mb 1024

Each round takes every measurement once, in turn, there and back: the streaming read of the probe with one thread and with as
many as there are cores; ``likwid-bench`` reading as much with as many threads, in assembler; a copy by numpy in as many
threads, beside ``mbw`` copying with one (``memcpy``) and ``likwid-bench`` with as many. What is copied counts once, as mbw
counts it; figures of likwid, which counts reads and writes, are halved. Ratios are of the same round. A tool that is not
installed is left out, and told.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier

import numpy as np

from suite import clock
from suite.engine.environment import capture_environment, default_threads
from suite.engine.pinning import choose_cpus
from suite.worker.affinity import on_cpus
from suite.worker.messages import Probe
from suite.worker.process import Worker

MIB = 1 << 20
REPETITIONS = 5
READ_BYTES = 2e9
"""Read by likwid-bench in one repetition: some tens of milliseconds, as long as ours."""
Take = Callable[[], float]


def main() -> None:
    """Measure, and print medians and ratios."""
    options = _parse()
    threads = options.threads or default_threads()
    tools = {tool: shutil.which(tool) for tool in ("mbw", "likwid-bench")}
    print(f"{capture_environment().machine}, {threads} threads, {options.rounds} rounds; missing: "
          f"{', '.join(tool for tool, path in tools.items() if path is None) or 'nothing'}")  # fmt: skip
    cpus = choose_cpus(threads)
    with on_cpus(cpus), Worker("probe", cpus=cpus) as worker:
        for size in options.size_mb:
            print(f"\n{size} MB:")
            takes = _takes(worker, size * 1_000_000, sorted({1, threads}), tools)
            compare(measure(takes, options.rounds))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--threads", type=int, help="default: the physical cores")
    parser.add_argument("--size-mb", type=int, action="append", help="of the buffer; may be given several times")
    options = parser.parse_args()
    options.size_mb = options.size_mb or [145, 1024]
    return options


def _takes(worker: Worker, size: int, threads: list[int], tools: Mapping[str, str | None]) -> dict[str, Take]:
    """What to measure, by name: ``<what>/<threads>/<who>``, each giving bytes a second."""
    found: dict[str, Take] = {}
    for count in threads:
        found[f"read/{count}/probe"] = partial(_probe, worker, size, count)
        found[f"copy/{count}/numpy"] = partial(_copy, size, count)
        if tools["likwid-bench"]:
            found[f"read/{count}/likwid"] = partial(_likwid, "load_avx512", size, count, 1)
            found[f"copy/{count}/likwid"] = partial(_likwid, "copy_avx512", 2 * size, count, 2)
    if tools["mbw"]:
        found["copy/1/mbw"] = partial(_mbw, size)
    return found


def measure(takes: Mapping[str, Take], rounds: int) -> dict[str, list[float]]:
    """Every measurement once a round, there and back."""
    found: dict[str, list[float]] = {name: [] for name in takes}
    for turn in range(rounds):
        for name in takes if turn % 2 == 0 else reversed(list(takes)):
            found[name].append(takes[name]())
    return found


def compare(found: Mapping[str, list[float]]) -> None:
    """Medians, and each of ours over theirs in the same round."""
    for name, rates in found.items():
        print(
            f"  {name:16} {statistics.median(rates) / 1e9:6.1f} GB/s ({min(rates) / 1e9:.1f} … {max(rates) / 1e9:.1f})"
        )
    for ours in (name for name in found if name.endswith(("probe", "numpy"))):
        what = ours.rpartition("/")[0]
        for theirs in (name for name in found if name.startswith(f"{what}/") and name != ours):
            ratios = [mine / other for mine, other in zip(found[ours], found[theirs], strict=True)]
            print(f"  {ours} / {theirs.rpartition('/')[2]:7} {statistics.median(ratios):.3f} "
                  f"({min(ratios):.3f} … {max(ratios):.3f})")  # fmt: skip


def _probe(worker: Worker, size: int, threads: int) -> float:
    return float(worker.ask(Probe(size_bytes=size, threads=threads), 60.0).read_bytes_s)


def _copy(size: int, threads: int) -> float:
    """Best of a few copies, each thread its own part."""
    pairs = [(np.ones(size // threads, np.uint8), np.ones(size // threads, np.uint8)) for _ in range(threads)]
    barrier = Barrier(threads)

    def copy(pair: tuple[np.ndarray, np.ndarray]) -> tuple[float, float]:
        barrier.wait()
        start = clock.monotonic()
        np.copyto(*pair)
        return start, clock.monotonic()

    best = 0.0
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(REPETITIONS):
            spans = list(pool.map(copy, pairs))
            best = max(best, size / (max(end for _, end in spans) - min(start for start, _ in spans)))
    return best


def _mbw(size: int) -> float:
    """Best of a few: mbw tells MiB of each copy by ``memcpy``."""
    told = _run(["mbw", "-q", "-t0", "-n", str(REPETITIONS), str(max(size // MIB, 1))])
    return max(float(rate) for rate in re.findall(r"^\d+\s.*Copy:\s*([\d.]+)\s*MiB/s", told, re.MULTILINE)) * MIB


def _likwid(kernel: str, size: int, threads: int, ways: int) -> float:
    """Best of a few. likwid-bench tells MByte/s, decimal, of all that goes any of `ways`: read, or read and written."""
    passes = max(round(READ_BYTES / size), 4)
    command = ["likwid-bench", "-t", kernel, "-i", str(passes), "-w", f"N:{size // 1000}kB:{threads}"]
    return max(_likwid_rate(_run(command)) for _ in range(REPETITIONS)) / ways


def _likwid_rate(told: str) -> float:
    found = re.search(r"^MByte/s:\s*([\d.]+)", told, re.MULTILINE)
    if found is None:
        raise SystemExit(f"likwid-bench told no MByte/s:\n{told}")
    return float(found[1]) * 1e6


def _run(command: list[str]) -> str:
    environment = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout


if __name__ == "__main__":
    main()
