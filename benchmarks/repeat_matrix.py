"""The default matrix again and again, with nothing changed: is anything REGRESSED, and how much is decided?

    .venv/bin/python benchmarks/repeat_matrix.py --runs 10 --out benchmarks/results/matrix-aa.jsonl
    .venv/bin/python benchmarks/repeat_matrix.py --runs 3 --out … -- --matrix-against .venv/bin/python

What stands behind ``--`` goes to pytest, beside ``--model-matrix --matrix-quick --matrix-only=speed``. Each run is a
process of its own and appends one line to the file; runs that the file holds already count.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from suite import clock
from suite.store.runs import read_run

QUICK = ("--model-matrix", "--matrix-quick", "--matrix-only=speed")


def main() -> None:
    """Run what is missing, and print what came of it."""
    options = _parse()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    while len(lines) < options.runs:
        line = _run_once([*QUICK, *options.more])
        lines.append(line)
        with options.out.open("a", encoding="utf-8") as results:
            results.write(json.dumps(line) + "\n")
        print(_tell(len(lines), line), flush=True)
    _summarize(lines)


def _run_once(arguments: list[str]) -> dict[str, Any]:
    begin, at = clock.monotonic(), clock.now().isoformat()
    with tempfile.TemporaryDirectory(prefix="quantdrift-repeat-") as directory:
        report = Path(directory) / "run"
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", *arguments, f"--matrix-report={report}"],
            capture_output=True,
            text=True,
            check=False,
        )
        if not (report / "run.json").exists():
            raise SystemExit(f"pytest exited with {done.returncode}:\n{done.stdout[-3000:]}\n{done.stderr[-1000:]}")
        run = read_run(report / "run.json")
    gated = [finding for finding in run.findings if finding.gate != "info" and finding.comparison.aspect != "quality"]
    return {
        "at": at,
        "machine": run.environment.machine,
        "status": done.returncode,
        "seconds": round(clock.monotonic() - begin, 1),
        "tiers": sorted({str(finding.comparison.tier) for finding in gated}),
        "verdicts": dict(Counter(str(finding.verdict) for finding in gated)),
        "gates": {
            f"{finding.variant}/{finding.metric}/{finding.scope}": [
                str(finding.verdict),
                None if finding.comparison.drift is None else round(finding.comparison.drift, 4),
                None if finding.comparison.mde is None else round(finding.comparison.mde, 4),
            ]
            for finding in gated
        },
    }


def _tell(number: int, line: dict[str, Any]) -> str:
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(line["verdicts"].items()))
    return f"run {number}: exit {line['status']}, {line['seconds']:.0f} s, tier {'/'.join(line['tiers'])}: {verdicts}"


def _summarize(lines: list[dict[str, Any]]) -> None:
    total: Counter[str] = Counter()
    for line in lines:
        total.update(line["verdicts"])
    alarmed = sum("REGRESSED" in line["verdicts"] for line in lines)
    times = sorted(line["seconds"] for line in lines)
    print(f"{len(lines)} runs, {alarmed} with a gate REGRESSED; {times[0]:.0f} to {times[-1]:.0f} s each")
    print("gates: " + ", ".join(f"{count} {verdict}" for verdict, count in total.most_common()))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, help="runs that the file is to hold")
    parser.add_argument("--out", type=Path, required=True, help="results, one line a run")
    parser.add_argument("more", nargs="*", help="options for pytest, behind --")
    return parser.parse_args()


if __name__ == "__main__":
    main()
