"""What a token demands of a loaded variant, in the types that are in force."""

from __future__ import annotations

import dataclasses

from suite.engine.demand import demand_of
from suite.models.anatomy import Anatomy
from suite.models.kv import KvShape, usual_layer
from suite.records import AttentionLayers

SHAPE = KvShape(layers=(usual_layer(heads=4, kv_heads=2, size_k=32, size_v=32),) * 2)
STORED = Anatomy(
    read_bytes=2000, all_bytes=2000, read_parameters=1000, all_parameters=1000, head_parameters=300, row_parameters=0,
    shape=SHAPE,
)  # fmt: skip
UNTIED = dataclasses.replace(STORED, row_parameters=300)
MIXTURE = dataclasses.replace(STORED, all_bytes=8000, all_parameters=4000)


def test_a_file_that_is_loaded_as_it_is() -> None:
    found = demand_of(STORED, {"type_k": "q8_0", "type_v": "f16", "n_batch": 512, "n_ubatch": 128}, {})
    assert found is not None
    assert (found.weight_bytes, found.body_parameters, found.head_parameters) == (2000, 700, 300)
    assert found.attention == (AttentionLayers(layers=2, kv_bytes=64 // 32 * 34 + 64 * 2, attended_flop=2 * 4 * 64),)
    assert found.batch_tokens == 128


def test_weights_that_are_held_in_another_type_than_they_are_stored() -> None:
    found = demand_of(STORED, {}, {"dtype": "float32", "dtypes": "float32"})
    assert found is not None
    assert (found.weight_bytes, found.attention[0].kv_bytes, found.batch_tokens) == (4000, 2 * 64 * 4, None)
    mixed = demand_of(STORED, {}, {"dtype": "float16", "dtypes": "float16+float32"})
    assert mixed is not None
    assert mixed.weight_bytes == 2000


def test_weights_that_were_quantized_while_they_were_loaded() -> None:
    facts = {"footprint_bytes": "1600", "dtype": "float16", "dtypes": "float16+int8"}
    found = demand_of(UNTIED, {}, facts)
    assert found is not None
    assert found.weight_bytes == found.all_weight_bytes == 1600 - 300 * 2
    mixture = demand_of(MIXTURE, {}, facts)
    assert mixture is not None
    assert (mixture.weight_bytes, mixture.all_weight_bytes) == (400, 1600)


def test_what_is_not_told_is_not_guessed() -> None:
    assert demand_of(None, {}, {}) is None
    unshaped = demand_of(dataclasses.replace(STORED, shape=None), {}, {})
    assert unshaped is not None
    assert (unshaped.kv_known, unshaped.attention) == (False, ())
    odd = demand_of(STORED, {"type_k": "q9_9"}, {})
    assert odd is not None
    assert odd.kv_known is False
    packed = demand_of(dataclasses.replace(STORED, read_parameters=None), {}, {"dtypes": "float16"})
    assert packed is not None
    assert (packed.weight_bytes, packed.body_parameters) == (2000, None)
