"""INT8 (LLM.int8), NF4 and FP4 by bitsandbytes, through transformers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from suite.backends.base import FOOTPRINT
from suite.backends.transformers import BACKEND as TRANSFORMERS
from suite.backends.transformers import Attention, DType, TransformersModel, load_model


@dataclass(frozen=True, slots=True, kw_only=True)
class BitsAndBytesOptions:
    """Options of the ``bitsandbytes`` backend."""

    quantization: Literal["int8", "nf4", "fp4"] = "int8"
    threshold: float = 6.0
    """INT8: activations beyond it are computed in `dtype` (the outlier threshold of LLM.int8)."""
    double_quant: bool = False
    """4-bit: quantize the quantization constants too."""
    compute_dtype: Literal["float16", "bfloat16", "float32"] = "float16"
    """4-bit: type of the products."""
    dtype: DType = "float16"
    """Type of what is not quantized."""
    device: str = "auto"
    attention: Attention = "auto"
    n_threads: int | None = None
    trust_remote_code: bool = False


class BitsAndBytes:
    """The ``bitsandbytes`` backend."""

    options: ClassVar[type[Any]] = BitsAndBytesOptions
    requires: ClassVar[tuple[str, ...]] = ("torch", "transformers", "bitsandbytes", "accelerate")
    weights_format: ClassVar[Literal["gguf", "safetensors", "none"]] = "safetensors"
    makes: ClassVar[tuple[str, ...]] = TRANSFORMERS.makes
    makers: ClassVar[tuple[str, ...]] = TRANSFORMERS.makers

    def load(self, weights: Path | None, options: BitsAndBytesOptions, prompt_format: str) -> TransformersModel:
        """Load a directory of safetensors, quantizing on the way."""
        import bitsandbytes
        import torch
        from transformers import BitsAndBytesConfig

        if options.quantization == "int8":
            config = BitsAndBytesConfig(load_in_8bit=True, llm_int8_threshold=options.threshold)
        else:
            config = BitsAndBytesConfig(
                load_in_4bit=True,
                bnb_4bit_quant_type=options.quantization,
                bnb_4bit_use_double_quant=options.double_quant,
                bnb_4bit_compute_dtype=getattr(torch, options.compute_dtype),
            )
        model = load_model(weights, options, prompt_format, quantization=config)
        model.facts["bitsandbytes"] = bitsandbytes.__version__
        model.facts[FOOTPRINT] = str(model.footprint_bytes)
        return model

    def make(self, recipe: str, source: Path, destination: Path) -> None:
        """Make the unquantized weights that it then quantizes while it loads."""
        TRANSFORMERS.make(recipe, source, destination)


BACKEND = BitsAndBytes()
