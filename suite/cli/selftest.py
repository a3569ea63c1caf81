"""``quantdrift selftest``: declared and run in `suite.cli_selftest`, which is imported only when it is asked for."""

from __future__ import annotations

import argparse


def declare_selftest(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``quantdrift selftest``."""
    from suite.cli_selftest import declare_selftest as declare

    declare(parser)


def run_selftest(arguments: argparse.Namespace) -> int:
    """``quantdrift selftest``."""
    from suite.cli_selftest import run_selftest as run

    return run(arguments)
