"""Values of options and of their ini twins, which nobody but `read_settings` checks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from suite.errors import UsageError
from suite.settings import Settings, read_settings


def read(root: Path, **values: Any) -> Settings:
    (root / "matrix.toml").touch()
    return read_settings(values.get, root=root, environment={})


def test_values_are_read_by_their_ini_names(tmp_path: Path) -> None:
    settings = read(
        tmp_path, matrix_variants=" q4, ,q5 ", matrix_add=["a.gguf"], matrix_only="speed", matrix_strict=True,
        matrix_report="out",
    )  # fmt: skip
    assert (settings.variants, settings.added, settings.only) == (("q4", "q5"), ("a.gguf",), "speed")
    assert (settings.strict, settings.require_baselines, settings.report) == (True, False, tmp_path / "out")


@pytest.mark.parametrize(("values", "words"), [
    ({"matrix_only": "answer"}, "matrix_only = 'answer' is none of fidelity, answers, speed"),
    ({"matrix_update": "newest", "matrix_reason": "x"}, "matrix_update = 'newest' is none of new, changed, all"),
])  # fmt: skip
def test_a_value_of_the_ini_file_that_is_none_of_the_choices_is_refused(
    tmp_path: Path, values: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        read(tmp_path, **values)
