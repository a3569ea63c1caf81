"""Whether a variant's answers held while its speed was measured: speed must not be bought with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from suite.gate.compare_fidelity import FIDELITY
from suite.gate.plan import plan_gates
from suite.gate.policy import merge_policy, tolerance_for
from suite.gate.refresh import Update
from suite.metrics.fidelity import BROKEN
from suite.records import Aspect, Finding, Gate, Verdict

_HELD = frozenset({Verdict.PASS, Verdict.IMPROVED, Verdict.UNBASELINED, Verdict.NOT_COMPARABLE})


@dataclass(frozen=True, slots=True)
class Answers:
    """What the gates on a variant's answers mean for its speed."""

    lost: str | None = None
    """Why no speed is accepted, ever: answers were lost that are not accepted with it."""
    unknown: str | None = None
    """Why no new speed is accepted: it is not known whether the answers held."""
    flags: tuple[str, ...] = ()
    """What has to be stored beside a speed that is accepted all the same."""


def hold_answers(update: Update, *, takes_quality: bool) -> Answers:
    """Go through the gates on answers that block, whether or not they were selected.

    Each must have held (PASS, IMPROVED), or have had nothing to be held against. What regressed comes in only together with
    the new answers (`takes_quality`), and not in mode ``new``; logits that are no numbers never do. What cannot be told is
    refused in mode ``new``, else flagged.
    """
    quality = [finding for finding in update.findings if finding.comparison.aspect is Aspect.QUALITY]
    blocking = [finding for finding in quality if finding.gate is Gate.BLOCK and not _is_deaf(finding)]
    lost = _named(f for f in quality if f.verdict is Verdict.REGRESSED and f.gate is not Gate.INFO)
    if any(key.startswith(f"{BROKEN}/") for key in lost):
        return Answers(lost="some of its logits are no numbers, which no update accepts; mend it")
    if lost and not (takes_quality and update.mode != "new"):
        return Answers(
            lost=f"quality regressed in this run ({listed(lost)}); "
            "accept that too with --matrix-update=changed, or mend it"
        )
    undecided = _named(f for f in blocking if f.verdict is Verdict.INCONCLUSIVE)
    told = f"{_counted(undecided)} could not be told"
    return Answers(
        unknown=_refuse_unjudged(update, quality)
        or _refuse_failed(blocking, update)
        or (_refuse_undecided(told, undecided) if undecided and update.mode == "new" else None),
        flags=(told,) if undecided else (),
    )


def _is_deaf(finding: Finding) -> bool:
    """Whether it is fidelity that could not be measured: without a trace, or of a backend that cannot be forced."""
    return finding.metric in FIDELITY and finding.verdict is Verdict.NOT_MEASURED


def listed(names: Iterable[str], limit: int = 5) -> str:
    """``a, b and 4 more``."""
    everything = list(names)
    more = f" and {len(everything) - limit} more" if len(everything) > limit else ""
    return ", ".join(everything[:limit]) + more


def _refuse_unjudged(update: Update, quality: Sequence[Finding]) -> str | None:
    judged = {(finding.metric, finding.scope) for finding in quality}
    missing = [key for key in _planned(update) if key not in judged]
    if not missing:
        return None
    return (
        f"{_counted(missing)} {'was' if len(missing) == 1 else 'were'} not judged in this run "
        f"({listed(map('/'.join, missing))}); "
        f"judge them with it, without -k: {_rerun(update)}"
    )


def _refuse_failed(blocking: Sequence[Finding], update: Update) -> str | None:
    failed = _named(f for f in blocking if f.verdict not in {*_HELD, Verdict.REGRESSED, Verdict.INCONCLUSIVE})
    if not failed:
        return None
    return f"gates on answers were not measured in this run ({listed(failed)}); measure them with it: {_rerun(update)}"


def _refuse_undecided(told: str, undecided: Sequence[str]) -> str:
    return f"{told} ({listed(undecided)}); read the changed answers, then accept them with --matrix-update=changed"


def _planned(update: Update) -> list[tuple[str, str]]:
    """Metric and scope of the variant's gates on answers that block."""
    matrix = update.run.matrix
    policy = merge_policy(matrix.policy, where=matrix.file)
    forced = any(one.variant == update.result.variant.name for one in update.run.forced)
    gates = plan_gates(matrix.scenarios, {trial.domain for trial in update.trials}, policy, fidelity=forced)
    return [
        (item.metric, item.scope)
        for item in gates
        if item.aspect is Aspect.QUALITY and tolerance_for(policy, item.metric, item.scope).gate is Gate.BLOCK
    ]


def _named(findings: Iterable[Finding]) -> list[str]:
    return list(dict.fromkeys(f"{finding.metric}/{finding.scope}" for finding in findings))


def _counted(gates: Sequence[object]) -> str:
    return f"{len(gates)} gate{'s' * (len(gates) != 1)} on answers"


def _rerun(update: Update) -> str:
    name = update.result.variant.name
    return f'pytest --model-matrix --matrix-variants {name} --matrix-update={update.mode} --matrix-reason "..."'
