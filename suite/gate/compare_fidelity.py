"""Fidelity now beside the accepted one: how far the variant is from the reference, and whether it has moved away.

The divergence of each case, then and now, along the same reference answers: what is compared is the ratio of the sums, with
template families as clusters. A floor of nats a position is added to both sides: by as much two paths of the same weights
differ, so that what is small beside it is no drift of the weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from suite.gate.differences import (
    describe_accepted,
    describe_changes,
    describe_differences,
    quality_identity,
    quality_suspects,
)
from suite.gate.duet import OldSide, describe_beside
from suite.gate.estimated import estimated_fields
from suite.gate.plan import GateItem
from suite.metrics.fidelity import BROKEN, DECODE_KLD, PATH_DISTANCE, distances_of, positions_of
from suite.records import (
    ALL,
    Aspect,
    CaseFidelity,
    Comparison,
    Environment,
    Forced,
    Measurement,
    QualityBaseline,
    Tier,
    VariantResult,
    Verdict,
)
from suite.stats.ratios import log_ratio

MEAN_KLD = "mean_kld"
DIVERGENCES: Mapping[str, str] = {MEAN_KLD: "kld", DECODE_KLD: "decode_kld", PATH_DISTANCE: "path_distance"}
"""Metrics that are held against what was accepted → their field of `CaseFidelity`."""
FIDELITY = frozenset({*DIVERGENCES, BROKEN})
"""Metrics that are compared here."""

CANNOT_BE_FORCED = "its backend cannot be forced through an answer"
"""Why nothing is known of a variant's fidelity, and nothing can be done."""

PROMPTS_ALONE = "its server tells of prompts alone, so that there is no decode path"
"""Why nothing is known of it along the decode path, and nothing can be done."""

LEAST_FLOOR = 1e-5
"""Nats: two builds of one engine differ by as much in half precision."""
HASH_DIGITS = 16


def fidelity_of(forced: Iterable[Forced]) -> dict[str, CaseFidelity]:
    """What would be accepted of each case of one variant; cases of which every position is broken are left out."""
    found: dict[str, dict[str, Any]] = {}
    for one in forced:
        values = positions_of(one).kld
        if not values:
            continue
        fields = found.setdefault(one.case, {})
        if one.path == "batched":
            fields |= {"trace": one.trace[:HASH_DIGITS], "kld": _mean(values)}
        else:
            apart = distances_of(one)
            fields |= {"decode_kld": _mean(values), "path_distance": _mean(apart) if apart else None}
    return {case: CaseFidelity(**fields) for case, fields in found.items() if "kld" in fields}


@dataclass(frozen=True, slots=True)
class _Cluster:
    """A template family, or one case without a family: sums over its positions, nats."""

    was: float = 0.0
    now: float = 0.0
    size: int = 0
    """Positions."""
    cases: int = 0

    def add(self, was: float, now: float, size: int) -> _Cluster:
        """With another case, given by its means."""
        return _Cluster(self.was + size * was, self.now + size * now, self.size + size, self.cases + 1)


@dataclass(frozen=True, slots=True)
class _Ground:
    """What every comparison of one variant's fidelity shares."""

    result: VariantResult
    now: Mapping[str, CaseFidelity]
    was: Mapping[str, CaseFidelity]
    forced: tuple[Forced, ...]
    """Along either path; the batched one gives domain, family and number of positions of each case."""
    shared: Mapping[str, Any]
    """Fields that all comparisons have in common."""
    unmeasured: tuple[Verdict, str] | None
    """Why nothing was measured."""
    blocked: tuple[Verdict, str] | None
    """Why nothing can be compared."""
    missing: tuple[str, ...]
    """Accepted cases that there still are and that were not forced."""
    why_missing: str
    remade: str
    floor: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What this run holds of a variant's fidelity, and of its old side."""

    forced: tuple[Forced, ...] = ()
    old: OldSide | None = None
    missing: str = ""
    """Why nothing was forced, or not everything, where that is known."""
    cases: frozenset[str] = frozenset()
    """The cases that there are: of those that were accepted, these must be there again."""
    remade: str = ""
    """Why the trace is not the one that was stored, where it is not."""


def compare_fidelity(
    result: VariantResult,
    baseline: QualityBaseline | None,
    environment: Environment,
    planned: Sequence[GateItem],
    beside: Beside,
) -> tuple[Comparison, ...]:
    """Comparisons of every planned gate on fidelity, and of everything else that was measured of it."""
    ground = _survey(result, beside, baseline, environment)
    wanted = [(item.metric, item.scope) for item in planned if item.metric in FIDELITY]
    found = [(m.metric, m.scope) for m in result.measurements if m.metric in FIDELITY]
    return tuple(_compare_one(metric, scope, ground) for metric, scope in dict.fromkeys([*wanted, *found]))


def _survey(
    result: VariantResult, beside: Beside, baseline: QualityBaseline | None, environment: Environment
) -> _Ground:
    own = tuple(one for one in beside.forced if one.variant == result.variant.name)
    old, was, now = beside.old, _accepted(baseline, beside.old), fidelity_of(own)
    differences = describe_differences(baseline.identity, quality_identity(result)) if baseline and not old else ()
    then = quality_suspects(old.result, environment) if old else baseline.suspects if baseline else None
    suspects = () if then is None else describe_changes(then, quality_suspects(result, environment))
    tier = Tier.DUET if old else Tier.STORED if baseline else Tier.NONE
    accepted = describe_beside(old) if old else describe_accepted(baseline) if baseline else ""
    unmeasured: tuple[Verdict, str] | None = None
    if failure := result.failure:
        unmeasured = failure.verdict, failure.reason
    elif not own:
        unmeasured = Verdict.NOT_MEASURED, beside.missing or "it was not forced through the reference trace in this run"
    distances = [case.path_distance for case in was.values() if case.path_distance is not None]
    return _Ground(
        result=result,
        now=now,
        was=was,
        forced=own,
        shared={
            "variant": result.variant.name, "aspect": Aspect.QUALITY, "tier": tier, "suspects": suspects,
            "accepted": accepted,
        },
        unmeasured=unmeasured,
        blocked=unmeasured or _blocked(baseline, was, differences, old),
        missing=tuple(sorted(case for case in was.keys() & beside.cases if case not in now)),
        why_missing=beside.missing,
        remade=beside.remade,
        floor=max(LEAST_FLOOR, _mean(distances) if distances else 0.0),
    )  # fmt: skip


def _accepted(baseline: QualityBaseline | None, old: OldSide | None) -> Mapping[str, CaseFidelity]:
    if old is not None:
        return fidelity_of(old.forced)
    cases = baseline.cases if baseline else {}
    return {case: answer.fidelity for case, answer in cases.items() if answer.fidelity is not None}


def _blocked(
    baseline: QualityBaseline | None,
    was: Mapping[str, CaseFidelity],
    differences: Sequence[str],
    old: OldSide | None,
) -> tuple[Verdict, str] | None:
    if old is not None:
        return None if was else (Verdict.NOT_MEASURED, f"{old.described} was not forced through the trace")
    if baseline is None:
        return Verdict.UNBASELINED, "nothing was accepted for this variant yet"
    if differences:
        return Verdict.NOT_COMPARABLE, "; ".join(differences)
    return None if was else (Verdict.UNBASELINED, "it was accepted before fidelity was measured; accept anew")


def _compare_one(metric: str, scope: str, ground: _Ground) -> Comparison:
    measured = next((m for m in ground.result.measurements if (m.metric, m.scope) == (metric, scope)), None)
    observed = measured.value if measured else None
    bare = Comparison(metric=metric, scope=scope, observed=observed, baseline=None, drift=None, **ground.shared)
    if metric == BROKEN:
        return _compare_broken(bare, ground)
    if metric in (DECODE_KLD, PATH_DISTANCE) and ground.forced and all(x.untold is not None for x in ground.forced):
        return replace(_unresolved(bare, Verdict.NOT_MEASURED, PROMPTS_ALONE), unsuited=True)
    if ground.blocked is not None:
        return _unresolved(bare, *ground.blocked)
    clusters, moved = _pair(metric, scope, ground)
    missing = [case for case in ground.missing if _is_asked(metric, scope, case, ground)]
    if len(missing) > len(moved) + sum(cluster.cases for cluster in clusters):
        return _unresolved(bare, Verdict.NOT_MEASURED, _tell_missing(missing, ground))
    if not clusters:
        return _unresolved(bare, *_why_none(measured, moved, ground))
    compared = _compare_sums(bare, clusters, moved, ground)
    told = [compared.reason, _tell_missing(missing, ground) if missing else ""]
    return replace(compared, reason="; ".join(filter(None, told)))


def _why_none(measured: Measurement | None, moved: Sequence[str], ground: _Ground) -> tuple[Verdict, str]:
    """Why not a single case can be compared."""
    if measured is None or measured.value is None:
        return Verdict.NOT_MEASURED, (measured and measured.reason) or "no case of it was forced"
    if not moved:
        return Verdict.UNBASELINED, "no case of it was accepted yet"
    why = f"; the stored trace was made anew, for {ground.remade}" if ground.remade else ""
    return Verdict.NOT_COMPARABLE, f"it was accepted along another reference trace ({_count(moved)}){why}"


def _is_asked(metric: str, scope: str, case: str, ground: _Ground) -> bool:
    """Whether a case that was accepted belongs to what a metric is about in a scope."""
    known = getattr(ground.was[case], DIVERGENCES[metric]) is not None
    return known and scope in (ALL, case.partition("/")[0])


def _tell_missing(missing: Sequence[str], ground: _Ground) -> str:
    why = (
        f" ({ground.why_missing})" if ground.why_missing else f" ({', '.join(missing[:3])}{' …' * (len(missing) > 3)})"
    )
    return f"{_count(missing)} that {'was' if len(missing) == 1 else 'were'} accepted could not be forced{why}"


def _unresolved(bare: Comparison, verdict: Verdict, reason: str) -> Comparison:
    return replace(bare, unresolved=verdict, reason=reason)


def _compare_broken(bare: Comparison, ground: _Ground) -> Comparison:
    """Logits that are no numbers need no baseline: there must be none."""
    if ground.unmeasured is not None:
        return _unresolved(bare, *ground.unmeasured)
    if bare.observed is None:
        return _unresolved(bare, Verdict.NOT_MEASURED, "no case was forced")
    first = next((one for one in ground.forced if one.broken), None)
    where = f"first in {first.case} at position {first.broken[0]} ({first.path} path)" if first else ""
    cases = len({one.case for one in ground.forced})
    return replace(bare, baseline=0.0, drift=bare.observed, n=cases, reason=where)


def _pair(metric: str, scope: str, ground: _Ground) -> tuple[list[_Cluster], list[str]]:
    """Clusters of the cases that both sides know by the same trace, and the cases whose trace is another one."""
    field = DIVERGENCES[metric]
    clusters: dict[tuple[bool, str], _Cluster] = {}
    moved: list[str] = []
    for one in ground.forced:
        was, now = ground.was.get(one.case), ground.now.get(one.case)
        if one.path != "batched" or scope not in (ALL, one.domain) or was is None or now is None:
            continue
        then, here = getattr(was, field), getattr(now, field)
        if then is None or here is None:
            continue
        if was.trace != now.trace:
            moved.append(one.case)
        else:
            key = (one.family is not None, one.family or one.case)
            size = len(one.kld) - len(one.broken)
            clusters[key] = clusters.get(key, _Cluster()).add(_stored(then), _stored(here), size)
    return list(clusters.values()), moved


def _compare_sums(bare: Comparison, clusters: Sequence[_Cluster], moved: Sequence[str], ground: _Ground) -> Comparison:
    floor = LEAST_FLOOR if bare.metric == PATH_DISTANCE else ground.floor
    then = [cluster.was + floor * cluster.size for cluster in clusters]
    here = [cluster.now + floor * cluster.size for cluster in clusters]
    size = sum(cluster.size for cluster in clusters)
    estimate = log_ratio(here, then)
    return replace(
        bare,
        observed=math.fsum(cluster.now for cluster in clusters) / size,
        baseline=math.fsum(cluster.was for cluster in clusters) / size,
        drift=math.fsum(here) / math.fsum(then) - 1,
        n=len(clusters),
        numeric_floor=floor,
        identical=then == here,
        reason=f"{_count(moved)} left out, since accepted along another reference trace" if moved else "",
        **estimated_fields(estimate, math.expm1),
    )


def _count(cases: Sequence[str]) -> str:
    """``1 case``, ``24 cases``."""
    return f"{len(cases)} case{'s' * (len(cases) != 1)}"


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _stored(value: float) -> float:
    """As a baseline keeps it: four significant digits."""
    return float(f"{value:.4g}")
