"""The embedded model, quantized once into the user's cache, for tests that run it for real."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.real import CACHE, Launch, declare

from suite import backends
from suite.engine.launching import Launcher, LiveVariant
from suite.engine.preparing import Preparer
from suite.engine.progress import silent
from suite.errors import Unavailable
from suite.records import Deadlines


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here runs the model."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("model")


@pytest.fixture(scope="session")
def preparer() -> Preparer:
    """Makes weights, or finds them in the cache."""
    return Preparer(base=Path.cwd(), cache=CACHE, deadlines=Deadlines(), progress=silent)


@pytest.fixture(scope="session")
def weights(preparer: Preparer) -> Callable[[str], Path]:
    """Path of the embedded model quantized to a GGUF type."""

    def find(recipe: str) -> Path:
        found = preparer.prepare(declare("llama_cpp", make=recipe)).weights
        assert found is not None
        return found

    return find


@pytest.fixture
def launch(preparer: Preparer, tmp_path: Path) -> Launch:
    """Load a variant in a worker: ``with launch("llama_cpp", {...}, make="Q8_0") as live``."""

    @contextmanager
    def begin(backend: str, options: Mapping[str, Any] | None = None, **fields: Any) -> Iterator[LiveVariant]:
        try:
            backends.require(backend)
        except Unavailable as missing:
            pytest.skip(str(missing))
        launcher = Launcher(preparer=preparer, deadlines=Deadlines(), logs=tmp_path / "logs", progress=silent)
        with launcher.launch(declare(backend, options, **fields)) as live:
            yield live

    return begin
