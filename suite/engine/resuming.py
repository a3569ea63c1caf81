"""Which earlier run may be gone on with: one that was begun with the same question, and that no baseline rests on."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import suite
from suite.engine.assembling import Ledger, join_journals
from suite.engine.belongings import own_journals, own_run_file
from suite.errors import StoreError
from suite.records import Case, Environment, Matrix, Scenario
from suite.schema import dump
from suite.settings import Settings
from suite.store.baselines import BaselineStore
from suite.store.journal import read_journal

KEY = "key"
KEY_LINES = 8
"""Lines at the beginning of a journal among which its key is looked for: it is written right after the machine."""
SECOND = len("2026-11-29T12-00-00")
"""Characters of a run's id that tell when it began; what follows keeps two of one second apart."""


def take_up(
    settings: Settings, key: str, whole: Matrix, environment: Environment
) -> tuple[Path | None, tuple[str, ...]]:
    """The run to go on with, if that is asked for and may be; and what is to be said where it may not."""
    found = _find_run(settings, key) if settings.resume else None
    if found is not None and is_accepted_from(found, settings, whole, environment):
        said = f" {found.name} is what the baselines were accepted from, and was not taken up again: this run is new"
        return None, (said,)
    if found is not None and settings.update and holds_cached(found):
        return None, (f" {found.name} holds answers of earlier runs, which are not accepted: this run is new",)
    return found, ()


def _find_run(settings: Settings, key: str) -> Path | None:
    if settings.report is None:
        return find_resumable(settings.runs / "runs", key)
    return settings.report if is_resumable(settings.report, key) else None


def find_resumable(runs: Path, key: str) -> Path | None:
    """The newest run, finished or not, that was begun with the same question."""
    return next((directory for directory in newest_first(runs) if is_resumable(directory, key)), None)


def newest_first(runs: Path) -> list[Path]:
    """The directories of runs; none where nothing has run yet."""
    return sorted(runs.iterdir(), key=_age, reverse=True) if runs.is_dir() else []


def _age(directory: Path) -> tuple[str, int]:
    """The second in which a run began, by its name; within one second, when its first files were made."""
    return directory.name[:SECOND], directory.stat().st_mtime_ns


def is_resumable(directory: Path, key: str) -> bool:
    """Whether a run lies there that was begun with the same question."""
    return any(_key_of(journal) == key for journal in own_journals(directory))


def is_accepted_from(run: Path, settings: Settings, matrix: Matrix, environment: Environment) -> bool:
    """Whether a baseline of one of the variants was accepted from that run, which would be held against itself."""
    store, names = BaselineStore(settings.baselines), {run.name, _id_in(own_run_file(run))}
    for variant in matrix.variants:
        try:
            stored = store.read(matrix.model, variant.name, environment.machine)
        except StoreError:
            continue  # told by whoever needs it
        if any(baseline.provenance.run in names for baseline in (stored.quality, stored.speed) if baseline):
            return True
    return False


def holds_cached(run: Path) -> bool:
    """Whether anything there was taken from an earlier run: a baseline rests on what was computed for it."""
    ledger = read_ledger(run)
    return any(
        origin is not None
        for origin in (
            *(trial.cached_from for trial in ledger.trials.values()),
            *(forced.cached_from for forced in ledger.forced.values()),
            *(traced.cached_from for traced in ledger.traced.values()),
        )
    )


def read_ledger(directory: Path) -> Ledger:
    """What the journals of a run hold."""
    return join_journals([entry.record for entry in read_journal(file)] for file in own_journals(directory))


def _id_in(file: Path | None) -> str | None:
    """The id of a run that lies in a directory of another name."""
    try:
        return str(json.loads(file.read_bytes())["id"]) if file else None
    except (OSError, ValueError, KeyError):
        return None


def _key_of(journal: Path) -> str | None:
    """The key that stands near the beginning: of the many runs that may lie there only one has to be read whole.

    None where there is none, as in a journal that is damaged or of another version: that run is not taken up.
    """
    with journal.open("rb") as file:
        head = list(itertools.islice(file, KEY_LINES))
    for line in head:
        try:
            record = json.loads(line)["record"]
            if record["text"] == KEY:
                return str(record["data"][KEY])
        except (ValueError, KeyError, TypeError):
            continue
    return None


def key_of(matrix: Matrix, cases: Sequence[Case], environment: Environment, settings: Settings) -> str:
    """Hash of everything that must be equal for a run to be continued: what is measured, not how much, nor how judged.

    `matrix` is the whole of it, whatever was selected.
    """
    asked = [
        matrix.model,
        [dump(variant) for variant in matrix.variants],
        [_asked_of(scenario) for scenario in matrix.scenarios],
        [dump(case) for case in cases],
        dict(environment.identity),
        suite.__version__,
        str(settings.against),
        settings.quick,
    ]
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def _asked_of(scenario: Scenario) -> dict[str, Any]:
    """What a scenario measures: not how often, and of what it leaves as it is by default nothing."""
    usual = dump(Scenario(name="", prompt_tokens=0, new_tokens=0))
    return {key: value for key, value in dump(scenario).items() if key != "rounds" and value != usual[key]}
