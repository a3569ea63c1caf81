"""What llama.cpp prints while it loads, and tells nowhere else."""

from __future__ import annotations

import re

_OFFLOADED = re.compile(r"^load_tensors: offloaded (\d+)/(\d+) layers to GPU", re.MULTILINE)
_FLASH = re.compile(r"^llama_\w+: flash_attn\s*= (\w+)|^\w+: Flash Attention was auto, set to (\w+)", re.MULTILINE)
_CACHE = re.compile(r"^llama_kv_cache\w*: size =\s*([\d.]+) MiB.*?(?:K \((\w+)\).*?V \((\w+)\).*)?$", re.MULTILINE)
_WRONG = re.compile(r"error|fail|invalid|corrupt|unsupported|\bunknown\b|\bnot (?!apply)", re.IGNORECASE)
_UNFINISHED = re.compile(r"^\[.*\.\. (?=\w+: )")
_STATES = {"enabled": "on", "disabled": "off"}


def kv_cache_bytes(log: str) -> int | None:
    """Bytes of all KV caches that were allocated; None where none was told."""
    sizes = [float(match[1]) for match in _CACHE.finditer(log)]
    return round(sum(sizes) * 2**20) if sizes else None


def read_reason(log: str) -> str:
    """The lines that say what was wrong, six at most. What a line was already about when an error came is left out of it."""
    told = [_UNFINISHED.sub("", line).strip() for line in log.splitlines() if _WRONG.search(line)]
    return "; ".join(list(dict.fromkeys(told))[:6])


def read_facts(log: str) -> dict[str, str]:
    """Facts as named in `suite.backends.base.LoadedModel`; what was not printed is left out.

    The last line of a kind counts: metadata, which whoever made the file wrote, is printed before.
    """
    facts = {}
    if offloaded := _OFFLOADED.findall(log):
        facts["layers offloaded"] = " of ".join(offloaded[-1])
    if flash := _FLASH.findall(log):
        told = "".join(flash[-1])
        facts["flash attention"] = _STATES.get(told, told)
    if types := {f"{match[2]} {match[3]}" for match in _CACHE.finditer(log) if match[2]}:
        facts["KV types"] = " + ".join(sorted(types))
    return facts
