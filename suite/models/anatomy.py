"""Which of the weights one token reads: the headers of the files, tensor by tensor.

Of a table of embeddings a token reads one row; a table that is the output matrix too is read whole; of the experts of a
mixture those in use; of parts that generate no text, and of layers that predict further tokens, nothing. Sources: names
of tensors in gguf-py (``constants.py``) and in transformers' checkpoints; active experts: Mixtral, arXiv:2401.04088.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path

from suite.errors import LoadError
from suite.models.attention import shape_of_config, shape_of_gguf, text_config
from suite.models.files import read_json
from suite.models.gguf_header import GgufHeader, GgufTensor, read_gguf_header
from suite.models.kv import KvShape
from suite.models.safetensors_header import StoredTensor, read_safetensors_header

_GGUF_TABLES = frozenset({"per_layer_token_embd.weight", "position_embd.weight", "token_types.weight"})
_BLOCK = re.compile(r"(?:^|\.)(?:blk|layers|h)\.(\d+)\.")
_HEAD = re.compile(r"(?:^|\.)(?:lm_head|embed_out)\.|^output\.weight$")
_TABLE = re.compile(
    r"(?:^|\.)(?:embed_tokens|wte|word_embeddings|embed_in|tok_embeddings"
    r"|embed_tokens_per_layer|wpe|embed_positions|position_embeddings)\.weight$"
)
_EXTRA_TABLE = re.compile(r"(?:^|\.)(?:embed_tokens_per_layer|wpe|embed_positions|position_embeddings)\.weight$")
_UNUSED = re.compile(
    r"(?:^|\.)(?:vision_tower|vision_model|visual|vision_embed_tokens|audio_tower|audio_model|embed_vision|embed_audio"
    r"|multi_modal_projector|mm_projector|nextn|mtp)\."
)
_EXPERTS_IN_USE = ("num_experts_per_tok", "num_experts_per_token", "top_k_experts", "moe_topk", "moe_k")
_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
_PACKED_SHARE = 0.01
"""Above this share of bytes in integers, safetensors hold packed weights, whose number the shapes do not tell."""


class Role(Enum):
    """What a token has to do with a tensor."""

    WHOLE = "read whole"
    HEAD = "read whole, where a token is to be predicted"
    ROW = "one row of it is read"
    EXPERT = "the share of the experts in use is read"
    UNUSED = "not read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Anatomy:
    """What one token reads of the weights, as they are stored."""

    read_bytes: int
    all_bytes: int
    """The same with every expert, as for many tokens at once."""
    read_parameters: int | None
    """None where packed weights do not tell their number."""
    all_parameters: int | None
    head_parameters: int | None
    """Of the output matrix, among those that are read."""
    row_parameters: int
    """Of the tables of which one row is read, whole: they lie in memory, and are not read."""
    shape: KvShape | None
    """None where the attention is not told."""


def read_anatomy(paths: Sequence[Path]) -> Anatomy | None:
    """The anatomy of the model in `paths`: one GGUF, its parts in order, or a model's safetensors.

    None where it is not told: no files, a damaged header, or experts of which nobody says how many are in use.
    """
    if not paths:
        return None
    try:
        if paths[0].suffix.lower() == ".gguf":
            headers = [read_gguf_header(path) for path in paths]
            return anatomy_of_gguf(headers[0], [tensor for header in headers for tensor in header.tensors])
        tensors = [tensor for path in paths for tensor in read_safetensors_header(path)]
    except (LoadError, OSError):
        return None
    return anatomy_of_safetensors(read_json(paths[0].parent / "config.json"), tensors)


def anatomy_of_gguf(header: GgufHeader, tensors: Sequence[GgufTensor]) -> Anatomy | None:
    """Of a GGUF file; `header` has the metadata, `tensors` are those of all parts."""
    architecture = header.text("general.architecture")

    def integer(key: str) -> int:
        return header.integer(f"{architecture}.{key}") or 0

    layers = integer("block_count") - integer("nextn_predict_layers")
    tied = all(tensor.name != "output.weight" for tensor in tensors)
    parts = [(_gguf_role(tensor.name, layers, tied=tied), _Part.of(tensor)) for tensor in tensors]
    return _add_up(parts, integer("expert_used_count"), integer("expert_count"), shape_of_gguf(header))


def anatomy_of_safetensors(config: Mapping[str, object], tensors: Sequence[StoredTensor]) -> Anatomy | None:
    """Of safetensors with their ``config.json``."""
    told = text_config(config)
    layers = _first_integer(told, ("num_hidden_layers", "n_layer")) or 0
    tied = not any(_HEAD.search(tensor.name) for tensor in tensors)
    role: Callable[[str], Role] = partial(_stored_role, layers=layers, tied=tied)
    packed = _is_packed(tensors)
    parts = [(role(tensor.name), _Part.of(tensor, packed=packed)) for tensor in tensors]
    used, count = _first_integer(told, _EXPERTS_IN_USE), _first_integer(told, _EXPERTS)
    return _add_up(parts, used or 0, count or 0, shape_of_config(config))


def _gguf_role(name: str, layers: int, *, tied: bool) -> Role:
    if name == "token_embd.weight":
        return Role.HEAD if tied else Role.ROW
    if name in _GGUF_TABLES:
        return Role.ROW
    if name.startswith("output."):
        return Role.HEAD
    if _is_beyond(name, layers) or _UNUSED.search(name):
        return Role.UNUSED
    return Role.EXPERT if "_exps." in name else Role.WHOLE


def _stored_role(name: str, *, layers: int, tied: bool) -> Role:
    if _UNUSED.search(name) or _is_beyond(name, layers):
        return Role.UNUSED
    if _HEAD.search(name):
        return Role.HEAD
    if _TABLE.search(name):
        return Role.HEAD if tied and not _EXTRA_TABLE.search(name) else Role.ROW
    return Role.EXPERT if ".experts." in name else Role.WHOLE


def _is_beyond(name: str, layers: int) -> bool:
    """A layer behind the last one predicts further tokens, which nobody asked for."""
    found = _BLOCK.search(name)
    return found is not None and 0 < layers <= int(found[1])


@dataclass(frozen=True, slots=True)
class _Part:
    """One tensor: bytes, parameters (None when packed), rows."""

    size_bytes: int
    parameters: int | None
    rows: int

    @classmethod
    def of(cls, tensor: GgufTensor | StoredTensor, *, packed: bool = False) -> _Part:
        count = tensor.parameters if isinstance(tensor, GgufTensor) else tensor.elements
        return cls(tensor.size_bytes, None if packed else count, max(tensor.rows, 1))


def _add_up(parts: Iterable[tuple[Role, _Part]], used: int, experts: int, shape: KvShape | None) -> Anatomy | None:
    by_role: dict[Role, list[_Part]] = {role: [] for role in Role}
    for role, part in parts:
        by_role[role].append(part)
    if by_role[Role.EXPERT] and not 0 < used <= experts:
        return None
    whole = [*by_role[Role.WHOLE], *by_role[Role.HEAD]]
    rows = by_role[Role.ROW]
    fixed = sum(part.size_bytes for part in whole) + sum(part.size_bytes // part.rows for part in rows)
    expert_bytes = sum(part.size_bytes for part in by_role[Role.EXPERT])
    fixed_parameters, expert_parameters = _count(whole), _count(by_role[Role.EXPERT])
    known = fixed_parameters is not None and expert_parameters is not None
    return Anatomy(
        read_bytes=fixed + _share(expert_bytes, used, experts),
        all_bytes=fixed + expert_bytes,
        read_parameters=(fixed_parameters or 0) + _share(expert_parameters or 0, used, experts) if known else None,
        all_parameters=(fixed_parameters or 0) + (expert_parameters or 0) if known else None,
        head_parameters=_count(by_role[Role.HEAD]),
        row_parameters=_count(rows) or 0,
        shape=shape,
    )


def _share(amount: int, used: int, experts: int) -> int:
    return amount * used // experts if experts else amount


def _count(parts: Iterable[_Part]) -> int | None:
    counts = [part.parameters for part in parts]
    return None if None in counts else sum(count or 0 for count in counts)


def _is_packed(tensors: Sequence[StoredTensor]) -> bool:
    total = sum(tensor.size_bytes for tensor in tensors)
    integers = sum(t.size_bytes for t in tensors if t.type[:1] in ("I", "U") and t.type[1:].isdigit())
    return total > 0 and integers / total > _PACKED_SHARE


def _first_integer(config: Mapping[str, object], keys: Iterable[str]) -> int | None:
    values = (config.get(key) for key in keys)
    return next((v for v in values if isinstance(v, int) and not isinstance(v, bool) and v > 0), None)
