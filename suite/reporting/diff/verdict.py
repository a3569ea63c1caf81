"""The first line of a diff of baselines: the verdict in words, and what it counts."""

from __future__ import annotations

from collections import Counter

from suite.records import Diff, DiffEntry, Figure, Gate
from suite.reporting.wording import counted

_COUNTED = ("edited", "not accepted", "unreadable", "gone")
"""Questions that the first line counts by what they are."""
_NOTEWORTHY = 0.01
"""What is within its tolerance is expanded from this share of the old value (or this part of a credit) on."""


def is_expanded(figure: Figure) -> bool:
    """Whether a figure is told by itself: it drifted, cannot be told, is gone, or moved by more than the noise."""
    if figure.state == "gone":
        return True
    if figure.finding is None or figure.finding.gate is Gate.INFO:
        return False
    if figure.state in ("worse", "better", "unclear"):
        return True
    return figure.beyond_noise is True and abs(figure.finding.comparison.drift or 0.0) >= _NOTEWORTHY


def count_units(diff: Diff) -> Counter[str]:
    """How many quantities (a metric of a variant, whatever its scopes) came out how, the worst scope counting."""
    order = ("loss", "gain", "unclear", "moved", "added", "unchanged")
    found: dict[tuple[str, str, str | None, str], str] = {}
    for entry in diff.entries:
        kinds = [(figure.metric, _unit_kind(figure)) for figure in entry.figures if entry.state == "changed"]
        kinds += [(key.partition("/")[0], "unchanged") for key in entry.same]
        for metric, kind in kinds:
            key = (entry.model, entry.variant, entry.machine, metric)
            if kind is not None and order.index(kind) <= order.index(found.get(key, "unchanged")):
                found[key] = kind
    return Counter(found.values())


def _unit_kind(figure: Figure) -> str | None:
    """None for what is told of its whole baseline."""
    if figure.state == "otherwise":
        return None
    if figure.state == "new":
        return "added"
    informs = figure.finding is None or figure.finding.gate is Gate.INFO
    if informs or figure.state == "within":
        return "moved"
    return {"worse": "loss", "better": "gain", "unclear": "unclear"}.get(figure.state, "moved")


def write_headline(diff: Diff) -> str:
    """The verdict in words: what is loud first, then what is not, then how much is as it was."""
    units = count_units(diff)
    loud = [
        _said(units["loss"], "loss", "losses"),
        _said(sum(change.loosened for change in diff.tolerances), "setting loosened", "settings loosened"),
        _said(_asked(diff, "edited"), "edited by hand"),
        _said(_asked(diff, "not accepted"), "not written by an update"),
        _said(len(find_whole(diff, "gone")), "variant gone", "variants gone"),
        _said(_asked(diff, "unreadable"), "file unreadable", "files unreadable"),
        _said(
            len(diff.questions) - sum(_asked(diff, kind) for kind in _COUNTED),
            "thing to ask about",
            "things to ask about",
        ),
        _said(units["gain"], "gain", "gains"),
        _said(len(find_whole(diff, "new")), "variant new", "variants new"),
        _said(len(_machines(diff)), "variant from another machine", "variants from another machine"),
        _said(len(_other_questions(diff)), "variant asked another question", "variants asked another question"),
        _said(units["unclear"], "cannot be told"),
    ]
    quiet = [
        _said(units["moved"], "moved without drifting"),
        _said(units["added"], "known for the first time"),
        _said(units["unchanged"], "unchanged"),
    ]
    told = [part for part in loud if part]
    if told:
        return f"Baselines: {', '.join([*told, *(part for part in quiet if part)])}"
    if any(entry.state in ("changed", "accepted anew") for entry in diff.entries):
        anew = sum(entry.state in ("changed", "accepted anew") for entry in diff.entries)
        parts = [_said(anew, "baseline accepted anew", "baselines accepted anew"), *quiet]
        return f"Baselines: nothing drifted, {', '.join(part for part in parts if part)}"
    if diff.tolerances or diff.notes or diff.questions:
        return f"Baselines: no figure changed, {_said(units['unchanged'], 'unchanged') or 'none compared'}"
    return f"Baselines: nothing changed ({counted(len(diff.entries), 'baseline')}, {counted(units['unchanged'], 'figure')})"


def _said(number: int, one: str, many: str | None = None) -> str:
    """``2 losses``; nothing for none. Without `many` it is the same word for several."""
    if not number:
        return ""
    return f"{number} {one if number == 1 or many is None else many}"


def _asked(diff: Diff, kind: str) -> int:
    return sum(question.kind == kind for question in diff.questions)


def find_whole(diff: Diff, state: str) -> list[tuple[str, str]]:
    """Model and variant of which everything is in this state: beside answers known before, a new speed is no new variant."""
    everything = {(entry.model, entry.variant) for entry in diff.entries}
    others = {(entry.model, entry.variant) for entry in diff.entries if entry.state != state}
    return sorted(everything - others)


def _machines(diff: Diff) -> list[str]:
    return sorted({entry.variant for entry in diff.entries if entry.moved_from is not None})


def _other_questions(diff: Diff) -> list[str]:
    return sorted({entry.variant for entry in diff.entries if entry.moved_from is None and asks_otherwise(entry)})


def asks_otherwise(entry: DiffEntry) -> bool:
    """Whether the figures of a baseline answer another question than before."""
    return entry.state == "changed" and any(figure.state == "otherwise" for figure in entry.figures)
