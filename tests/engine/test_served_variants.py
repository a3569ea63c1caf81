"""What a variant that is served needs of the engine: the weights that it is of, or none, and the key that it names."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.in_process import make_preparer

from suite.backends import options_of
from suite.engine.launching import named_variables
from suite.errors import MatrixFileError
from suite.records import Variant
from suite.schema import dump


def variant(**options: object) -> Variant:
    declared = dump(options_of("server")(**options))
    return Variant(name="v", model="m", backend="server", source="./weights.gguf", options=declared)


def test_only_what_an_option_names_goes_along() -> None:
    assert named_variables(variant(url="http://h")) == []
    assert named_variables(variant(url="http://h", api_key_env="MY_KEY")) == ["MY_KEY"]


@pytest.mark.parametrize(
    ("options", "needed"),
    [
        ({"url": "http://h"}, True),
        ({"url": "http://h", "tokenizer": "server"}, False),
        ({"command": ("serve", "{weights}"), "tokenizer": "server"}, True),
    ],
)
def test_weights_are_looked_for_where_they_are_needed(tmp_path: Path, options: dict[str, object], needed: bool) -> None:
    preparer = make_preparer(tmp_path)
    if needed:
        with pytest.raises(MatrixFileError, match=r"weights\.gguf"):
            preparer.prepare(variant(**options))
    else:
        assert preparer.prepare(variant(**options)).weights is None
