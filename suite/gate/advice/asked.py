"""What a person may ask of a variant: at most so much loss, at least so much speed, at most so much memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from suite.settings import COMMAND

Name = Literal["loss", "kld", "speedup", "memory", "decode", "ttft"]
Preference = Literal["quality", "speed", "memory"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """One thing that can have a limit."""

    name: Name
    option: str
    unit: str
    """Of its values and its limit: ``points`` are hundredths of the credit."""
    more_is_better: bool
    about: Preference


QUANTITIES: Mapping[Name, Quantity] = MappingProxyType(
    {
        quantity.name: quantity
        for quantity in (
            Quantity(name="loss", option="--max-loss", unit="points", more_is_better=False, about="quality"),
            Quantity(name="kld", option="--max-kld", unit="nats", more_is_better=False, about="quality"),
            Quantity(name="speedup", option="--min-speedup", unit="x", more_is_better=True, about="speed"),
            Quantity(name="memory", option="--memory", unit="bytes", more_is_better=False, about="memory"),
            Quantity(name="decode", option="--min-decode", unit="tok/s", more_is_better=True, about="speed"),
            Quantity(name="ttft", option="--max-ttft", unit="s", more_is_better=False, about="speed"),
        )
    }
)
"""In the order in which they are told."""

SHOWN: tuple[Name, ...] = ("loss", "kld", "speedup", "memory")
"""What is told of a variant whatever was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How much of a quantity there may be at most, or must be at least."""

    quantity: Quantity
    value: float
    """Finite, in the quantity's unit; more than 0 where the quantity is a ratio, a rate, a time or a size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a variant is to satisfy, and where it is to run."""

    limits: tuple[Limit, ...] = ()
    """At most one for each quantity, in the order of `QUANTITIES`."""
    prefer: Preference | None = None
    """What decides among variants that satisfy everything. None: quality, unless it is what has a limit; then speed."""
    scenario: str | None = None
    """The scenario whose speeds count; None is the first of the matrix."""
    machine: str | None = None
    """Where it is to run; None where that is not known."""
    command: str = COMMAND
    """How the run is measured again."""

    @property
    def preference(self) -> Preference:
        """What decides among variants that satisfy everything."""
        if self.prefer is not None:
            return self.prefer
        return "speed" if any(limit.quantity.about == "quality" for limit in self.limits) else "quality"

    def of(self, name: Name) -> Limit | None:
        """The limit of a quantity, if it has one."""
        return next((limit for limit in self.limits if limit.quantity.name == name), None)


def order_limits(values: Mapping[Name, float | None]) -> tuple[Limit, ...]:
    """Limits of what is not None, in the order of `QUANTITIES`."""
    return tuple(
        Limit(quantity=quantity, value=value)
        for name, quantity in QUANTITIES.items()
        if (value := values.get(name)) is not None
    )
