"""What the system refuses is told as a failure of the one variant, with what and where."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.in_process import make_preparer, make_variant

from suite.engine.launching import Launcher, check_libraries
from suite.engine.preparing import Preparer
from suite.engine.progress import silent
from suite.errors import VariantError
from suite.records import Deadlines, Variant
from suite.worker.messages import Loaded


def test_a_log_that_cannot_be_written_fails_the_variant(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file is in the way")
    launcher = Launcher(
        preparer=make_preparer(tmp_path), deadlines=Deadlines(), logs=tmp_path / "logs", progress=silent
    )
    with (
        pytest.raises(VariantError, match=r"variants\.q4: its worker could not be started \(log .*q4\.log\)"),
        launcher.launch(make_variant("q4")),
    ):
        pass


def test_weights_that_the_disk_refuses_fail_the_variant(tmp_path: Path) -> None:
    (tmp_path / "weights.gguf").mkdir()  # opens as no file
    (tmp_path / "cache").write_text("a file is in the way")
    preparer = Preparer(base=tmp_path, cache=tmp_path / "cache", deadlines=Deadlines(), progress=silent)
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "model.gguf").write_bytes(b"GGUF")
    variant = Variant(name="q4", model="toy", backend="llama_cpp", source="./m/model.gguf", make="Q4_K_M", options={})
    with pytest.raises(VariantError) as told:
        preparer.prepare(variant)
    assert "variants.q4: its weights (./m/model.gguf) could not be prepared" in str(told.value)


def loaded(prefix: Path, file: Path) -> Loaded:
    return Loaded(
        load_s=1.0, import_s=1.0, context_tokens=1, threads=1, facts={}, prefixes=[str(prefix)],
        libraries={"llama_cpp": str(file), "namespace": ""},
    )  # fmt: skip


def test_another_interpreter_that_loads_what_is_not_its_own_measures_nothing(tmp_path: Path) -> None:
    old = Variant(name="q4@old", model="toy", backend="llama_cpp", source="./m", python="/old/bin/python")
    own, ours = tmp_path / "old" / "lib" / "llama_cpp.py", tmp_path / "ours" / "llama_cpp.py"
    own.parent.mkdir(parents=True)
    check_libraries(old, loaded(tmp_path / "old", own))
    with pytest.raises(VariantError, match=r"imports llama_cpp from .*ours/llama_cpp\.py, which is not its own"):
        check_libraries(old, loaded(tmp_path / "old", ours))
    (tmp_path / "link").symlink_to(tmp_path / "old")
    check_libraries(old, loaded(tmp_path / "link", own))
    ours.parent.mkdir()
    ours.touch()
    own.symlink_to(ours)  # as package managers do, out of a cache
    check_libraries(old, loaded(tmp_path / "old", own))
