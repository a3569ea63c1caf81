"""``--matrix-against``: another interpreter, environment or file becomes the old side of each variant that it fits."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from suite import backends
from suite.engine.assembling import OLD
from suite.errors import UsageError
from suite.models.layout import group_ggufs
from suite.records import Variant
from suite.worker.surroundings import environment_of

OLDEST_PYTHON = (3, 11)
ASK_S = 60.0
"""How long an interpreter may take to say what it has."""
ASK = """
import json, sys
from importlib.util import find_spec

def has(name):
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False

print(json.dumps([list(sys.version_info[:2]), {name: has(name) for name in sys.argv[1:]}]))
"""


def make_shadows(against: Path, variants: Sequence[Variant]) -> tuple[Variant, ...]:
    """The old side of each of `variants` that `against` fits, called ``<name>@old``.

    Raises UsageError when it is none of an interpreter, a virtual environment, a directory of weights and a GGUF, when
    it fits no variant, or when one file fits several.
    """
    python = find_interpreter(against)
    shadows = _under(python, variants) if python else _with_weights(against, variants)
    return tuple(dataclasses.replace(s, name=s.name + OLD, old_of=s.name, reference=False) for s in shadows)


def find_interpreter(against: Path) -> Path | None:
    """The interpreter that `against` is, or that the virtual environment there holds; None for weights."""
    if not against.exists():
        raise UsageError(f"--matrix-against={against}: does not exist; name a Python, an environment or weights")
    inside = [against / "bin" / "python", against / "Scripts" / "python.exe"]
    found = next((python for python in inside if python.is_file()), None) if against.is_dir() else against
    if found is None or found.suffix.lower() == ".gguf":
        return None
    if not os.access(found, os.X_OK):
        raise UsageError(
            f"--matrix-against={against}: neither a program that can be run, nor a .gguf file or a directory"
        )
    return found


def _under(python: Path, variants: Sequence[Variant]) -> list[Variant]:
    """The variants whose backends the interpreter has, to be run by it."""
    needs = {variant.name: backends.resolve(variant.backend).requires for variant in variants}
    has = ask_interpreter(python, sorted({module for modules in needs.values() for module in modules}))
    fitting = [v for v in variants if all(has.get(module) for module in needs[v.name])]
    if not fitting:
        missing = ", ".join(name for name, is_there in has.items() if not is_there)
        raise UsageError(
            f"--matrix-against={python}: no selected variant can run there, for it has no {missing}; install what the old "
            "side needs into that environment"
        )
    return [dataclasses.replace(variant, python=str(python)) for variant in fitting]


def ask_interpreter(python: Path, modules: Sequence[str]) -> Mapping[str, bool]:
    """Which of `modules` it can import. Raises UsageError when it is no Python, or too old for the suite."""
    try:
        asked = subprocess.run(
            [str(python), "-P", "-c", ASK, *modules],
            env=environment_of(0, python=str(python)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
            timeout=ASK_S,
        )
        version, found = json.loads(asked.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as fault:
        told = (getattr(fault, "stderr", None) or str(fault)).strip().splitlines()
        raise UsageError(
            f"--matrix-against={python}: is no Python {_dotted(OLDEST_PYTHON)} or newer: {told[-1] if told else fault}"
        ) from fault
    if tuple(version) < OLDEST_PYTHON:
        raise UsageError(
            f"--matrix-against={python}: is Python {_dotted(version)}; the suite needs {_dotted(OLDEST_PYTHON)} or newer"
        )
    answer: dict[str, bool] = found
    return answer


def _dotted(version: Sequence[int]) -> str:
    return ".".join(map(str, version))


def _with_weights(against: Path, variants: Sequence[Variant]) -> list[Variant]:
    """The variants that can load what lies there, each with the file that is its own."""
    kind, files = _weights_in(against)
    fitting = [v for v in variants if backends.resolve(v.backend).weights_format == kind]
    if not fitting:
        raise UsageError(f"--matrix-against={against}: holds {kind} weights, which no selected variant loads")
    if len(files) > 1:
        return _by_name(against, files, fitting)
    if kind == "gguf" and len(fitting) > 1:
        raise UsageError(
            f"--matrix-against={against}: could be the old file of {', '.join(v.name for v in fitting)}; choose one: "
            f"--matrix-variants {fitting[0].name}"
        )
    return [_loading(variant, files[0]) for variant in fitting]


def _weights_in(against: Path) -> tuple[str, list[Path]]:
    """Format and places of the weights: a directory of safetensors, or GGUF files."""
    if against.is_file():
        return "gguf", [against]
    if any(against.glob("*.safetensors")):
        return "safetensors", [against]
    files = [against / first for first in group_ggufs(file.name for file in against.glob("*.gguf"))]
    if not files:
        raise UsageError(
            f"--matrix-against={against}: holds neither an environment (bin/python) nor weights (.safetensors, .gguf)"
        )
    return "gguf", files


def _by_name(against: Path, files: Sequence[Path], variants: Sequence[Variant]) -> list[Variant]:
    """Of several GGUF files each variant gets the one that is named like its type, or like itself."""
    chosen = []
    for variant in variants:
        word = (variant.make or variant.quantization or variant.name).lower()
        named = [file for file in files if word in file.name.lower()]
        if len(named) > 1:
            raise UsageError(
                f"--matrix-against={against}: {', '.join(f.name for f in named)} could all be the old file of "
                f"{variant.name}; name one of them"
            )
        chosen += [_loading(variant, named[0])] if named else []
    if not chosen:
        names = ", ".join(file.name for file in files)
        raise UsageError(f"--matrix-against={against}: none of {names} is named like a selected variant; name one file")
    return chosen


def _loading(variant: Variant, weights: Path) -> Variant:
    return dataclasses.replace(variant, source=str(weights), make=None)
