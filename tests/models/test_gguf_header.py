"""Our own reading of GGUF headers, against the library that defines the format, and against damage."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import gguf
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from suite.errors import LoadError
from suite.models.gguf_header import read_gguf_header

METADATA = {
    "llama.block_count": 2,
    "tokenizer.ggml.pre": "smollm",
    "tokenizer.ggml.tokens": ["a", "b", "é"],
    "tokenizer.ggml.token_type": [1, 1, 3],
}
TENSORS = {"blk.0.ffn.weight": ("Q4_K", 4, 512), "blk.0.norm.weight": ("F32", 1, 576), "out.weight": ("Q5_0", 3, 64)}


def test_agrees_with_the_gguf_library_on_every_tensor_and_value(write_gguf: Callable[..., Path]) -> None:
    path = write_gguf("x.gguf", TENSORS, metadata=METADATA)
    ours, theirs = read_gguf_header(path), gguf.GGUFReader(path)
    assert [(t.name, t.type, t.parameters, t.size_bytes, t.end) for t in ours.tensors] == [
        (t.name, t.tensor_type.name, t.n_elements, t.n_bytes, t.data_offset + t.n_bytes) for t in theirs.tensors
    ]
    for key in ("llama.block_count", "tokenizer.ggml.pre", "general.architecture"):
        field = theirs.get_field(key)
        assert field is not None
        assert ours.metadata[key] == field.contents()
    assert ours.metadata["tokenizer.ggml.token_type"] == (1, 1, 3)
    assert "tokenizer.ggml.tokens" in ours.digests


def test_agrees_with_what_is_known_of_the_embedded_model(embedded_model: Path) -> None:
    header = read_gguf_header(embedded_model)
    assert Counter(tensor.type for tensor in header.tensors) == {"Q4_1": 210, "F32": 61, "Q8_0": 1}
    assert sum(tensor.parameters for tensor in header.tensors) == 134_515_008
    assert max(tensor.end for tensor in header.tensors) <= embedded_model.stat().st_size
    assert header.text("tokenizer.ggml.pre") == "smollm"


@pytest.mark.parametrize("kept", [0, 3, 20, 24, 40, 90, 200, 300])
def test_a_header_cut_off_anywhere_is_a_load_error_that_names_the_file(
    write_gguf: Callable[..., Path], kept: int
) -> None:
    path = write_gguf("x.gguf", TENSORS, metadata=METADATA)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(LoadError, match=r"x\.gguf: "):
        read_gguf_header(path)


def test_an_absurd_array_length_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    array = struct.pack("<IQ", 4, 2**60)
    key = b"tokenizer.ggml.token_type"
    entry = struct.pack("<Q", len(key)) + key + struct.pack("<I", 9) + array
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + entry)
    with pytest.raises(LoadError, match=r"array 'tokenizer\.ggml\.token_type' at byte .* passes the end"):
        read_gguf_header(path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"PK\x03\x04" + bytes(60), "not a GGUF file"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "version 1 cannot be read"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "other byte order"),
        (b"GGUF" + struct.pack("<IQQ", 3, 2**40, 0), "tensors cannot be right"),
    ],
)
def test_what_is_no_gguf_says_why(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    with pytest.raises(LoadError, match=says):
        read_gguf_header(path)


@settings(max_examples=200, deadline=2000, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_flipped_bytes_give_a_header_or_a_load_error_and_nothing_else(
    write_gguf: Callable[..., Path], data: st.DataObject
) -> None:
    path = write_gguf("x.gguf", TENSORS, metadata=METADATA)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, 500))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        outcome = f"{path.name}: {len(read_gguf_header(path).tensors)} tensors"
    except LoadError as refused:
        outcome = str(refused)
    assert outcome.startswith("x.gguf: ")
