"""Whether a finding fails a run, and whether an update takes it as the new normal: one rule for tests and reports."""

from __future__ import annotations

from suite.records import Aspect, Finding, Gate, Tier, Verdict

STRICTLY_FAILING = frozenset({Verdict.INCONCLUSIVE, Verdict.UNBASELINED, Verdict.NOT_MEASURED})
"""What fails under ``--matrix-strict`` too."""

BASELINE_NEEDED = frozenset({Verdict.UNBASELINED, Verdict.NOT_COMPARABLE, Verdict.NOT_MEASURED})
"""What fails under ``--matrix-require-baselines`` too."""


def fails(finding: Finding, *, strict: bool, require_baselines: bool) -> bool:
    """Whether a finding fails its gate, unless the update of the run accepts it.

    ERROR and INVALID fail every gate, one that warns included; all else fails only a gate that blocks. A gate that only
    informs never fails.
    """
    match finding.verdict:
        case Verdict.ERROR | Verdict.INVALID:
            return finding.gate is not Gate.INFO
        case Verdict.REGRESSED:
            return finding.gate is Gate.BLOCK
        case verdict:
            needed = require_baselines and verdict in BASELINE_NEEDED
            return finding.gate is Gate.BLOCK and (needed or (strict and verdict in STRICTLY_FAILING))


def is_accepted(finding: Finding, mode: str | None) -> bool:
    """Whether an update of this mode takes the finding as the new normal; ``new`` only what had no baseline.

    ``changed`` takes answers that cannot be told, but no such speed: that may come out otherwise next time.
    """
    match finding.verdict:
        case Verdict.UNBASELINED:
            return mode is not None
        case Verdict.NOT_COMPARABLE if finding.comparison.tier is Tier.FOREIGN:
            return mode is not None  # this machine has none yet
        case Verdict.REGRESSED | Verdict.NOT_COMPARABLE:
            return mode in ("changed", "all")
        case Verdict.INCONCLUSIVE:
            return mode == "all" or (mode == "changed" and finding.comparison.aspect is Aspect.QUALITY)
        case _:
            return False
