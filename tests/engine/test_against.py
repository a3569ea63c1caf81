"""What `--matrix-against` may be, and which variants it becomes the old side of."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.in_process import make_variant

from suite.engine.against import ask_interpreter, find_interpreter, make_shadows
from suite.errors import UsageError
from suite.records import Variant


def declare(name: str, backend: str = "llama_cpp", make: str | None = None) -> Variant:
    return Variant(name=name, model="toy", backend=backend, source="org/toy", make=make, reference=name == "fp16")


Q4, Q8, FP16 = declare("q4", make="Q4_K_M"), declare("q8", make="Q8_0"), declare("fp16", "transformers")


def touch(directory: Path, *names: str) -> Path:
    directory.mkdir(exist_ok=True)
    for name in names:
        (directory / name).write_bytes(b"")
    return directory


def test_an_interpreter_becomes_the_old_side_of_what_it_can_run() -> None:
    python = Path(sys.executable)
    shadows = make_shadows(python, [make_variant("a"), make_variant("b")])
    assert [(s.name, s.old_of, s.python) for s in shadows] == [("a@old", "a", str(python)), ("b@old", "b", str(python))]


def test_an_interpreter_is_asked_what_it_has() -> None:
    assert ask_interpreter(Path(sys.executable), ["json", "not_there", "not.there"]) == {
        "json": True, "not_there": False, "not.there": False
    }  # fmt: skip


def test_an_interpreter_without_the_libraries_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suite.engine.against.ask_interpreter", lambda _, modules: dict.fromkeys(modules, False))
    with pytest.raises(UsageError, match="no selected variant can run there, for it has no llama_cpp"):
        make_shadows(Path(sys.executable), [Q4])


def test_an_interpreter_that_is_too_old_is_refused(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho '[[3, 9], {}]'\n")
    python.chmod(0o755)
    with pytest.raises(UsageError, match=r"is Python 3\.9; the suite needs 3\.11 or newer"):
        ask_interpreter(python, [])


def test_an_environment_is_its_interpreter_and_its_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    assert find_interpreter(tmp_path) == tmp_path / "bin" / "python"
    assert find_interpreter(touch(tmp_path / "weights", "a.gguf")) is None


def test_a_file_is_the_old_weights_of_the_one_variant_that_loads_it(tmp_path: Path) -> None:
    file = touch(tmp_path, "old.gguf") / "old.gguf"
    (shadow,) = make_shadows(file, [Q4, FP16])
    assert (shadow.name, shadow.old_of, shadow.source, shadow.make) == ("q4@old", "q4", str(file), None)
    with pytest.raises(UsageError, match=r"could be the old file of q4, q8; choose one: --matrix-variants q4"):
        make_shadows(file, [Q4, Q8, FP16])
    with pytest.raises(UsageError, match="holds gguf weights, which no selected variant loads"):
        make_shadows(file, [FP16])


def test_of_several_files_each_variant_gets_the_one_that_is_named_like_it(tmp_path: Path) -> None:
    weights = touch(tmp_path / "weights", "Toy-Q4_K_M.gguf", "toy-q8_0.gguf", "toy-q2_k.gguf")
    assert [(s.old_of, Path(s.source).name) for s in make_shadows(weights, [Q4, Q8])] == [
        ("q4", "Toy-Q4_K_M.gguf"), ("q8", "toy-q8_0.gguf")
    ]  # fmt: skip
    with pytest.raises(UsageError, match="is named like a selected variant"):
        make_shadows(weights, [declare("q5", make="Q5_K_M")])
    touch(weights, "other-Q4_K_M.gguf")
    with pytest.raises(UsageError, match="could all be the old file of q4"):
        make_shadows(weights, [Q4])


def test_safetensors_are_the_old_weights_of_what_loads_them(tmp_path: Path) -> None:
    weights = touch(tmp_path / "weights", "model.safetensors")
    (shadow,) = make_shadows(weights, [Q4, FP16])
    assert (shadow.old_of, shadow.source, shadow.reference) == ("fp16", str(weights), False)
