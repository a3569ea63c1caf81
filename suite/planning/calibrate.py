"""``quantdrift calibrate``: how much this machine varies by itself, measured on what does not change."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from suite.errors import UsageError
from suite.metrics.speed import PER_SAMPLE
from suite.planning.floors import Session, deviations, find_floors, find_limit, neighbours
from suite.planning.measuring import TWIN
from suite.records import Environment, Matrix, Noise, NoiseFloor, Variant
from suite.stats.robust import median

FEWEST_SESSIONS = 2
ENOUGH_SESSIONS = 8
"""From here on the t quantiles of the spread between sessions are near those of many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What a calibration is made from."""

    matrix: Matrix
    environment: Environment
    sessions: tuple[Session, ...]
    launch_s: float | None
    measured: str
    """ISO 8601 date and time, UTC."""


def check_environment(environment: Mapping[str, str]) -> None:
    """Raise UsageError in CI: what the machine of a job is like says nothing about yours."""
    if environment.get("CI", "").lower() not in ("", "0", "false"):
        raise UsageError(
            "the noise of a machine is never written in CI (the environment variable CI is set); "
            "calibrate on the machine that will be compared, and commit the file"
        )


def calibrate(gathered: Gathered) -> Noise:
    """The noise of the machine. Raises UsageError for fewer than two sessions, or two launches in none of them."""
    sessions = gathered.sessions
    if len(sessions) < FEWEST_SESSIONS:
        raise UsageError(
            f"{len(sessions)} finished session(s): how much sessions vary can be told from {FEWEST_SESSIONS} on; "
            "measure more with --sessions, or take stored runs as well with --from-runs"
        )
    floors = find_floors(sessions, _duets(gathered.matrix.variants, sessions))
    if not floors:
        raise UsageError(
            "no session holds two launches with clean samples of one variant; measure again when nothing else runs, "
            "with --launches 3 or more"
        )
    pressure, steal = _limits(gathered.matrix, sessions)
    return Noise(
        model=gathered.matrix.model,
        machine=gathered.environment.machine,
        identity=gathered.environment.identity,
        measured=gathered.measured,
        sessions=len(sessions),
        launches=round(median([_launches_of(session) for session in sessions])),
        floors=floors,
        max_pressure=pressure,
        max_steal=steal,
        launch_s=gathered.launch_s,
    )


def _launches_of(session: Session) -> int:
    return len({launch.index for launch in session.launches})


def _duets(variants: Sequence[Variant], sessions: Sequence[Session]) -> list[tuple[str, str]]:
    """Neighbours that run on the same backend, as the two sides of a duet do; any neighbours when there are none such."""
    backend = {variant.name: variant.backend for variant in variants}
    couples = neighbours(sessions)
    alike = [(a, b) for a, b in couples if backend.get(_plain(a)) == backend.get(_plain(b))]
    return alike or couples


def _plain(name: str) -> str:
    return name.removesuffix(TWIN)


def _limits(matrix: Matrix, sessions: Sequence[Session]) -> tuple[float | None, float | None]:
    slices = list(deviations(sessions))
    pressures = [(s.witness.pressure, d) for s, d in slices if s.witness.pressure is not None]
    steals = [(s.witness.steal, d) for s, d in slices if s.witness.steal is not None]
    return find_limit(pressures, matrix.protocol.max_pressure), find_limit(steals, matrix.protocol.max_steal)


def describe_calibration(noise: Noise) -> list[str]:
    """What was found, for people; at most 100 columns."""
    lines = [f"Noise of {noise.machine}: {noise.sessions} sessions of {noise.launches} launches", ""]
    lines.append(f"  {'metric':14} {'slices':>8} {'launches':>9} {'sessions':>9} {'side by side':>13}  divided by")
    lines += [_describe_floor(metric, floor) for metric, floor in noise.floors.items()]
    limits = [("pressure", noise.max_pressure), ("steal", noise.max_steal)]
    told = [f"CPU {name} up to {100 * limit:.1f} %" for name, limit in limits if limit is not None]
    lines += ["", "  A slice is clean with " + " and ".join(told) + "." if told else "  No witness told of neighbours."]
    if noise.sessions < ENOUGH_SESSIONS:
        lines.append(
            f"  {noise.sessions} sessions tell little about how sessions vary: tolerances against stored baselines"
        )
        lines.append(f"  stay wide until there are {ENOUGH_SESSIONS} (--sessions, or --from-runs as runs come in).")
    if noise.launch_s is not None:
        lines.append(f"  One launch of every variant takes {noise.launch_s:.1f} s.")
    return lines


def _describe_floor(metric: str, floor: NoiseFloor) -> str:
    pair = "-" if floor.pair_sd is None else _percent(floor.pair_sd)
    note: str = floor.normaliser
    if floor.normalised_session_sd is not None:
        ratio = floor.normalised_session_sd / floor.session_sd
        note = f"{note}: {_percent(floor.normalised_session_sd)} between sessions ({ratio:.2f} of it)"
    slices = _percent(floor.slice_sd) if metric in PER_SAMPLE else "-"
    cells = f"{slices:>8} {_percent(floor.launch_sd):>9} {_percent(floor.session_sd):>9}"
    return f"  {metric:14} {cells} {pair:>13}  {note}"


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def merge_sessions(measured: Sequence[Session], stored: Sequence[Session]) -> tuple[Session, ...]:
    """Stored sessions first. Of these, only variants that report the same facts as those that were measured now."""
    facts = {launch.variant: dict(launch.facts) for session in measured for launch in session.launches}
    kept = [_only_same(session, facts) for session in stored] if measured else list(stored)
    return tuple(session for session in itertools.chain(kept, measured) if session.launches)


def _only_same(session: Session, facts: Mapping[str, Mapping[str, str]]) -> Session:
    changed = {x.variant for x in session.launches if facts.get(x.variant) != dict(x.facts)}
    return Session(
        samples=tuple(sample for sample in session.samples if sample.variant not in changed),
        launches=tuple(launch for launch in session.launches if launch.variant not in changed),
    )
