"""Artifacts say what the bytes are, not what their name claims."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from suite.errors import VariantError
from suite.models.families import describe_mismatch, named_family
from suite.models.hashes import HashCache
from suite.models.inspect import inspect_files
from suite.records import Artifact

WriteGguf = Callable[..., Path]


def look(paths: list[Path], hashes: HashCache, label: str | None = None) -> Artifact:
    return inspect_files(paths, label=label, revision="r1", derived_from=None, known_hashes=hashes)


def test_the_embedded_model_is_what_the_facts_say(embedded_model: Path, hashes: HashCache) -> None:
    artifact = look([embedded_model], hashes)
    assert artifact.tensor_types == {"F32": 61, "Q4_1": 210, "Q8_0": 1}
    assert artifact.bpw == pytest.approx(5.74, abs=0.005)
    assert (artifact.label, artifact.mismatch, artifact.inspection_error) == ("Q4_1", None, None)
    assert artifact.files[0].sha256 == hashlib.sha256(embedded_model.read_bytes()).hexdigest()


def test_a_label_that_lies_is_told_with_shares_by_weights(write_gguf: WriteGguf, hashes: HashCache) -> None:
    tensors = {
        "a": ("Q5_0", 6, 1024),
        "b": ("Q8_0", 3, 1024),
        "c": ("Q6_K", 1, 1024),
        **{f"norm{index}": ("F32", 1, 1) for index in range(5)},  # many tensors, hardly any weights
    }
    artifact = look([write_gguf("Model-Q4_K_M.gguf", tensors)], hashes)
    assert artifact.mismatch == (
        f"labelled Q4_K_M, but 60 % of its weights are Q5_0, 30 % Q8_0, none Q4_K ({artifact.bpw:.1f} bits/weight)"
    )


def test_a_genuine_mix_keeps_its_label(write_gguf: WriteGguf, hashes: HashCache) -> None:
    artifact = look([write_gguf("m-q4_k_m.gguf", {"a": ("Q4_K", 7, 256), "b": ("Q6_K", 3, 256)})], hashes)
    assert (artifact.label, artifact.mismatch) == ("Q4_K_M", None)
    assert artifact.bpw == pytest.approx((7 * 144 + 3 * 210) * 8 / 2560)


def test_what_was_asked_for_outranks_the_file_name_and_the_file_name_its_metadata(
    write_gguf: WriteGguf, hashes: HashCache
) -> None:
    claims = {"general.file_type": 15}  # MOSTLY_Q4_K_M
    tensors = {"a": ("Q8_0", 1, 64)}
    assert look([write_gguf("plain.gguf", tensors, metadata=claims)], hashes).label == "Q4_K_M"
    named = write_gguf("m-Q5_K_M.gguf", tensors, metadata=claims)
    assert look([named], hashes).label == "Q5_K_M"
    assert look([named], hashes, label="Q8_0").mismatch is None


def test_a_gguf_whose_tensor_data_is_cut_off_is_inspected_and_says_so(write_gguf: WriteGguf, hashes: HashCache) -> None:
    path = write_gguf("m.Q8_0.gguf", {"a": ("Q8_0", 4, 64), "last": ("Q8_0", 4, 64)})
    path.write_bytes(path.read_bytes()[:-200])
    artifact = look([path], hashes)
    assert artifact.inspection_error is not None
    assert "m.Q8_0.gguf: cut off: tensor 'last'" in artifact.inspection_error
    assert artifact.tensor_types == {"Q8_0": 2}


def test_a_broken_header_gives_the_reason_and_no_numbers(tmp_path: Path, hashes: HashCache) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"<html>404</html>" * 4)
    artifact = look([path], hashes)
    assert (artifact.parameters, artifact.bpw, artifact.mismatch) == (None, None, None)
    assert "not a GGUF file" in (artifact.inspection_error or "")
    assert artifact.size_bytes == 64


def test_the_parts_of_a_split_file_add_up(write_gguf: WriteGguf, hashes: HashCache) -> None:
    parts = [write_gguf(f"m-Q8_0-0000{n}-of-00002.gguf", {f"t{n}": ("Q8_0", 1, 64)}) for n in (1, 2)]
    artifact = look(parts, hashes)
    assert (artifact.tensor_types, artifact.parameters, len(artifact.files)) == ({"Q8_0": 2}, 128, 2)


def test_safetensors_are_counted_by_their_header(tmp_path: Path, hashes: HashCache) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"a": np.zeros((4, 8), np.float16), "b": np.zeros(8, np.float32)}, path)
    artifact = look([path], hashes, label="float16")
    assert (artifact.tensor_types, artifact.parameters) == ({"F16": 1, "F32": 1}, 40)
    assert artifact.bpw == pytest.approx((32 * 16 + 8 * 32) / 40)
    assert artifact.mismatch is None


def test_packed_safetensors_do_not_pretend_to_know_the_number_of_weights(tmp_path: Path, hashes: HashCache) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"packed": np.zeros((64, 1), np.uint8), "b": np.zeros(8, np.float16)}, path)
    artifact = look([path], hashes)
    assert (artifact.parameters, artifact.bpw) == (None, None)
    assert artifact.tensor_types == {"F16": 1, "U8": 1}


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff" * 8, struct.pack("<Q", 5000) + b"{}", struct.pack("<Q", 2) + b"[]", struct.pack("<Q", 3) + b"nul"],
)
def test_damaged_safetensors_are_told_and_do_not_raise(tmp_path: Path, hashes: HashCache, content: bytes) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    assert (look([path], hashes).inspection_error or "").startswith("model.safetensors: ")


def test_safetensors_with_a_header_that_promises_more_are_cut_off(tmp_path: Path, hashes: HashCache) -> None:
    header = json.dumps({"a": {"dtype": "F16", "shape": [8], "data_offsets": [0, 16]}}).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(9))
    assert "cut off: tensor 'a'" in (look([path], hashes).inspection_error or "")


def test_a_file_that_cannot_be_read_is_a_fault_of_the_variant(tmp_path: Path, hashes: HashCache) -> None:
    with pytest.raises(VariantError, match=r"gone\.gguf"):
        look([tmp_path / "gone.gguf"], hashes)


@pytest.mark.parametrize(
    ("label", "family"),
    [
        ("Q4_K_M", {"Q4_K"}),
        ("UD-Q2_K_XL", {"Q2_K"}),
        ("Q6_K", {"Q6_K"}),
        ("Q8_0", {"Q8_0"}),
        ("BF16", {"BF16"}),
        ("IQ2_M", {"IQ2_S", "IQ2_XS"}),
        ("IQ4_XS", {"IQ4_XS"}),
        ("MXFP4_MOE", {"MXFP4"}),
    ],
)
def test_labels_name_families_of_storage_types(label: str, family: set[str]) -> None:
    assert named_family(label, {"IQ2_S": 1, "IQ2_XS": 1, "Q4_K": 1}) == family


def test_a_minority_of_the_named_type_is_told_as_such() -> None:
    sentence = describe_mismatch("Q4_K_M", {"Q5_0": 590, "Q4_K": 310, "Q8_0": 100}, 5.5)
    assert sentence == "labelled Q4_K_M, but 59 % of its weights are Q5_0, 10 % Q8_0, 31 % Q4_K (5.5 bits/weight)"
