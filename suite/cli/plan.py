"""``quantdrift plan``: what would be found, and what more would cost. Nothing is loaded or measured."""

from __future__ import annotations

import argparse
import json

from suite.cli.output import write_lines
from suite.cli.project import declare_project, latest_launch_s, read_project


def declare_plan(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``quantdrift plan``."""
    declare_project(parser)
    parser.add_argument(
        "--tolerance", metavar="METRIC=SHARE", action="append", default=[],
        help="what this tolerance would need, e.g. itl_s=0.03 or score=0.05; may be given more than once",
    )  # fmt: skip
    parser.add_argument("--format", choices=("text", "json"), default="text")


def show_plan(arguments: argparse.Namespace) -> int:
    """``quantdrift plan``: from the matrix, the cases and the noise of this machine."""
    from suite.planning.plan import Ground, make_plan, read_wanted
    from suite.planning.plan_text import render_plan
    from suite.schema import dump

    wanted = read_wanted(arguments.tolerance)
    project = read_project(arguments)
    ground = Ground(
        matrix=project.matrix,
        cases=project.cases,
        policy=project.policy,
        environment=project.environment,
        noise=project.noise,
        launch_s=None if project.noise and project.noise.launch_s else latest_launch_s(project),
    )
    outlook = make_plan(ground, wanted)
    write_lines([json.dumps(dump(outlook), indent=2)] if arguments.format == "json" else render_plan(outlook))
    return 0
