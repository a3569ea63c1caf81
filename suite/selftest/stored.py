"""The stored tier on recorded sessions: what was accepted in one hour against what is measured in another.

Everything between the launches and the verdict is production code: `compare` with a stored baseline and the noise that a
calibration on *other* sessions has found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from suite.gate.compare import compare
from suite.gate.family import decide_all
from suite.gate.policy import DEFAULT_POLICY
from suite.planning.floors import Session as MeasuredSession
from suite.planning.floors import find_floors
from suite.records import (
    ALL,
    BaselineMetric,
    Baselines,
    Comparison,
    Environment,
    Launch,
    Measurement,
    Noise,
    NoiseFloor,
    Provenance,
    SpeedBaseline,
    SpeedSample,
    Variant,
    VariantResult,
    Witness,
    Yardstick,
)
from suite.selftest.corpus import Corpus, Session, SoloLaunch
from suite.selftest.replay import CHECKS, Tally
from suite.selftest.resampling import clean_slices
from suite.stats.robust import median

METRIC, SCOPE = "itl_s", "solo"
STORED = DEFAULT_POLICY[METRIC]
"""The gate as it is asked by default: 10 % against what was stored."""
MACHINE = Environment(machine="replayed", identity={}, suspects={}, readings={})


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """One session in logs: for each launch the median gap, and the rates of both yardsticks."""

    itl: tuple[float, ...]
    hash: tuple[float, ...]
    copy: tuple[float, ...]


def read_sessions(corpus: Corpus) -> list[Values]:
    """The sessions of a corpus in logs."""
    return [_values(session) for session in corpus.sessions]


def _values(session: Session) -> Values:
    return Values(
        itl=tuple(math.log(median(_gaps(launch)) / 1e3) for launch in session.launches),
        hash=tuple(math.log(launch.hash_mb_s * 1e6) for launch in session.launches),
        copy=tuple(math.log(launch.copy_mb_s * 1e6) for launch in session.launches),
    )


def _gaps(launch: SoloLaunch) -> Sequence[float]:
    """Median gaps of the clean slices, ms; of all where none is."""
    return clean_slices(launch.arm) or launch.arm.median_ms


def calibrate(sessions: Sequence[Session]) -> NoiseFloor | None:
    """The floor that `quantdrift calibrate` finds on these sessions; None for too few."""
    return find_floors([_as_measured(session) for session in sessions], pairs=()).get(METRIC)


def _as_measured(session: Session) -> MeasuredSession:
    return MeasuredSession(
        samples=tuple(
            SpeedSample(
                variant="replayed",
                scenario=SCOPE,
                launch=index,
                round=turn,
                prompt_tokens=1,
                evaluated_tokens=1,
                new_tokens=2,
                prefill_s=1.0,
                ttft_s=1.0,
                itl_s=(gap / 1e3,),
                witness=Witness(wall_s=1.0, cpu_s=1.0, threads=1),
            )
            for index, launch in enumerate(session.launches)
            for turn, gap in enumerate(_gaps(launch))
        ),
        launches=tuple(_as_launch(index, launch) for index, launch in enumerate(session.launches)),
    )


def _as_launch(index: int, launch: SoloLaunch) -> Launch:
    return Launch(
        variant="replayed",
        index=index,
        load_s=1.0,
        cold_ttft_s=None,
        cold_prompt_tokens=None,
        peak_rss_bytes=None,
        uss_bytes=None,
        peak_device_bytes=None,
        kv_cache_bytes=None,
        kv_cache_reported_bytes=None,
        facts={},
        yardstick=Yardstick(hash_bytes_s=launch.hash_mb_s * 1e6, copy_bytes_s=launch.copy_mb_s * 1e6),
    )


def compare_sessions(
    then: Values, now: Values, floor: NoiseFloor | None, *, shift: float = 0.0, unclean: str = ""
) -> Comparison:
    """What a run in the session `now`, `shift` slower, makes of a baseline accepted in the session `then`."""
    variant = Variant(name="replayed", model="kernel", backend="kernel", source="none")
    shifted = replace(now, itl=tuple(value + shift for value in now.itl))
    gaps = tuple(math.exp(value) for value in shifted.itl)
    result = VariantResult(
        variant=variant,
        artifact=None,
        measurements=(
            Measurement(
                metric=METRIC,
                scope=SCOPE,
                value=median(gaps),
                samples=gaps,
                launches=tuple(range(len(gaps))),
                status="contended" if unclean else "measured",
                reason=unclean or None,
            ),
            _yardstick("hash", now.hash),
            _yardstick("copy", now.copy),
        ),
        launches=(),
        failure=None,
        identity={},
        suspects={},
    )
    noise = _noise(floor) if floor else None
    baselines = Baselines(speed=_accept(then), noise=noise)
    found = compare(result, (), baselines, MACHINE)
    return next(comparison for comparison in found if comparison.metric == METRIC)


def _yardstick(name: str, logs: Sequence[float]) -> Measurement:
    rates = tuple(math.exp(value) for value in logs)
    return Measurement(
        metric=f"yardstick_{name}_bytes_s",
        scope=ALL,
        value=median(rates),
        samples=rates,
        launches=tuple(range(len(rates))),
    )


def _accept(then: Values) -> SpeedBaseline:
    gaps = tuple(math.exp(value) for value in then.itl)
    rates = {
        f"yardstick_{name}_bytes_s/{ALL}": BaselineMetric(value=math.exp(median(logs)), unit="bytes/s")
        for name, logs in (("hash", then.hash), ("copy", then.copy))
    }
    return SpeedBaseline(
        model="kernel",
        variant="replayed",
        machine=MACHINE.machine,
        identity={},
        suspects={},
        provenance=Provenance(accepted="", reason="replayed", run=""),
        metrics={f"{METRIC}/{SCOPE}": BaselineMetric(value=median(gaps), unit="s", launches=gaps), **rates},
    )


def _noise(floor: NoiseFloor) -> Noise:
    return Noise(
        model="kernel",
        machine=MACHINE.machine,
        identity={},
        measured="",
        sessions=floor.session_df + 1,
        launches=floor.launch_df,
        floors={METRIC: floor},
    )


class StoredReplay:
    """Matrices whose checks each compare two sessions of one half of a corpus, calibrated on the other half."""

    def __init__(self, corpus: Corpus, *, calibrated: bool, normalise: bool) -> None:
        halves = corpus.sessions[0::2], corpus.sessions[1::2]
        self._halves = [[_values(session) for session in half] for half in halves]
        self._floors = [_without(calibrate(half), normalise) if calibrated else None for half in reversed(halves)]
        self._known: dict[tuple[int, int, int, float], Comparison] = {}

    @property
    def normalisers(self) -> set[str]:
        """What the two calibrations divide by."""
        return {str(floor.normaliser) for floor in self._floors if floor and floor.normaliser != "none"}

    @property
    def spread(self) -> float | None:
        """SD between sessions, logs, the mean of both halves; None where nothing was calibrated."""
        found = [floor.normalised_session_sd or floor.session_sd for floor in self._floors if floor is not None]
        return sum(found) / len(found) if found else None

    def run(self, matrices: int, random: Any, *, shift: float = 0.0) -> Tally:
        """Simulate matrices; with a `shift` (log ratio) the first check of each is slower."""
        tally = Tally()
        for _ in range(matrices):
            shifts = [shift, *[0.0] * (CHECKS - 1)]
            items = [(self._draw(random, slower), STORED) for slower in shifts]
            tally.add([decision.verdict for decision in decide_all(items)], [], shifted=bool(shift))
        return tally

    def _draw(self, random: Any, shift: float) -> Comparison:
        half = int(random.integers(0, 2))
        then, now = random.choice(len(self._halves[half]), size=2, replace=False).tolist()
        key = half, then, now, shift
        if key not in self._known:
            sessions = self._halves[half]
            self._known[key] = compare_sessions(sessions[then], sessions[now], self._floors[half], shift=shift)
        return self._known[key]


def _without(floor: NoiseFloor | None, normalise: bool) -> NoiseFloor | None:
    if floor is None or normalise:
        return floor
    return replace(floor, normaliser="none", normalised_session_sd=None)
