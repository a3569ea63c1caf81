"""What changed in how is judged: tolerances, budgets and the protocol of the matrix file, and which way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from suite.gate.policy import merge_policy, metric_of, tolerance_for
from suite.records import DeclaredMatrix, Gate, Protocol, Tolerance, ToleranceChange

_STRICTEST_FIRST = (Gate.BLOCK, Gate.WARN, Gate.INFO)
_LOOSER_LESS = ("launches", "max_launches", "rounds", "retries")
"""Settings of the protocol of which less finds less."""
_LOOSER_MORE = ("max_pressure", "max_steal")
_AT_LEAST = frozenset({"speedup"})
"""Budgets that say how much it must be; all others say how much it may be."""


def compare_policies(was: DeclaredMatrix | None, now: DeclaredMatrix | None) -> tuple[ToleranceChange, ...]:
    """Every setting that differs, loosened ones first. Nothing where a side has no matrix file to go by.

    Tolerances are compared as they are in force, with defaults filled in: taking an override out may loosen too. Raises
    MatrixFileError when one of them cannot be merged with the defaults.
    """
    if was is None or now is None:
        return ()
    found = [*_tolerances(was, now), *_budgets(was, now), *_protocol(was.protocol, now.protocol)]
    return tuple(sorted(found, key=lambda change: (not change.loosened, change.key)))


def _tolerances(was: DeclaredMatrix, now: DeclaredMatrix) -> Iterator[ToleranceChange]:
    old, new = merge_policy(was.policy, where=was.file), merge_policy(now.policy, where=now.file)
    for key in sorted({*old, *new}):
        metric, _, scope = key.partition("/")
        then, here = tolerance_for(old, metric, scope), tolerance_for(new, metric, scope)
        if then != here and not _is_said_before(key, old, new):
            loosened = _is_looser(then, here)
            yield ToleranceChange(key=f"policy.{key}", old=_worded(then), new=_worded(here), loosened=loosened)


def _is_said_before(key: str, old: Mapping[str, Tolerance], new: Mapping[str, Tolerance]) -> bool:
    """Whether it is a scope that on both sides only has what its metric has, which is told."""
    return "/" in key and all(
        policy.get(key, policy.get(metric_of(key))) == policy.get(metric_of(key)) for policy in (old, new)
    )


def _is_looser(was: Tolerance, now: Tolerance) -> bool:
    """Whether anything of it lets more pass, whatever else became tighter: the larger part of a tolerance counts."""
    beside = (was.relative if was.duet is None else was.duet, now.relative if now.duet is None else now.duet)
    return (
        now.relative > was.relative
        or now.absolute > was.absolute
        or beside[1] > beside[0]
        or _STRICTEST_FIRST.index(now.gate) > _STRICTEST_FIRST.index(was.gate)
    )


def _worded(tolerance: Tolerance) -> str:
    parts = [f"{100 * tolerance.relative:.3g} %"] if tolerance.relative or not tolerance.absolute else []
    parts += [f"{tolerance.absolute:.4g} absolute"] if tolerance.absolute else []
    parts += [f"{100 * tolerance.duet:.3g} % side by side"] if tolerance.duet is not None else []
    return f"{', '.join(parts)} ({tolerance.gate})"


def _budgets(was: DeclaredMatrix, now: DeclaredMatrix) -> Iterator[ToleranceChange]:
    for key in sorted({*was.budgets, *now.budgets}):
        old, new = was.budgets.get(key), now.budgets.get(key)
        if old == new:
            continue
        told = [f"{budget.limit:.4g} ({budget.gate})" if budget else "none" for budget in (old, new)]
        if old is None or new is None:
            loosened = new is None
        else:
            more = old.limit > new.limit if metric_of(key) in _AT_LEAST else new.limit > old.limit
            loosened = more or _STRICTEST_FIRST.index(new.gate) > _STRICTEST_FIRST.index(old.gate)
        yield ToleranceChange(key=f"budget.{key}", old=told[0], new=told[1], loosened=loosened)


def _protocol(was: Protocol, now: Protocol) -> Iterator[ToleranceChange]:
    for name in (*_LOOSER_LESS, *_LOOSER_MORE, "pin", "warmup", "max_warmup", "resident"):
        old, new = getattr(was, name), getattr(now, name)
        if old == new:
            continue
        loosened = (
            (name in _LOOSER_LESS and new < old)
            or (name in _LOOSER_MORE and new > old)
            or (name == "pin" and old is True)
        )
        told = [str(value).lower() for value in (old, new)]
        yield ToleranceChange(key=f"protocol.{name}", old=told[0], new=told[1], loosened=loosened)
