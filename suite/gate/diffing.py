"""Two states of the baselines side by side, judged by the rules of a run.

The figures that differ are one family of tests: what was kept to the letter was not measured again. They are held against
the tolerances of the earlier state, so that a loosened one cannot hide the loss that it came with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from suite.errors import MatrixFileError
from suite.gate.decide import estimate_of
from suite.gate.differences import describe_changes, describe_differences
from suite.gate.diffing_policy import compare_policies
from suite.gate.diffing_questions import find_questions
from suite.gate.diffing_sides import (
    answers_differ,
    baselines_of,
    compare_answers,
    compare_times,
    question_of,
    what_is_told,
)
from suite.gate.judge import judge_all
from suite.gate.policy import DEFAULT_POLICY, merge_policy, metric_of
from suite.gate.sessions import doubt
from suite.metrics.catalog import SPECS
from suite.metrics.speed import YARDSTICKS
from suite.records import (
    Aspect,
    BaselineCase,
    Comparison,
    Diff,
    DiffEntry,
    EntryState,
    Figure,
    FigureState,
    Finding,
    Noise,
    QualityBaseline,
    Snapshot,
    SpeedBaseline,
    Tolerance,
    Verdict,
)
from suite.stats.binomial import ALPHA
from suite.stats.intervals import interval_of
from suite.store.baselines import as_stored

_STATES: Mapping[Verdict, FigureState] = {
    Verdict.REGRESSED: "worse",
    Verdict.IMPROVED: "better",
    Verdict.PASS: "within",
    Verdict.INCONCLUSIVE: "unclear",
    Verdict.NOT_COMPARABLE: "otherwise",
}
_ASPECTS = tuple(Aspect)

Baseline = QualityBaseline | SpeedBaseline


@dataclass(frozen=True, slots=True, order=True)
class _Key:
    """What a baseline is of."""

    model: str
    variant: str
    machine: str | None
    """None for answers."""

    @property
    def path(self) -> str:
        """Where it lies below the directory of baselines."""
        place = "quality" if self.machine is None else f"speed/{self.machine}"
        return f"{self.model}/{place}/{self.variant}.json"


@dataclass(frozen=True, slots=True)
class _Side:
    """One state, by what its baselines are of."""

    snapshot: Snapshot
    baselines: Mapping[_Key, Baseline]

    @classmethod
    def of(cls, snapshot: Snapshot) -> _Side:
        """The snapshot's baselines; those that a run would make."""
        quality, speed = baselines_of(snapshot.run) if snapshot.run else (snapshot.quality, snapshot.speed)
        found: dict[_Key, Baseline] = {_Key(one.model, one.variant, None): one for one in quality}
        return cls(snapshot, found | {_Key(one.model, one.variant, one.machine): one for one in speed})

    def why_absent(self, key: _Key) -> EntryState | None:
        """Why a baseline that is not here may be there all the same; None when it is not."""
        if any(fault.path == key.path for fault in self.snapshot.faults):
            return "unreadable"
        return "not measured" if self.snapshot.run is not None else None


@dataclass(frozen=True, slots=True)
class _Beside:
    """One baseline then and now, and what is to be judged of them."""

    key: _Key
    was: Baseline | None
    now: Baseline | None
    comparisons: tuple[Comparison, ...] = ()


def diff_snapshots(base: Snapshot, head: Snapshot) -> Diff:
    """What differs between two states. Pure: both were read before."""
    was, now = _Side.of(base), _Side.of(head)
    policy, judged_by, faults = _policy_of(base, head)
    comparable = not faults and base.matrix is not None and head.matrix is not None
    besides = [_compare(one, base, head) for one in _pair(was, now)]
    comparisons = [comparison for one in besides for comparison in one.comparisons]
    findings = iter(judge_all(comparisons, policy))
    entries = tuple(_entry(one, [next(findings) for _ in one.comparisons], was, now) for one in besides)
    diff = Diff(
        base=base.label,
        head=head.label,
        base_kind=base.kind,
        head_kind=head.kind,
        entries=entries,
        tolerances=compare_policies(base.matrix, head.matrix) if comparable else (),
        tolerances_compared=comparable,
        judged_by=judged_by,
        notes=tuple(_notes(base, head)),
    )
    return replace(diff, questions=find_questions(diff, base, head, faults))


def _policy_of(base: Snapshot, head: Snapshot) -> tuple[Mapping[str, Tolerance], str, tuple[str, ...]]:
    """The tolerances to go by, whose they are, and what is wrong with those that cannot be used."""
    found: list[tuple[Mapping[str, Tolerance], str]] = []
    faults = []
    for side in (base, head):
        if side.matrix is not None:
            try:
                found.append((merge_policy(side.matrix.policy, where=side.matrix.file), f"those of {side.label}"))
            except MatrixFileError as error:
                faults.append(f"{side.label}: {error}")
    policy, judged_by = found[0] if found else (DEFAULT_POLICY, "the default ones, for no matrix file was found")
    return policy, judged_by, tuple(faults)


# ------------------------------------------------------------------------------------------------------- pairing


def _pair(was: _Side, now: _Side) -> list[_Beside]:
    """Every baseline of either side, in the order of the matrix file; speeds that moved to another machine as one."""
    matrix = now.snapshot.matrix or was.snapshot.matrix
    rank = {name: position for position, name in enumerate(matrix.variants if matrix else ())}

    def order(key: _Key) -> tuple[str, int, str, str]:
        return (key.model, rank.get(key.variant, len(rank)), key.variant, key.machine or "")

    moved = _moved(was, now)
    keys = sorted((was.baselines.keys() | now.baselines.keys()) - set(moved.values()), key=order)
    return [_Beside(key, was.baselines.get(moved.get(key, key)), now.baselines.get(key)) for key in keys]


def _moved(was: _Side, now: _Side) -> dict[_Key, _Key]:
    """The later key of each speed that is only known of another machine → the earlier one, which is gone."""
    added = sorted(key for key in now.baselines.keys() - was.baselines.keys() if key.machine is not None)
    gone = [key for key in was.baselines.keys() - now.baselines.keys() if key.machine is not None]
    pairs: dict[_Key, _Key] = {}
    for key in added:
        like = sorted(old for old in gone if (old.model, old.variant) == (key.model, key.variant))
        if was.why_absent(key) != "unreadable" and len(like) == 1 and like[0] not in pairs.values():
            pairs[key] = like[0]
    return pairs


def _compare(one: _Beside, base: Snapshot, head: Snapshot) -> _Beside:
    """With the comparisons of the whole; single cases that ask another question are told apart."""
    found: tuple[Comparison, ...] = ()
    if isinstance(one.was, QualityBaseline) and isinstance(one.now, QualityBaseline):
        if one.was.cases != one.now.cases or dict(one.was.identity) != dict(one.now.identity):
            found = compare_answers(one.was, one.now, what_is_told(base, head, one.key.model))
    elif isinstance(one.was, SpeedBaseline) and isinstance(one.now, SpeedBaseline):
        found = compare_times(one.was, one.now, _noise_of(one.now, head, base))
    return replace(one, comparisons=tuple(comparison for comparison in found if "/" not in comparison.scope))


def _noise_of(now: SpeedBaseline, *sides: Snapshot) -> Noise | None:
    """What was found about the noise of its machine; the later state's first."""
    known = (noise for side in sides for noise in side.noise)
    return next((noise for noise in known if (noise.model, noise.machine) == (now.model, now.machine)), None)


def _is_moved(comparison: Comparison) -> bool:
    """Whether it is a figure that differs, or that cannot be held against the earlier one."""
    if comparison.identical:
        return False
    if comparison.unresolved is not None:
        return comparison.unresolved is Verdict.NOT_COMPARABLE and comparison.observed is not None
    return bool(comparison.drift or comparison.flips) or comparison.observed != comparison.baseline


# ------------------------------------------------------------------------------------------------------- entries


def _entry(one: _Beside, findings: Sequence[Finding], was: _Side, now: _Side) -> DiffEntry:
    key, old, new = one.key, one.was, one.now
    entry = DiffEntry(
        model=key.model,
        variant=key.variant,
        aspect="quality" if key.machine is None else "speed",
        machine=key.machine,
        state="unchanged",
        was=old.provenance if old else None,
        now=new.provenance if new else None,
        edited=bool(new and new.edited),
    )
    if old is None or new is None:
        absent: EntryState = "new" if old is None else "gone"
        present = old or new
        figures = tuple(_one_sided(present, absent)) if present else ()
        return replace(entry, state=(was if old is None else now).why_absent(key) or absent, figures=figures)
    findings = [finding for finding in findings if _is_moved(finding.comparison)]
    figures = _figures(old, new, findings)
    figures = tuple(figure for figure in figures if figure.state not in _unasked(was, now))
    differing = {f"{figure.metric}/{figure.scope}" for figure in figures}
    machine = old.machine if isinstance(old, SpeedBaseline) and old.machine != key.machine else None
    entry = replace(
        entry,
        figures=figures,
        same=tuple(
            sorted(key for key in old.metrics.keys() & new.metrics.keys() if key not in differing and _is_told(key))
        ),
        differences=describe_differences(old.identity, new.identity) + describe_changes(old.suspects, new.suspects),
        moved_from=machine,
    )
    if isinstance(old, QualityBaseline) and isinstance(new, QualityBaseline):
        entry = _with_cases(entry, old, new, findings)
        unasked = _unasked(was, now)
        entry = replace(
            entry,
            cases_added=() if "new" in unasked else entry.cases_added,
            cases_gone=() if "gone" in unasked else entry.cases_gone,
            cases_gone_wrong=0 if "gone" in unasked else entry.cases_gone_wrong,
        )
    return replace(entry, state=_state_of(entry, old, new, was, now))


def _unasked(was: _Side, now: _Side) -> frozenset[str]:
    """The states that only say that a run did not measure it: a run may be of some cases, without a trace, without speed."""
    return frozenset({"gone"} if now.snapshot.run else ()) | frozenset({"new"} if was.snapshot.run else ())


def _state_of(entry: DiffEntry, old: Baseline, new: Baseline, was: _Side, now: _Side) -> EntryState:
    asked = (entry.cases_added, entry.cases_gone, entry.cases_asked_otherwise, entry.answers_changed, entry.moved_from)
    if entry.figures or entry.flips or any(asked) or dict(old.identity) != dict(new.identity):
        return "changed"
    measured = was.snapshot.run is not None or now.snapshot.run is not None
    return "unchanged" if old == new or measured else "accepted anew"


def _one_sided(baseline: Baseline, state: EntryState) -> Iterable[Figure]:
    """The figures of a baseline that is on one side only."""
    new = state == "new"
    for key, metric in sorted(baseline.metrics.items()):
        if _is_told(key):
            old, here = (None, metric.value) if new else (metric.value, None)
            yield _figure(key, old, here, state="new" if new else "gone")


def _figures(old: Baseline, new: Baseline, findings: Sequence[Finding]) -> tuple[Figure, ...]:
    """Those that were judged, those that nobody judges, and those of one side only."""
    judged = {f"{one.metric}/{one.scope}": _judged(one) for one in findings}
    rest: list[Figure] = []
    for key in sorted({*old.metrics, *new.metrics}):
        if key in judged or not _is_told(key):
            continue
        then, here = old.metrics.get(key), new.metrics.get(key)
        if then is None or here is None:
            values = (metric.value if metric else None for metric in (then, here))
            rest.append(_figure(key, *values, state="new" if then is None else "gone"))
        elif as_stored(then).value != as_stored(here).value:
            rest.append(_figure(key, then.value, here.value, state="untested"))
    found = [*judged.values(), *rest]
    return tuple(sorted(found, key=lambda one: (_ASPECTS.index(one.aspect), one.metric, one.scope != "all", one.scope)))


def _judged(finding: Finding) -> Figure:
    comparison = finding.comparison
    return Figure(
        metric=finding.metric,
        scope=finding.scope,
        aspect=comparison.aspect,
        old=comparison.baseline,
        new=comparison.observed,
        state=_STATES.get(finding.verdict, "untested"),
        beyond_noise=is_beyond_noise(comparison),
        finding=finding,
    )


def is_beyond_noise(comparison: Comparison) -> bool | None:
    """Whether a difference is more than the noise, either way; None where nobody can tell.

    Where the spread between sessions was only assumed, it must be more than sessions of the worst machines differ by; what the
    interval shows to be a difference and that does not is not within the noise either.
    """
    beyond = _is_shown_beyond(comparison)
    low, high = comparison.interval or (0.0, 0.0)
    return None if beyond is False and not low <= 0 <= high else beyond


def _is_shown_beyond(comparison: Comparison) -> bool | None:
    if comparison.unresolved is not None or comparison.drift is None or comparison.flags or comparison.contended:
        return None
    estimate = estimate_of(comparison)
    if estimate is not None:
        low, high = interval_of(doubt(estimate) if comparison.assumed else estimate)
        return low > 0 or high < 0
    if comparison.p_value is not None:
        return comparison.p_value <= ALPHA or (comparison.p_gain or 1.0) <= ALPHA
    if comparison.aspect is Aspect.MEMORY:
        low, high = comparison.interval or (comparison.drift, comparison.drift)
        return low > 0 or high < 0
    return None


def _figure(key: str, old: float | None, new: float | None, *, state: FigureState) -> Figure:
    metric, _, scope = key.partition("/")
    return Figure(metric=metric, scope=scope, aspect=SPECS[metric].aspect, old=old, new=new, state=state)


def _is_told(key: str) -> bool:
    """Whether it is a figure of the variant: the machine's own speed is none, and what is not known cannot be worded."""
    return metric_of(key) in SPECS and metric_of(key) not in YARDSTICKS


def _with_cases(entry: DiffEntry, old: QualityBaseline, new: QualityBaseline, findings: Sequence[Finding]) -> DiffEntry:
    shared = sorted(old.cases.keys() & new.cases.keys())
    otherwise = {case: "; ".join(_asked_otherwise(old.cases[case], new.cases[case])) for case in shared}
    gone = tuple(sorted(old.cases.keys() - new.cases.keys()))
    flips = {flip.case: flip for finding in findings for flip in finding.comparison.flips}
    return replace(
        entry,
        flips=tuple(sorted(flips.values(), key=lambda flip: (flip.is_correct, flip.case))),
        answers_changed=sum(answers_differ(old.cases[case], new.cases[case]) for case in shared),
        cases_added=tuple(sorted(new.cases.keys() - old.cases.keys())),
        cases_gone=gone,
        cases_gone_wrong=sum(old.cases[case].correct is not True for case in gone),
        cases_asked_otherwise={case: why for case, why in otherwise.items() if why},
    )


def _asked_otherwise(was: BaselineCase, now: BaselineCase) -> tuple[str, ...]:
    return describe_differences(question_of(was), question_of(now))


# --------------------------------------------------------------------------------------------------------- notes


def _notes(base: Snapshot, head: Snapshot) -> Iterable[str]:
    """What else changed beside the baselines themselves."""
    if "run" in (base.kind, head.kind):
        return
    was, now = ({trace.model: trace for trace in side.traces} for side in (base, head))
    for model in sorted({*was, *now}):
        old, new = was.get(model), now.get(model)
        if old is None or new is None:
            yield f"the reference trace of {model} is {'new' if old is None else 'gone'}"
        elif old.sha256 != new.sha256:
            cases = (
                f"{len(old.positions)} → {len(new.positions)} cases" if len(old.positions) != len(new.positions) else ""
            )
            why = "; ".join(filter(None, (*describe_differences(old.key, new.key), cases)))
            yield f"the reference trace of {model} was made anew{f': {why}' if why else ''}"
    before, after = ({(noise.model, noise.machine): noise for noise in side.noise} for side in (base, head))
    for key in sorted({*before, *after}):
        if before.get(key) != after.get(key):
            word = "new" if key not in before else "gone" if key not in after else "another one"
            yield f"the noise of machine {key[1]}, by which speeds are judged, is {word}"
