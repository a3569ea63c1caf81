"""The one place where options, ini values and the environment become settings."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from suite.errors import UsageError

Phase = Literal["fidelity", "answers", "speed"]
UpdateMode = Literal["new", "changed", "all"]

COMMAND = "pytest --model-matrix"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One command-line option and its ini twin."""

    flag: str
    help: str
    choices: tuple[str, ...] | None = None
    switch: bool = False
    many: bool = False
    metavar: str | None = None
    again: bool = False
    """Whether whoever goes on with a run must give it again."""

    @property
    def name(self) -> str:
        """The ini name, which is also the attribute: ``--matrix-file`` → ``matrix_file``."""
        return self.flag.removeprefix("--").replace("-", "_")


OPTIONS: tuple[Option, ...] = (
    Option(flag="--matrix-file", help="the matrix file (default: matrix.toml)", metavar="FILE", again=True),
    Option(flag="--matrix-cases", help="the directory of cases (default: cases beside the matrix file)", metavar="DIR",
           again=True),
    Option(flag="--matrix-baselines", help="the directory of baselines (default: baselines beside it)", metavar="DIR",
           again=True),
    Option(flag="--matrix-variants", help="run only these variants, separated by commas", metavar="NAMES"),
    Option(flag="--matrix-add", help="add a variant for this run: a GGUF file, a directory or a hub id", many=True,
           metavar="FILE|HUB-ID", again=True),
    Option(flag="--matrix-against", help="measure another interpreter, environment or file of weights beside each variant, "
           "and compare with that instead of the baseline", metavar="PYTHON|DIR|FILE", again=True),
    Option(flag="--matrix-quick", help="for pull requests: three launches, the first scenario only; sees less", switch=True,
           again=True),
    Option(flag="--matrix-cached", help="take the answers of unchanged variants from earlier runs, but for a sample that is "
           "computed again as a control; speed is always measured", switch=True),
    Option(flag="--matrix-only", help="run only this part of the work", choices=("fidelity", "answers", "speed")),
    Option(flag="--matrix-update", help="accept what was measured as baselines: those that are missing, those that "
           "changed, or all", choices=("new", "changed", "all")),
    Option(flag="--matrix-reason", help="why the baselines are accepted; stored with them", metavar="TEXT"),
    Option(flag="--matrix-require-baselines", help="fail what has no baseline or cannot be compared (for nightly jobs)",
           switch=True),
    Option(flag="--matrix-strict", help="fail what is INCONCLUSIVE, UNBASELINED or NOT_MEASURED too", switch=True),
    Option(flag="--matrix-report", help="write the run to this directory instead of .quantdrift/runs/<id>", metavar="DIR"),
    Option(flag="--matrix-resume", help="go on with the newest run of the same matrix: finish it, or measure more "
           "where it could not tell", switch=True),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a run was asked to do. Paths are absolute."""

    matrix_file: Path
    cases: Path
    baselines: Path
    runs: Path
    """Directory of ``runs/<id>`` and the link ``latest``."""
    cache: Path
    """The user's cache of weights that were made here."""
    variants: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    only: Phase | None = None
    update: UpdateMode | None = None
    reason: str | None = None
    require_baselines: bool = False
    strict: bool = False
    report: Path | None = None
    resume: bool = False
    against: Path | None = None
    """Absolute; links are not followed, since the interpreter of a virtual environment is one."""
    quick: bool = False
    cached: bool = False
    """Whether answers of unchanged variants may be taken from earlier runs."""
    command: str = COMMAND
    """How to ask the same question of the same files again: what a next step begins with."""


def read_settings(
    value: Callable[[str], Any],
    *,
    root: Path,
    environment: Mapping[str, str] | None = None,
    typed: Callable[[str], Any] | None = None,
) -> Settings:
    """Settings from `value`, which gives an option's value by its name (command line first, then ini).

    `typed` gives what was typed on the command line alone, as it was typed. Raises UsageError for combinations that cannot be
    meant.
    """
    environment = os.environ if environment is None else environment
    _check_choices(value)
    matrix_file = _path(root, value("matrix_file") or "matrix.toml")
    if not matrix_file.is_file():
        raise UsageError(f"{matrix_file}: there is no such matrix file; name one with --matrix-file")
    home = matrix_file.parent
    update, reason = value("matrix_update") or None, value("matrix_reason") or None
    _check_update(update, reason, environment)
    if update:
        _check_accepted(value)
    against, report = value("matrix_against"), value("matrix_report")
    if (typed or value)("matrix_against") == "":
        raise UsageError("--matrix-against= names nothing; name a Python, an environment or weights, or leave it out")
    return Settings(
        matrix_file=matrix_file,
        cases=_path(root, value("matrix_cases") or home / "cases"),
        baselines=_path(root, value("matrix_baselines") or home / "baselines"),
        runs=root / ".quantdrift",
        cache=find_cache(environment),
        variants=_names(value("matrix_variants")),
        added=tuple(value("matrix_add") or ()),
        only=value("matrix_only") or None,
        update=update,
        reason=reason,
        require_baselines=bool(value("matrix_require_baselines")),
        strict=bool(value("matrix_strict")),
        report=_path(root, report) if report else None,
        resume=bool(value("matrix_resume")),
        against=(root / Path(against).expanduser()).absolute() if against else None,
        quick=bool(value("matrix_quick")),
        cached=bool(value("matrix_cached")),
        command=command_of(typed or value),
    )


PATHS = frozenset({"matrix_file", "matrix_cases", "matrix_baselines", "matrix_report", "matrix_against", "matrix_add"})
"""Options that name a path: pytest takes one behind a space for what to run, as long as it knows no plugin, and its root may
become another one."""


def command_of(typed: Callable[[str], Any]) -> str:
    """``pytest --model-matrix`` with those of the typed options that say which question is asked, of which files."""
    words = [COMMAND]
    for option in OPTIONS:
        given = typed(option.name) if option.again else None
        if option.switch:
            words += [option.flag] if given else []
        elif given:
            values = given if option.many else [given]
            mark = "=" if option.name in PATHS else " "
            words += [f"{option.flag}{mark}{shlex.quote(str(value))}" for value in values]
    return " ".join(words)


def _check_choices(value: Callable[[str], Any]) -> None:
    """The command line checks its own values; those of the ini file are checked here."""
    for option in OPTIONS:
        given = value(option.name) if option.choices else None
        if option.choices and given and given not in option.choices:
            raise UsageError(f"{option.name} = {given!r} is none of {', '.join(option.choices)}; see {option.flag}")


def _check_update(update: str | None, reason: str | None, environment: Mapping[str, str]) -> None:
    if update and not (reason and reason.strip()):
        raise UsageError('--matrix-update needs a reason, which is stored with the baselines: --matrix-reason "…"')
    if update and environment.get("CI", "").lower() not in ("", "0", "false"):
        raise UsageError(
            "baselines are never written in CI (the environment variable CI is set); accept them on your machine"
        )
    if reason and not update:
        raise UsageError("--matrix-reason says why baselines are accepted; add --matrix-update={new,changed,all}")


def _check_accepted(value: Callable[[str], Any]) -> None:
    """Raise UsageError for a way of measuring on which no baseline may rest."""
    if value("matrix_quick"):
        raise UsageError("a quick run sees too little to be accepted; leave out --matrix-quick, or --matrix-update")
    if value("matrix_cached"):
        raise UsageError(
            "a baseline rests on what was computed for it, not on answers of earlier runs; leave out --matrix-cached "
            "(-o matrix_cached=false where the ini file asks for it), or --matrix-update"
        )
    if value("matrix_against"):
        raise UsageError(
            "--matrix-against leaves baselines alone, for it compares with the old side; accept in a run without it"
        )


def _path(root: Path, given: str | Path) -> Path:
    return (root / Path(given).expanduser()).resolve()


def _names(given: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (given or "").split(",") if name.strip())


def find_cache(environment: Mapping[str, str]) -> Path:
    """``QUANTDRIFT_CACHE``, or ``quantdrift`` in the user's cache directory (XDG Base Directory Specification)."""
    own = environment.get("QUANTDRIFT_CACHE")
    if own:
        return Path(own).expanduser().resolve()
    base = environment.get("XDG_CACHE_HOME", "")  # the specification says that a relative one is ignored
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "quantdrift"
