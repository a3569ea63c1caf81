"""One ``[variants.<name>]`` table → one Variant, with the options of its backend checked and completed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suite.errors import MatrixFileError, UsageError, nearest
from suite.matrix.source import Source, local_path, parse_source
from suite.matrix.tables import ModelTable, VariantTable
from suite.records import Variant
from suite.schema import dump, parse

OptionsOf = Callable[[str], type[Any]]
"""Backend name → the dataclass of its options. Its class attribute ``MAKES``, if any, lists what it can make."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantReader:
    """What is needed to understand a variant: where it is written, and what it inherits."""

    file: Path
    model: ModelTable
    defaults: Mapping[str, Mapping[str, Any]]
    options_of: OptionsOf

    @property
    def base(self) -> Path:
        """The directory that relative paths start from."""
        return self.file.parent

    def check_defaults(self) -> None:
        """Raise MatrixFileError unless every ``[defaults.<backend>]`` fits the options of that backend."""
        for backend, values in self.defaults.items():
            where = f"{self.file}: defaults.{backend}"
            options = self._options_type(backend, where)
            fields = dataclasses.fields(options)
            unknown = [key for key in values if key not in {field.name for field in fields}]
            if unknown or all(_has_default(field) for field in fields):
                parse(options, dict(values), where=where, error=MatrixFileError)

    def read(self, name: str, table: VariantTable) -> Variant | MatrixFileError:
        """The variant, or what is wrong with it: a caller collects the faults of all."""
        try:
            return self._read(name, table)
        except MatrixFileError as fault:
            return fault

    def _read(self, name: str, table: VariantTable) -> Variant:
        where = f"{self.file}: variants.{name}"
        options_type = self._options_type(table.backend, f"{where}.backend")
        merged = {**self.defaults.get(table.backend, {}), **table.options}
        options = dump(parse(options_type, merged, where=f"{where}.options", error=MatrixFileError))
        _refuse_coerced(merged, options, f"{where}.options")
        make = _check_make(table, options_type, f"{where}.make")
        source = self._source(table, where)
        return Variant(
            name=name,
            model=self.model.name,
            backend=table.backend,
            source=source.text,
            quantization=_quantization(options, make, source),
            make=make,
            reference=table.reference,
            options=options,
            prompt_format=self.model.prompt_format,
        )

    def _options_type(self, backend: str, where: str) -> type[Any]:
        try:
            return self.options_of(backend)
        except UsageError as unknown:
            raise MatrixFileError(f"{where}: {unknown}") from None

    def _source(self, table: VariantTable, where: str) -> Source:
        text, key = (self.model.source, f"{self.file}: model.source")
        if table.source is not None:
            text, key = (table.source, f"{where}.source")
        try:
            source = parse_source(text, base=self.base)
        except MatrixFileError as fault:
            raise MatrixFileError(f"{key}: {fault}") from None
        local_path(source, self.base, where=key)
        return source


def _has_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def _refuse_coerced(given: Mapping[str, Any], understood: Mapping[str, Any], where: str) -> None:
    """Raise MatrixFileError where validation changed a type: ``"2048"`` is no number, ``1`` no boolean."""
    faults = [
        f"{where}: key '{key}': must be of type {type(understood[key]).__name__} (got {value!r})"
        for key, value in given.items()
        if type(value) is not type(understood[key]) and not (type(value) is int and type(understood[key]) is float)
    ]
    if faults:
        raise MatrixFileError("\n".join(faults))


def _check_make(table: VariantTable, options_type: type[Any], where: str) -> str | None:
    """`make` in the spelling of the backend; MatrixFileError when the backend cannot make that."""
    if table.make is None:
        return None
    makes: tuple[str, ...] = getattr(options_type, "MAKES", ())
    if not makes:
        raise MatrixFileError(f"{where}: backend '{table.backend}' makes no files of its own; use source = instead")
    wanted = table.make.upper()
    if wanted not in makes:
        raise MatrixFileError(f"{where}: '{table.make}' cannot be made; {nearest(wanted, makes)}")
    return wanted


def _quantization(options: Mapping[str, Any], make: str | None, source: Source) -> str | None:
    """What was asked for: the option of that name, what is made, the label of the source, or the data type."""
    asked = options.get("quantization") or make or source.label or options.get("dtype")
    return str(asked) if asked is not None else None
