"""What a run may be asked for: read and validated, not yet measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from suite.gate.budget_plan import BudgetItem
from suite.gate.plan import GateItem
from suite.records import Case, Environment, Matrix, Tolerance, Trace, Variant
from suite.settings import COMMAND


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run may be asked for."""

    matrix: Matrix
    cases: tuple[Case, ...]
    policy: Mapping[str, Tolerance]
    environment: Environment
    gates: tuple[GateItem, ...]
    """The gates of every variant."""
    budgets: tuple[BudgetItem, ...] = ()
    """The budgets that are tests, of every variant but the reference."""
    fidelity: bool = False
    """Whether variants are forced through the reference trace: there is one, or a reference to make it from."""
    trace: Trace | None = None
    """The trace that is stored beside the baselines."""
    foreign_trace: str = ""
    """Why the stored one is not used, where it is of another reference."""
    speed_excluded: str | None = None
    """Why speed is not measured in this run, e.g. because tests run in parallel; None when it is."""
    cpus: tuple[int, ...] | None = None
    """The CPUs of everything that is timed, chosen for the whole matrix whatever was selected; None leaves it to the pass."""
    command: str = COMMAND
    """How this run was started, with the options that its next step needs too."""
    shadows: tuple[Variant, ...] = ()
    """The old sides of a duet, each measured beside the variant that it names in `Variant.old_of`."""
    selected: frozenset[str] | None = None
    """Variants that get test items; None for all. A run that is taken up again may hold others, measured before."""
    apart: bool = False
    """Whether each variant is judged by itself, since no process of several sees them all."""
    finished: bool = False
    """Whether this takes up a run that was finished: what is undecided then gets more launches every time."""

    def shadow_of(self, variant: str) -> Variant | None:
        """The old side of a variant, if it has one in this run."""
        return next((shadow for shadow in self.shadows if shadow.old_of == variant), None)

    @property
    def asked_for(self) -> tuple[Variant, ...]:
        """The variants that get test items."""
        return tuple(v for v in self.matrix.variants if self.selected is None or v.name in self.selected)
