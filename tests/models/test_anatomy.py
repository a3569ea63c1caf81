"""Which of the weights a token reads: exact sums on small headers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from suite.models.anatomy import Anatomy, read_anatomy
from suite.models.inspect import inspect_files

WriteGguf = Callable[..., Path]

EMBEDDING = ("F16", 100, 64)
BLOCK = {
    "blk.0.attn_q.weight": ("Q8_0", 64, 64),
    "blk.0.ffn_up.weight": ("Q4_0", 128, 64),
    "blk.0.norm": ("F32", 1, 64),
}
BLOCK_BYTES = 64 * 64 // 32 * 34 + 128 * 64 // 32 * 18 + 64 * 4
BLOCK_PARAMETERS = 64 * 64 + 128 * 64 + 64
METADATA = {"llama.block_count": 1, "llama.embedding_length": 64, "llama.attention.head_count": 4}


def anatomy_of(path: Path) -> Anatomy:
    found = read_anatomy([path])
    assert found is not None
    return found


def test_a_table_that_is_the_output_matrix_too_is_read_whole(write_gguf: WriteGguf) -> None:
    found = anatomy_of(write_gguf("m.gguf", {"token_embd.weight": EMBEDDING, **BLOCK}, metadata=METADATA))
    assert found.read_bytes == found.all_bytes == BLOCK_BYTES + 100 * 64 * 2
    assert (found.read_parameters, found.head_parameters) == (BLOCK_PARAMETERS + 6400, 6400)
    assert found.row_parameters == 0


def test_of_a_table_beside_an_output_matrix_one_row_is_read(write_gguf: WriteGguf) -> None:
    tensors = {"token_embd.weight": EMBEDDING, "output.weight": ("Q8_0", 100, 64), **BLOCK}
    found = anatomy_of(write_gguf("m.gguf", tensors, metadata=METADATA))
    assert found.read_bytes == BLOCK_BYTES + 100 * 64 // 32 * 34 + 64 * 2
    assert (found.read_parameters, found.head_parameters) == (BLOCK_PARAMETERS + 6400, 6400)
    assert found.row_parameters == 6400


def test_tables_of_single_layers_give_one_row_too(write_gguf: WriteGguf) -> None:
    tensors = {"token_embd.weight": EMBEDDING, "per_layer_token_embd.weight": ("F16", 100, 256), **BLOCK}
    found = anatomy_of(write_gguf("m.gguf", tensors, metadata=METADATA))
    assert found.read_bytes == BLOCK_BYTES + 100 * 64 * 2 + 256 * 2


def test_of_experts_those_in_use_are_read_and_all_of_them_for_many_tokens(write_gguf: WriteGguf) -> None:
    tensors = {
        "token_embd.weight": EMBEDDING,
        "blk.0.ffn_up_exps.weight": ("Q8_0", 8 * 128, 64),
        "blk.0.ffn_up_shexp.weight": ("Q8_0", 128, 64),
    }
    mixture = {**METADATA, "llama.expert_count": 8, "llama.expert_used_count": 2}
    found = anatomy_of(write_gguf("m.gguf", tensors, metadata=mixture))
    expert, table = 128 * 64 // 32 * 34, 100 * 64 * 2
    assert found.read_bytes == table + expert + 2 * expert
    assert found.all_bytes == table + expert + 8 * expert
    assert (found.read_parameters, found.all_parameters) == (6400 + 3 * 128 * 64, 6400 + 9 * 128 * 64)


def test_experts_of_which_nobody_says_how_many_are_in_use_are_not_guessed(write_gguf: WriteGguf) -> None:
    path = write_gguf("m.gguf", {"blk.0.ffn_up_exps.weight": ("Q8_0", 64, 64)}, metadata=METADATA)
    assert read_anatomy([path]) is None


def test_layers_behind_the_last_one_are_not_read(write_gguf: WriteGguf) -> None:
    further = {"blk.1.attn_q.weight": ("Q8_0", 64, 64), "blk.1.nextn.eh_proj.weight": ("Q8_0", 64, 64)}
    metadata = {**METADATA, "llama.block_count": 2, "llama.nextn_predict_layers": 1}
    path = write_gguf("m.gguf", {"token_embd.weight": EMBEDDING, **BLOCK, **further}, metadata=metadata)
    assert anatomy_of(path).read_bytes == BLOCK_BYTES + 100 * 64 * 2


def test_the_parts_of_a_split_file_add_up(write_gguf: WriteGguf) -> None:
    first = write_gguf("m-00001-of-00002.gguf", {"token_embd.weight": EMBEDDING}, metadata=METADATA)
    second = write_gguf("m-00002-of-00002.gguf", BLOCK)
    found = read_anatomy([first, second])
    assert found is not None
    assert found.read_bytes == BLOCK_BYTES + 100 * 64 * 2


def test_of_the_embedded_model_everything_is_read(embedded_model: Path, hashes: object) -> None:
    found = anatomy_of(embedded_model)
    artifact = inspect_files(
        [embedded_model], label=None, revision=None, derived_from=None, known_hashes=hashes,  # type: ignore[arg-type]
    )  # fmt: skip
    assert found.read_parameters == artifact.parameters == 134_515_008  # its table is the output matrix too
    assert found.read_bytes == found.all_bytes == round(artifact.parameters * (artifact.bpw or 0) / 8)
    assert found.head_parameters == 49_152 * 576


# ---------------------------------------------------------------------------------------------------- safetensors


CONFIG = {"num_hidden_layers": 1, "num_attention_heads": 4, "hidden_size": 16}
LAYER = "model.layers.0.self_attn.q_proj.weight"


def stored(tmp_path: Path, shapes: Mapping[str, tuple[int, ...]], dtype: type = np.float16, **config: object) -> Path:
    path = tmp_path / "model.safetensors"
    save_file({name: np.zeros(shape, dtype) for name, shape in shapes.items()}, path)
    (tmp_path / "config.json").write_text(json.dumps({**CONFIG, **config}), encoding="utf-8")
    return path


def test_safetensors_without_an_output_matrix_are_tied(tmp_path: Path) -> None:
    found = anatomy_of(stored(tmp_path, {"model.embed_tokens.weight": (50, 16), LAYER: (16, 16)}))
    assert found.read_bytes == (50 * 16 + 16 * 16) * 2
    assert found.head_parameters == 50 * 16


def test_safetensors_with_one_read_a_row_of_the_table(tmp_path: Path) -> None:
    shapes = {"model.embed_tokens.weight": (50, 16), "lm_head.weight": (50, 16), LAYER: (16, 16)}
    found = anatomy_of(stored(tmp_path, shapes))
    assert found.read_bytes == (50 * 16 + 16 * 16 + 16) * 2
    assert (found.head_parameters, found.row_parameters) == (50 * 16, 50 * 16)


@pytest.mark.parametrize("keys", [
    {"num_local_experts": 4, "num_experts_per_tok": 2}, {"n_routed_experts": 4, "num_experts_per_tok": 2}
])  # fmt: skip
def test_safetensors_with_experts(tmp_path: Path, keys: dict[str, Any]) -> None:
    experts = {f"model.layers.0.mlp.experts.{which}.up_proj.weight": (8, 16) for which in range(4)}
    shared = {"model.layers.0.mlp.shared_expert.up_proj.weight": (8, 16), "model.embed_tokens.weight": (50, 16)}
    found = anatomy_of(stored(tmp_path, {**experts, **shared}, **keys))
    assert found.read_parameters == 50 * 16 + 8 * 16 + 2 * 8 * 16
    assert found.all_parameters == 50 * 16 + 8 * 16 + 4 * 8 * 16


def test_parts_that_see_and_further_layers_are_not_read(tmp_path: Path) -> None:
    others = {
        "model.vision_tower.layers.0.weight": (9, 9),
        "model.layers.1.mlp.weight": (9, 9),
        "mtp.fc.weight": (9, 9),
    }
    found = anatomy_of(stored(tmp_path, {"model.embed_tokens.weight": (50, 16), LAYER: (16, 16), **others}))
    assert found.read_parameters == 50 * 16 + 16 * 16


def test_packed_weights_tell_bytes_and_no_number(tmp_path: Path) -> None:
    found = anatomy_of(stored(tmp_path, {"model.embed_tokens.weight": (50, 16), LAYER: (16, 16)}, np.int32))
    assert (found.read_bytes, found.read_parameters, found.head_parameters) == ((50 * 16 + 256) * 4, None, None)


def test_what_cannot_be_read_has_no_anatomy(tmp_path: Path) -> None:
    assert read_anatomy([]) is None
    assert read_anatomy([tmp_path / "gone.safetensors"]) is None
    (tmp_path / "m.gguf").write_bytes(b"no GGUF")
    assert read_anatomy([tmp_path / "m.gguf"]) is None
