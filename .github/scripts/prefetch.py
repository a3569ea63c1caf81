"""Fetch every weight that a matrix names, so that nothing is fetched while it is measured.

::

    prefetch.py [MATRIX]

A hub repository must be named at a full commit: what a branch holds may be another file tomorrow, and then it is the upload
that drifted. Needs the suite to be installed. Exits with 1 when something is not pinned or cannot be had.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from suite import backends
from suite.errors import QuantdriftError
from suite.matrix import load_matrix
from suite.models.sources import locate, parse_source
from suite.records import Variant

COMMIT = re.compile(r"[0-9a-f]{40}")


def main() -> int:
    """Fetch what can be had, and name everything that cannot."""
    file = Path(sys.argv[1] if len(sys.argv) > 1 else "matrix.toml").resolve()
    try:
        variants = load_matrix(file, options_of=backends.options_of).variants
    except QuantdriftError as fault:
        sys.stderr.write(f"prefetch.py: {fault}\n")
        return 1
    status = 0
    for variant in variants:
        try:
            sys.stdout.write(f"{variant.name}: {fetch(variant, file.parent)}\n")
        except QuantdriftError as fault:
            sys.stderr.write(f"prefetch.py: variants.{variant.name}: {fault}\n")
            status = 1
    return status


def fetch(variant: Variant, base: Path) -> str:
    """Where the weights of `variant` come from, once they are here. Raises QuantdriftError where they cannot be."""
    if backends.resolve(variant.backend).weights_format == "none":
        return "needs no weights"
    source = parse_source(variant.source, base=base)
    if source.kind in ("hub", "hub_gguf") and not COMMIT.fullmatch(source.revision or ""):
        raise QuantdriftError(
            f"'{source.text}' is not pinned; name a full commit: {source.text.partition('@')[0]}@<40 hex digits>"
        )
    located = locate(source, base=base, where=f"variants.{variant.name}")
    return f"{located.description}, {located.revision or 'a local file'}"


if __name__ == "__main__":
    sys.exit(main())
