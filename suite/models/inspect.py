"""Files of weights → the Artifact: what the bytes are, not what their name says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from suite.errors import LoadError, VariantError
from suite.matrix.labels import find_label
from suite.models.families import describe_mismatch
from suite.models.gguf_header import GgufHeader, GgufTensor, read_gguf_header
from suite.models.hashes import HashCache
from suite.models.safetensors_header import StoredTensor, read_safetensors_header
from suite.records import Artifact, ArtifactFile

_PACKED_SHARE = 0.01
"""Above this share of bytes in integers, safetensors hold packed weights, whose number the shapes do not tell."""


@dataclass(slots=True)
class _Found:
    """What the headers add up to."""

    types: Counter[str] = field(default_factory=Counter)
    parameters: Counter[str] = field(default_factory=Counter)
    sizes: Counter[str] = field(default_factory=Counter)
    claimed: str | None = None
    error: str | None = None


def inspect_files(
    paths: Sequence[Path],
    *,
    label: str | None,
    revision: str | None,
    derived_from: str | None,
    known_hashes: HashCache,
) -> Artifact:
    """The Artifact of `paths`: one GGUF, its parts in order, or a model's safetensors.

    `label` is what the weights are said to be; for a GGUF without one, its file name says it, or else its own
    ``general.file_type``. A damaged file gives an Artifact whose `inspection_error` says so. Raises VariantError when
    a file cannot be read at all.
    """
    try:
        files = tuple(_describe(path, known_hashes) for path in paths)
        found = _read_headers(paths)
    except OSError as problem:
        raise VariantError(f"weights cannot be read: {problem}") from problem
    is_gguf = bool(paths) and paths[0].suffix.lower() == ".gguf"
    if is_gguf:
        label = label or find_label(paths[0].name) or found.claimed
    parameters = None if _is_packed(found) else sum(found.parameters.values()) or None
    bpw = 8 * sum(found.sizes.values()) / parameters if parameters else None
    return Artifact(
        files=files,
        size_bytes=sum(file.size_bytes for file in files),
        revision=revision,
        tensor_types=dict(sorted(found.types.items())),
        parameters=parameters,
        bpw=bpw,
        label=label,
        mismatch=describe_mismatch(label, found.parameters, bpw) if is_gguf and label and bpw else None,
        derived_from=derived_from,
        inspection_error=found.error,
    )


def _describe(path: Path, known_hashes: HashCache) -> ArtifactFile:
    return ArtifactFile(name=path.name, size_bytes=path.stat().st_size, sha256=known_hashes.sha256(path))


def _read_headers(paths: Sequence[Path]) -> _Found:
    """Sums over all the files; the first fault that a file has is kept beside what could be read."""
    found = _Found()
    for path in paths:
        try:
            tensors: Iterable[GgufTensor | StoredTensor]
            if path.suffix.lower() == ".gguf":
                header = read_gguf_header(path)
                tensors, found.claimed = header.tensors, found.claimed or _claimed_type(header)
            else:
                tensors = read_safetensors_header(path)
            _add(found, tensors)
            _require_whole(path, tensors)
        except LoadError as damage:
            found.error = found.error or str(damage)
    return found


def _add(found: _Found, tensors: Iterable[GgufTensor | StoredTensor]) -> None:
    for tensor in tensors:
        found.types[tensor.type] += 1
        found.parameters[tensor.type] += tensor.parameters if isinstance(tensor, GgufTensor) else tensor.elements
        found.sizes[tensor.type] += tensor.size_bytes


def _require_whole(path: Path, tensors: Iterable[GgufTensor | StoredTensor]) -> None:
    last = max(tensors, key=lambda tensor: tensor.end, default=None)
    size = path.stat().st_size
    if last is not None and last.end > size:
        raise LoadError(f"{path.name}: cut off: tensor '{last.name}' ends at byte {last.end}, the file at {size}")


def _is_packed(found: _Found) -> bool:
    """Whether safetensors hold packed integers (a pre-quantized repository)."""
    total = sum(found.sizes.values())
    integers = sum(size for name, size in found.sizes.items() if name[:1] in ("I", "U") and name[1:].isdigit())
    return total > 0 and integers / total > _PACKED_SHARE


def _claimed_type(header: GgufHeader) -> str | None:
    """What ``general.file_type`` claims: a number of llama.cpp's ``llama_ftype``."""
    import gguf  # here, since it brings numpy

    claimed = header.integer("general.file_type")
    names: Mapping[int, str] = {int(kind): kind.name for kind in gguf.LlamaFileType}
    name = names.get(claimed, "") if claimed is not None else ""
    return find_label(name.removeprefix("MOSTLY_").removeprefix("ALL_"))
