"""Does the client's decode rate agree with what a server says of itself, on loopback with the same weights?

    make setup && .venv/bin/python -m pip install -c constraints.txt "llama-cpp-python[server]"
    .venv/bin/python benchmarks/server_rates.py --rounds 10

Starts ``llama_cpp.server`` with a variant of this repository's matrix file and loads the same weights in a worker beside
it. Each round decodes with both, order alternating, and prints for the server what its client saw and what the server
logged itself (``llama_perf_context_print``: all of its time but the prompt's, and the time within ``llama_decode``
alone), and the rate of the worker that has no server. Only ratios within a round count; the last line has their medians.
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

from suite import backends
from suite.engine.environment import capture_environment, default_threads
from suite.engine.launching import Launcher, LiveVariant
from suite.engine.passage import PASSAGE, scenario_prompt
from suite.engine.preparing import Preparer
from suite.matrix import load_matrix
from suite.records import Variant
from suite.schema import dump
from suite.settings import read_settings

COMMAND = (
    "{python}", "-m", "llama_cpp.server", "--model", "{weights}", "--host", "127.0.0.1", "--port", "{port}",
    "--n_ctx", "{n_ctx}", "--n_threads", "{threads}", "--n_threads_batch", "{threads}", "--logits_all", "False",
)  # fmt: skip
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
    direct = next(variant for variant in matrix.variants if variant.name == options.variant)
    print(
        f"{capture_environment().machine}, {default_threads()} threads, {options.variant}, {options.new_tokens} tokens"
    )
    with ExitStack() as stack:
        lives = {
            "direct": stack.enter_context(launcher.launch(direct)),
            "served": stack.enter_context(launcher.launch(serve(direct))),
        }
        rounds = [take_round(lives, turn, options.new_tokens) for turn in range(-1, options.rounds)][1:]
    sys.exit(not report(rounds))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--new-tokens", type=int, default=128)
    parser.add_argument("--variant", default="q8_0", help="of backend llama_cpp in matrix.toml (default: q8_0)")
    return parser.parse_args()


def serve(direct: Variant) -> Variant:
    """The same weights behind a server."""
    declared = dump(backends.options_of("server")(command=COMMAND, n_ctx=direct.options["n_ctx"]))
    return replace(direct, name=f"{direct.name}_served", backend="server", options=declared)


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
    """What the server logged of the last request: readings are totals over all, so the difference of both."""
    return {
        name: (after[f"{name}_steps"] - before.get(f"{name}_steps", 0))
        / (after[f"{name}_s"] - before.get(f"{name}_s", 0))
        for name in ("server_decode", "server_kernel")
    }


def report(rounds: list[dict[str, float]]) -> bool:
    """Print each round and the medians; whether the client agrees with the server."""
    print("          served: client   own   kernel     direct    client/own   served/direct")
    for rates in rounds:
        print(
            f"   {rates['served']:20.1f}{rates['server_decode']:8.1f}{rates['server_kernel']:8.1f}{rates['direct']:11.1f}"
            f"{rates['served'] / rates['server_decode']:13.3f}{rates['served'] / rates['direct']:15.3f}"
        )
    agreement = statistics.median(rates["served"] / rates["server_decode"] for rates in rounds)
    cost = statistics.median(rates["served"] / rates["direct"] for rates in rounds)
    print(f"median of ratios: client / server's own {agreement:.3f} (limit 1 ± {LIMIT}), served / direct {cost:.3f}")
    return abs(agreement - 1) <= LIMIT


if __name__ == "__main__":
    main()
