"""What is made from weights is made once, whole or not at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from suite.models.cache import Cache

KEY = {"source": "sha256 abc", "recipe": "Q4_K_M", "maker": "llama-cpp-python 0.3.36"}


def write(text: str, root: Path) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        with (root / "made").open("a", encoding="utf-8") as log:
            log.write("x")
        path.write_text(text, encoding="utf-8")

    return make


def times_made(root: Path) -> int:
    return len((root / "made").read_text(encoding="utf-8")) if (root / "made").exists() else 0


SLOW = """
import json, sys, time
from pathlib import Path
from suite.models.cache import Cache

def make(path):
    path.write_text("half", encoding="utf-8")
    with Path("made").open("a", encoding="utf-8") as log:
        log.write("x")
    print("started", flush=True)
    time.sleep(float(sys.argv[2]))
    path.write_text("whole", encoding="utf-8")

Cache(Path("cache").absolute()).fetch_or_make(json.loads(sys.argv[1]), ".Q4_K_M.gguf", make)
"""


@contextmanager
def another_run(directory: Path, *, seconds: float) -> Iterator[subprocess.Popen[str]]:
    """Another process, in the middle of making the entry when the block begins."""
    command = [sys.executable, "-c", SLOW, json.dumps(KEY), str(seconds)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, cwd=directory, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        yield process


def test_an_entry_is_made_once_and_found_again(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    first = cache.fetch_or_make(KEY, ".Q4_K_M.gguf", write("weights", tmp_path))
    second = Cache(tmp_path / "cache").fetch_or_make(dict(reversed(KEY.items())), ".Q4_K_M.gguf", write("no", tmp_path))
    assert first == second
    assert first.name.endswith(".Q4_K_M.gguf")
    assert first.read_text(encoding="utf-8") == "weights"
    assert times_made(tmp_path) == 1


def test_another_key_is_another_entry(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    entries = {cache.fetch_or_make({**KEY, "maker": maker}, "", write(maker, tmp_path)) for maker in ("old", "new")}
    assert len(entries) == 2


def test_the_manifest_shows_the_full_key_and_each_file(tmp_path: Path) -> None:
    def make(path: Path) -> None:
        (path / "sub").mkdir(parents=True)
        (path / "config.json").write_text("{}", encoding="utf-8")
        (path / "sub" / "model.safetensors").write_bytes(bytes(10))

    entry = Cache(tmp_path).fetch_or_make(KEY, "", make)
    manifest = json.loads((entry.parent / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["key"] == KEY
    sizes = {name: file["size_bytes"] for name, file in manifest["files"].items()}
    assert sizes == {"config.json": 2, "sub/model.safetensors": 10}


@pytest.mark.parametrize("damage", ["truncated", "manifest", "gone"])
def test_a_damaged_entry_is_made_again_and_said_so(tmp_path: Path, damage: str) -> None:
    said: list[str] = []
    cache = Cache(tmp_path / "cache", say=said.append)
    entry = cache.fetch_or_make(KEY, ".gguf", write("weights", tmp_path))
    match damage:
        case "truncated":
            entry.write_text("wei", encoding="utf-8")
        case "manifest":
            (entry.parent / "manifest.json").write_text("{", encoding="utf-8")
        case "gone":
            entry.unlink()
    again = cache.fetch_or_make(KEY, ".gguf", write("weights", tmp_path))
    assert again.read_text(encoding="utf-8") == "weights"
    assert times_made(tmp_path) == 2
    assert len(said) == 1
    assert "is made again" in said[0]


def test_a_maker_that_fails_leaves_nothing_and_its_error_is_passed_on(tmp_path: Path) -> None:
    def fail(path: Path) -> None:
        path.write_text("half", encoding="utf-8")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        Cache(tmp_path).fetch_or_make(KEY, ".gguf", fail)
    assert [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".lock"] == []


def test_a_maker_that_writes_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nothing was written"):
        Cache(tmp_path).fetch_or_make(KEY, ".gguf", lambda path: None)


def test_two_processes_at_once_make_it_once_and_the_second_says_that_it_waits(tmp_path: Path) -> None:
    said: list[str] = []
    with another_run(tmp_path, seconds=0.7):
        entry = Cache(tmp_path / "cache", say=said.append).fetch_or_make(KEY, ".Q4_K_M.gguf", write("mine", tmp_path))
    assert entry.read_text(encoding="utf-8") == "whole"
    assert times_made(tmp_path) == 1
    assert said == [f"waiting for another run that is making {entry.name}"]


def test_a_killed_maker_leaves_no_entry_and_the_next_run_sweeps_up(tmp_path: Path) -> None:
    with another_run(tmp_path, seconds=60) as process:
        process.kill()
    making = tmp_path / "cache" / ".making"
    assert list(making.iterdir()), "the killed run must have left something, or this tests nothing"
    entry = Cache(tmp_path / "cache").fetch_or_make(KEY, ".Q4_K_M.gguf", write("mine", tmp_path))
    assert entry.read_text(encoding="utf-8") == "mine"
    assert list(making.iterdir()) == []
