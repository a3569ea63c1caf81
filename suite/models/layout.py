"""Which files of a directory or repository are the weights, which belong beside them, and which are never touched."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from suite.errors import MatrixFileError, Unavailable, nearest
from suite.matrix.labels import find_label

_SPLIT = re.compile(r"(?P<stem>.+)-(?P<part>\d{5})-of-(?P<parts>\d{5})\.gguf", re.IGNORECASE)
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".h5", ".msgpack")
_BESIDE = re.compile(
    r"(config|generation_config|tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab|chat_template"
    r"|preprocessor_config|model\.safetensors\.index)\.json|merges\.txt|vocab\.txt|.*\.jinja|.*\.model|.*\.tiktoken"
)
_NOT_A_MODEL = ("mmproj", "imatrix")


def choose_gguf(files: Iterable[str], label: str, *, what: str) -> tuple[str, ...]:
    """The GGUF in `files` whose name (or folder) carries exactly `label`, any case; all its parts when it is split.

    Raises MatrixFileError, naming the candidates, when none or several carry it; `what` names the place in messages.
    """
    groups = group_ggufs(files)
    by_label: dict[str, list[str]] = {}
    for name in groups:
        found = _label_of(name)
        if found is not None:
            by_label.setdefault(found, []).append(name)
    candidates = by_label.get(label.upper(), [])
    if len(candidates) > 1:
        listed = ", ".join(sorted(candidates))
        raise MatrixFileError(f"{what} holds several files labelled {label}: {listed}; name one of them instead")
    if not candidates:
        hint = nearest(label.upper(), by_label) if by_label else "it holds no GGUF whose name says its quantization"
        raise MatrixFileError(f"{what} holds no GGUF labelled {label}; {hint}")
    return groups[candidates[0]]


def group_ggufs(files: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """GGUF models in `files`: name of the (first) file → all its parts, in order. Projectors are left out."""
    models: dict[str, list[str]] = {}
    for name in sorted(files):
        leaf = PurePosixPath(name).name.lower()
        if leaf.endswith(".gguf") and not any(word in leaf for word in _NOT_A_MODEL):
            split = _SPLIT.fullmatch(name)
            models.setdefault(split["stem"] if split else name, []).append(name)
    return {parts[0]: tuple(parts) for parts in models.values()}


def missing_parts(first: str, present: Iterable[str]) -> tuple[str, ...]:
    """Names of the parts that a split GGUF says it has, and that are not in `present`."""
    split = _SPLIT.fullmatch(first)
    if split is None:
        return ()
    have = set(present)
    total = int(split["parts"])
    names = (f"{split['stem']}-{part:05d}-of-{total:05d}{first[-5:]}" for part in range(1, total + 1))
    return tuple(name for name in names if name not in have)


def choose_safetensors(files: Sequence[str], *, what: str) -> tuple[str, ...]:
    """The safetensors and the configuration and tokenizer files of a repository. Pickles are never chosen.

    Raises MatrixFileError when there are only GGUF files, Unavailable when there are only pickles or no weights.
    """
    top = [name for name in files if "/" not in name]
    tensors = _one_set([name for name in top if name.endswith(".safetensors")])
    if tensors:
        return tuple(tensors + [name for name in top if _BESIDE.fullmatch(name)])
    ggufs = list(group_ggufs(files))
    if ggufs:
        labels = sorted({label for name in ggufs if (label := _label_of(name))})
        example = labels[0] if labels else ggufs[0]
        raise MatrixFileError(f"{what} holds GGUF files only ({', '.join(labels or ggufs)}); write e.g. …:{example}")
    raise Unavailable(explain_no_weights(files, what=what))


def explain_no_weights(files: Iterable[str], *, what: str) -> str:
    """Why a place without safetensors and GGUF is not used."""
    pickles = sorted(name for name in files if name.lower().endswith(_PICKLES))
    if not pickles:
        return f"{what} holds no weights: neither .safetensors nor .gguf"
    return (
        f"{what} holds weights only as {pickles[0]}: such files can run code when loaded, and are never read; "
        "convert them to safetensors, or look for a revision that has them"
    )


def missing_shards(directory: Path) -> tuple[str, ...]:
    """Names of safetensors shards that the index of `directory` lists and that are not there."""
    index = directory / "model.safetensors.index.json"
    if not index.is_file():
        return ()
    try:
        listed = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
    except (ValueError, KeyError, AttributeError, TypeError) as problem:
        raise MatrixFileError(f"{index}: not an index of safetensors ({problem}); fetch the model again") from problem
    return tuple(sorted(name for name in listed if not (directory / str(name)).is_file()))


def _one_set(tensors: list[str]) -> list[str]:
    """Some repositories carry the same weights twice: sharded for libraries, and as one ``consolidated`` file."""
    usual = [name for name in tensors if name.startswith("model")]
    return usual or tensors


def _label_of(name: str) -> str | None:
    path = PurePosixPath(name)
    return find_label(path.name) or find_label(path.parent.name)
