"""The reference trace as one compressed file, ``trace.npz``: plain numpy arrays, no pickles. ``.github/TRACE.md`` says which.

Ragged data lie end to end: prompts and answers of all cases one after the other, with the number of tokens of each.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from suite.atomic import write_bytes
from suite.errors import StoreError
from suite.packed import pack, unpack_floats, unpack_ints
from suite.records import Trace
from suite.schema import parse
from suite.store import layout

SCHEMA = 1
"""Version of the file's layout."""
HEADER = "header"
ARRAYS: Mapping[str, tuple[str, int]] = {
    "prompt_ids": ("<i4", 1),
    "answer_ids": ("<i4", 1),
    "logprobs": ("<f4", 1),
    "rest": ("<f4", 1),
    "top_ids": ("<i4", 2),
    "top_logprobs": ("<f4", 2),
}
"""Name → type and number of dimensions."""

_DAMAGED = (
    OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, NotImplementedError, RuntimeError, MemoryError,
    OverflowError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""What zip, zlib, numpy and json raise at bytes that are not what they should be."""


def write_trace(trace: Trace, root: Path) -> Path:
    """Write a trace below the baselines' `root`, atomically; returns the file. The same trace gives the same bytes."""
    file = layout.trace_file(root, trace.model)
    write_bytes(file, encode(trace))
    return file


def read_trace(root: Path, model: str) -> Trace | None:
    """The trace of a model, None when there is none. Raises StoreError for one that cannot be used, saying why."""
    file = layout.trace_file(root, model)
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"{file}: cannot be read: {error.strerror or error}") from error
    trace = decode(data, where=str(file))
    if trace.model != model:
        raise StoreError(
            f"{file}: it is the trace of {trace.model!r}, but lies where that of {model!r} belongs; move it"
        )
    return trace


def encode(trace: Trace) -> bytes:
    """The bytes of a trace file."""
    import numpy

    cases = [trace.cases[name] for name in sorted(trace.cases)]
    header = {
        "schema": SCHEMA,
        "kind": "trace",
        "model": trace.model,
        "reference": trace.reference,
        "key": dict(sorted(trace.key.items())),
        "made": dict(sorted(trace.made.items())),
        "top": trace.top,
        "cases": [
            {
                "case": case.case,
                "version": case.version,
                "domain": case.domain,
                "family": case.family,
                "prompt_tokens": len(case.prompt_ids),
                "answer_tokens": len(case.answer_ids),
            }
            for case in cases
        ],
    }
    arrays: dict[str, Any] = {HEADER: numpy.frombuffer(json.dumps(header, ensure_ascii=False).encode(), "u1")}
    for name, (kind, dimensions) in ARRAYS.items():
        arrays[name] = _join([getattr(case, name) for case in cases], kind, trace.top if dimensions == 2 else None)
    buffer = io.BytesIO()
    numpy.savez_compressed(buffer, **arrays)  # its entries carry no time of day
    return buffer.getvalue()


def _join(pieces: Sequence[Any], kind: str, width: int | None) -> Any:
    """The numbers of all cases as one array; with a `width` they are packed. Raises ValueError for rows that are not even."""
    import numpy

    if width is None:
        return numpy.array([number for piece in pieces for number in piece], kind)
    unpack = unpack_ints if kind == "<i4" else unpack_floats
    return numpy.concatenate([numpy.zeros((0, width), kind), *(unpack(piece).reshape(-1, width) for piece in pieces)])


def decode(data: bytes, *, where: str) -> Trace:
    """The trace in the bytes of a file. Raises StoreError naming `where` for anything that is not as it was written."""
    import numpy

    try:
        with numpy.load(io.BytesIO(data), allow_pickle=False) as stored:
            header = _read_header(stored[HEADER], where)
            arrays = {name: numpy.asarray(stored[name]) for name in ARRAYS}
    except _DAMAGED as fault:
        raise StoreError(f"{where}: not a trace, or damaged ({fault}); {_renew(where)}") from fault
    counts = _read_counts(header, where)
    _check_arrays(arrays, header, counts, where)
    document: dict[str, Any] = {
        name: header[name] for name in ("model", "reference", "key", "made", "top") if name in header
    }
    document["cases"] = dict(_cut(arrays, header["cases"], counts))
    return parse(Trace, document, where=where, error=StoreError)


def _read_header(array: Any, where: str) -> dict[str, Any]:
    """The header of a file of this layout. Raises StoreError for one of another layout, and what `_DAMAGED` holds."""
    header: Any = json.loads(array.tobytes().decode())
    if not isinstance(header, dict) or header.get("kind") != "trace":
        raise StoreError(f"{where}: its header is not that of a trace; is it the right file?")
    schema = header.get("schema")
    if isinstance(schema, int) and schema > SCHEMA:
        raise StoreError(
            f"{where}: written by a newer quantdrift (schema {schema} of traces; this one reads {SCHEMA}); "
            "upgrade with: pip install --upgrade quantdrift"
        )
    if schema != SCHEMA:
        raise StoreError(
            f"{where}: schema {schema!r} of traces is not the {SCHEMA} that this version reads; {_renew(where)}"
        )
    return header


def _read_counts(header: Mapping[str, Any], where: str) -> list[tuple[int, int]]:
    """Tokens of the prompt and of the answer, for each case."""
    try:
        counts = [(case["prompt_tokens"], case["answer_tokens"]) for case in header["cases"]]
        whole = [*(count for pair in counts for count in pair), header["top"]]
    except (KeyError, TypeError) as fault:
        raise StoreError(f"{where}: its header lacks {fault}; {_renew(where)}") from fault
    if not all(isinstance(count, int) and count >= 0 for count in whole):
        raise StoreError(f"{where}: its header counts what cannot be counted; {_renew(where)}")
    return counts


def _check_arrays(
    arrays: Mapping[str, Any], header: Mapping[str, Any], counts: Sequence[tuple[int, int]], where: str
) -> None:
    """Raise StoreError when the arrays are not as long as the header says, or hold what is no number."""
    import numpy

    prompts, answers = (sum(pair[side] for pair in counts) for side in (0, 1))
    shapes = {name: (answers, header["top"])[:dimensions] for name, (_, dimensions) in ARRAYS.items()}
    shapes["prompt_ids"] = (prompts,)
    for name, shape in shapes.items():
        found, kind = arrays[name], numpy.dtype(ARRAYS[name][0])
        if found.shape != shape or found.dtype != kind:
            told = f"{found.dtype} of shape {found.shape}, and its header says {kind} of shape {shape}"
            raise StoreError(f"{where}: array '{name}' is {told}; {_renew(where)}")
        if not numpy.isfinite(found).all():
            raise StoreError(f"{where}: array '{name}' holds what is no number; {_renew(where)}")


def _cut(
    arrays: Mapping[str, Any], cases: Sequence[Mapping[str, Any]], counts: Sequence[tuple[int, int]]
) -> list[tuple[str, dict[str, Any]]]:
    prompts, answers = (list(accumulate((pair[side] for pair in counts), initial=0)) for side in (0, 1))
    found = []
    for index, case in enumerate(cases):
        piece = slice(answers[index], answers[index + 1])
        fields: dict[str, Any] = {name: _told(arrays[name][piece]) for name in ARRAYS if name != "prompt_ids"}
        fields["top"] = arrays["top_ids"].shape[1]
        fields["prompt_ids"] = arrays["prompt_ids"][prompts[index] : prompts[index + 1]].tolist()
        named = {name: case[name] for name in ("case", "version", "domain", "family") if name in case}
        found.append((str(case.get("case")), {**named, **fields}))
    return found


def _told(piece: Any) -> Any:
    return piece.tolist() if piece.ndim == 1 else pack(piece)


def _renew(where: str) -> str:
    return (
        f"take it back from git, or make it anew: git rm {where} && "
        'pytest --model-matrix --matrix-update=changed --matrix-reason "..."'
    )
