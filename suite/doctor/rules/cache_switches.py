"""Settings of a model that turn its KV cache off without a word."""

from __future__ import annotations

from suite.doctor.reading import facts_of
from suite.doctor.rule import Rule, Said, cannot_be, found, passed
from suite.records import Run, VariantResult


def check_switches(_: Run, result: VariantResult) -> Said:
    """Gradient checkpointing switches the cache off; ``use_cache`` does so for whoever does not say otherwise."""
    facts = facts_of(result)
    if facts.get("gradient checkpointing") == "yes":
        return found(
            "gradient checkpointing is on: it recomputes activations, and turns the KV cache off",
            "model.gradient_checkpointing_disable()",
        )
    if facts.get("use_cache") == "no":
        return found(
            "config.use_cache is false: this suite asks for the cache all the same, other programs would run without it",
            'set "use_cache": true in config.json',
        )
    if "use_cache" not in facts:
        return cannot_be("the backend has no such settings")
    return passed("config.use_cache is on, gradient checkpointing is off")


RULE = Rule(id="cache-switches", title="KV-cache settings", of_variant=check_switches)
