"""What is said beside any advice: why a variant is not advised at all, and what limits what is known of it or of the run."""

from __future__ import annotations

from collections.abc import Iterator

from suite.gate.flags import find_flags
from suite.gate.loss_wording import suspicions
from suite.metrics.fidelity import BROKEN
from suite.records import ALL, Gate, Run, VariantResult, Verdict

_FAILED = frozenset({Verdict.REGRESSED, Verdict.INVALID, Verdict.ERROR})
_MOST_GATES = 5


def why_excluded(result: VariantResult) -> str:
    """Why a variant is not advised, whatever it reached; empty where nothing stands against it.

    What failed was not measured, or was measured of something else. Logits that are no numbers are left out of every mean, so
    that what is left may look like fidelity.
    """
    if result.failure is not None:
        return f"{result.failure.verdict}: {result.failure.reason}"
    if not result.measurements:
        return "nothing was measured of it in this run"
    broken = next((m.value for m in result.measurements if (m.metric, m.scope) == (BROKEN, ALL)), None)
    if broken:
        return f"{100 * broken:.3g} % of its logits are no numbers"
    return ""


def failed_gates(run: Run, variant: str) -> tuple[str, ...]:
    """The gates of a variant that failed or would have, those that only inform left out: ``mean_kld/all REGRESSED``."""
    return tuple(
        f"{finding.metric}/{finding.scope} {finding.verdict}"
        for finding in run.findings
        if finding.variant == variant and finding.verdict in _FAILED and finding.gate is not Gate.INFO
    )


def caveats_of(run: Run, result: VariantResult, scenario: str | None) -> Iterator[str]:
    """Sentences about one variant: failed gates first."""
    name = result.variant.name
    failed = failed_gates(run, name)
    if failed:
        more = f" and {len(failed) - _MOST_GATES} more" if len(failed) > _MOST_GATES else ""
        yield f"it failed in this run against its own baseline: {', '.join(failed[:_MOST_GATES])}{more}"
    if result.artifact is not None and result.artifact.mismatch:
        yield result.artifact.mismatch
    samples = [s for s in run.speed_samples if s.variant == name and s.scenario == scenario]
    for flag in find_flags(samples, result.launches, side_by_side=True):
        yield f"the machine was not as it should be while it was timed: {flag}"
    for oddity in suspicions([loss for loss in run.losses if loss.variant == name]):
        yield oddity.replace(f": {name} (", " (")


def caveats_of_run(run: Run, machine: str | None, scenario: str | None, *, absolute: bool) -> Iterator[str]:
    """Sentences about the run as a whole; `absolute` is whether speeds in themselves have a limit."""
    there = run.environment.machine
    if machine is not None and machine != there:
        yield (
            f"it was measured on {there}, and this machine is {machine}: speed and memory are other ones here. "
            "Measure here before you rely on it"
        )
    yield from run.matrix.notes
    if run.settings.get("quick") == "yes":
        yield "the run was a quick one (--matrix-quick): few launches of one scenario, so intervals are wide"
    if only := run.settings.get("only"):
        yield f"only {only} was measured in this run (--matrix-only={only})"
    if chosen := run.settings.get("variants"):
        yield f"only these variants were measured: {chosen}; nothing is known here of others in {run.matrix.file}"
    timed = next((one for one in run.matrix.scenarios if one.name == scenario), None)
    if timed is not None and _was_timed(run, timed.name):
        yield f"speeds are those of scenario {timed.name}: {timed.prompt_tokens} prompt tokens, {timed.new_tokens} new ones"
    if absolute:
        yield (
            "decode rates and times differ by about 3 % (assumed) from one session of a machine to the next, which their "
            "intervals hold; speed-ups do not, since both sides stood side by side"
        )


def _was_timed(run: Run, scenario: str) -> bool:
    measured = (m for result in run.variants for m in result.measurements if m.metric == "decode_tok_s")
    return any(m.scope == scenario and m.value is not None for m in measured)
