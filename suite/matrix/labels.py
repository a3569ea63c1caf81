"""Quantization labels as people write them into file names: ``Q4_K_M``, ``UD-Q2_K_XL``, ``BF16``."""

from __future__ import annotations

import re

_LABEL = re.compile(
    r"(?<![A-Za-z0-9])"
    r"(?P<label>(?:UD-)?"  # dynamic mixes are told apart from plain ones
    r"(?:I?Q\d_(?:K(?:_(?:XXS|XS|S|M|L|XL))?|[01]|NL|XXS|XS|S|M|L|XL)"
    r"|MXFP4(?:_MOE)?|NVFP4|TQ[12]_0|BF16|F(?:P)?(?:16|32)))"
    r"(?![A-Za-z0-9])",
    re.IGNORECASE,
)


def find_label(name: str) -> str | None:
    """The last quantization label in a file name or phrase, upper case; None when there is none.

    >>> find_label("Llama-3.1-8B-Instruct-q4_k_m-00001-of-00002.gguf")
    'Q4_K_M'
    """
    found = [match["label"].upper() for match in _LABEL.finditer(name)]
    return found[-1].replace("FP16", "F16").replace("FP32", "F32") if found else None
