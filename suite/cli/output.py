"""Writing to a terminal that may know few characters, and to a person who waits."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path


def write_lines(lines: Iterable[str]) -> None:
    """Write lines; what the terminal's encoding lacks is escaped, so that an old locale is no crash."""
    encoding = sys.stdout.encoding or "utf-8"
    for line in lines:
        sys.stdout.write(line.encode(encoding, errors="backslashreplace").decode(encoding) + "\n")


def tell(sentence: str, /) -> None:
    """Say on standard error what is being done: standard output is for results."""
    encoding = sys.stderr.encoding or "utf-8"
    sys.stderr.write(sentence.encode(encoding, errors="backslashreplace").decode(encoding) + "\n")
    sys.stderr.flush()


def deliver(text: str, output: str | None) -> None:
    """Write a whole document to the file `output` (UTF-8, all of it or nothing of it), or to standard output.

    Raises UsageError for a file that cannot be written.
    """
    if output is None:
        write_lines(text.removesuffix("\n").split("\n") if text else [])
        return
    from suite.atomic import write_text

    write_text(Path(output).expanduser(), text)


def wants_color(choice: str, *, to_file: bool = False) -> bool:
    """``auto``: a terminal, unless NO_COLOR is set (https://no-color.org)."""
    if choice != "auto":
        return choice == "always"
    return not to_file and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
