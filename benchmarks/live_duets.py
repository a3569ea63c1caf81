"""Live duets of the kernel with itself: does the judgement hold on this machine, and how often?

    .venv/bin/python benchmarks/live_duets.py --kind aa --runs 50 --out benchmarks/results/live-aa.jsonl

Each run appends one line to the file at once, so that a long measurement can be stopped and gone on with: runs that the
file holds already count. With ``--runs 0`` the table of what was measured before is printed and nothing is measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from suite.engine.environment import capture_environment
from suite.selftest.characteristics import live_section
from suite.selftest.live import KINDS, LiveRun, read_runs, run_live, write_line
from suite.selftest.table import render_table


def main() -> None:
    """Measure what is missing, and print the table."""
    options = _parse()
    runs = [run for run in read_runs(options.out) if run.kind == options.kind]
    environment = capture_environment()
    while len(runs) < options.runs:
        run = run_live(options.kind, environment)
        runs.append(run)
        _append(options.out, write_line(run))
        print(tell(runs), flush=True)
    print("\n".join(render_table([live_section(read_runs(options.out))])))


def tell(runs: Sequence[LiveRun]) -> str:
    """One line about the newest run."""
    run = runs[-1]
    said = ", ".join(
        f"{metric} {checked.drift:+.1%} {checked.verdict}"
        if checked.drift is not None
        else f"{metric} {checked.verdict}"
        for metric, checked in run.checks.items()
    )
    flags = f" [{'; '.join(run.flags)}]" if run.flags else ""
    return f"{run.kind} {len(runs)}: {said}; {run.launches} launches, {run.cost_s:.0f} s{flags}"


def _append(file: Path, line: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as results:
        results.write(line + "\n")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=list(KINDS), default="aa")
    parser.add_argument("--runs", type=int, default=10, help="runs of this kind that the file is to hold")
    parser.add_argument("--out", type=Path, required=True, help="results, one line a run")
    return parser.parse_args()


if __name__ == "__main__":
    main()
