"""Hashes of the tokenizer and the chat template: suspects when answers change and weights did not."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from suite.errors import LoadError
from suite.models.files import hash_file, read_json
from suite.models.gguf_header import read_gguf_header

_TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer.model",
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    "added_tokens.json",
    "special_tokens_map.json",
)
_GGUF_TEMPLATE = "tokenizer.chat_template"


def tokenizer_facts(paths: Sequence[Path]) -> Mapping[str, str]:
    """``tokenizer.sha256`` and ``chat_template.sha256`` of the model in `paths` (and ``tokenizer.pre`` of a GGUF).

    The template's hash is of its text, so that a GGUF and a directory with the same template agree; the tokenizer's is
    comparable only within one format. What is absent or cannot be read is left out.
    """
    if not paths:
        return {}
    try:
        return _of_gguf(paths[0]) if paths[0].suffix.lower() == ".gguf" else _of_directory(paths[0].parent)
    except (LoadError, OSError):
        return {}


def _of_gguf(path: Path) -> dict[str, str]:
    header = read_gguf_header(path)
    facts: dict[str, str] = {}
    parts = {
        key: digest
        for key, digest in header.digests.items()
        if key.startswith("tokenizer.") and not key.startswith(_GGUF_TEMPLATE)
    }
    if parts:
        facts["tokenizer.sha256"] = _hash(json.dumps(parts, sort_keys=True))
    if pre := header.text("tokenizer.ggml.pre"):
        facts["tokenizer.pre"] = pre
    if template := header.text(_GGUF_TEMPLATE):
        facts["chat_template.sha256"] = _hash(template)
    return facts


def _of_directory(directory: Path) -> dict[str, str]:
    facts: dict[str, str] = {}
    parts = {name: hash_file(directory / name) for name in _TOKENIZER_FILES if (directory / name).is_file()}
    if parts:
        facts["tokenizer.sha256"] = _hash(json.dumps(parts, sort_keys=True))
    if template := _template_of(directory):
        facts["chat_template.sha256"] = _hash(template)
    return facts


def _template_of(directory: Path) -> str | None:
    """The default chat template, where transformers looks for it, in its order."""
    alone = directory / "chat_template.jinja"
    if alone.is_file():
        return alone.read_text(encoding="utf-8")
    for name in ("chat_template.json", "tokenizer_config.json"):
        template = read_json(directory / name).get("chat_template")
        if isinstance(template, list):
            named = (entry for entry in template if isinstance(entry, dict) and entry.get("name") == "default")
            template = next(named, {}).get("template")
        if isinstance(template, str):
            return template
    return None


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
