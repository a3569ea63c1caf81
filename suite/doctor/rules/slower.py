"""Quantized, and slower than what it was made from."""

from __future__ import annotations

from suite.doctor.pairing import compare_gaps
from suite.doctor.rule import Rule, Said, cannot_be, found, passed
from suite.records import Run, VariantResult

REMEDY = "look whether its kernels are made for this device (README of the backend), or keep the reference here"


def check_speedup(run: Run, result: VariantResult) -> Said:
    """Decode speed over the reference's, measured side by side in this run."""
    reference = next((r for r in run.variants if r.variant.reference), None)
    if reference is None or result is reference:
        return cannot_be("it is the reference" if result is reference else "the run holds no reference")
    ratio = compare_gaps(run, result, reference)
    if ratio is None:
        return cannot_be("it was not timed beside the reference in two launches or more")
    told = f"decodes at {ratio} the speed of {reference.variant.name}"
    return found(told, REMEDY) if ratio.is_below_one else passed(told)


RULE = Rule(id="slower", title="slower than the reference", of_variant=check_speedup)
