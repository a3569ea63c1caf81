"""Hashes of tokenizer and chat template: equal when they are, different when anything in them changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from suite.models.tokenizer import tokenizer_facts

WriteGguf = Callable[..., Path]
TENSORS = {"a": ("F32", 1, 4)}
METADATA = {
    "tokenizer.ggml.pre": "smollm",
    "tokenizer.ggml.tokens": ["a", "b"],
    "tokenizer.ggml.bos_token_id": 1,
    "tokenizer.chat_template": "{{ messages }}",
}


def test_each_change_moves_its_own_hash_only(write_gguf: WriteGguf) -> None:
    before = tokenizer_facts([write_gguf("a.gguf", TENSORS, metadata=METADATA)])
    other_token = {**METADATA, "tokenizer.ggml.tokens": ["a", "c"]}
    token = tokenizer_facts([write_gguf("b.gguf", TENSORS, metadata=other_token)])
    other_template = {**METADATA, "tokenizer.chat_template": "{{ messages }}!"}
    template = tokenizer_facts([write_gguf("c.gguf", TENSORS, metadata=other_template)])
    assert before["tokenizer.pre"] == "smollm"
    assert token["tokenizer.sha256"] != before["tokenizer.sha256"]
    assert token["chat_template.sha256"] == before["chat_template.sha256"]
    assert template["tokenizer.sha256"] == before["tokenizer.sha256"]
    assert template["chat_template.sha256"] != before["chat_template.sha256"]


def test_one_template_has_one_hash_wherever_it_is_kept(write_gguf: WriteGguf, tmp_path: Path) -> None:
    expected = tokenizer_facts([write_gguf("a.gguf", TENSORS, metadata=METADATA)])["chat_template.sha256"]
    keeping = {
        "alone/chat_template.jinja": "{{ messages }}",
        "config/tokenizer_config.json": json.dumps({"chat_template": "{{ messages }}"}),
        "named/tokenizer_config.json": json.dumps(
            {"chat_template": [{"name": "tool", "template": "x"}, {"name": "default", "template": "{{ messages }}"}]}
        ),
    }
    for name, content in keeping.items():
        file = tmp_path / name
        file.parent.mkdir()
        file.write_text(content, encoding="utf-8")
        assert tokenizer_facts([file.parent / "model.safetensors"]) == {"chat_template.sha256": expected}


def test_what_is_absent_or_damaged_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "broken.gguf").write_bytes(b"GGUF")
    assert tokenizer_facts([tmp_path / "broken.gguf"]) == {}
    assert tokenizer_facts([tmp_path / "model.safetensors"]) == {}
    assert tokenizer_facts([]) == {}
