"""Bytes of the KV cache, computed: the part of memory that weights do not explain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from suite.errors import VariantError
from suite.records import AttentionLayers

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
class KvLayer:
    """What one layer keeps of each token, and what looking back on one costs."""

    keys: int
    """Elements of the keys of one token, all KV heads; of a compressed cache (MLA) those of the latent vector."""
    values: int
    """Elements of its values; 0 where they are computed from the same latent vector."""
    products: int
    """Multiplications for each token that is attended to: heads × (key size + value size)."""
    window: int | None = None
    """Tokens that are looked back on at most; None for all."""
    keeps: bool = True
    """False where the keys and values of an earlier layer are used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KvShape:
    """What decides the size of a KV cache: the layers with attention, in their order. Others keep nothing that grows."""

    layers: tuple[KvLayer, ...]


def usual_layer(
    *, heads: int, kv_heads: int, size_k: int, size_v: int, window: int | None = None, keeps: bool = True
) -> KvLayer:
    """A layer of `heads` query heads that share `kv_heads` heads of keys and values."""
    return KvLayer(
        keys=kv_heads * size_k,
        values=kv_heads * size_v,
        products=heads * (size_k + size_v),
        window=window,
        keeps=keeps,
    )


def latent_layer(*, heads: int, rank: int, rope: int, window: int | None = None) -> KvLayer:
    """A layer of multi-head latent attention: a latent vector of `rank`, and a key of `rope` that all heads share.

    Keys and values are not expanded: each head looks at the latent vector itself, once as key and once as value.
    Source: DeepSeek-V2, arXiv:2405.04434, section 2.1.
    """
    return KvLayer(keys=rank + rope, values=0, products=heads * (2 * rank + rope), window=window)


def kv_cache_bytes(shape: KvShape, *, n_ctx: int, type_k: str = "f16", type_v: str = "f16") -> int:
    """Bytes that keys and values of `n_ctx` tokens take, with the block sizes of quantized types.

    ``Σ over layers that keep any: min(n_ctx, window) × (bytes(keys, type_k) + bytes(values, type_v))``, which for equal
    layers without windows is 2 × layers × KV heads × head size × bytes per element × context. A backend that keeps the
    whole context for a layer with a window takes more. Raises VariantError for an unknown type, or for a row that is no
    multiple of the type's block, which llama.cpp refuses too.
    """
    return sum(
        (n_ctx if layer.window is None else min(n_ctx, layer.window)) * _token_bytes(layer, type_k, type_v)
        for layer in shape.layers
        if layer.keeps
    )


def attention_layers(shape: KvShape, *, type_k: str, type_v: str) -> tuple[AttentionLayers, ...]:
    """The layers, those that are alike together. Raises what `kv_cache_bytes` raises."""
    return tuple(
        AttentionLayers(
            layers=count,
            kv_bytes=_token_bytes(layer, type_k, type_v),
            attended_flop=2 * layer.products,
            window=layer.window,
            keeps=layer.keeps,
        )
        for layer, count in Counter(shape.layers).items()
    )


def _token_bytes(layer: KvLayer, type_k: str, type_v: str) -> int:
    return _row_bytes(layer.keys, type_k) + _row_bytes(layer.values, type_v)


def _row_bytes(elements: int, kind: str) -> int:
    if kind not in BLOCKS:
        raise VariantError(f"KV-cache type '{kind}' is not known; known: {', '.join(BLOCKS)}")
    block, size = BLOCKS[kind]
    if elements % block:
        raise VariantError(f"KV-cache type '{kind}' needs rows of a multiple of {block}; these have {elements}")
    return elements // block * size
