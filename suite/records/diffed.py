"""Two states of the baselines, and what differs between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from suite.records.asked import Budget, Protocol, Tolerance
from suite.records.judged import Finding, Flip, Run
from suite.records.stored import Noise, Provenance, QualityBaseline, SpeedBaseline
from suite.records.words import Aspect

SnapshotKind = Literal["revision", "directory", "run"]
"""Where a state was read from."""

FigureState = Literal["worse", "better", "within", "unclear", "otherwise", "untested", "new", "gone"]
"""What became of one figure: beyond its tolerance, either way; within it; cannot tell; another question is asked now;
shown, and held against nothing; on one side only."""

EntryState = Literal["changed", "accepted anew", "new", "gone", "unchanged", "unreadable", "not measured"]
"""What became of one baseline. *Accepted anew*: its figures are the same, when or why it was accepted is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A file that could not be used."""

    path: str
    """Below the directory of baselines; the name of the matrix file."""
    sentence: str
    """What is wrong with it, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFacts:
    """What the header of a reference trace tells."""

    model: str
    sha256: str
    """Of the file."""
    reference: str
    key: Mapping[str, str]
    positions: Mapping[str, int]
    """Tokens of the reference's answer, by case."""
    families: Mapping[str, str | None]
    """Template family, by case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredMatrix:
    """What a matrix file says about judging."""

    file: str
    variants: tuple[str, ...]
    """In the order of the file."""
    reference: str | None
    policy: Mapping[str, Tolerance]
    """As overridden there, by ``metric`` or ``metric/scope``."""
    budgets: Mapping[str, Budget]
    protocol: Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One state of the baselines."""

    label: str
    """What people call it: ``main (1791725)``, ``the working tree``."""
    kind: SnapshotKind
    quality: tuple[QualityBaseline, ...] = ()
    speed: tuple[SpeedBaseline, ...] = ()
    noise: tuple[Noise, ...] = ()
    traces: tuple[TraceFacts, ...] = ()
    frozen: Mapping[str, str] = field(default_factory=dict)
    """Path of each first accepted baseline → sha256 of the file."""
    matrix: DeclaredMatrix | None = None
    run: Run | None = None
    """What was measured, where it is a run; it has no baselines of its own."""
    faults: tuple[Fault, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing that could be compared, and nothing that could not be read."""
        return not (self.quality or self.speed or self.run or self.faults)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One quantity that is not what it was."""

    metric: str
    scope: str
    aspect: Aspect
    old: float | None
    new: float | None
    state: FigureState
    beyond_noise: bool | None = None
    """Whether the difference is more than the noise, either way; None where nobody can tell."""
    finding: Finding | None = None
    """The gate's verdict on it, by the rules of a run; None where there is nothing to hold it against."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffEntry:
    """One baseline then and now: a variant's answers, or its speed and memory on one machine."""

    model: str
    variant: str
    aspect: Literal["quality", "speed"]
    machine: str | None
    """None for answers, which are valid everywhere."""
    state: EntryState
    figures: tuple[Figure, ...] = ()
    """Those that differ, answers before speed before memory."""
    same: tuple[str, ...] = ()
    """``metric/scope`` of those that do not."""
    flips: tuple[Flip, ...] = ()
    answers_changed: int = 0
    """Accepted answers that are other ones now, whether or not their grade is."""
    cases_added: tuple[str, ...] = ()
    cases_gone: tuple[str, ...] = ()
    cases_gone_wrong: int = 0
    """How many of those that are gone were not answered right."""
    cases_asked_otherwise: Mapping[str, str] = field(default_factory=dict)
    """Case → what makes it another question: ``version: 1 → 2``."""
    differences: tuple[str, ...] = ()
    """``field: old → new`` of what else changed with it: versions, hashes, options, the machine."""
    was: Provenance | None = None
    now: Provenance | None = None
    edited: bool = False
    """Whether the later one was changed by hand: its content does not match its digest."""
    moved_from: str | None = None
    """The machine of the earlier speeds, where there are none of this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToleranceChange:
    """One setting by which is judged, then and now."""

    key: str
    """``policy.itl_s``, ``budget.score``, ``protocol.launches``."""
    old: str
    new: str
    loosened: bool
    """Whether less is found by it, or fails by it."""


QuestionKind = Literal[
    "edited", "not accepted", "failed", "contended", "too good", "gone", "cases gone", "frozen", "unreadable",
]  # fmt: skip
"""What a careful reviewer asks about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Something that a reviewer should ask about before approving."""

    kind: QuestionKind
    variant: str
    """Empty where it is about no single variant."""
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """What differs between two states of the baselines."""

    base: str
    """What people call the earlier state."""
    head: str
    base_kind: SnapshotKind
    head_kind: SnapshotKind
    entries: tuple[DiffEntry, ...]
    """In the order of the matrix file, answers before speed."""
    tolerances: tuple[ToleranceChange, ...] = ()
    tolerances_compared: bool = False
    """Whether both states have a matrix file that says which ones they are."""
    judged_by: str = ""
    """Whose tolerances the figures were held against, for people."""
    notes: tuple[str, ...] = ()
    """What else changed: the trace, the noise of a machine."""
    questions: tuple[Question, ...] = ()
