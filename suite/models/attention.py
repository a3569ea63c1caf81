"""The attention of a model, layer by layer, as GGUF metadata or a ``config.json`` tells it.

None where it is not told, never a guess: sliding windows, layers that use the keys and values of another one, layers
without attention, and compressed caches (MLA) all change how much a token keeps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from suite.errors import LoadError
from suite.models.files import read_json
from suite.models.gguf_header import GgufHeader, read_gguf_header
from suite.models.kv import KvLayer, KvShape, latent_layer, usual_layer

GGUF_PERIODS: Mapping[str, int] = {
    "gemma2": 2,
    "gemma3": 6,
    "gemma3n": 5,
    "cohere2": 4,
    "gpt-oss": 2,
    "olmo2": 4,
    "exaone4": 4,
}
"""Architectures of which every so-manieth layer looks back on everything, where the file has a window and does not tell
which layers have it. Others without that ignore the window. Source: llama.cpp, ``set_swa_pattern`` of each model."""
CONFIG_PERIODS: Mapping[str, int] = {"gemma2": 2}
"""The same for ``config.json``, by its ``model_type``."""

_WINDOWED = frozenset({"sliding_attention", "hybrid_sliding"})
_WHOLE = frozenset({"full_attention", "attention", "hybrid"})
_WITHOUT = frozenset({"linear_attention", "mamba", "mamba2", "conv", "recurrent", "moe", "mlp"})

Windows = tuple[int | None, ...]
"""For each layer the tokens that it looks back on at most; None for all, 0 for a layer without attention."""


def kv_shape(paths: Sequence[Path]) -> KvShape | None:
    """The shape for the model in `paths`, from GGUF metadata or the ``config.json`` beside safetensors; None when unknown."""
    if not paths:
        return None
    if paths[0].suffix.lower() != ".gguf":
        return shape_of_config(read_json(paths[0].parent / "config.json"))
    try:
        return shape_of_gguf(read_gguf_header(paths[0]))
    except (LoadError, OSError):
        return None


# ----------------------------------------------------------------------------------------------------------- GGUF


def shape_of_gguf(header: GgufHeader) -> KvShape | None:
    """The shape that GGUF metadata tells, or None. Names of keys: gguf-py, ``constants.py``."""
    keys = _Keys(header)
    layers = (keys.integer("block_count") or 0) - (keys.integer("nextn_predict_layers") or 0)
    heads = keys.each("attention.head_count", layers)
    kv_heads = keys.each("attention.head_count_kv", layers) or heads
    if not heads or not kv_heads or keys.integer("attention.indexer.key_length"):
        return None  # an indexer keeps keys of its own
    windows = _gguf_windows(keys, layers)
    if keys.integer("attention.kv_lora_rank") and keys.integer("attention.key_length_mla"):
        return _latent(keys, heads, windows)
    own = layers - (keys.integer("attention.shared_kv_layers") or 0)
    sizes = {False: keys.sizes("", max(heads)), True: keys.sizes("_swa", max(heads))}
    found = []
    for at, (queries, shared, window) in enumerate(zip(heads, kv_heads, windows, strict=True)):
        size = sizes[window is not None]
        if size is None:
            return None
        if shared and window != 0:
            made = {"heads": queries, "kv_heads": shared, "size_k": size[0], "size_v": size[1]}
            found.append(usual_layer(**made, window=window, keeps=at < own))
    return KvShape(layers=tuple(found))


class _Keys:
    """Metadata below the name of the architecture."""

    def __init__(self, header: GgufHeader) -> None:
        self._header = header
        self.architecture = header.text("general.architecture") or ""

    def integer(self, key: str) -> int | None:
        """A whole number, or None."""
        return self._header.integer(f"{self.architecture}.{key}")

    def raw(self, key: str) -> object:
        """Whatever is there, arrays as tuples."""
        return self._header.metadata.get(f"{self.architecture}.{key}")

    def each(self, key: str, layers: int) -> tuple[int, ...] | None:
        """A count for each layer: the file has one for all of them, or an array."""
        return _per_layer(self.raw(key), layers)

    def sizes(self, suffix: str, heads: int) -> tuple[int, int] | None:
        """Sizes of a key and a value; those of layers with a window may have keys of their own."""
        width = self.integer("embedding_length")
        usual = width // heads if width and heads else 0
        key = self.integer(f"attention.key_length{suffix}") or self.integer("attention.key_length") or usual
        value = self.integer(f"attention.value_length{suffix}") or self.integer("attention.value_length") or usual
        return (key, value) if key and value else None


def _gguf_windows(keys: _Keys, layers: int) -> Windows:
    window, pattern = keys.integer("attention.sliding_window"), keys.raw("attention.sliding_window_pattern")
    interval = keys.integer("full_attention_interval")
    if interval:
        return tuple(None if (at + 1) % interval == 0 else 0 for at in range(layers))
    if not window:
        return (None,) * layers
    if isinstance(pattern, tuple):
        flags = [bool(flag) for flag in pattern[:layers]]
        return tuple(window if flag else None for flag in [*flags, *[False] * (layers - len(flags))])
    told = pattern if isinstance(pattern, int) and not isinstance(pattern, bool) else None
    return _periodic(window, told or GGUF_PERIODS.get(keys.architecture, 1), layers)


def _latent(keys: _Keys, heads: Sequence[int], windows: Windows) -> KvShape | None:
    """Of MLA as llama.cpp keeps it: the key holds the latent vector too, and there are no values."""
    rank, key = keys.integer("attention.kv_lora_rank"), keys.integer("attention.key_length")
    if rank is None or key is None or key <= rank:
        return None
    return KvShape(
        layers=tuple(
            latent_layer(heads=queries, rank=rank, rope=key - rank, window=window)
            for queries, window in zip(heads, windows, strict=True)
            if window != 0
        )
    )


# ---------------------------------------------------------------------------------------------------- config.json


def shape_of_config(config: Mapping[str, object]) -> KvShape | None:
    """The shape that a transformers ``config.json`` tells, or None."""
    config = text_config(config)
    layers, heads = _integer(config, "num_hidden_layers"), _integer(config, "num_attention_heads")
    if layers is None or heads is None or isinstance(config.get("num_key_value_heads"), list):
        return None
    windows = _config_windows(config, layers)
    if windows is None:
        return None
    rank, rope = _integer(config, "kv_lora_rank"), _integer(config, "qk_rope_head_dim")
    if rank is not None:
        if rope is None or _integer(config, "index_head_dim"):
            return None
        return KvShape(
            layers=tuple(latent_layer(heads=heads, rank=rank, rope=rope, window=w) for w in windows if w != 0)
        )
    own = layers - (_integer(config, "num_kv_shared_layers") or 0)
    found = [_config_layer(config, heads, w, keeps=at < own) for at, w in enumerate(windows) if w != 0]
    return None if None in found else KvShape(layers=tuple(layer for layer in found if layer is not None))


def text_config(config: Mapping[str, object]) -> Mapping[str, object]:
    """The part that is about text, where a model has other parts too."""
    nested = config.get("text_config")
    return nested if isinstance(nested, Mapping) else config


def _config_layer(config: Mapping[str, object], heads: int, window: int | None, *, keeps: bool) -> KvLayer | None:
    """Layers that look back on everything may have heads of their own (Gemma 4)."""
    width = _integer(config, "hidden_size")
    size = _integer(config, "head_dim") or (width // heads if width else None)
    kv_heads = _integer(config, "num_key_value_heads") or heads
    if window is None and _integer(config, "global_head_dim"):
        size = _integer(config, "global_head_dim")
        kv_heads = _integer(config, "num_global_key_value_heads") or kv_heads
    if not size:
        return None
    return usual_layer(heads=heads, kv_heads=kv_heads, size_k=size, size_v=size, window=window, keeps=keeps)


def _config_windows(config: Mapping[str, object], layers: int) -> Windows | None:
    """None for kinds of attention that are not known here."""
    kinds = config.get("layer_types") or config.get("layers_block_type")
    window = _integer(config, "sliding_window")
    if isinstance(kinds, list):
        spans = {
            **dict.fromkeys(_WINDOWED, window),
            **dict.fromkeys(_WHOLE),
            **dict.fromkeys(_WITHOUT, 0),
            "chunked_attention": _integer(config, "attention_chunk_size"),
        }
        known = len(kinds) == layers and all(isinstance(kind, str) and kind in spans for kind in kinds)
        return tuple(spans[kind] for kind in kinds) if known else None
    if window is None or config.get("use_sliding_window") is False:
        return (None,) * layers
    period = _integer(config, "sliding_window_pattern") or CONFIG_PERIODS.get(str(config.get("model_type")))
    if period is not None:
        return _periodic(window, period, layers)
    first = _integer(config, "max_window_layers") or 0
    return tuple(window if at >= first else None for at in range(layers))


def _periodic(window: int, period: int, layers: int) -> Windows:
    """The last of every `period` layers looks back on everything, the others on `window` tokens."""
    return tuple(window if at % period < period - 1 else None for at in range(layers))


def _per_layer(value: object, layers: int) -> tuple[int, ...] | None:
    """A count that is one number for all the layers, or an array with one for each (and for blocks behind them)."""
    if layers <= 0 or isinstance(value, bool):
        return None
    if isinstance(value, int):
        return (value,) * layers
    if isinstance(value, tuple) and len(value) >= layers and all(isinstance(count, int) for count in value):
        return value[:layers]
    return None


def _integer(config: Mapping[str, object], key: str) -> int | None:
    value = config.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
