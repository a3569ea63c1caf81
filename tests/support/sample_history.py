"""Histories made by hand, with seeded noise: nights of two variants on one machine."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from suite.records import HistoryEntry

MACHINE, OTHER_MACHINE = "amd-epyc-2c-1234abcd", "nvidia-h200-96c-5678cdef"
SLOWER_AT, ACCEPTED_AT = 22, 27
_VALUES: Mapping[str, tuple[float, float]] = {
    # value, relative noise
    "f16/decode_tok_s/short": (128.4, 0.01),
    "f16/prefill_tok_s/short": (1228.0, 0.02),
    "f16/peak_rss_bytes/all": (330e6, 0.002),
    "f16/score/all": (0.52, 0.0),
    "q4_k_m/decode_tok_s/short": (173.1, 0.01),
    "q4_k_m/decode_tok_s/long": (151.0, 0.01),
    "q4_k_m/prefill_tok_s/short": (909.0, 0.02),
    "q4_k_m/itl_s/short": (0.0058, 0.01),
    "q4_k_m/peak_rss_bytes/all": (165e6, 0.002),
    "q4_k_m/score/all": (0.4412, 0.0),
    "q4_k_m/score/math": (0.31, 0.0),
    "q4_k_m/mean_kld/all": (0.0461, 0.0),
}


def entry(night: int = 0, **changes: Any) -> HistoryEntry:
    """The entry of one night; nothing is out of the ordinary."""
    noise = random.Random(night)
    created = datetime(2026, 9, 1, 3, tzinfo=UTC) + timedelta(days=night)
    made = HistoryEntry(
        run=f"{created:%Y-%m-%dT%H-%M-%S}-{night:04x}",
        created=created.isoformat(),
        suite_version="0.1.0",
        model="smollm2-135m-instruct",
        machine=MACHINE,
        commit=f"{night:012x}",
        versions={"llama-cpp-python": "0.3.35", "python": "3.11.7"},
        verdicts={"f16": "PASS", "q4_k_m": "PASS"},
        values={key: value * (1 + share * noise.gauss(0, 1)) for key, (value, share) in _VALUES.items()},
    )
    return replace(made, **changes)


def times(made: HistoryEntry, factors: Mapping[str, float]) -> HistoryEntry:
    """The entry with some values multiplied."""
    return replace(made, values={key: value * factors.get(key, 1.0) for key, value in made.values.items()})


def steady(nights: int = 34) -> tuple[HistoryEntry, ...]:
    """Nights in which nothing shifts."""
    return tuple(entry(night) for night in range(nights))


def slower(nights: int = 34) -> tuple[HistoryEntry, ...]:
    """An upgrade makes q4_k_m decode slower and answer otherwise; five nights later that is accepted."""
    factors = {"q4_k_m/decode_tok_s/short": 0.88, "q4_k_m/decode_tok_s/long": 0.88, "q4_k_m/mean_kld/all": 1.26}
    after = {"llama-cpp-python": "0.3.36", "python": "3.11.7"}
    return tuple(
        replace(
            times(entry(night), factors if night >= SLOWER_AT else {}),
            versions=after if night >= SLOWER_AT else entry(night).versions,
            accepted=night in (0, ACCEPTED_AT),
        )
        for night in range(nights)
    )


def elsewhere(nights: int = 3) -> tuple[HistoryEntry, ...]:
    """A few nights on a much faster machine."""
    made = [replace(entry(night), machine=OTHER_MACHINE) for night in range(nights)]
    faster = {key: 10.0 for key in _VALUES if "tok_s" in key}
    return tuple(times(replace(one, run=f"{one.run}-gpu"), faster) for one in made)
