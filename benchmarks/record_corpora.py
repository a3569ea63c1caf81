"""Record launches of the kernel for `quantdrift selftest` to replay.

    .venv/bin/python benchmarks/record_corpora.py --regime quiet --launches 120

A recording that was broken off is gone on with; ``--fresh`` starts anew. Nothing else should run meanwhile, except for what
the regime itself brings along. `sessions` counts sessions of five launches instead of launches.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from typing import get_args

from suite import clock
from suite.selftest.corpus import DIRECTORY, Corpus, Regime, corpus_file, read_corpus, write_corpus
from suite.selftest.recording import Shape, extend_corpus, shape_of, start_corpus


def main() -> None:
    """Record, and write the corpus after each launch."""
    options = _parse()
    shape = shape_of(options.regime, Shape(pause_s=options.pause))
    file = corpus_file(options.regime, options.out)
    known = file.is_file() and not options.fresh
    corpus = read_corpus(file) if known else start_corpus(options.regime, shape, tell_command(options))
    begin = clock.monotonic()
    for grown in extend_corpus(corpus, shape, options.launches):
        write_corpus(grown, options.out)
        print(f"{clock.monotonic() - begin:7.1f} s  {tell(grown)}", flush=True)


def tell_command(options: argparse.Namespace) -> str:
    """What to type for the same again; where the files lie is a matter of each machine, and left out."""
    pause = f" --pause {options.pause:g}" if options.regime == "sessions" else ""
    return f"python benchmarks/record_corpora.py --regime {options.regime} --launches {options.launches}{pause}"


def tell(corpus: Corpus) -> str:
    """One line about the newest launch or session."""
    if corpus.sessions:
        last = corpus.sessions[-1]
        values = [statistics.median(launch.arm.median_ms) for launch in last.launches]
        return f"session {len(corpus.sessions)}: {statistics.median(values):.3f} ms a token"
    newest = corpus.launches[-1]
    ratios = [b / a - 1 for a, b in zip(newest.a.median_ms, newest.b.median_ms, strict=True)]
    waited = max((p for arm in (newest.a, newest.b) for p in arm.pressure if p is not None), default=0.0)
    return (
        f"launch {len(corpus.launches)}: {statistics.median(newest.a.median_ms):.3f} ms a token, b/a "
        f"{statistics.median(ratios):+.2%}, pressure up to {waited:.0%}"
    )


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--regime", choices=get_args(Regime), required=True)
    parser.add_argument("--launches", type=int, default=100, help="launches (or sessions) that the corpus is to have")
    parser.add_argument("--pause", type=float, default=8.0, metavar="S", help="seconds between two sessions")
    parser.add_argument("--fresh", action="store_true", help="forget what was recorded before")
    parser.add_argument("--out", type=Path, default=DIRECTORY, help="directory of the corpus")
    return parser.parse_args()


if __name__ == "__main__":
    main()
