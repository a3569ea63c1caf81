"""Names lie: what a file is called, against the tensors in it."""

from __future__ import annotations

from suite.doctor.phrases import listed
from suite.doctor.rule import Rule, Said, cannot_be, found, passed
from suite.records import Run, VariantResult


def check_label(_: Run, result: VariantResult) -> Said:
    """Types of the tensors as read from the file."""
    artifact = result.artifact
    if artifact is None or not artifact.label:
        return cannot_be("its files carry no label")
    if artifact.inspection_error:
        return found(f"its file cannot be read whole: {artifact.inspection_error}", "fetch or make it again")
    if artifact.mismatch:
        return found(artifact.mismatch, "name it by what it holds, and compare it as that")
    counted = sorted(artifact.tensor_types.items(), key=lambda item: -item[1])
    types = listed([f"{count} {name}" for name, count in counted])
    return passed(f"labelled {artifact.label}, and most weights are of its type (tensors: {types or 'not told'})")


RULE = Rule(id="label", title="what the label promises", of_variant=check_label)
