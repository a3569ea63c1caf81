"""A session over scripted variants in this process, and what happened beneath it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support.in_process import InProcessLauncher, make_case, make_matrix

from suite.engine.assembling import Ledger
from suite.engine.plan import Plan
from suite.engine.session import MatrixSession
from suite.gate.plan import GateItem, plan_gates
from suite.gate.policy import DEFAULT_POLICY
from suite.records import Environment, Variant
from suite.store.baselines import BaselineStore
from suite.store.journal import Journal, read_journal

ENVIRONMENT = Environment(machine="box", identity={"device": "cpu"}, suspects={}, readings={})
CASES = (make_case("math/a"), make_case("math/b"))


class Bench:
    """A session over scripted variants, and what happened beneath it."""

    def __init__(
        self,
        directory: Path,
        *variants: Variant,
        launcher: InProcessLauncher | None = None,
        protocol: Mapping[str, Any] | None = None,
        ledger: Ledger | None = None,
        **plan: Any,
    ) -> None:
        self.matrix = make_matrix(*variants, **(protocol or {}))
        self.launcher = launcher or InProcessLauncher()
        self.journal = directory / "journal.jsonl"
        gates = plan_gates(self.matrix.scenarios, {"math"}, DEFAULT_POLICY, has_accelerator=False)
        self.plan = Plan(
            matrix=self.matrix, cases=CASES, policy=DEFAULT_POLICY, environment=ENVIRONMENT, gates=gates,
            **plan,
        )  # fmt: skip
        self.baselines = BaselineStore(directory / "baselines")
        self.session = MatrixSession(
            self.plan, self.launcher, Journal(self.journal), self.baselines, ledger or Ledger()
        )

    def select(self, *items: GateItem) -> None:
        """The same gates of every variant."""
        self.session.select([(variant, item) for variant in self.matrix.variants for item in items])

    def gate(self, metric: str, scope: str = "all") -> GateItem:
        return next(item for item in self.plan.gates if (item.metric, item.scope) == (metric, scope))

    def asked(self) -> list[str]:
        return self.launcher.events

    def kinds(self) -> list[str]:
        return [entry.kind for entry in read_journal(self.journal)]
