"""Padding wastes work: what a batch evaluates beyond the tokens of its prompts."""

from __future__ import annotations

from suite.doctor.phrases import percent
from suite.doctor.reading import samples_of
from suite.doctor.rule import Rule, Said, cannot_be, found, passed
from suite.records import Run, VariantResult

NOTABLE = 0.05
"""Share of what a batch evaluates that may be padding."""


def check_padding(run: Run, result: VariantResult) -> Said:
    """Evaluated against prompt tokens of sequences that were timed together; those that were rejected for it count too."""
    together = [s for s in samples_of(run, result, clean=False) if s.batch > 1 and s.evaluated_tokens > 0]
    if not together:
        return cannot_be("no sequences were timed together, and answers are given in batches of one")
    worst = max(together, key=lambda sample: 1 - sample.prompt_tokens / sample.evaluated_tokens)
    share = 1 - worst.prompt_tokens / worst.evaluated_tokens
    told = f"{worst.evaluated_tokens} tokens were evaluated for {worst.batch} prompts of {worst.prompt_tokens} together"
    if share > NOTABLE:
        return found(
            f"{told}: {percent(share)} is padding",
            "do not pad to a multiple or to the context: prompts that are timed together are equally long",
        )
    return passed(told)


RULE = Rule(id="padding", title="padding waste", of_variant=check_padding)
