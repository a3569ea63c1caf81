"""Why is it slow, and is it what it says that it is: a check list, run over a stored run.

A rule is one small file in `suite.doctor.rules`: a pure function of a `Run`, so that a run of another day or machine can be
looked at without a model. It gives evidence for a PASS too, and says NOT_APPLICABLE where it cannot be so or nobody can tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from suite.doctor.rule import Rule, Said, cannot_be
from suite.doctor.rules import RULES
from suite.records import Diagnosis, Health, Run

__all__ = ["RULES", "examine", "findings"]


def examine(run: Run, variant: str | None = None) -> tuple[Diagnosis, ...]:
    """Every item of the check list, in the order of the rules, then of the variants.

    `variant` leaves out the others; what concerns the whole run stays.
    """
    return tuple(
        item for rule in RULES for item in _apply(rule, run) if variant is None or item.variant in (None, variant)
    )


def findings(run: Run) -> tuple[Diagnosis, ...]:
    """What the check list found."""
    return tuple(item for item in examine(run) if item.status is Health.FINDING)


def _apply(rule: Rule, run: Run) -> Iterator[Diagnosis]:
    if rule.of_run is not None:
        yield rule.tell(_guarded(rule.of_run, run), None)
    if rule.of_variant is not None:
        for result in run.variants:
            yield rule.tell(_guarded(rule.of_variant, run, result), result.variant.name)


def _guarded(judge: Callable[..., Said], *of: object) -> Said:
    """What a rule says, or that it could not: a check list must not cost anybody the run that it looks at."""
    try:
        return judge(*of)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as fault:
        return cannot_be(f"the rule failed on this run ({type(fault).__name__}); please report it")
