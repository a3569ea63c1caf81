"""``quantdrift load``: what a server delivers to one client and to many, and from where on more clients gain little."""

from __future__ import annotations

import argparse
import io
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from suite.cli.output import deliver, tell
from suite.errors import QuantdriftError, UsageError

if TYPE_CHECKING:
    from suite.backends.server.model import ServedModel
    from suite.engine.concurrency import Asker
    from suite.metrics.load import Level, Sweep

OK, FAILED = 0, 1


def declare_load(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``quantdrift load``."""
    parser.add_argument(
        "server", metavar="URL|VARIANT", help="an address, or a variant of backend server in the matrix file"
    )
    parser.add_argument("--matrix-file", metavar="FILE", help="the matrix file (default: matrix.toml)")
    parser.add_argument("--concurrency", type=_counts, default=(1, 2, 4, 8), metavar="N,N", help="default: 1,2,4,8")
    parser.add_argument("--requests", type=_count, default=4, metavar="N", help="requests of each client (default: 4)")
    parser.add_argument("--prompt-tokens", type=_count, default=128, metavar="N", help="default: 128")
    parser.add_argument("--new-tokens", type=_count, default=64, metavar="N", help="default: 64")
    parser.add_argument("--ttft", type=_seconds, metavar="S", help="target: time to the first token, for goodput")
    parser.add_argument("--tpot", type=_seconds, metavar="S", help="target: time per token after it")
    parser.add_argument("--served-model", default="", metavar="NAME", help="of a URL: the model's name in requests")
    parser.add_argument("--api-key-env", default="", metavar="NAME", help="of a URL: the variable that holds the key")
    parser.add_argument("--metrics", default="/metrics", metavar="PATH", help="of a URL: the server's metrics")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--output", metavar="FILE", help="write there instead of to standard output")


def run_load(arguments: argparse.Namespace) -> int:
    """``quantdrift load``: 0 when something was answered at each level, else 1; levels that were over are told either way.

    Raises UsageError.
    """
    from suite.backends.server.faults import ServerFault

    if arguments.new_tokens < 2:
        raise UsageError("--new-tokens: at least 2, for there is no time between fewer")
    try:
        return _sweep(arguments)
    except UsageError:
        raise
    except (QuantdriftError, ServerFault) as fault:
        tell(f"quantdrift: {fault}")
        return FAILED


def _sweep(arguments: argparse.Namespace) -> int:
    from itertools import count

    from suite.engine.concurrency import run_level
    from suite.metrics.load import Sweep, Target, find_budget, find_knee

    target = Target(ttft_s=arguments.ttft, tpot_s=arguments.tpot)
    numbers = count(1)
    levels: list[Level] = []
    stop = _Stop()
    with _asker(arguments) as asker, _stopping(levels, stop):
        tell("one request to warm up")
        run_level(asker, 1, 1, target, numbers)
        for concurrency in sorted(set(arguments.concurrency)):
            stop.at = concurrency
            tell(f"{concurrency} clients, {concurrency * arguments.requests} requests")
            levels.append(run_level(asker, concurrency, arguments.requests, target, numbers))
    sweep = Sweep(
        server=arguments.server,
        prompt_tokens=arguments.prompt_tokens,
        new_tokens=arguments.new_tokens,
        requests_a_client=arguments.requests,
        target=target,
        levels=tuple(levels),
        knee=find_knee(levels),
        budget=find_budget(levels, arguments.prompt_tokens, arguments.new_tokens),
        stopped=stop.reason,
    )
    deliver(_render(sweep, arguments.format), arguments.output)
    if stop.reason:
        tell(f"quantdrift: {stop.reason}")
    return OK if not stop.reason and all(level.request_s > 0 for level in levels) else FAILED


@dataclass(slots=True)
class _Stop:
    at: int = 0
    """Clients of the level that is under way."""
    reason: str = ""


@contextmanager
def _stopping(levels: Sequence[Level], stop: _Stop) -> Iterator[None]:
    """Whatever ends a level early ends the sweep there: levels that were over before are no less true for it.

    Raises the fault where there are none, and QuantdriftError for an interrupt.
    """
    from suite.backends.server.faults import ServerFault

    try:
        yield
    except (QuantdriftError, ServerFault) as fault:
        if not levels:
            raise
        stop.reason = f"stopped at {stop.at} clients: {fault}"
    except KeyboardInterrupt:
        if not levels:
            raise QuantdriftError("interrupted before a level was over") from None
        stop.reason = f"stopped at {stop.at} clients: interrupted"


def _render(sweep: Sweep, form: str) -> str:
    from dataclasses import asdict

    from suite.reporting.load_text import render_load

    if form == "json":
        return json.dumps(asdict(sweep), indent=2, allow_nan=False)
    return "\n".join(render_load(sweep))


@contextmanager
def _asker(arguments: argparse.Namespace) -> Iterator[Asker]:
    """Whoever is asked; a server that was started for it has ended afterwards. What it printed is of no interest here."""
    if "://" in arguments.server:
        yield _ask_address(arguments)
        return
    from suite.engine.concurrency import ExactAsker

    tell(f"loading {arguments.server}")
    with redirect_stderr(io.StringIO()):
        model = _load_variant(arguments)
    try:
        yield ExactAsker(model, arguments.prompt_tokens, arguments.new_tokens)
    finally:
        with redirect_stderr(io.StringIO()):
            model.close()


def _ask_address(arguments: argparse.Namespace) -> Asker:
    """A server that is there already; by its own tokenizer where it has one."""
    from suite.backends.server import BACKEND, ServerOptions
    from suite.backends.server.introducing import meet
    from suite.engine.concurrency import ExactAsker, PlainAsker

    options = ServerOptions(
        url=arguments.server,
        served_model=arguments.served_model,
        api_key_env=arguments.api_key_env,
        metrics=arguments.metrics,
        tokenizer="server",
        n_ctx=arguments.prompt_tokens + arguments.new_tokens,
        retries=0,
    )
    met = meet(BACKEND.reach(options), options, None)
    if met.dialect.kind in ("vllm", "llama-server"):
        model = BACKEND.load(None, options, "chat")
        return ExactAsker(model, arguments.prompt_tokens, arguments.new_tokens)
    return PlainAsker(
        endpoint=met.endpoint,
        dialect=met.dialect,
        served_model=met.served_model,
        prompt_tokens=arguments.prompt_tokens,
        new_tokens=arguments.new_tokens,
        metrics=arguments.metrics,
    )


def _load_variant(arguments: argparse.Namespace) -> ServedModel:
    """The variant's server, found, or started with the environment that it would have in a run."""
    from suite import backends
    from suite.backends.server import BACKEND, Server, ServerOptions
    from suite.engine.launching import named_variables, options_in_force
    from suite.engine.preparing import Preparer
    from suite.engine.progress import silent
    from suite.matrix import load_matrix, select_variants
    from suite.settings import read_settings
    from suite.worker.surroundings import environment_of

    given = vars(arguments)
    settings = read_settings(given.get, root=Path.cwd())
    matrix = load_matrix(settings.matrix_file, options_of=backends.options_of)
    (variant,) = select_variants(matrix, [arguments.server]).variants
    if backends.resolve(variant.backend) is not BACKEND:
        raise UsageError(f"variants.{variant.name} is of backend '{variant.backend}': only a server has many clients")
    preparer = Preparer(
        base=settings.matrix_file.parent, cache=settings.cache, deadlines=matrix.deadlines, progress=silent
    )
    options = ServerOptions(**{**options_in_force(variant), "retries": 0})
    around = environment_of(0, passing=named_variables(variant))
    return Server(around).load(preparer.prepare(variant).weights, options, variant.prompt_format)


def _counts(text: str) -> tuple[int, ...]:
    return tuple(_count(part) for part in text.split(","))


def _count(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 4096:
        raise argparse.ArgumentTypeError("must be between 1 and 4096")
    return value


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError("must be a number of seconds above 0")
    return value
