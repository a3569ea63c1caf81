"""``quantdrift selftest``: does the judgement hold here? One table of operating characteristics."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from suite.selftest.prove import Extent

HOLDS, FAILS, BROKEN = 0, 1, 2


def declare_selftest(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``quantdrift selftest``."""
    parser.add_argument("--quick", action="store_true", help="a tenth of the replay and two live runs: under a minute")
    parser.add_argument(
        "--live", type=int, metavar="N", help="live runs of each kind (0: none; default: seven in all, three minutes)"
    )
    parser.add_argument("--only", choices=("live", "replay", "traps", "quality"), help="one part alone")
    parser.add_argument("--seed", type=int, default=0, help="of the replay: the same seed gives the same table")


def run_selftest(arguments: argparse.Namespace) -> int:
    """Prove, print the table, and return 0; 1 when something does not hold, 2 when it could not be tried."""
    from suite.errors import QuantdriftError
    from suite.selftest.prove import prove
    from suite.selftest.table import failed, render_table

    try:
        sections = list(prove(read_extent(arguments), _say))
    except QuantdriftError as fault:
        sys.stderr.write(f"quantdrift: the self-test could not be finished: {fault}\n")
        return BROKEN
    sys.stdout.write("\n".join(render_table(sections)) + "\n")
    return FAILS if failed(sections) else HOLDS


def read_extent(arguments: argparse.Namespace) -> Extent:
    """What the arguments ask for. Raises UsageError for a number that makes no sense."""
    from suite.errors import UsageError
    from suite.selftest.live import KINDS
    from suite.selftest.prove import (
        FEW_LIVE,
        MATRICES,
        PARTS,
        QUICK_LIVE,
        QUICK_MATRICES,
        QUICK_TRAP_RUNS,
        TRAP_RUNS,
        Extent,
    )

    quick, wanted = arguments.quick, arguments.live
    if (wanted is not None and wanted < 0) or arguments.seed < 0:
        raise UsageError(f"--live and --seed must be 0 or more (got {wanted} and {arguments.seed})")
    usual = QUICK_LIVE if quick else FEW_LIVE
    return Extent(
        parts=(arguments.only,) if arguments.only else PARTS,
        live=usual if wanted is None else dict.fromkeys(KINDS, wanted),
        matrices=QUICK_MATRICES if quick else MATRICES,
        trap_runs=QUICK_TRAP_RUNS if quick else TRAP_RUNS,
        seed=arguments.seed,
    )


def _say(sentence: str) -> None:
    sys.stderr.write(f"{sentence} …\n")
