"""Padding wastes work in batches of unequal lengths."""

from __future__ import annotations

from suite.doctor.rule import Rule, Said, cannot_be
from suite.records import Run


def check_padding(_: Run) -> Said:
    """There is nothing to pad here."""
    return cannot_be(
        "answers are given in batches of one, and prompts that are timed together are equally long: nothing is padded"
    )


RULE = Rule(id="padding", title="padding waste", of_run=check_padding)
