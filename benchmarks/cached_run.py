"""What a cached run saves: the answers and the fidelity of the whole matrix, and of one variant that is added to it.

    .venv/bin/python benchmarks/cached_run.py --added q4_k_m --out benchmarks/results/cached-run.jsonl

Four runs of ``--model-matrix --matrix-only=answers`` in an empty directory, one after the other: all variants but one, fresh;
all of them with ``--matrix-cached``, so that only the added one must be computed; the same again, where nothing must; and the
added one alone, fresh. A fresh run of everything takes the first and the last together. Whole processes are timed, with
interpreter, hashing of weights, loading and judging, which a cached run does as well.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from suite import backends, clock
from suite.matrix import load_matrix
from suite.store.runs import read_run

ASK = ("--model-matrix", "--matrix-only=answers")


def main() -> None:
    """Measure once more, and print the ratios of every line."""
    options = _parse()
    names = [v.name for v in load_matrix(options.matrix, added=(), options_of=backends.options_of).variants]
    if options.variants:
        names = [name for name in names if name in options.variants.split(",")]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for _ in range(options.runs):
        line = measure(options.matrix.resolve(), names, options.added)
        with options.out.open("a", encoding="utf-8") as results:
            results.write(json.dumps(line) + "\n")
    for line in options.out.read_text(encoding="utf-8").splitlines():
        print(tell(json.loads(line)))


def measure(matrix: Path, names: list[str], added: str) -> dict[str, Any]:
    """Seconds of the four runs, and how many answers of each were taken from an earlier one."""
    rest = [name for name in names if name != added]
    steps = {
        "rest_fresh": [f"--matrix-variants={','.join(rest)}"],
        "added_to_cached": ["--matrix-cached", f"--matrix-variants={','.join(names)}"],
        "all_cached": ["--matrix-cached", f"--matrix-variants={','.join(names)}"],
        "added_fresh": [f"--matrix-variants={added}"],
    }
    line: dict[str, Any] = {"at": clock.now().isoformat(), "variants": names, "added": added}
    with tempfile.TemporaryDirectory(prefix="quantdrift-cached-") as directory:
        for step, more in steps.items():
            line[step] = _run(Path(directory), [f"--matrix-file={matrix}", *more])
            print(step, line[step], flush=True)
    return line


def _run(root: Path, arguments: list[str]) -> dict[str, Any]:
    begin = clock.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--rootdir=.", *ASK, *arguments],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = clock.monotonic() - begin
    newest = root / ".quantdrift" / "latest" / "run.json"
    if done.returncode not in (0, 1) or not newest.exists():
        raise SystemExit(f"pytest exited with {done.returncode}:\n{done.stdout[-3000:]}\n{done.stderr[-1000:]}")
    run = read_run(newest)
    return {
        "seconds": round(seconds, 1),
        "answers": len(run.trials),
        "cached": sum(trial.cached_from is not None for trial in run.trials),
        "forced": len(run.forced),
        "forced_cached": sum(forced.cached_from is not None for forced in run.forced),
    }


def tell(line: dict[str, Any]) -> str:
    """One measurement in words."""
    rest, joined, cached, alone = (
        line[step]["seconds"] for step in ("rest_fresh", "added_to_cached", "all_cached", "added_fresh")
    )
    return (
        f"{len(line['variants'])} variants: fresh {rest + alone:.0f} s, cached {cached:.0f} s, "
        f"ratio {cached / (rest + alone):.3f}; "
        f"{line['added']} added costs {joined - cached:.0f} s, fresh and alone {alone:.0f} s"
    )


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--matrix", type=Path, default=Path("matrix.toml"))
    parser.add_argument("--variants", default="", help="only these, separated by commas")
    parser.add_argument("--added", default="q4_k_m", help="the variant that is added")
    parser.add_argument("--runs", type=int, default=1, help="measurements to add to the file; 0 prints what it holds")
    parser.add_argument("--out", type=Path, required=True, help="results, one line a measurement")
    return parser.parse_args()


if __name__ == "__main__":
    main()
