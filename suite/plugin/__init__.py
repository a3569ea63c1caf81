"""The pytest plugin. Without ``--model-matrix`` it adds its options and one fixture, and imports nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import pytest

from suite.settings import OPTIONS, Option

if TYPE_CHECKING:
    from suite.plugin.fixture import MatrixVariant

FIXTURE = "matrix_variant"
NAME = "quantdrift"


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--model-matrix`` and its kin, each with an ini twin."""
    group = parser.getgroup("matrix", "quantized models: quality and speed against baselines")
    group.addoption(
        "--model-matrix",
        action="store_true",
        default=False,
        help="measure every variant in the matrix file, and fail what drifted from its baseline",
    )
    for option in OPTIONS:
        group.addoption(option.flag, dest=option.name, default=None, help=option.help, **_kind(option))
        parser.addini(option.name, option.help, type=_ini_type(option))


def _kind(option: Option) -> dict[str, Any]:
    if option.switch:
        return {"action": "store_true"}
    if option.many:
        return {"action": "append", "metavar": option.metavar}
    return {"choices": option.choices} if option.choices else {"metavar": option.metavar}


def _ini_type(option: Option) -> Literal["args", "bool", "string"]:
    if option.many:
        return "args"
    return "bool" if option.switch else "string"


def pytest_configure(config: pytest.Config) -> None:
    """Wake up when asked to."""
    config.addinivalue_line("markers", "matrix: belongs to the model matrix")
    for marker in ("matrix_quality", "matrix_speed", "matrix_memory", "matrix_case", "matrix_budget"):
        config.addinivalue_line("markers", f"{marker}: a {marker.removeprefix('matrix_')} item of the model matrix")
    lone = [option.flag for option in OPTIONS if config.getoption(option.name)]
    if lone and not config.getoption("model_matrix"):
        pytest.exit(f"quantdrift: {', '.join(lone)} does nothing without --model-matrix; add it", returncode=2)
    if config.getoption("model_matrix"):
        from suite.plugin.active import activate

        activate(config)


@pytest.fixture
def matrix_variant(request: pytest.FixtureRequest) -> MatrixVariant:
    """One variant of the model matrix; the test runs once for each.

    ::

        def test_json(matrix_variant):
            answer = matrix_variant.ask("Reply with a JSON object that holds your name.", max_new_tokens=48)
            matrix_variant.record(score=1.0 if is_json(answer.text) else 0.0, domain="format")
    """
    plugin: Any = request.config.pluginmanager.get_plugin(NAME)
    if plugin is None:
        pytest.skip("runs once for each variant of the model matrix: pytest --model-matrix")
    variant: MatrixVariant = plugin.hand_out(request)
    return variant


def option_reader(config: pytest.Config) -> Callable[[str], Any]:
    """Value of an option by its name: the command line first, then the ini file."""

    def read(name: str) -> Any:
        given = config.getoption(name)
        return config.getini(name) if given is None or given is False else given

    return read
