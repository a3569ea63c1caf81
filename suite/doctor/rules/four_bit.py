"""Half the bytes to read, and yet slower: kernels of a type can lack what those of another have."""

from __future__ import annotations

import re

from suite.doctor.pairing import Ratio, compare_gaps
from suite.doctor.phrases import listed
from suite.doctor.rule import Rule, Said, cannot_be, found, passed
from suite.records import Run, VariantResult

FOUR = re.compile(r"(?:ud-)?i?q4.*|mxfp4.*|nvfp4|nf4|fp4|int4|awq.*|gptq.*")
EIGHT = re.compile(r"(?:ud-)?q8.*|int8|fp8.*")


def check_order(run: Run, result: VariantResult) -> Said:
    """Each 4-bit variant against each 8-bit one of the same backend, launch by launch."""
    if not _is(result, FOUR):
        return cannot_be("not a 4-bit variant")
    others = [r for r in run.variants if _is(r, EIGHT) and r.variant.backend == result.variant.backend]
    compared = [(r, ratio) for r in others if (ratio := compare_gaps(run, result, r)) is not None]
    if not compared:
        return cannot_be("no 8-bit variant of the same backend was timed beside it in two launches or more")
    slower = [(r, ratio) for r, ratio in compared if ratio.is_below_one]
    if slower:
        fastest = min(slower, key=lambda pair: pair[1].value)[0].variant.name
        return found(_tell(slower, result), f"take {fastest} where its memory fits: it is faster here")
    return passed(_tell(compared, result))


def _is(result: VariantResult, pattern: re.Pattern[str]) -> bool:
    """By what the variant is called: its declared quantization, the recipe, or the label of its file."""
    declared, option = result.variant, result.variant.options.get("quantization")
    label = result.artifact.label if result.artifact else None
    name = next((str(n) for n in (option, declared.quantization, declared.make, label) if n), "")
    return pattern.fullmatch(name.lower()) is not None


def _tell(pairs: list[tuple[VariantResult, Ratio]], result: VariantResult) -> str:
    told = listed([f"{ratio} the speed of {other.variant.name}" for other, ratio in pairs])
    bpw = result.artifact.bpw if result.artifact else None
    return f"decodes at {told}" + (f"; it holds {bpw:.1f} bits a weight" if bpw else "")


RULE = Rule(id="four-bit", title="4-bit against 8-bit", of_variant=check_order)
