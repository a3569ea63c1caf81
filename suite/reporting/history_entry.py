"""What the history keeps of a run. Pure."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping

from suite.engine.assembling import PART
from suite.records import HistoryEntry, Run, Verdict
from suite.reporting.model import build_report

CASES, QUESTION = "cases", "question"
"""Names among the versions: the hash of the cases that were answered; that of what was declared of a variant."""
_LONGEST = 40
_DIGITS = 12


def enter_run(run: Run, *, accepted: bool = False, commit: str | None = None) -> HistoryEntry:
    """The entry of a run, from which baselines were `accepted` or not, and which measured that `commit`.

    Values of what failed or was measured of something else are left out, and those that were measured under load only.
    """
    return HistoryEntry(
        run=run.id,
        created=run.created,
        suite_version=run.suite_version,
        model=run.model,
        machine=run.environment.machine,
        commit=commit,
        accepted=accepted,
        cases=run.settings.get(PART, ""),
        versions=_versions(run),
        verdicts={row.variant: row.verdict.value for row in build_report(run).rows},
        values=dict(_values(run)),
    )


def _values(run: Run) -> Iterator[tuple[str, float]]:
    for result in run.variants:
        if result.failure and result.failure.verdict is not Verdict.NOT_MEASURED:
            continue
        for found in result.measurements:
            if found.status == "measured" and found.value is not None and math.isfinite(found.value):
                yield f"{result.variant.name}/{found.metric}/{found.scope}", found.value


def _versions(run: Run) -> dict[str, str]:
    """Name → what it was; a name that differs between variants is told of each."""
    told: dict[str, dict[str, str]] = {}
    for result in run.variants:
        name = result.variant.name
        for suspect, text in result.suspects.items():
            told.setdefault(suspect, {})[name] = _short(text)
        if result.identity:
            told.setdefault(QUESTION, {})[name] = _hash(repr(sorted(result.identity.items())))
    versions = {key: text for suspect, texts in told.items() for key, text in _fold(suspect, texts)}
    if run.trials and PART not in run.settings:  # a part of the cases is no change of them
        cases = {(one.case, one.case_version, one.scorer, one.prompt_sha256) for one in run.trials}
        versions[CASES] = _hash(repr(sorted(cases)))
    return dict(sorted(versions.items()))


def _fold(suspect: str, texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if len(set(texts.values())) == 1:
        yield suspect, next(iter(texts.values()))
        return
    for variant, text in texts.items():
        yield f"{variant}: {suspect}", text


def _short(text: str) -> str:
    """A version as it is; a hash, or a list of build flags, as the first digits of a hash."""
    if len(text) <= _LONGEST:
        return text
    is_hash = len(text) == 64 and all(character in "0123456789abcdef" for character in text)
    return text[:_DIGITS] if is_hash else _hash(text)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", errors="replace")).hexdigest()[:_DIGITS]
