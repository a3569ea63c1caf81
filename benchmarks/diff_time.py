"""How long ``quantdrift diff`` takes on two revisions of this repository's own baselines, and what it imports that is heavy.

    .venv/bin/python benchmarks/diff_time.py [--runs 5] [BASE HEAD]

Whole processes, as a person starts them. Without revisions: each of the last five commits that changed the baselines
beside the one before it, and the last commit beside the working tree.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from pathlib import Path

from suite import clock

ROOT = Path(__file__).parent.parent
HEAVY = ("torch", "transformers", "llama_cpp", "bitsandbytes", "scipy", "numpy", "pytest", "huggingface_hub", "psutil")
CODE = (
    "import sys; from suite.cli import main; status = main(sys.argv[1:]); "
    f"sys.stderr.write(' '.join(name for name in {HEAVY!r} if name in sys.modules)); sys.exit(status)"
)


def main() -> None:
    """Print one line for each pair of states."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("states", nargs="*", metavar="REVISION", help="two states, as quantdrift diff takes them")
    parser.add_argument("--runs", type=int, default=5, help="processes for each pair; the median counts (default: 5)")
    arguments = parser.parse_args()
    pairs = [tuple(arguments.states)] if arguments.states else own_pairs()
    for pair in pairs:
        taken, heavy, headline = measure(pair, arguments.runs)
        print(f"{' '.join(pair) or 'HEAD, working tree'}: {statistics.median(taken):.2f} s (max {max(taken):.2f})")
        print(f"  heavy modules imported: {heavy or 'none'}")
        print(f"  {headline}")


def own_pairs() -> list[tuple[str, ...]]:
    """The last commits that changed the baselines, each with the one before it; the working tree first."""
    done = subprocess.run(
        ["git", "-C", str(ROOT), "log", "-5", "--format=%h", "--", "baselines"],
        capture_output=True,
        text=True,
        check=True,
    )
    return [(), *((f"{commit}~1", commit) for commit in done.stdout.split())]


def measure(states: tuple[str, ...], runs: int) -> tuple[list[float], str, str]:
    """Seconds of each process, the heavy modules that it ended with, and its first line."""
    taken: list[float] = []
    done = None
    for _ in range(max(runs, 1)):
        begun = clock.monotonic()
        done = subprocess.run(
            [sys.executable, "-c", CODE, "diff", *states], cwd=ROOT, capture_output=True, text=True, check=True
        )
        taken.append(clock.monotonic() - begun)
    assert done is not None
    return taken, done.stderr.strip(), done.stdout.splitlines()[0]


if __name__ == "__main__":
    main()
