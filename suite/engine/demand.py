"""What a token demands of a loaded variant: the anatomy of its files, in the types that are in force."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from suite.backends.base import FOOTPRINT
from suite.errors import VariantError
from suite.models.anatomy import Anatomy
from suite.models.kv import BLOCKS, attention_layers
from suite.records import AttentionLayers, Demand


def demand_of(anatomy: Anatomy | None, options: Mapping[str, Any], facts: Mapping[str, str]) -> Demand | None:
    """The demand of a variant with these `options`, of which the backend tells these `facts`; None without an anatomy.

    Weights take what they take in the file, unless the backend says that it holds them otherwise: quantized while they
    were loaded (`FOOTPRINT`, of which the tables that are not read are taken off), or all in one other type (``dtypes``).
    """
    if anatomy is None:
        return None
    read, everything = _weights(anatomy, facts)
    attention = _attention(anatomy, options, facts)
    head, parameters = anatomy.head_parameters, anatomy.read_parameters
    batches = [options[key] for key in ("n_ubatch", "n_batch") if isinstance(options.get(key), int)]
    return Demand(
        weight_bytes=read,
        all_weight_bytes=everything,
        body_parameters=None if parameters is None or head is None else parameters - head,
        head_parameters=head,
        attention=attention or (),
        kv_known=attention is not None,
        batch_tokens=min(batches, default=None),
    )


def kv_types(options: Mapping[str, Any], facts: Mapping[str, str]) -> tuple[str, str]:
    """Types of keys and values: as asked for, or that of the weights."""
    usual = facts.get("dtype", "f16")
    return str(options.get("type_k", usual)), str(options.get("type_v", usual))


def _attention(
    anatomy: Anatomy, options: Mapping[str, Any], facts: Mapping[str, str]
) -> tuple[AttentionLayers, ...] | None:
    if anatomy.shape is None:
        return None
    type_k, type_v = kv_types(options, facts)
    try:
        return attention_layers(anatomy.shape, type_k=type_k, type_v=type_v)
    except VariantError:  # a type that is not known here
        return None


def _weights(anatomy: Anatomy, facts: Mapping[str, str]) -> tuple[int, int]:
    """Bytes read for one token, and for many at once."""
    footprint = facts.get(FOOTPRINT, "")
    if footprint.isdigit():
        table = BLOCKS.get(facts.get("dtype", ""), (1, 0))[1] * anatomy.row_parameters
        held = max(int(footprint) - table, 0)
        return held * anatomy.read_bytes // max(anatomy.all_bytes, 1), held
    held_as = BLOCKS.get(facts.get("dtypes", ""))
    if held_as is None or anatomy.read_parameters is None or anatomy.all_parameters is None:
        return anatomy.read_bytes, anatomy.all_bytes
    return anatomy.read_parameters * held_as[1], anatomy.all_parameters * held_as[1]
