"""Thousands of simulated matrices out of recorded launches, judged by the very code that judges runs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from suite.gate.family import Decision, decide_all
from suite.gate.policy import DEFAULT_POLICY
from suite.records import Aspect, Comparison, Tier, Tolerance, Verdict
from suite.selftest.resampling import draw_matrix
from suite.stats.intervals import PAIRED_SD_FLOOR, Estimate, interval_of

CHECKS = 20
"""Speed checks of a simulated matrix."""
FIRST, MOST = 5, 10
"""Launches at the first look, and at the second."""
DECODE = DEFAULT_POLICY["itl_s"]
"""The sharp gate of decoding, as it is asked by default: side by side 3 %."""

Draw = Callable[[Any, int, int, Any], Any]
"""How launches are drawn: (logs, checks, launches, random) → array (checks, launches)."""

Rule = Callable[[Sequence[tuple[Comparison, Tolerance]]], list[Decision]]
"""How a whole run is judged; `suite.gate.family.decide_all` unless a test plants another one."""


@dataclass(slots=True)
class Tally:
    """What became of many simulated matrices."""

    matrices: int = 0
    alarmed: int = 0
    """Matrices in which a check without a regression is REGRESSED."""
    passed: int = 0
    """Matrices in which every check without a regression is PASS."""
    found: int = 0
    """Matrices in which the regressed check is REGRESSED."""
    checks: Counter[Verdict] = field(default_factory=Counter)
    """Verdicts of the checks without a regression."""
    launches: int = 0
    """Launches of all checks without a regression."""

    def add(self, verdicts: Sequence[Verdict], launches: Sequence[int], *, shifted: bool) -> None:
        """One matrix; `shifted` says that its first check is the regressed one."""
        honest = verdicts[1:] if shifted else verdicts
        self.matrices += 1
        self.alarmed += Verdict.REGRESSED in honest
        self.passed += all(verdict is Verdict.PASS for verdict in honest)
        self.found += shifted and verdicts[0] is Verdict.REGRESSED
        self.checks.update(honest)
        self.launches += sum(launches[1:] if shifted else launches)

    @property
    def honest(self) -> int:
        """Checks without a regression."""
        return sum(self.checks.values())


def replay(
    logs: Any, matrices: int, random: Any, *, shift: float = 0.0, rule: Rule = decide_all, draw: Draw = draw_matrix
) -> Tally:
    """Simulate `matrices` of `CHECKS` checks out of launch `logs`; with a `shift` (log ratio) the first check is slower."""
    tally = Tally()
    for _ in range(matrices):
        drawn = draw(logs, CHECKS, MOST, random)
        drawn[0] += shift
        verdicts, launches = judge_matrix(drawn, rule)
        tally.add(verdicts, launches, shifted=bool(shift))
    return tally


def judge_matrix(drawn: Any, rule: Rule = decide_all) -> tuple[list[Verdict], list[int]]:
    """Verdicts of the checks of one matrix, and the launches that each took: `FIRST`, and `MOST` where undecided."""
    items = [(comparison, DECODE) for comparison in compare_logs(drawn[:, :FIRST])]
    decisions = rule(items)
    undecided = [at for at, decision in enumerate(decisions) if decision.verdict is Verdict.INCONCLUSIVE]
    if undecided:
        for at, comparison in zip(undecided, compare_logs(drawn[undecided], looks=2), strict=True):
            items[at] = (comparison, DECODE)
        decisions = rule(items)
    extended = set(undecided)
    return [decision.verdict for decision in decisions], [MOST if at in extended else FIRST for at in range(len(items))]


def compare_logs(drawn: Any, *, looks: int = 1) -> list[Comparison]:
    """The comparisons that a run makes of launches in rows (checks, launches), as far as a verdict needs them.

    Mean and standard error are those of `suite.stats.intervals.paired_mean`, of many rows at once.
    """
    import numpy

    n = drawn.shape[1]
    means = drawn.mean(axis=1)
    errors = numpy.maximum(drawn.std(axis=1, ddof=1), PAIRED_SD_FLOOR) / math.sqrt(n)
    return [_comparison(mean, error, n, looks) for mean, error in zip(means.tolist(), errors.tolist(), strict=True)]


def _comparison(mean: float, error: float, launches: int, looks: int) -> Comparison:
    return Comparison(
        variant="replayed",
        metric="itl_s",
        scope="duet",
        aspect=Aspect.SPEED,
        tier=Tier.DUET,
        observed=math.exp(mean),
        baseline=1.0,
        drift=math.expm1(mean),
        log_drift=mean,
        log_se=error,
        log_df=launches - 1,
        n=launches,
        n_baseline=launches,
        looks=looks,
    )


def cover(logs: Any, trials: int, random: Any, *, launches: int = FIRST) -> int:
    """In how many of `trials` unchanged comparisons the 95 % interval holds 0.

    Launches are drawn without replacement within a trial. The floor of the variance is left out: it only widens.
    """
    import numpy

    picked = numpy.argsort(random.random((trials, len(logs))), axis=1)[:, :launches]
    drawn = logs[picked] * random.choice((-1.0, 1.0), size=(trials, launches))
    means, errors = drawn.mean(axis=1), drawn.std(axis=1, ddof=1) / math.sqrt(launches)
    half = [interval_of(Estimate(0.0, error, launches - 1))[1] for error in errors.tolist()]
    return int((numpy.abs(means) <= numpy.array(half)).sum())
