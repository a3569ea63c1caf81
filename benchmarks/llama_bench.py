"""Does decoding through Quantdrift cost anything over llama.cpp's own ``llama-bench``?

    make setup && .venv/bin/python benchmarks/llama_bench.py

Builds ``llama-bench`` from the very source that the installed llama-cpp-python was built from (its source distribution, the
same CMake arguments), then decodes with both in turn, same file, same threads, and prints the ratio of each round. Speeds
of a shared machine differ from minute to minute; the ratio within a round is what counts.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from llama_cpp_tools import build_tool

from suite import backends
from suite.engine.environment import capture_environment, default_threads
from suite.engine.launching import Launcher
from suite.engine.preparing import Preparer
from suite.matrix import load_matrix
from suite.settings import read_settings

NEW_TOKENS = 128
VARIANTS = ("f16", "q8_0", "q5_k_m", "q4_k_m")


def main() -> None:
    """Build, measure, print."""
    options = _parse()
    settings = read_settings(lambda _name: None, root=Path(__file__).parents[1])
    matrix = load_matrix(settings.matrix_file, options_of=backends.options_of)
    preparer = Preparer(
        base=settings.matrix_file.parent,
        cache=settings.cache,
        deadlines=matrix.deadlines,
        progress=lambda _sentence: None,
    )
    bench = build_tool(settings.cache / "benchmarks", "llama-bench")
    threads = default_threads()
    print(f"{capture_environment().machine}, {threads} threads, llama-cpp-python {version('llama-cpp-python')}")
    print(
        f"decode of {NEW_TOKENS} tokens, tok/s: median of {options.rounds} rounds; ratio: median of ratios (min … max)"
    )
    logs = Path(tempfile.mkdtemp())
    launcher = Launcher(preparer=preparer, deadlines=matrix.deadlines, logs=logs, progress=lambda _sentence: None)
    ratios = [compare(launcher, name, bench, threads, options.rounds) for name in VARIANTS]
    print(f"lowest ratio {min(ratios):.3f}; the limit is 0.95")
    sys.exit(min(ratios) < 0.95)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    return parser.parse_args()


def compare(launcher: Launcher, name: str, bench: Path, threads: int, rounds: int) -> float:
    """Median over rounds of our decode rate / llama-bench's, each round taken back to back, order alternating."""
    settings = read_settings(lambda _name: None, root=Path(__file__).parents[1])
    matrix = load_matrix(settings.matrix_file, options_of=backends.options_of)
    variant = next(v for v in matrix.variants if v.name == name)
    ours, theirs = [], []
    with launcher.launch(variant) as live:
        prompt = live.encode("The sea")

        def take_ours() -> None:
            generation, _ = live.generate(prompt, NEW_TOKENS, stop_at_end=False)
            ours.append(generation.decode_tok_s or 0.0)

        def take_theirs() -> None:
            theirs.append(run_bench(bench, live.prepared.weights or Path(), threads))

        take_ours()  # warm-up; llama-bench warms itself up
        ours.clear()
        for turn in range(rounds):
            for take in (take_ours, take_theirs) if turn % 2 == 0 else (take_theirs, take_ours):
                take()
    ratios = [mine / bench_rate for mine, bench_rate in zip(ours, theirs, strict=True)]
    middle = statistics.median(ratios)
    print(
        f"  {name:8} ours {statistics.median(ours):6.1f}  llama-bench {statistics.median(theirs):6.1f}  "
        f"ratio {middle:.3f} ({min(ratios):.3f} … {max(ratios):.3f})",
        flush=True,
    )
    return middle


def run_bench(bench: Path, model: Path, threads: int) -> float:
    """Decode rate that llama-bench tells, tok/s: one repetition after its own warm-up."""
    command = [
        str(bench),
        "-m",
        str(model),
        "-p",
        "0",
        "-n",
        str(NEW_TOKENS),
        "-r",
        "1",
        "-t",
        str(threads),
        "-fa",
        "0",
    ]
    told = subprocess.run([*command, "-o", "json"], check=True, capture_output=True, text=True).stdout
    return float(json.loads(told)[0]["avg_ts"])


if __name__ == "__main__":
    main()
