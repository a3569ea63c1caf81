"""What a rule says of a run."""

from __future__ import annotations

from suite.doctor import examine
from suite.records import Diagnosis, Health, Run


def ask(rule: str, run: Run, variant: str | None = None) -> Diagnosis:
    """The one item of `rule` about `variant` (None: the whole run)."""
    return next(item for item in examine(run) if (item.rule, item.variant) == (rule, variant))


def check_found(rule: str, run: Run, variant: str | None, says: str) -> None:
    """Assert that `rule` found it in `variant` and in no other, `says` so, and has a remedy."""
    item = ask(rule, run, variant)
    assert item.status is Health.FINDING, item
    assert says in item.evidence
    assert item.remedy
    others = [i for i in examine(run) if i.status is Health.FINDING and i.rule == rule and i.variant != variant]
    assert not others
