"""Reading and hashing single files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path


def hash_file(path: Path) -> str:
    """Hex sha256 of the content of `path`. Raises OSError."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_json(path: Path) -> Mapping[str, object]:
    """The JSON object in `path`; empty when it is absent, damaged, or no object."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
