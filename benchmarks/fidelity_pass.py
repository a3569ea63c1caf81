"""The fidelity pass by itself: what it costs in time and memory, and how steady its figures are.

    .venv/bin/python benchmarks/fidelity_pass.py --runs 10 --out benchmarks/results/fidelity.jsonl

    .venv/bin/python benchmarks/fidelity_pass.py --decoded-only --runs 10 --out benchmarks/results/fidelity-steady.jsonl

Each variant of the matrix is loaded afresh and answers every case; right after each answer it goes through the stored trace,
as in a run: along the batched path, and along the decode path where the case is in the sample. The two are timed apart. Then it
is taken through all of it once more, cold: the prompts are evaluated again, as with ``--matrix-only=fidelity``. One line a
variant and run; the table at the end is of medians. With ``--decoded-only`` only the cases that go along both paths are taken:
enough to see whether divergence, legs and distances are the same in every run.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median
from typing import Any

from suite import backends, clock
from suite.cases import load_cases
from suite.engine.distributions import Rows
from suite.engine.launching import Launcher
from suite.engine.preparing import Preparer
from suite.engine.progress import silent
from suite.engine.tracing import Peer, force_case, pick_decoded
from suite.matrix import load_matrix
from suite.metrics.fidelity import kld_interval
from suite.records import Deadlines, Forced, Matrix, Trace, Variant
from suite.scorers import check_case
from suite.settings import find_cache
from suite.store.traces import read_trace


def main() -> None:
    """Measure what is missing, and print the table."""
    options = _parse()
    matrix = load_matrix(options.matrix, added=(), options_of=backends.options_of)
    trace = read_trace(options.baselines, matrix.model)
    if trace is None:
        raise SystemExit("no trace is stored: accept baselines first")
    if options.decoded_only:
        kept = pick_decoded(trace.cases)
        trace = replace(trace, cases={name: traced for name, traced in trace.cases.items() if name in kept})
    options.out.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    everything = [*matrix.variants, *_made(matrix, options.make)]
    chosen = [v for v in everything if not options.variants or v.name in options.variants.split(",")]
    for number in range(options.runs):
        peer: dict[str, Rows] = {}
        for variant in chosen:
            if any((line["run"], line["variant"]) == (number, variant.name) for line in lines):
                continue
            answer = number == 0 and not options.decoded_only
            lines.append({"run": number, **measure(variant, trace, options, peer, answer=answer)})
            with options.out.open("a", encoding="utf-8") as results:
                results.write(json.dumps(lines[-1]) + "\n")
            print(lines[-1], flush=True)
    _summarize(lines)


def _made(matrix: Matrix, labels: str) -> list[Variant]:
    """Quants that the matrix does not hold, made as one of its own is."""
    pattern = next((variant for variant in matrix.variants if variant.make), None)
    if pattern is None and labels:
        raise SystemExit("the matrix makes no GGUF, so there is no pattern for --make")
    names = [label for label in labels.split(",") if label]
    return [replace(pattern, name=label.lower(), quantization=label, make=label) for label in names if pattern]


def measure(
    variant: Variant, trace: Trace, options: argparse.Namespace, peer: dict[str, Rows], *, answer: bool
) -> dict[str, Any]:
    """One variant through the trace. `peer` holds the rows of the unquantized variant of llama.cpp, by case, once it has been
    taken through it.
    """
    cache = find_cache(os.environ)
    launcher = Launcher(
        preparer=Preparer(base=options.matrix.parent, cache=cache, deadlines=Deadlines(), progress=silent),
        deadlines=Deadlines(),
        logs=Path(tempfile.gettempdir()) / "quantdrift-fidelity-logs",
        progress=silent,
    )
    decoded = pick_decoded(trace.cases)
    cases = {case.id: case for case in load_cases(options.cases, check=check_case)}
    with launcher.launch(variant) as live:
        loaded = live.memory().uss_bytes or 0
        answering, warm = _time_answers(live, trace, cases) if answer else (None, None)
        before, begin = live.memory().peak_rss_bytes or 0, clock.monotonic()
        forced: list[Forced] = []
        for traced in trace.cases.values():
            rows = peer.get(traced.case) if variant.backend == "llama_cpp" and variant.name != options.peer else None
            held = None if rows is None else Peer(options.peer, rows)
            found = force_case(live, traced, decoded=traced.case in decoded, peer=held)
            if found is None:
                raise SystemExit(f"{variant.name} cannot be forced")
            forced += found[0]
            if variant.name == options.peer:
                peer[traced.case] = found[1]
        seconds, after = clock.monotonic() - begin, live.memory().peak_rss_bytes or 0
    sample = [one for one in forced if one.case in decoded]
    return {
        "variant": variant.name,
        "seconds": round(seconds, 2),
        "warm_s": None if warm is None else round(warm, 2),
        "answering_s": None if answering is None else round(answering, 2),
        "own_memory_mb": round(loaded / 1e6),
        "peak_rss_mb": round(after / 1e6),
        "added_mb": round((after - before) / 1e6, 1),
        "mean_kld": _pooled(forced, "batched", "kld"),
        "interval": kld_interval(forced),
        "decode_kld": _pooled(forced, "decode", "kld"),
        "batched_kld_of_sample": _pooled(sample, "batched", "kld"),
        "batched_interval_of_sample": kld_interval(sample),
        "decode_interval": kld_interval(sample, path="decode"),
        "path_distance": _pooled(forced, "decode", "distance"),
        "quantization_leg": _pooled(forced, "batched", "peer_kld"),
    }


def _time_answers(live: Any, trace: Trace, cases: dict[str, Any]) -> tuple[float, float]:
    """Seconds for all answers, and for the way through the trace right after each of them."""
    decoded = pick_decoded(trace.cases)
    answering = following = 0.0
    for name, traced in trace.cases.items():
        begin = clock.monotonic()
        live.generate(traced.prompt_ids, cases[name].max_new_tokens, stop_at_end=True, logprobs=True)
        between = clock.monotonic()
        force_case(live, traced, decoded=name in decoded)
        answering, following = answering + between - begin, following + clock.monotonic() - between
    return answering, following


def _pooled(forced: list[Forced], path: str, field: str) -> float | None:
    values = [value for one in forced if one.path == path for value in getattr(one, field) or () if value is not None]
    return fmean(values) if values else None


def _summarize(lines: list[dict[str, Any]]) -> None:
    print(
        f"{'variant':10} {'cold':>7} {'in a run':>8} {'answers':>8} {'added':>8} {'KLD':>10} {'decoded':>10} {'distance':>10}"
        "  spread of KLD"
    )
    for name in dict.fromkeys(line["variant"] for line in lines):
        own = [line for line in lines if line["variant"] == name]
        klds = [line["mean_kld"] for line in own]
        answers = next((line["answering_s"] for line in own if line["answering_s"]), float("nan"))
        warm = next((line["warm_s"] for line in own if line.get("warm_s")), float("nan"))
        print(
            f"{name:10} {median(line['seconds'] for line in own):5.1f} s {warm:6.1f} s {answers:6.1f} s "
            f"{max(line['added_mb'] for line in own):5.1f} MB {median(klds):10.6f} "
            f"{median(line['decode_kld'] for line in own):10.6f} {median(line['path_distance'] for line in own):10.6f}  "
            f"{min(klds):.6g} … {max(klds):.6g} in {len(own)} runs{_tell_paths(own)}"
        )


def _tell_paths(own: list[dict[str, Any]]) -> str:
    """Whether the divergence along each path lies within the interval of the other, over the same cases."""
    known = [line for line in own if line.get("decode_interval")]
    within = sum(
        _lies(line["decode_kld"], line["batched_interval_of_sample"])
        and _lies(line["batched_kld_of_sample"], line["decode_interval"])
        for line in known
    )
    told = f"; 95 %: {own[-1]['interval'][0]:.4f} … {own[-1]['interval'][1]:.4f}" if own[-1].get("interval") else ""
    for field, words in (("path_distance", "distance"), ("quantization_leg", "quantization leg")):
        values = [line[field] for line in own if line.get(field) is not None]
        told += f"; {words} {min(values):.6g} … {max(values):.6g}" if values else ""
    return f"{told}; paths within each other's intervals in {within} of {len(known)}" if known else told


def _lies(value: float, interval: list[float]) -> bool:
    return interval[0] <= value <= interval[1]


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--matrix", type=Path, default=Path("matrix.toml"))
    parser.add_argument("--cases", type=Path, default=Path("cases"))
    parser.add_argument("--baselines", type=Path, default=Path("baselines"))
    parser.add_argument("--variants", default="", help="only these, separated by commas")
    parser.add_argument("--peer", default="f16", help="the unquantized variant of llama.cpp")
    parser.add_argument("--make", default="", help="GGUF quants beside the matrix, separated by commas: Q4_0,Q2_K")
    parser.add_argument("--decoded-only", action="store_true", help="only the cases that go along both paths")
    parser.add_argument("--runs", type=int, default=1, help="runs of each variant that the file is to hold")
    parser.add_argument("--out", type=Path, required=True, help="results, one line a variant and run")
    return parser.parse_args()


if __name__ == "__main__":
    main()
