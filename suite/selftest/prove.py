"""The self-test as a whole: which parts, how much of each, in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from suite.engine.environment import capture_environment
from suite.gate.family import decide_all
from suite.selftest import characteristics as told
from suite.selftest.corpus import DIRECTORY, DUETS, Corpus, Regime, read_corpora
from suite.selftest.live import LiveRun, run_live
from suite.selftest.quality import DOSES, dose
from suite.selftest.replay import Rule
from suite.selftest.table import Row, Section, rate_row
from suite.selftest.traps import DUET_TRAPS, spring_duets, spring_stored

Part = Literal["live", "replay", "traps", "quality"]
PARTS: tuple[Part, ...] = get_args(Part)
FEW_LIVE: Mapping[str, int] = {"aa": 3, "busy": 1, "slower10": 2, "stalls": 1}
"""Live runs when no number is asked for: about three minutes."""
QUICK_LIVE: Mapping[str, int] = {"aa": 1, "slower10": 1}
MATRICES, QUICK_MATRICES = 3000, 300
TRAP_RUNS, QUICK_TRAP_RUNS = 1000, 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How much is to be proved."""

    parts: tuple[Part, ...] = PARTS
    live: Mapping[str, int] = field(default_factory=lambda: FEW_LIVE)
    """Runs by kind."""
    matrices: int = MATRICES
    trap_runs: int = TRAP_RUNS
    seed: int = 0
    corpora: Path = DIRECTORY
    rule: Rule = decide_all
    """How a run is judged: production's, unless a test plants another."""


Say = Callable[[str], None]


def prove(extent: Extent, say: Say) -> Iterator[Section]:
    """The sections of the table, each as soon as it is known. Raises StoreError for a corpus that cannot be read, and
    QuantdriftError when a live worker fails.
    """
    if "quality" in extent.parts:
        yield told.quality_section([dose(corrupted) for corrupted in DOSES])
    corpora = read_corpora((*DUETS, "sessions"), extent.corpora)
    if "traps" in extent.parts:
        say("springing the traps")
        yield _spring(corpora, extent)
    if "replay" in extent.parts:
        yield from _replay(corpora, extent, say)
    if "live" in extent.parts and any(extent.live.values()):
        yield told.live_section(list(_measure(extent, say)))


def _replay(corpora: Mapping[Regime, Corpus], extent: Extent, say: Say) -> Iterator[Section]:
    for regime in DUETS:
        say(f"replaying {extent.matrices} matrices: {regime}")
        if regime in corpora:
            yield told.duet_section(corpora[regime], extent.seed, extent.matrices, extent.rule)
        else:
            yield Section(title=f"Replayed, {regime}", rows=(told.missing_row(regime),))
    say(f"replaying {extent.matrices} matrices: stored baselines")
    if "sessions" in corpora:
        yield told.stored_section(corpora["sessions"], extent.seed, extent.matrices)
    else:
        yield Section(title="Replayed, stored baselines", rows=(told.missing_row("sessions"),))


def _spring(corpora: Mapping[Regime, Corpus], extent: Extent) -> Section:
    rows: list[Row] = []
    for name, (needed, make) in DUET_TRAPS.items():
        if missing := [regime for regime in needed if regime not in corpora]:
            rows.append(told.missing_row(missing[0]))
            continue
        alarms = spring_duets(make(corpora), extent.trap_runs, told.stream(extent.seed, name), extent.rule)
        rows.append(_trap_row(name, alarms, extent))
    if "sessions" in corpora and "contended" in corpora:
        random = told.stream(extent.seed, "quiet baseline")
        rows.append(
            _trap_row("quiet baseline, busy run", spring_stored(corpora, extent.trap_runs, random, extent.rule), extent)
        )
    else:
        rows.append(told.missing_row("sessions"))
    if "quiet" in corpora and "contended" in corpora:
        random = told.stream(extent.seed, "quiet baseline, others")
        rows += told.naive_rows(corpora["quiet"], corpora["contended"], extent.trap_runs, random)
    return Section(title="Traps: unchanged work, hostile conditions; each run is one check", rows=tuple(rows))


def _trap_row(name: str, alarms: int, extent: Extent) -> Row:
    return rate_row(f"{name}: REGRESSED", alarms, extent.trap_runs, most=told.FALSE_ALARMS)


def _measure(extent: Extent, say: Say) -> Iterator[LiveRun]:
    environment = capture_environment()
    for kind, count in extent.live.items():
        for number in range(count):
            say(f"live: {kind}, run {number + 1} of {count}")
            yield run_live(kind, environment)
