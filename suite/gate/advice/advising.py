"""From a stored run and what is asked to advice: who satisfies it, whom to take, who is nearest, what stands beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from suite.errors import UsageError, nearest
from suite.gate.advice.answering import Answer, Held, hold
from suite.gate.advice.asked import Asked, Name
from suite.gate.advice.caveats import caveats_of, caveats_of_run, failed_gates, why_excluded
from suite.gate.advice.choosing import Choice, choose, order_by
from suite.gate.advice.estimates import Estimate, find_estimates
from suite.gate.advice.fronts import Front, find_front
from suite.records import Run, VariantResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Advised:
    """What is to be said of one variant."""

    result: VariantResult
    estimates: Mapping[Name, Estimate]
    held: tuple[Held, ...]
    """One for each limit."""
    answer: Answer | None
    """Fails if one limit does, cannot tell if one cannot be told; None without limits, and where it is excluded."""
    excluded: str = ""
    """Why it is not advised whatever it reached."""
    caveats: tuple[str, ...] = ()

    @property
    def variant(self) -> str:
        """Its name."""
        return self.result.variant.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What a run has to say to what is asked."""

    run: Run
    asked: Asked
    scenario: str | None
    """Whose speeds count."""
    variants: tuple[Advised, ...]
    """All of the run: what is taken or nearest first, then what satisfies, cannot be told, fails, is excluded."""
    choice: Choice | None
    """None where nothing satisfies everything."""
    nearest: str | None
    """Where nothing does, the variant with the least that is in the way."""
    front: Front
    caveats: tuple[str, ...]

    def of(self, answer: Answer) -> tuple[Advised, ...]:
        """The variants with that answer, in order."""
        return tuple(one for one in self.variants if one.answer is answer)


def advise(run: Run, asked: Asked) -> Advice:
    """Hold every variant of a run against what is asked. Pure: the same run and question give the same advice.

    Raises UsageError for a scenario that the run does not have.
    """
    scenario = _scenario(run, asked.scenario)
    estimates = find_estimates(run, scenario)
    advised = [_advise_one(run, result, estimates[result.variant.name], asked, scenario) for result in run.variants]
    candidates = {one.variant: one.estimates for one in advised if not one.excluded}
    satisfying = [one.variant for one in advised if one.answer is Answer.SATISFIES]
    failing_gates = frozenset(name for name in satisfying if failed_gates(run, name))
    choice = choose({name: candidates[name] for name in satisfying}, asked.preference, failing_gates)
    nearby = None if choice else _nearest(advised)
    return Advice(
        run=run,
        asked=asked,
        scenario=scenario,
        variants=_in_order(advised, choice.variant if choice else nearby, asked),
        choice=choice,
        nearest=nearby,
        front=find_front(candidates),
        caveats=tuple(caveats_of_run(run, asked.machine, scenario, absolute=_is_absolute(asked))),
    )


def _scenario(run: Run, wanted: str | None) -> str | None:
    names = [scenario.name for scenario in run.matrix.scenarios]
    if wanted is None:
        return names[0] if names else None
    if wanted not in names:
        raise UsageError(f"--scenario: run {run.id} has no '{wanted}'; {nearest(wanted, names)}")
    return wanted


def _is_absolute(asked: Asked) -> bool:
    return asked.of("decode") is not None or asked.of("ttft") is not None


def _advise_one(
    run: Run, result: VariantResult, estimates: Mapping[Name, Estimate], asked: Asked, scenario: str | None
) -> Advised:
    excluded = why_excluded(result)
    held = () if excluded else tuple(_hold_all(run, result, estimates, asked))
    return Advised(
        result=result,
        estimates=estimates,
        held=held,
        answer=_sum_up(held) if held else None,
        excluded=excluded,
        caveats=() if excluded else tuple(caveats_of(run, result, scenario)),
    )


def _hold_all(run: Run, result: VariantResult, estimates: Mapping[Name, Estimate], asked: Asked) -> list[Held]:
    names = _together(run, result.variant.name)
    return [
        hold(
            estimates[limit.quantity.name],
            limit,
            names=names,
            command=asked.command,
        )
        for limit in asked.limits
    ]


def _together(run: Run, variant: str) -> tuple[str, ...]:
    """What is measured again with a variant: its reference; all of the matrix where the run does not know which that is."""
    reference = run.matrix.reference
    if reference is None:
        return ()
    return (variant,) if reference.name == variant else (reference.name, variant)


def _sum_up(held: Sequence[Held]) -> Answer:
    answers = {one.answer for one in held}
    return next(answer for answer in (Answer.FAILS, Answer.CANNOT_TELL, Answer.SATISFIES) if answer in answers)


def _nearest(advised: Sequence[Advised]) -> str | None:
    """Fewest limits that fail, then fewest that are not known at all, then the least that one is missed by.

    What is known in nothing that was asked is near to nothing.
    """
    near = [one for one in advised if any(held.off is not None for held in one.held)]
    return min(near, key=_distance).variant if near else None


def _distance(one: Advised) -> tuple[int, int, float]:
    failed = sum(held.answer is Answer.FAILS for held in one.held)
    unknown = sum(held.off is None for held in one.held)
    return failed, unknown, max(_shortfall(held) for held in one.held)


_FINE: Mapping[Name, float] = {"loss": 1.0, "kld": 0.001}
"""What a limit that is less than it is taken as, so that being off can be told as a share of it."""


def _shortfall(held: Held) -> float:
    """By which share of the limit the estimate misses it; 0 or less where it does not."""
    limit = max(held.limit.value, _FINE.get(held.limit.quantity.name, 0.0))
    return 0.0 if held.off is None else held.off / limit


def _in_order(advised: Sequence[Advised], first: str | None, asked: Asked) -> tuple[Advised, ...]:
    """What is taken or nearest, then by answer, then by what decides."""
    answers: list[Answer | None] = [Answer.SATISFIES, Answer.CANNOT_TELL, Answer.FAILS, None]
    ranks = order_by({one.variant: one.estimates for one in advised}, asked.preference)

    def key(one: Advised) -> tuple[bool, bool, int, int]:
        return one.variant != first, bool(one.excluded), answers.index(one.answer), ranks[one.variant]

    return tuple(sorted(advised, key=key))
