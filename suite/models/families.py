"""What a quantization label promises, against the tensors that are there."""

from __future__ import annotations

import re
from collections.abc import Mapping

_K_QUANT = re.compile(r"(?:UD-)?(Q\d_K)(?:_.*)?")
_MIXED_IQ = re.compile(r"(?:UD-)?(IQ[123]_).*")
_NOTABLE = 0.05
"""Types that hold less of the weights than this are left out of the sentence."""


def named_family(label: str, types: Mapping[str, int]) -> frozenset[str]:
    """The storage types that `label` names: ``Q4_K_M`` → Q4_K; ``IQ2_M`` → any IQ2 type of `types`."""
    upper = label.upper()
    if k_quant := _K_QUANT.fullmatch(upper):
        return frozenset({k_quant[1]})
    if mixed := _MIXED_IQ.fullmatch(upper):
        return frozenset(name for name in types if name.startswith(mixed[1])) or frozenset({upper})
    return frozenset({upper.removeprefix("UD-").removesuffix("_MOE")})


def describe_mismatch(label: str, parameters: Mapping[str, int], bpw: float) -> str | None:
    """A sentence when most weights are of another type than `label` names; None when the label holds.

    `parameters` is the number of weights by storage type. The label holds when no other type has more weights than the
    types that it names: a real Q4_K_M mixes in Q6_K, a real Q2_K has a good part of Q3_K.
    """
    total = sum(parameters.values())
    family = named_family(label, parameters)
    named = sum(parameters.get(name, 0) for name in family)
    others = sorted(((count, name) for name, count in parameters.items() if name not in family), reverse=True)
    if total == 0 or not others or named >= others[0][0]:
        return None
    parts = [f"{count / total:.0%} {name}" for count, name in others[:2] if count / total >= _NOTABLE]
    first, *rest = (part.replace("%", " %") for part in parts)
    stored = ", ".join([first.replace(" % ", " % of its weights are "), *rest])
    share = f"{named / total:.0%}".replace("%", " %") if named else "none"
    return f"labelled {label}, but {stored}, {share} {'/'.join(sorted(family))} ({bpw:.1f} bits/weight)"
