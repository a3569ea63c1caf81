"""Backends by name. Importing this package imports none of them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from suite.backends.base import Backend
from suite.errors import Unavailable, UsageError, nearest

BUILT_IN: Mapping[str, str] = {
    "transformers": "suite.backends.transformers:BACKEND",
    "bitsandbytes": "suite.backends.bitsandbytes:BACKEND",
    "llama_cpp": "suite.backends.llama_cpp:BACKEND",
    "server": "suite.backends.server:BACKEND",
    "fake": "suite.backends.fake:BACKEND",
    "kernel": "suite.backends.kernel:BACKEND",
}


def resolve(name: str) -> Backend:
    """The backend called `name`: a built-in, or ``package.module:attribute`` for one's own.

    Raises UsageError naming the nearest known backend, or what went wrong with the import.
    """
    path = BUILT_IN.get(name, name)
    if ":" not in path:
        raise UsageError(
            f"unknown backend '{name}'; {nearest(name, BUILT_IN)} Or give one's own as 'package.module:attribute'."
        )
    module_name, _, attribute = path.partition(":")
    try:
        backend: Backend = getattr(import_module(module_name), attribute)
    except (ImportError, AttributeError) as fault:
        raise UsageError(f"backend '{name}' cannot be imported: {fault}") from fault
    return backend


def options_of(name: str) -> type[Any]:
    """The options dataclass of the backend called `name`."""
    return resolve(name).options


def require(name: str) -> None:
    """Raise Unavailable, naming the missing packages, when the backend's libraries are not installed."""
    missing = [module for module in resolve(name).requires if find_spec(module) is None]
    if missing:
        packages = " ".join(sorted({PACKAGES.get(module, module) for module in missing}))
        raise Unavailable(
            f"backend '{name}' needs {', '.join(missing)}, which is not installed: pip install {packages}"
        )


PACKAGES: Mapping[str, str] = {"llama_cpp": "llama-cpp-python"}
"""Distribution names that differ from the import name."""
