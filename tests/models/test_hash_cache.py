"""Hashes of large files are remembered, and never trusted for another content."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from suite.models.hashes import HashCache


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_a_changed_file_is_hashed_anew(tmp_path: Path) -> None:
    file, cache = tmp_path / "w.gguf", HashCache(tmp_path / "hashes")
    file.write_bytes(b"one")
    assert cache.sha256(file) == digest(b"one")
    file.write_bytes(b"two")
    os.utime(file, ns=(1, 1))
    assert cache.sha256(file) == digest(b"two")


def test_an_unchanged_file_is_not_read_again(tmp_path: Path) -> None:
    file, cache = tmp_path / "w.gguf", HashCache(tmp_path / "hashes")
    file.write_bytes(b"one")
    os.utime(file, ns=(5, 5))
    cache.sha256(file)
    file.write_bytes(b"two")  # same size, and made to look as old: the cache cannot know
    os.utime(file, ns=(5, 5))
    assert HashCache(tmp_path / "hashes").sha256(file) == digest(b"one")


@pytest.mark.parametrize("damage", ["", "{", "[]", json.dumps({"sha256": "abc"})])
def test_a_damaged_entry_is_replaced(tmp_path: Path, damage: str) -> None:
    file, cache = tmp_path / "w.gguf", HashCache(tmp_path / "hashes")
    file.write_bytes(b"one")
    cache.sha256(file)
    (entry,) = (tmp_path / "hashes").iterdir()
    entry.write_text(damage, encoding="utf-8")
    assert cache.sha256(file) == digest(b"one")
    assert json.loads(entry.read_text(encoding="utf-8"))["sha256"] == digest(b"one")


def test_a_cache_that_cannot_be_written_only_costs_time(tmp_path: Path) -> None:
    file = tmp_path / "w.gguf"
    file.write_bytes(b"one")
    assert HashCache(file / "no-directory").sha256(file) == digest(b"one")
