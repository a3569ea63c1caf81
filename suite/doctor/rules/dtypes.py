"""Weights that were left in a wider type than the model runs in."""

from __future__ import annotations

from suite.doctor.phrases import percent
from suite.doctor.reading import facts_of, shares
from suite.doctor.rule import Rule, Said, cannot_be, found, passed
from suite.records import Run, VariantResult

NOTABLE = 0.01
"""Share of the parameters in float32 that is more than norms and biases; a layer that was kept out on purpose is more too."""
HALVES = ("float16", "bfloat16")


def check_types(_: Run, result: VariantResult) -> Said:
    """A model that runs in half precision has no notable part in float32, and no two half types at once."""
    types = shares(facts_of(result).get("parameters by dtype"))
    total = sum(types.values())
    if not total:
        return cannot_be("the backend does not tell the types of its parameters")
    told = ", ".join(f"{percent(count / total)} {name}" for name, count in sorted(types.items(), key=lambda t: -t[1]))
    halves = [name for name in HALVES if types.get(name)]
    if len(halves) > 1:
        return found(
            f"float16 and bfloat16 in one model ({told}): each step converts between them", "load with one dtype"
        )
    left_over = types.get("float32", 0) / total
    if left_over > NOTABLE and len(types) > 1:
        return found(f"{percent(left_over)} of the parameters are float32 beside {told}", "load with one dtype")
    return passed(f"its parameters are {told}")


RULE = Rule(id="dtypes", title="one dtype, no float32 left-overs", of_variant=check_types)
