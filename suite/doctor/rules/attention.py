"""The attention implementation that was asked for is the one that runs."""

from __future__ import annotations

from suite.doctor.reading import facts_of
from suite.doctor.rule import Rule, Said, cannot_be, found, passed
from suite.records import Run, VariantResult


def check_attention(_: Run, result: VariantResult) -> Said:
    """No silent fallback: transformers' ``attention``, llama.cpp's ``flash_attn``."""
    facts, options = facts_of(result), result.variant.options
    if "attention" in facts:
        return _of_transformers(str(options.get("attention", "auto")), facts["attention"])
    if "flash attention" in facts:
        return _of_llama_cpp(bool(options.get("flash_attn", False)), facts["flash attention"])
    return cannot_be("the backend does not tell which implementation is in force")


def _of_transformers(asked: str, got: str) -> Said:
    if asked not in ("auto", got):
        needs = "install flash-attn" if asked.startswith("flash") else f"see why {asked} is not to be had"
        return found(f"asked {asked}, got {got}", f"{needs}, or ask for {got} to silence this")
    if got == "eager" and asked == "auto":
        return found(
            "eager attention is in force, which writes out the whole attention matrix",
            'attention = "sdpa", if the model has it',
        )
    return passed(f"{got} is in force" + ("" if asked == "auto" else ", as asked"))


def _of_llama_cpp(asked: bool, got: str) -> Said:
    if asked and got == "off":
        return found("asked flash_attn, got the plain path", "flash_attn = false, or a build and a model that have it")
    return passed(f"flash attention is {got}" + (", as asked" if (got == "on") is asked else ""))


RULE = Rule(id="attention", title="attention implementation", of_variant=check_attention)
