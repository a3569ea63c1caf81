"""``quantdrift plan``: what the present cases, launches and noise can detect, and what more would cost. Nothing is loaded."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from suite.errors import UsageError, nearest
from suite.gate.family import share_out
from suite.gate.plan import GateItem, plan_gates
from suite.gate.policy import tolerance_for
from suite.planning.quality import cases_needed, count_independent, look_out
from suite.planning.records import (
    CasesNeeded,
    Detection,
    LaunchesNeeded,
    Outlook,
    QualityOutlook,
    SpeedOutlook,
)
from suite.planning.speed import (
    FOUND,
    MOST,
    SURELY_FOUND,
    PlannedTest,
    Spread,
    launches_needed,
    spread_of,
    to_log,
    to_share,
)
from suite.records import ALL, Aspect, Case, Environment, Matrix, Noise, Tier, Tolerance

SCORE = "score"
SECOND_LOOK = 2
"""Launches are added in one step, so that what has the most of them is judged for the second time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What a plan is made from."""

    matrix: Matrix
    cases: tuple[Case, ...]
    policy: Mapping[str, Tolerance]
    environment: Environment
    noise: Noise | None
    launch_s: float | None = None
    """Seconds that one launch of every variant takes, when the noise file does not say so."""

    @property
    def gates(self) -> tuple[GateItem, ...]:
        """The gates of one variant."""
        domains = {case.domain for case in self.cases}
        accelerated = self.environment.identity.get("device", "cpu") != "cpu"
        referenced = self.matrix.reference is not None
        return plan_gates(self.matrix.scenarios, domains, self.policy, has_accelerator=accelerated, fidelity=referenced)


def make_plan(ground: Ground, wanted: Mapping[str, float]) -> Outlook:
    """The plan; `wanted` holds tolerances to be priced, by metric (``score`` in credit, speeds as a share).

    Raises UsageError for a metric that no gate of this matrix tests.
    """
    gates, variants = ground.gates, len(ground.matrix.variants)
    protocol = ground.matrix.protocol
    speed_gates = variants * sum(item.aspect is Aspect.SPEED for item in gates)
    alphas = share_out(_groups(gates))
    alpha = alphas.get("speed", 0.0)
    _check_wanted(wanted, gates)
    outlook = Outlook(
        model=ground.matrix.model,
        machine=ground.environment.machine,
        variants=variants,
        speed_gates=speed_gates,
        speed_alpha=alpha,
        noise=describe_noise(ground.noise),
        launch_s=ground.noise.launch_s if ground.noise and ground.noise.launch_s else ground.launch_s,
        launches=protocol.launches,
        max_launches=max(protocol.max_launches, protocol.launches),
        speed=tuple(_look_at_speeds(ground, gates, alpha / max(speed_gates, 1))),
        quality=tuple(_look_at_answers(ground, gates, alphas)),
    )
    return dataclasses.replace(
        outlook,
        launches_needed=tuple(_price_launches(outlook, ground, wanted)),
        cases_needed=tuple(_price_cases(wanted, alphas)),
    )


def share_of_one_gate(ground: Ground) -> float:
    """What one gate of speed may spend of the 5 % when all of them are tested (the first step of Holm's procedure)."""
    gates = ground.gates
    count = len(ground.matrix.variants) * sum(item.aspect is Aspect.SPEED for item in gates)
    return share_out(_groups(gates)).get("speed", 0.0) / max(count, 1)


def describe_noise(noise: Noise | None) -> str:
    """Where the figures come from, for people."""
    if noise is None:
        return "assumed, since this machine was never calibrated; measure it with: quantdrift calibrate"
    edited = "; the file was edited by hand since" if noise.edited else ""
    sessions = f"{noise.sessions} sessions of {noise.launches} launches"
    return f"measured on this machine, {noise.measured[:10]}, {sessions}{edited}"


def read_wanted(given: Iterable[str]) -> dict[str, float]:
    """``metric=share`` → the share by metric. Raises UsageError for anything else."""
    wanted: dict[str, float] = {}
    for text in given:
        metric, _, number = text.partition("=")
        try:
            value = float(number)
        except ValueError:
            value = -1.0
        if not metric or not 0 < value < 1:
            raise UsageError(f"--tolerance {text}: write METRIC=SHARE with a share between 0 and 1, as in itl_s=0.03")
        wanted[metric.strip()] = value
    return wanted


def _groups(gates: Sequence[GateItem]) -> list[str]:
    """The shares of the 5 % that a run of these gates holds."""
    return [_group_of(item) for item in gates if item.aspect is not Aspect.MEMORY]


def _group_of(item: GateItem) -> str:
    if item.aspect is Aspect.SPEED:
        return "speed"
    return SCORE if (item.metric, item.scope) == (SCORE, ALL) else "answers"


def _check_wanted(wanted: Mapping[str, float], gates: Collection[GateItem]) -> None:
    known = {item.metric for item in gates if item.aspect is Aspect.SPEED} | {SCORE}
    for metric in wanted:
        if metric not in known:
            raise UsageError(f"--tolerance {metric}: no gate of this matrix tests it; {nearest(metric, known)}")


def _look_at_speeds(ground: Ground, gates: Sequence[GateItem], alpha: float) -> Iterator[SpeedOutlook]:
    scopes: dict[tuple[str, Tolerance], list[str]] = {}
    for item in gates:
        if item.aspect is Aspect.SPEED:
            tolerance = tolerance_for(ground.policy, item.metric, item.scope)
            scopes.setdefault((item.metric, tolerance), []).append(item.scope)
    for (metric, tolerance), names in scopes.items():
        for tier in (Tier.DUET, Tier.STORED):
            yield _look_at_speed(metric, tuple(names), tolerance, tier, ground, alpha)


def _look_at_speed(
    metric: str, scopes: tuple[str, ...], tolerance: Tolerance, tier: Tier, ground: Ground, alpha: float
) -> SpeedOutlook:
    floor = ground.noise.floors.get(metric) if ground.noise else None
    spread = spread_of(floor, tier)
    share = allowed(tolerance, tier)
    protocol = ground.matrix.protocol

    def detect(launches: int, look: int) -> Detection:
        test = PlannedTest(spread=spread, launches=launches, stored=protocol.launches, look=look, alpha=alpha)
        return _detect(test, metric, share)

    return SpeedOutlook(
        metric=metric,
        scopes=scopes,
        gate=tolerance.gate,
        tier=tier,
        tolerance=share,
        absolute=tolerance.absolute,
        launch_sd=spread.launch_sd,
        session_sd=spread.session_sd,
        measured=spread.measured,
        first=detect(protocol.launches, 1),
        most=detect(max(protocol.max_launches, protocol.launches), SECOND_LOOK),
    )


def allowed(tolerance: Tolerance, tier: Tier) -> float:
    """The relative tolerance in a tier."""
    return tolerance.duet if tier is Tier.DUET and tolerance.duet is not None else tolerance.relative


def _detect(test: PlannedTest, metric: str, tolerance: float) -> Detection:
    margin = to_log(metric, tolerance)
    found = [test.detectable(margin, wanted) for wanted in (FOUND, SURELY_FOUND)]
    mde_80, mde_95 = (None if log is None else to_share(metric, log) for log in found)
    return Detection(launches=test.launches, mde_80=mde_80, mde_95=mde_95, passes=test.passes(margin))


def _look_at_answers(
    ground: Ground, gates: Sequence[GateItem], alphas: Mapping[str, float]
) -> Iterator[QualityOutlook]:
    variants = len(ground.matrix.variants)
    others = sum(_group_of(item) == "answers" for item in gates if item.aspect is Aspect.QUALITY)
    for item in gates:
        if item.metric == SCORE:
            cases = [case for case in ground.cases if item.scope in (ALL, case.domain)]
            group = _group_of(item)
            yield look_out(
                item.scope,
                count_independent(cases),
                tolerance_for(ground.policy, SCORE, item.scope).absolute,
                alpha=alphas[group],
                crowd=variants * (1 if group == SCORE else others),
            )


def _price_launches(outlook: Outlook, ground: Ground, wanted: Mapping[str, float]) -> Iterator[LaunchesNeeded]:
    alpha = outlook.speed_alpha / max(outlook.speed_gates, 1)
    for metric, tolerance in wanted.items():
        if metric != SCORE:
            floor = ground.noise.floors.get(metric) if ground.noise else None
            for tier in (Tier.DUET, Tier.STORED):
                yield _price(metric, tolerance, spread_of(floor, tier), alpha, outlook.launch_s)


def _price(metric: str, tolerance: float, spread: Spread, alpha: float, launch_s: float | None) -> LaunchesNeeded:
    launches = launches_needed(spread, metric, tolerance, alpha)
    sides = 2 if spread.tier is Tier.DUET else 1
    return LaunchesNeeded(
        metric=metric,
        tier=spread.tier,
        tolerance=tolerance,
        launches=launches,
        minutes=None if launches is None or launch_s is None else sides * launches * launch_s / 60,
        limit="" if launches else _tell_limit(metric, tolerance, spread, alpha),
    )


def _tell_limit(metric: str, tolerance: float, spread: Spread, alpha: float) -> str:
    """Whether it is the sessions that stand in the way, which no number of launches averages out, or the launches."""
    alone = dataclasses.replace(spread, session_sd=0.0)
    if launches_needed(alone, metric, tolerance, alpha) is not None:
        return f"cannot be reached: the sessions themselves vary by {100 * spread.session_sd:.1f} %"
    return f"cannot be reached with {MOST} launches: they vary by {100 * spread.launch_sd:.1f} %"


def _price_cases(wanted: Mapping[str, float], alphas: Mapping[str, float]) -> Iterator[CasesNeeded]:
    if SCORE in wanted and SCORE in alphas:
        yield cases_needed(wanted[SCORE], alphas[SCORE])
