"""``quantdrift calibrate``: how much this machine varies when nothing changes."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from suite.cli.output import tell, write_lines
from suite.cli.project import Project, declare_project, latest_launch_s, read_project

if TYPE_CHECKING:
    from suite.planning.calibrate import Gathered
    from suite.planning.floors import Session
    from suite.planning.measuring import Measured
    from suite.records import Noise

OK, INTERRUPTED = 0, 130


def declare_calibrate(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``quantdrift calibrate``."""
    declare_project(parser)
    parser.add_argument("--sessions", type=_count, default=3, help="speed passes to measure (default: 3)")
    parser.add_argument("--launches", type=_count, default=3, help="launches of each variant in each (default: 3)")
    parser.add_argument("--pause", type=_seconds, default=20.0, metavar="S", help="seconds between them (default: 20)")
    parser.add_argument(
        "--from-runs", action="store_true", help="use stored runs of this machine as well; alone with --sessions 0"
    )


def run_calibrate(arguments: argparse.Namespace) -> int:
    """``quantdrift calibrate``: measure, write the noise file, propose tolerances. Refused in CI."""
    from suite.planning.calibrate import calibrate, check_environment, describe_calibration
    from suite.store.baselines import BaselineStore

    check_environment(os.environ)
    project = read_project(arguments)
    stored = _stored_sessions(project) if arguments.from_runs else []
    measured = _measure(project, arguments)
    if measured.interrupted:
        tell(f"interrupted: {len(measured.sessions)} of {arguments.sessions} sessions were finished, and are used")
    gathered = _gather(project, measured, stored)
    noise = calibrate(gathered)
    file = BaselineStore(project.settings.baselines).write_noise(noise)
    write_lines([*describe_calibration(noise), "", *_propose(project, noise), "", f"written to {_shown(file)}"])
    return INTERRUPTED if measured.interrupted else OK


def _stored_sessions(project: Project) -> list[Session]:
    from suite.planning.stored import as_sessions, read_runs

    runs, faults = read_runs(project.settings.runs, project.environment)
    for fault in faults:
        tell(f"left out: {fault}")
    sessions = as_sessions(runs, project.matrix.model, [variant.name for variant in project.matrix.variants])
    tell(f"{len(sessions)} stored runs of this machine, of the same weights and libraries")
    return sessions


def _measure(project: Project, arguments: argparse.Namespace) -> Measured:
    from suite.engine.launching import Launcher
    from suite.engine.preparing import Preparer
    from suite.planning.measuring import Asked, Measured, measure_sessions

    if not arguments.sessions:
        return Measured()
    settings, matrix = project.settings, project.matrix
    preparer = Preparer(
        base=settings.matrix_file.parent, cache=settings.cache, deadlines=matrix.deadlines, progress=tell
    )
    logs = settings.runs / "calibrate" / "logs"
    launcher = Launcher(preparer=preparer, deadlines=matrix.deadlines, logs=logs, progress=tell)
    asked = Asked(sessions=arguments.sessions, launches=arguments.launches, pause_s=arguments.pause)
    measured = measure_sessions(matrix, launcher, asked, tell)
    for failure in measured.failures:
        tell(f"left out: {failure}")
    return measured


def _gather(project: Project, measured: Measured, stored: list[Session]) -> Gathered:
    from suite import clock
    from suite.planning.calibrate import Gathered, merge_sessions

    return Gathered(
        matrix=project.matrix,
        environment=project.environment,
        sessions=merge_sessions(measured.sessions, stored),
        launch_s=measured.launch_s or latest_launch_s(project),
        measured=clock.now().isoformat(),
    )


def _propose(project: Project, noise: Noise) -> list[str]:
    from suite.planning.plan import Ground, share_of_one_gate
    from suite.planning.proposals import describe_proposals, propose, warn_too_tight

    ground = Ground(
        matrix=project.matrix, cases=project.cases, policy=project.policy, environment=project.environment, noise=noise
    )
    launches = project.matrix.protocol.launches
    proposals = propose(noise.floors, launches=launches, alpha=share_of_one_gate(ground))
    warnings = warn_too_tight(proposals, project.policy, ground.gates)
    return [*describe_proposals(proposals, launches), *(f"  warning: {line}" for line in warnings)]


def _shown(file: Path) -> str:
    return str(file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file)


def _count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError("must be 0 or more")
    return value


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 <= value < 1e6:
        raise argparse.ArgumentTypeError("must be a number of seconds, 0 or more")
    return value
