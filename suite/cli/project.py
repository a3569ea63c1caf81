"""What commands need of a project without running its matrix: its files, read and validated; no weights are touched."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suite.records import Case, Environment, Matrix, Noise, Tolerance
from suite.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project's matrix and what belongs to it."""

    settings: Settings
    matrix: Matrix
    cases: tuple[Case, ...]
    policy: Mapping[str, Tolerance]
    environment: Environment
    noise: Noise | None


PLACES = frozenset({"matrix_file", "matrix_cases", "matrix_baselines", "matrix_variants"})
"""What is read of the pytest configuration: where the project's files are, and which variants are meant."""


def declare_project(parser: argparse.ArgumentParser) -> None:
    """Arguments that say which project is meant; they are named as in pytest, whose configuration gives the defaults."""
    parser.add_argument("--matrix-file", metavar="FILE", help="the matrix file (default: matrix.toml)")
    parser.add_argument("--matrix-cases", metavar="DIR", help="the directory of cases (default: cases beside it)")
    parser.add_argument("--matrix-baselines", metavar="DIR", help="the directory of baselines (default: beside it)")
    parser.add_argument("--variants", metavar="NAMES", help="only these variants, separated by commas (default: all)")


def read_project(arguments: argparse.Namespace) -> Project:
    """Read the project below the current directory: options, then what its pytest configuration sets.

    Raises UsageError for whatever is wrong with it.
    """
    from suite import backends
    from suite.cases import load_cases
    from suite.cli.ini import read_ini
    from suite.engine.environment import capture_environment
    from suite.gate.policy import merge_policy
    from suite.matrix import load_matrix, select_variants
    from suite.scorers import check_case
    from suite.settings import read_settings
    from suite.store.baselines import BaselineStore

    given: dict[str, Any] = {**vars(arguments), "matrix_variants": arguments.variants}
    configured = {name: value for name, value in read_ini(Path.cwd()).items() if name in PLACES}
    settings = read_settings(lambda name: given.get(name) or configured.get(name), root=Path.cwd(), environment=None)
    matrix = select_variants(load_matrix(settings.matrix_file, options_of=backends.options_of), settings.variants)
    environment = capture_environment()
    return Project(
        settings=settings,
        matrix=matrix,
        cases=tuple(load_cases(settings.cases, check=check_case)),
        policy=merge_policy(matrix.policy, where=str(settings.matrix_file)),
        environment=environment,
        noise=BaselineStore(settings.baselines).read_noise(matrix.model, environment.machine),
    )


def latest_launch_s(project: Project) -> float | None:
    """Seconds that one launch of every variant took in the newest stored run of this machine; None without one."""
    from suite.planning import stored

    names = [variant.name for variant in project.matrix.variants]
    return stored.latest_launch_s(project.settings.runs, project.environment, project.matrix.model, names)
