"""What a rule is, and the three things that it can say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from suite.records import Diagnosis, Health, Run, VariantResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a rule says of what it looked at."""

    status: Health
    evidence: str
    remedy: str = ""


def passed(evidence: str) -> Said:
    """It is as it should be; `evidence` says what was seen."""
    return Said(status=Health.PASS, evidence=evidence)


def found(evidence: str, remedy: str) -> Said:
    """It is not as it should be, and what to do about it."""
    return Said(status=Health.FINDING, evidence=evidence, remedy=remedy)


def cannot_be(reason: str) -> Said:
    """It cannot be so here, or the run does not tell."""
    return Said(status=Health.NOT_APPLICABLE, evidence=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One item of the check list. It looks at each variant, or at the whole run.

    Rules never raise, whatever a run lacks: one of an older version holds less.
    """

    id: str
    title: str
    of_variant: Callable[[Run, VariantResult], Said] | None = None
    of_run: Callable[[Run], Said] | None = None

    def tell(self, said: Said, variant: str | None) -> Diagnosis:
        """The item of `variant`, or of the whole run for None."""
        return Diagnosis(
            rule=self.id,
            title=self.title,
            variant=variant,
            status=said.status,
            evidence=said.evidence,
            remedy=said.remedy,
        )
