"""What goes wrong with one variant, as its failure."""

from __future__ import annotations

from suite.errors import QuantdriftError, Unavailable, VariantInvalid
from suite.records import Variant, VariantFailure, Verdict


class VariantFailed(QuantdriftError):
    """A variant cannot be measured. `first` is True for the request that found out: the others only repeat it."""

    def __init__(self, failure: VariantFailure, *, first: bool) -> None:
        super().__init__(failure.reason)
        self.failure = failure
        self.first = first


def failure_of(variant: Variant, fault: QuantdriftError) -> VariantFailure:
    """The record of a failure: the first line is its reason, which leaves out the variant's name, the others its detail."""
    reason, _, detail = str(fault).removeprefix(f"variants.{variant.name}: ").partition("\n")
    return VariantFailure(variant=variant.name, verdict=verdict_of(fault), reason=reason, detail=detail)


def verdict_of(fault: QuantdriftError) -> Verdict:
    """What a failure says about the variant."""
    match fault:
        case Unavailable():
            return Verdict.NOT_MEASURED
        case VariantInvalid():
            return Verdict.INVALID
        case _:
            return Verdict.ERROR
