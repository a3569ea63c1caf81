"""What the pytest configuration of a project sets, for commands that run without pytest."""

from __future__ import annotations

import configparser
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from suite.errors import UsageError

INI_FILES = {"pytest.ini": "pytest", ".pytest.ini": "pytest", "tox.ini": "pytest", "setup.cfg": "tool:pytest"}
"""Name of a file → its section for pytest."""
ORDER = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
"""The first of them that holds a section for pytest counts, as in pytest."""


def read_ini(root: Path) -> Mapping[str, Any]:
    """Names and values of the configuration in `root`; {} without one. Raises UsageError naming a file that cannot be read."""
    for name in ORDER:
        file = root / name
        try:
            found = _read(file) if file.is_file() else None
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, configparser.Error) as error:
            raise UsageError(f"{file}: cannot be read: {error}") from error
        if found is not None:
            return found
    return {}


def _read(file: Path) -> Mapping[str, Any] | None:
    if file.suffix == ".toml":
        tool = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {})
        found: Mapping[str, Any] | None = tool.get("pytest", {}).get("ini_options")
        return found
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(file.read_text(encoding="utf-8"))
    section = INI_FILES[file.name]
    if parser.has_section(section):
        return dict(parser[section])
    return {} if file.name.endswith("pytest.ini") else None
