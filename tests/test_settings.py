"""Options, ini values and the environment, read in one place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from suite.errors import UsageError
from suite.settings import OPTIONS, Settings, find_cache, read_settings


def read(root: Path, environment: dict[str, str] | None = None, **given: Any) -> Settings:
    (root / "matrix.toml").touch()
    return read_settings(given.get, root=root, environment=environment or {})


def test_defaults_lie_beside_the_matrix_file(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "other.toml").touch()
    settings = read(tmp_path, matrix_file="inner/other.toml")
    assert (settings.cases, settings.baselines) == (inner / "cases", inner / "baselines")
    assert settings.runs == tmp_path / ".quantdrift"


def test_a_missing_matrix_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.toml: there is no such matrix file"):
        read(tmp_path, matrix_file="nowhere.toml")


def test_variants_are_separated_by_commas_and_spaces_do_not_matter(tmp_path: Path) -> None:
    assert read(tmp_path, matrix_variants=" q4_k_m, ,q8_0 ").variants == ("q4_k_m", "q8_0")


@pytest.mark.parametrize("reason", [None, "", "  "])
def test_an_update_needs_a_reason(tmp_path: Path, reason: str | None) -> None:
    with pytest.raises(UsageError, match="needs a reason"):
        read(tmp_path, matrix_update="new", matrix_reason=reason)


def test_a_reason_needs_an_update(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="add --matrix-update"):
        read(tmp_path, matrix_reason="because")


@pytest.mark.parametrize(("ci", "refused"), [("true", True), ("1", True), ("", False), ("false", False), ("0", False)])
def test_baselines_are_never_written_in_ci(tmp_path: Path, ci: str, refused: bool) -> None:
    if refused:
        with pytest.raises(UsageError, match="never written in CI"):
            read(tmp_path, {"CI": ci}, matrix_update="all", matrix_reason="because")
    else:
        assert read(tmp_path, {"CI": ci}, matrix_update="all", matrix_reason="because").update == "all"


def test_the_cache_directory_follows_variable_then_xdg_then_home() -> None:
    assert find_cache({"QUANTDRIFT_CACHE": "/b", "XDG_CACHE_HOME": "/c"}) == Path("/b")
    assert find_cache({"XDG_CACHE_HOME": "/c"}) == Path("/c/quantdrift")
    assert find_cache({"XDG_CACHE_HOME": "relative"}) == find_cache({}) == Path.home() / ".cache" / "quantdrift"


def test_every_option_has_the_one_prefix_and_a_help_text() -> None:
    assert all(option.flag.startswith("--matrix-") and len(option.help) > 10 for option in OPTIONS)
    assert len({option.name for option in OPTIONS}) == len(OPTIONS)


def test_a_next_step_gives_again_what_says_which_question_is_asked(tmp_path: Path) -> None:
    assert (
        read(tmp_path, matrix_variants="q4", matrix_resume=True, matrix_strict=True).command == "pytest --model-matrix"
    )
    settings = read(
        tmp_path, matrix_file="matrix.toml", matrix_cases="my cases", matrix_baselines="b", matrix_against="old",
        matrix_quick=True, matrix_add=["a.gguf", "org/b"], matrix_variants="q4",
    )  # fmt: skip
    assert settings.command == (
        "pytest --model-matrix --matrix-file=matrix.toml --matrix-cases='my cases' --matrix-baselines=b "
        "--matrix-add=a.gguf --matrix-add=org/b --matrix-against=old --matrix-quick"
    )


def test_what_stands_in_the_ini_file_need_not_be_typed_again(tmp_path: Path) -> None:
    (tmp_path / "matrix.toml").touch()
    given = {"matrix_cases": "elsewhere", "matrix_file": "matrix.toml"}
    settings = read_settings(given.get, root=tmp_path, environment={}, typed={"matrix_file": "matrix.toml"}.get)
    assert settings.command == "pytest --model-matrix --matrix-file=matrix.toml"


def test_an_old_side_that_names_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--matrix-against= names nothing"):
        read(tmp_path, matrix_against="")
    (tmp_path / "matrix.toml").touch()
    unset = {"matrix_against": ""}  # as the ini file tells what it does not hold
    assert read_settings(unset.get, root=tmp_path, environment={}, typed=lambda _: None).against is None
