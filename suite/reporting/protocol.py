"""What limits a run as a whole, in sentences: the part of the cases, the old side, the quick mode, the machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from suite.engine.assembling import PART
from suite.records import Finding, Run, Tier, Verdict
from suite.reporting.wording import listed


def describe_protocol(run: Run) -> Iterator[str]:
    """What limits the run as a whole."""
    if part := run.settings.get(PART):
        asked = Counter(trial.variant for trial in run.trials)
        right = Counter(trial.variant for trial in run.trials if trial.score.correct)
        told = listed([f"{right[name]} of {asked[name]} of {name}" for name in asked])
        yield f"only {part} cases were answered, and a score is shown of whole domains alone; right: {told}"
    sides = {result.variant.old_of: result for result in run.against}
    if sides:
        yield f"compared side by side with {run.settings.get('against', 'an old side')}: {listed([str(s) for s in sides])}"
    for finding in run.creep:
        if finding.verdict is Verdict.REGRESSED:
            yield f"crept since it was first accepted, each step within its tolerance: {finding.sentence}"
    if run.settings.get("quick") == "yes":
        seen = [f.comparison.mde for f in run.findings if _is_timed(f) and f.comparison.mde is not None]
        most = f"; of decode it could have seen no less than {min(seen):.1%} to {max(seen):.1%}" if seen else ""
        yield (
            f"quick: {run.matrix.protocol.launches} launches, one scenario, not extended while undecided"
            f"{most}. Other scenarios, and stalls that come rarely, it cannot see"
        )
    stored = any(_is_timed(f) and f.comparison.tier is Tier.STORED for f in run.findings)
    if stored and run.settings.get("calibrated") is None:
        yield (
            "this machine was never calibrated: its speed is assumed to differ by 3 % from one session to the next "
            "(measure it: quantdrift calibrate)"
        )


def _is_timed(finding: Finding) -> bool:
    return finding.metric == "itl_s" and finding.comparison.interval is not None
