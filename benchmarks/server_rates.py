"""Does the client's decode rate agree with what a server says of itself, on loopback with the same weights?

    .venv/bin/python benchmarks/server_rates.py --rounds 10
    .venv/bin/python benchmarks/server_rates.py --rounds 10 --server llama-server
    benchmarks/vllm_environment.sh vllm && PATH=$PWD/vllm/bin:$PATH .venv/bin/python benchmarks/server_rates.py --server vllm

Starts a server with a variant of this repository's matrix file and loads the same weights in a worker beside it;
``llama-server`` is built from the source of the installed llama-cpp-python. Each round decodes with both, order alternating,
and prints for the server what its client saw and what the server says of the same request: ``llama_cpp.server`` in its log
(``llama_perf_context_print``: all of its time but the prompt's, and the time within ``llama_decode`` alone), llama-server in
the ``timings`` of its answer, vLLM at ``/metrics`` (``vllm:generation_tokens_total``, ``vllm:request_decode_time_seconds``);
and the rate of the worker that has no server. Only ratios within a round count; the last line has their medians.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from llama_cpp_tools import build_tool

from suite import backends
from suite.engine.environment import capture_environment, default_threads
from suite.engine.launching import Launcher, LiveVariant
from suite.engine.passage import PASSAGE, scenario_prompt
from suite.engine.preparing import Preparer
from suite.matrix import load_matrix
from suite.records import Variant
from suite.schema import dump
from suite.settings import read_settings

COMMON = ("--host", "127.0.0.1", "--port", "{port}")
SERVERS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "llama_cpp.server": (
        "q8_0",
        {
            "command": (
                "{python}", "-m", "llama_cpp.server", "--model", "{weights}", *COMMON, "--n_ctx", "{n_ctx}",
                "--n_threads", "{threads}", "--n_threads_batch", "{threads}", "--logits_all", "False",
            ),
        },
    ),
    "llama-server": (
        "q8_0",
        {
            "command": (
                "{llama-server}", "-m", "{weights}", *COMMON, "-c", "{n_ctx}", "-t", "{threads}", "-tb", "{threads}",
                "-np", "1",
            ),
        },
    ),
    "vllm": (
        "fp16",
        {
            "command": (
                "vllm", "serve", "{weights}", *COMMON, "--served-model-name", "m", "--dtype", "bfloat16",
                "--max-model-len", "{n_ctx}", "--enforce-eager", "--enable-prompt-tokens-details",
            ),
            "metrics": "/metrics",
            "env": {"VLLM_CPU_KVCACHE_SPACE": "1"},
        },
    ),
}  # fmt: skip
"""Server → the variant that it is given by default, and its options."""
CONTEXT = 2048
"""Tokens, where the variant names no context."""
LIMIT = 0.05
"""What the client may differ from the server's own figure."""


def main() -> None:
    """Start, measure in turn, print."""
    options = _parse()
    settings = read_settings(lambda _name: None, root=Path(__file__).parents[1])
    matrix = load_matrix(settings.matrix_file, options_of=backends.options_of)
    preparer = Preparer(
        base=settings.matrix_file.parent,
        cache=settings.cache,
        deadlines=matrix.deadlines,
        progress=lambda _sentence: None,
    )
    logs = Path(tempfile.mkdtemp())
    launcher = Launcher(preparer=preparer, deadlines=matrix.deadlines, logs=logs, progress=lambda _sentence: None)
    name = options.variant or SERVERS[options.server][0]
    direct = next(variant for variant in matrix.variants if variant.name == name)
    served = dict(SERVERS[options.server][1])
    if options.server == "llama-server":
        program = str(build_tool(settings.cache, "llama-server"))
        served["command"] = tuple(part.replace("{llama-server}", program) for part in served["command"])
    print(f"{capture_environment().machine}, {default_threads()} threads, {options.server}, {name}, "
          f"{options.new_tokens} tokens")  # fmt: skip
    with ExitStack() as stack:
        live = stack.enter_context(launcher.launch(direct))
        lives = {"direct": live, "served": stack.enter_context(launcher.launch(serve(live, served)))}
        rounds = [take_round(lives, turn, options.new_tokens) for turn in range(-1, options.rounds)][1:]
    sys.exit(not report(rounds))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--new-tokens", type=int, default=128)
    parser.add_argument("--server", choices=SERVERS, default="llama_cpp.server")
    parser.add_argument(
        "--variant", help="of matrix.toml: a GGUF (default: q8_0), for vLLM safetensors (default: fp16)"
    )
    return parser.parse_args()


def serve(live: LiveVariant, options: Mapping[str, Any]) -> Variant:
    """The same weights behind a server."""
    direct = live.variant
    context = direct.options.get("n_ctx") or CONTEXT
    declared = dump(backends.options_of("server")(**options, n_ctx=context))
    name, source = f"{direct.name}_served", str(live.prepared.weights)
    return replace(direct, name=name, backend="server", source=source, make=None, reference=False, options=declared)


def take_round(lives: Mapping[str, LiveVariant], turn: int, new_tokens: int) -> dict[str, float]:
    """Decode rates of one round, tok/s, both sides back to back."""
    rates: dict[str, float] = {}
    for name in ("direct", "served") if turn % 2 else ("served", "direct"):
        live = lives[name]
        prompt = scenario_prompt(live.encode(PASSAGE), 64, turn)
        before = live.memory().readings
        generation, _ = live.generate(prompt, new_tokens, stop_at_end=False)
        rates[name] = generation.decode_tok_s or 0.0
        if name == "served":
            rates |= own_figures(before, live.memory().readings)
    return rates


def own_figures(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """What the server says of the last request: readings are totals over all, so the difference of both."""

    def grown(name: str) -> float:
        return after.get(name, 0.0) - before.get(name, 0.0)

    if "server_total_decode_s" in after:  # counters: the first token of a request is not one of decoding
        steps = grown("server_new_tokens") - grown("server_decoded_requests")
        return {"server_decode": steps / grown("server_total_decode_s")}
    told = (name for name in ("server_decode", "server_kernel") if f"{name}_s" in after)
    return {name: grown(f"{name}_steps") / grown(f"{name}_s") for name in told}


def report(rounds: list[dict[str, float]]) -> bool:
    """Print each round and the medians; whether the client agrees with the server."""
    print("          served: client   own   kernel     direct    client/own   served/direct")
    for rates in rounds:
        kernel = f"{rates['server_kernel']:.1f}" if "server_kernel" in rates else "–"
        print(
            f"   {rates['served']:20.1f}{rates['server_decode']:8.1f}{kernel:>8}{rates['direct']:11.1f}"
            f"{rates['served'] / rates['server_decode']:13.3f}{rates['served'] / rates['direct']:15.3f}"
        )
    agreement = statistics.median(rates["served"] / rates["server_decode"] for rates in rounds)
    cost = statistics.median(rates["served"] / rates["direct"] for rates in rounds)
    print(f"median of ratios: client / server's own {agreement:.3f} (limit 1 ± {LIMIT}), served / direct {cost:.3f}")
    return abs(agreement - 1) <= LIMIT


if __name__ == "__main__":
    main()
