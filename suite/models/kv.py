"""Bytes of the KV cache, computed: the part of memory that weights do not explain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from suite.errors import LoadError, VariantError
from suite.models.files import read_json
from suite.models.gguf_header import GgufHeader, read_gguf_header

BLOCKS: Mapping[str, tuple[int, int]] = {
    "f32": (1, 4),
    "f16": (1, 2),
    "bf16": (1, 2),
    "q8_0": (32, 34),
    "q5_1": (32, 24),
    "q5_0": (32, 22),
    "q4_1": (32, 20),
    "q4_0": (32, 18),
    "iq4_nl": (32, 18),
    "float32": (1, 4),
    "float16": (1, 2),
    "bfloat16": (1, 2),
}
"""Elements and bytes of a block of each type, ggml's and torch's names (``ggml-common.h``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KvShape:
    """What decides the size of a KV cache."""

    kv_heads: tuple[int, ...]
    """KV heads of each layer; 0 for a layer that keeps none."""
    head_size_k: int
    head_size_v: int


def kv_cache_bytes(shape: KvShape, *, n_ctx: int, type_k: str = "f16", type_v: str = "f16") -> int:
    """Bytes that keys and values of `n_ctx` tokens take, with the block sizes of quantized types.

    ``n_ctx × Σ over layers (bytes(kv_heads × head_size_k, type_k) + bytes(kv_heads × head_size_v, type_v))``, which for
    equal sizes and types is 2 × layers × KV heads × head size × bytes per element × context. A backend that keeps
    only a window for some layers (sliding attention) takes less. Raises VariantError for an unknown type, or for
    a row that is no multiple of the type's block, which llama.cpp refuses too.
    """
    rows = sum(
        _row_bytes(heads * shape.head_size_k, type_k) + _row_bytes(heads * shape.head_size_v, type_v)
        for heads in shape.kv_heads
    )
    return n_ctx * rows


def kv_shape(paths: Sequence[Path]) -> KvShape | None:
    """The shape for the model in `paths`, from GGUF metadata or the ``config.json`` beside safetensors.

    None when it is not told, or when the model keeps a compressed cache (MLA), whose size this does not compute.
    """
    if not paths:
        return None
    if paths[0].suffix.lower() != ".gguf":
        return shape_of_config(read_json(paths[0].parent / "config.json"))
    try:
        return shape_of_gguf(read_gguf_header(paths[0]))
    except (LoadError, OSError):
        return None


def shape_of_gguf(header: GgufHeader) -> KvShape | None:
    """The shape that GGUF metadata tells, or None."""
    architecture = header.text("general.architecture")

    def integer(key: str) -> int | None:
        return header.integer(f"{architecture}.{key}")

    layers, width = integer("block_count"), integer("embedding_length")
    heads = _per_layer(header.metadata.get(f"{architecture}.attention.head_count"), layers)
    kv_heads = _per_layer(header.metadata.get(f"{architecture}.attention.head_count_kv"), layers) or heads
    if not heads or not kv_heads or integer("attention.kv_lora_rank"):
        return None
    usual = width // max(heads) if width and max(heads) else 0
    size_k, size_v = integer("attention.key_length") or usual, integer("attention.value_length") or usual
    return KvShape(kv_heads=kv_heads, head_size_k=size_k, head_size_v=size_v) if size_k and size_v else None


def shape_of_config(config: Mapping[str, object]) -> KvShape | None:
    """The shape that a transformers ``config.json`` tells, or None."""
    nested = config.get("text_config")
    if isinstance(nested, Mapping):
        config = nested
    layers, heads = _integer(config, "num_hidden_layers"), _integer(config, "num_attention_heads")
    kv_heads = _integer(config, "num_key_value_heads") or heads
    width = _integer(config, "hidden_size")
    size = _integer(config, "head_dim") or (width // heads if width and heads else None)
    if layers is None or kv_heads is None or size is None or _integer(config, "kv_lora_rank"):
        return None
    return KvShape(kv_heads=(kv_heads,) * layers, head_size_k=size, head_size_v=size)


def _row_bytes(elements: int, kind: str) -> int:
    if kind not in BLOCKS:
        raise VariantError(f"KV-cache type '{kind}' is not known; known: {', '.join(BLOCKS)}")
    block, size = BLOCKS[kind]
    if elements % block:
        raise VariantError(f"KV-cache type '{kind}' needs rows of a multiple of {block}; these have {elements}")
    return elements // block * size


def _per_layer(value: object, layers: int | None) -> tuple[int, ...] | None:
    """A count that is one number for all the layers, or an array with one for each."""
    if not layers or isinstance(value, bool):
        return None
    if isinstance(value, int):
        return (value,) * layers
    if isinstance(value, tuple) and len(value) == layers and all(isinstance(count, int) for count in value):
        return value
    return None


def _integer(config: Mapping[str, object], key: str) -> int | None:
    value = config.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
