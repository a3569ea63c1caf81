"""A real git repository for tests, whatever is configured on this machine."""

from __future__ import annotations

import subprocess
from pathlib import Path


def git(directory: Path, *arguments: str) -> None:
    configured = ("-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(directory), *configured, *arguments], check=True, capture_output=True)


def commit(directory: Path, message: str) -> None:
    git(directory, "add", "-A")
    git(directory, "commit", "-q", "-m", message)
