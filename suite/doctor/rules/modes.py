"""Dropout and bookkeeping for gradients have no place in an answer."""

from __future__ import annotations

from suite.doctor.reading import facts_of, seen_in
from suite.doctor.rule import Rule, Said, cannot_be, found, passed
from suite.records import Run, VariantResult


def check_modes(_: Run, result: VariantResult) -> Said:
    """Whether the modules are in eval mode, and the forward pass ran without gradients."""
    eval_mode, inference = facts_of(result).get("eval mode"), seen_in(result).get("inference mode")
    if eval_mode == "no":
        return found(
            "modules are in training mode: dropout may act, and answers vary", "call model.eval() after loading"
        )
    if inference == "no":
        return found(
            "the forward pass kept what gradients need: it costs time and memory",
            "run it under torch.inference_mode()",
        )
    if eval_mode is None:
        return cannot_be("the backend tells of no such modes")
    also = ", and its logits were made under inference mode" if inference == "yes" else ""
    return passed(f"all modules are in eval mode{also}")


RULE = Rule(id="modes", title="eval and inference mode", of_variant=check_modes)
