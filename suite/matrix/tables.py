"""The shape of a matrix file: one dataclass for each table, with the range of every value. Nothing is coerced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StrictStr

from suite.records import Deadlines, Gate, Protocol, Tolerance

Text = Annotated[str, Field(strict=True, min_length=1)]
Count = Annotated[int, Field(strict=True, ge=1)]
CountOrNone = Annotated[int, Field(strict=True, ge=0)]
Seconds = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(strict=True, gt=0, le=1, allow_inf_nan=False)]
Amount = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]

KEPT = ".frozen"
"""What the store puts behind a variant's name for the first baseline that was accepted: no variant may be named so."""

_PROTOCOL, _DEADLINES, _TOLERANCE = Protocol(), Deadlines(), Tolerance()


@dataclass(frozen=True, kw_only=True)
class ModelTable:
    """``[model]``: the weights under test."""

    name: Text
    source: Text
    prompt_format: Literal["chat", "raw"] = "chat"
    notes: tuple[StrictStr, ...] = ()


@dataclass(frozen=True, kw_only=True)
class VariantTable:
    """``[variants.<name>]``: one way of running the model."""

    backend: Text
    source: Text | None = None
    make: Text | None = None
    reference: StrictBool = False
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ScenarioTable:
    """``[scenarios.<name>]``: fixed token counts. Decode speed needs at least two new tokens."""

    prompt_tokens: Count
    new_tokens: Annotated[int, Field(strict=True, ge=2)]
    kept_tokens: CountOrNone = 0
    batch: Count = 1
    turns: Count = 1
    rounds: Count | None = None
    watch: StrictBool = False
    reloads: CountOrNone = 0


@dataclass(frozen=True, kw_only=True)
class ProtocolTable:
    """``[protocol]``: how often speed is measured."""

    launches: Count = _PROTOCOL.launches
    max_launches: Count = _PROTOCOL.max_launches
    rounds: Count = _PROTOCOL.rounds
    warmup: CountOrNone = _PROTOCOL.warmup
    max_warmup: CountOrNone = _PROTOCOL.max_warmup
    retries: CountOrNone = _PROTOCOL.retries
    max_pressure: Share = _PROTOCOL.max_pressure
    max_steal: Share = _PROTOCOL.max_steal
    pin: StrictBool = _PROTOCOL.pin
    resident: Literal["auto", "all", "one"] = _PROTOCOL.resident
    peak_flop_s: Amount = _PROTOCOL.peak_flop_s


@dataclass(frozen=True, kw_only=True)
class DeadlinesTable:
    """``[deadlines]``: seconds after which a silent worker is killed."""

    load_s: Seconds = _DEADLINES.load_s
    answer_s: Seconds = _DEADLINES.answer_s
    make_s: Seconds = _DEADLINES.make_s


@dataclass(frozen=True, kw_only=True)
class ToleranceTable:
    """``[policy.<metric>]``: how far it may drift before its gate speaks."""

    relative: Amount = _TOLERANCE.relative
    absolute: Amount = _TOLERANCE.absolute
    gate: Gate = _TOLERANCE.gate
    duet: Amount | None = _TOLERANCE.duet


@dataclass(frozen=True, kw_only=True)
class BudgetTable:
    """``[budget.<metric>]``: what a variant may cost against the reference of the same run."""

    limit: Amount
    gate: Gate = Gate.INFO


@dataclass(frozen=True, kw_only=True)
class MatrixTable:
    """The whole file."""

    model: ModelTable
    variants: Mapping[str, VariantTable]
    scenarios: Mapping[str, ScenarioTable]
    defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    protocol: ProtocolTable = field(default_factory=ProtocolTable)
    deadlines: DeadlinesTable = field(default_factory=DeadlinesTable)
    policy: Mapping[str, ToleranceTable] = field(default_factory=dict)
    budget: Mapping[str, BudgetTable] = field(default_factory=dict)
