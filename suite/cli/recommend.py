"""``quantdrift recommend``: which variant of a stored run to use. Nothing is loaded or measured, and nothing is written."""

from __future__ import annotations

import argparse
import math
import re
import shlex
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from suite.cli.output import deliver
from suite.cli.report import find_run
from suite.errors import UsageError

if TYPE_CHECKING:
    from suite.gate.advice.advising import Advice
    from suite.gate.advice.asked import Asked, Name
    from suite.records import Run

RECOMMENDED, NOTHING = 0, 1
_NUMBER = re.compile(r"(?P<number>[0-9.]+(?:e[+-]?[0-9]+)?)\s*(?P<unit>[a-zA-Z×%/]*)", re.IGNORECASE)
_SIZES = {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}
_TIMES = {"": 1.0, "s": 1.0, "ms": 1e-3}


def declare_recommend(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``quantdrift recommend``."""
    parser.add_argument("run", nargs="?", help="a run.json, a directory with one, or a run's id (default: latest)")
    limits = parser.add_argument_group("limits")
    limits.add_argument("--max-loss", metavar="POINTS", help="most points of score lost against the reference, of 100")
    limits.add_argument("--max-kld", metavar="NATS", help="largest mean KL divergence from the reference")
    limits.add_argument("--min-speedup", metavar="X", help="decode rate over the reference's, at least")
    limits.add_argument("--memory", metavar="SIZE", help="most memory, with its unit: e.g. 300MB or 1.5GiB")
    limits.add_argument("--min-decode", metavar="TOK_S", help="tokens a second, at least")
    limits.add_argument("--max-ttft", metavar="SECONDS", help="longest time to the first token, e.g. 0.2 or 200ms")
    parser.add_argument(
        "--prefer",
        choices=("quality", "speed", "memory"),
        help="what decides among those that satisfy all limits (default: quality, unless it has a limit; then speed)",
    )
    parser.add_argument("--scenario", metavar="NAME", help="whose speeds count (default: the first of the matrix)")
    parser.add_argument("--format", choices=tuple(FORMATS), default="terminal")
    parser.add_argument(
        "--output", metavar="FILE", help="write it there, whole or not at all (default: standard output)"
    )
    parser.add_argument("--width", type=int, help="terminal: columns (default: those of the terminal)")


def show_recommendation(arguments: argparse.Namespace) -> int:
    """``quantdrift recommend [RUN]``: 0 when something is recommended, else 1. Raises UsageError for a wrong call."""
    from suite.engine.environment import capture_environment
    from suite.gate.advice.advising import advise
    from suite.store.runs import read_run

    limits = {
        name: _READ[name](option, getattr(arguments, attribute)) for name, (option, attribute) in _OPTIONS.items()
    }
    run = read_run(find_run(arguments.run))
    asked = _asked(arguments, limits, run, capture_environment().machine)
    advice = advise(run, asked)
    deliver(FORMATS[arguments.format](advice, arguments), arguments.output)
    return RECOMMENDED if advice.choice else NOTHING


def _asked(arguments: argparse.Namespace, limits: Mapping[Name, float | None], run: Run, machine: str) -> Asked:
    from suite.gate.advice.asked import Asked, order_limits

    return Asked(
        limits=order_limits(limits),
        prefer=arguments.prefer,
        scenario=arguments.scenario,
        machine=machine,
        command=command_for(run),
    )


def command_for(run: Run) -> str:
    """How the run is measured again from here: its matrix file is named where it is not the one that is found anyway."""
    from suite.settings import COMMAND

    file, here = Path(run.matrix.file), Path.cwd()
    if not file.is_absolute() or file == here / "matrix.toml":
        return COMMAND if file.name == "matrix.toml" else f"{COMMAND} --matrix-file {shlex.quote(str(file))}"
    shown = file.relative_to(here) if file.is_relative_to(here) else file
    return f"{COMMAND} --matrix-file {shlex.quote(str(shown))}"


# -------------------------------------------------------------------------------------------------- reading limits


def _read(
    option: str,
    given: str | None,
    units: Mapping[str, float],
    example: str,
    *,
    may_be_zero: bool,
    most: float = math.inf,
) -> float | None:
    """The number that an option gives, in the unit of its quantity; None where it was not given. Units are of any case."""
    if given is None:
        return None
    found = _NUMBER.fullmatch(given.strip())
    if found and not found["unit"] and "" not in units:
        raise UsageError(
            f"{option}: must have a unit, as in {option} {example} (got {given!r}); known: {', '.join(units)}"
        )
    worth = {unit.lower(): size for unit, size in units.items()}
    try:
        value = float(found["number"]) * worth[found["unit"].lower()] if found else math.nan
    except (KeyError, ValueError):
        value = math.nan
    if not math.isfinite(value) or value < 0 or (value == 0 and not may_be_zero):
        least = "0 or more" if may_be_zero else "more than 0"
        raise UsageError(f"{option}: must be a number, {least}, as in {option} {example} (got {given!r})")
    if value > most:
        raise UsageError(f"{option}: more than {most:g} cannot be lost (got {given!r})")
    return value


_OPTIONS: Mapping[Name, tuple[str, str]] = {
    "loss": ("--max-loss", "max_loss"),
    "kld": ("--max-kld", "max_kld"),
    "speedup": ("--min-speedup", "min_speedup"),
    "memory": ("--memory", "memory"),
    "decode": ("--min-decode", "min_decode"),
    "ttft": ("--max-ttft", "max_ttft"),
}
_READ: Mapping[Name, Callable[[str, str | None], float | None]] = {
    "loss": lambda option, given: _read(option, given, {"": 1.0, "points": 1.0}, "2", may_be_zero=True, most=100),
    "kld": lambda option, given: _read(option, given, {"": 1.0, "nats": 1.0}, "0.05", may_be_zero=True),
    "speedup": lambda option, given: _read(option, given, {"": 1.0, "x": 1.0, "×": 1.0}, "1.5", may_be_zero=False),
    "memory": lambda option, given: _read(option, given, _SIZES, "300MB", may_be_zero=False),
    "decode": lambda option, given: _read(option, given, {"": 1.0, "tok/s": 1.0}, "100", may_be_zero=False),
    "ttft": lambda option, given: _read(option, given, _TIMES, "200ms", may_be_zero=False),
}


# ------------------------------------------------------------------------------------------------------ the formats


def _terminal(advice: Advice, arguments: argparse.Namespace) -> str:
    from suite.reporting.advice.terminal import advice_lines

    width = arguments.width or shutil.get_terminal_size().columns
    return "\n".join([*advice_lines(advice, width), ""])


def _markdown(advice: Advice, _: argparse.Namespace) -> str:
    from suite.reporting.advice.markdown import advice_markdown

    return advice_markdown(advice)


def _json(advice: Advice, _: argparse.Namespace) -> str:
    from suite.reporting.advice.json import advice_json

    return advice_json(advice)


FORMATS: Mapping[str, Callable[[Advice, argparse.Namespace], str]] = {
    "terminal": _terminal,
    "markdown": _markdown,
    "json": _json,
}
"""Format → what renders it."""
