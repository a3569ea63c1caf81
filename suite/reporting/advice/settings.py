"""How a variant was run, exactly: its table for a matrix file, and the weights and libraries that it was measured with.

Names and values are a stranger's: whatever is not plainly visible is written as an escape of TOML, which means the same.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from suite.records import VariantResult
from suite.reporting.hostile import one_line

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_NO_CHARACTER = "\ufffd"
_BLANK = "\u2800"
"""Braille without a dot."""
_CONTEXT = ("n_ctx", "max_model_len")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What it takes to run a variant as it was measured."""

    variant: str
    backend: str
    source: str
    make: str | None
    options: Mapping[str, Any]
    """In force: what was left open is filled in as far as the run tells; what is still open is left out."""
    threads: str | None
    context_tokens: str | None
    weights: Mapping[str, str]
    """sha256 by file."""
    revision: str | None
    made_from: str | None
    versions: Mapping[str, str]
    """What the backend said of itself when it was loaded."""
    toml: str
    """``[variants.<name>]`` for a matrix file."""


def settings_of(result: VariantResult) -> Settings:
    """The settings of a variant, as declared and as the backend reported them."""
    variant, artifact = result.variant, result.artifact
    facts = dict(result.launches[0].facts) if result.launches else {}
    options = {name: value for name, value in variant.options.items() if value is not None}
    threads = facts.get("n_threads")
    if "n_threads" in variant.options and threads is not None and threads.isdecimal():
        options["n_threads"] = int(threads)
    context = next((str(found) for key in _CONTEXT if (found := facts.get(key) or options.get(key))), None)
    return Settings(
        variant=variant.name,
        backend=variant.backend,
        source=variant.source,
        make=variant.make,
        options=options,
        threads=threads or (str(options["n_threads"]) if "n_threads" in options else None),
        context_tokens=context,
        weights={file.name: file.sha256 for file in artifact.files} if artifact else {},
        revision=artifact.revision if artifact else None,
        made_from=artifact.derived_from if artifact else None,
        versions=facts,
        toml=_table(result, options),
    )


def describe_settings(settings: Settings) -> Iterator[str]:
    """What the table cannot hold, a sentence each: threads, context, weights."""
    if settings.threads:
        yield f"threads: {one_line(settings.threads)}"
    if settings.context_tokens:
        yield f"context: {one_line(settings.context_tokens)} tokens"
    for name, sha256 in settings.weights.items():
        yield f"weights: {one_line(name)}, sha256 {one_line(sha256)}"
    if settings.revision:
        yield f"revision: {one_line(settings.revision)}"


def _table(result: VariantResult, options: Mapping[str, Any]) -> str:
    variant = result.variant
    lines = [f"[variants.{_key(variant.name)}]", f"backend = {_string(variant.backend)}"]
    lines.append(f"source = {_string(variant.source)}")
    lines += [f"make = {_string(variant.make)}"] if variant.make else []
    lines += ["reference = true"] if variant.reference else []
    lines += [f"options = {_value(options)}"] if options else []
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        pairs = (f"{_key(str(name))} = {_value(inner)}" for name, inner in value.items() if inner is not None)
        inside = ", ".join(pairs)
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(_value(inner) for inner in value)}]"
    return _string(str(value))


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _string(name)


def _string(text: str) -> str:
    return '"' + "".join(map(_character, text)) + '"'


def _character(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character == " " or _is_visible(character):
        return character
    if unicodedata.category(character) == "Cs":
        character = _NO_CHARACTER  # half of a pair is no character, and TOML has no word for it
    code = ord(character)
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


def _is_visible(character: str) -> bool:
    """Letters, digits, punctuation and symbols that leave ink; no marks, spaces, control or format characters."""
    inked = character != _BLANK and "FILLER" not in unicodedata.name(character, "")
    return unicodedata.category(character)[0] in "LNPS" and inked
