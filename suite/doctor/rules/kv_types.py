"""The types of the KV cache that were asked for are those that were allocated."""

from __future__ import annotations

from suite.doctor.reading import facts_of
from suite.doctor.rule import Rule, Said, cannot_be, found, passed
from suite.records import Run, VariantResult


def check_types(_: Run, result: VariantResult) -> Said:
    """As the backend printed them when it allocated the cache."""
    got, options = facts_of(result).get("KV types"), result.variant.options
    if got is None:
        return cannot_be("the backend does not tell the types of its KV cache")
    asked = f"{options.get('type_k', 'f16')} {options.get('type_v', 'f16')}"
    if got != asked:
        return found(f"asked for K and V of {asked}, got {got}", f"type_k and type_v as they are: {got}")
    return passed(f"K and V are {got}, as asked")


RULE = Rule(id="kv-types", title="KV-cache types", of_variant=check_types)
