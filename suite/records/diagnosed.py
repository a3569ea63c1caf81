"""What the doctor says of a run: one item for each rule and variant, with its evidence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Health(StrEnum):
    """How an item of the check list came out."""

    FINDING = "FINDING"
    PASS = "PASS"
    NOT_APPLICABLE = "NOT_APPLICABLE"
    """It cannot be so here, or the run does not tell; the evidence says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """One item of the check list. It explains; it is no verdict and fails no run."""

    rule: str
    """Identifier, the same in every version: ``kv-cache``."""
    title: str
    """What was looked at, for people."""
    variant: str | None
    """None: the whole run."""
    status: Health
    evidence: str
    """One sentence, with its numbers."""
    remedy: str = ""
    """What to do; only of a FINDING."""
