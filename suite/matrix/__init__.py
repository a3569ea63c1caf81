"""The matrix file: which model, which variants of it, and how they are timed.

>>> matrix = load_matrix(Path("matrix.toml"), options_of=options_of)      # doctest: +SKIP
>>> select_variants(matrix, ["q4_k_m"]).variants[0].make                  # doctest: +SKIP
'Q4_K_M'
"""

from __future__ import annotations

from suite.matrix.load import load_matrix, select_variants
from suite.matrix.source import Source, local_path, parse_source
from suite.matrix.variants import OptionsOf

__all__ = ["OptionsOf", "Source", "load_matrix", "local_path", "parse_source", "select_variants"]
