"""The one model of a report: what every renderer shows, in the order and the words in which it is shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from suite.doctor import findings as find_ailments
from suite.gate.failing import fails, is_accepted
from suite.metrics.speed import speedup_interval
from suite.records import (
    ALL,
    VERDICTS_WORST_FIRST,
    Aspect,
    Finding,
    Flip,
    Gate,
    Loss,
    Measurement,
    Run,
    Trial,
    TrialStatus,
    VariantFailure,
    VariantResult,
    Verdict,
)
from suite.reporting.cached import tell_cached
from suite.reporting.doctor import Ailment, fold_items
from suite.reporting.fidelity import Fidelity, measured_fidelity
from suite.reporting.folding import Group, fold, is_gate, worst_first
from suite.reporting.limits import LimitReport, measured_limits
from suite.reporting.protocol import describe_protocol
from suite.reporting.scenarios import TimedScenario, timed_scenarios
from suite.reporting.servers import ServerRow, measured_servers
from suite.reporting.unmeasured import unmeasured
from suite.reporting.wording import counted, listed

_SCORE, _SPEEDUP = "score", "speedup"
_JUDGED = frozenset({Verdict.REGRESSED, Verdict.IMPROVED, Verdict.INCONCLUSIVE, Verdict.PASS})


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainScore:
    """Mean score of one variant in one domain, beside the counts of answers that could not be graded."""

    domain: str
    score: float | None
    cases: int
    truncated: int
    empty: int
    unparsable: int
    errors: int

    @property
    def ungraded(self) -> int:
        """Answers that could not be graded. They earn no credit in `score`, and are counted here so that it shows."""
        return self.truncated + self.empty + self.unparsable + self.errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Speedup:
    """Decode speed over the reference's, measured in the same run."""

    ratio: float
    interval: tuple[float, float] | None
    """95 %, from the ratios of the launches; None for fewer than two launches."""
    launches: int

    @property
    def half_width(self) -> float | None:
        """Half the width of the interval, for ``2.38× ±0.03``."""
        return None if self.interval is None else (self.interval[1] - self.interval[0]) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One variant of the table."""

    variant: str
    reference: bool
    backend: str
    size_bytes: int | None
    bpw: float | None
    mismatch: str | None
    """A sentence when the label of the file and its tensors disagree."""
    prefill_tok_s: float | None
    decode_tok_s: float | None
    ttft_s: float | None
    speedup: Speedup | None
    peak_rss_bytes: float | None
    peak_device_bytes: float | None
    kld: float | None
    """Mean KL divergence from the reference along its own answers, nats."""
    scores: tuple[DomainScore, ...]
    quality: Verdict
    speed: Verdict
    """Speed and memory together."""
    verdict: Verdict
    """The worse of the two, as far as they were judged: a part that was not asked for is told elsewhere."""
    failure: VariantFailure | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """How much was done, and how it came out."""

    variants: int
    cases: int
    trials: int
    gates: int
    failed: int
    """Gates that fail the run under its own rules."""
    accepted: int
    """Gates that would fail, had the run's update not taken them as the new normal."""
    errors: int
    """Answers that ended in an error: their tests fail, whatever the gates say."""
    verdicts: Mapping[Verdict, int]
    flips: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that a renderer needs. Holds no logic, and no text that was not made safe by the renderer yet."""

    run: str
    created: str
    suite_version: str
    model: str
    machine: str
    scenario: str | None
    """The scenario whose speeds the table shows: the first of the matrix."""
    domains: tuple[str, ...]
    rows: tuple[Row, ...]
    findings: tuple[Finding, ...]
    """Worst first."""
    groups: tuple[Group, ...]
    """Everything that is not PASS, folded, in the order in which it is shown."""
    unmeasured: tuple[str, ...]
    """A sentence for each thing that was not measured, or measured under load, and that no finding speaks of."""
    notes: tuple[str, ...]
    remarks: tuple[str, ...]
    """How it was measured, where that limits what it can say: in quick mode, on a machine that was never calibrated."""
    reference: str | None
    """None where nothing was measured of it in this run."""
    losses: tuple[Loss, ...]
    """What each variant costs against the reference: of the same run, or what the stored trace tells of it."""
    fidelity: tuple[Fidelity, ...]
    """How far each variant is from the reference; empty when none was forced through its trace."""
    doctor: tuple[Ailment, ...]
    """What the check list found; none of it fails the run."""
    limits: LimitReport
    """How close each variant comes to what its device gave."""
    headline: str
    totals: Totals
    scenarios: tuple[TimedScenario, ...] = ()
    """Each scenario with each variant, where there is more to tell than `rows` do."""
    servers: tuple[ServerRow, ...] = ()
    """What each server tells of itself, beside what its client saw."""

    @property
    def compared(self) -> list[Finding]:
        """The findings that were held against something and judged, worst first."""
        return [finding for finding in self.findings if finding.verdict in _JUDGED]


def build_report(run: Run) -> Report:
    """Turn a run into the model that all renderers share. Pure: the same run always gives the same report."""
    order = [result.variant.name for result in run.variants]
    findings = worst_first(run.findings, order)
    scenario = run.matrix.scenarios[0].name if run.matrix.scenarios else None
    domains = _domains(run)
    rows = tuple(_row(result, run.trials, findings, domains, scenario) for result in run.variants)
    failed, accepted = judge_failing(run, findings)
    totals = _totals(run, findings, failed=len(failed), accepted=len(accepted))
    return Report(
        run=run.id,
        created=run.created,
        suite_version=run.suite_version,
        model=run.model,
        machine=run.environment.machine,
        scenario=scenario,
        domains=domains,
        rows=rows,
        findings=findings,
        groups=fold(findings, run.variants, run.settings.get("update")),
        unmeasured=unmeasured(run),
        notes=run.matrix.notes,
        remarks=(*describe_protocol(run), *tell_cached(run)),
        reference=next((r.variant.name for r in run.variants if r.variant.reference and r.measurements), None),
        losses=run.losses,
        fidelity=measured_fidelity(run),
        doctor=fold_items(find_ailments(run)),
        limits=measured_limits(run),
        headline=_headline(totals, failed, accepted, find_broken(run, rows)),
        totals=totals,
        scenarios=timed_scenarios(run),
        servers=measured_servers(run),
    )


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict that outranks the others; NOT_MEASURED when there is none."""
    return min(verdicts, key=VERDICTS_WORST_FIRST.index, default=Verdict.NOT_MEASURED)


def _domains(run: Run) -> tuple[str, ...]:
    """Domains of the trials and of the measured scores, sorted; ``all`` is a sum of them, not a domain."""
    scores = {m.scope for result in run.variants for m in result.measurements if m.metric == _SCORE}
    known = {trial.domain for trial in run.trials} | {forced.domain for forced in run.forced}
    return tuple(sorted((scores | known) - {"all"}))


def _row(
    result: VariantResult,
    trials: Sequence[Trial],
    findings: Sequence[Finding],
    domains: Sequence[str],
    scenario: str | None,
) -> Row:
    own = [finding for finding in findings if finding.variant == result.variant.name]
    mine = [trial for trial in trials if trial.variant == result.variant.name]
    artifact, measured = result.artifact, result.measurements
    return Row(
        variant=result.variant.name,
        reference=result.variant.reference,
        backend=result.variant.backend,
        size_bytes=artifact.size_bytes if artifact else None,
        bpw=artifact.bpw if artifact else None,
        mismatch=artifact.mismatch if artifact else None,
        prefill_tok_s=_value(measured, "prefill_tok_s", scenario),
        decode_tok_s=_value(measured, "decode_tok_s", scenario),
        ttft_s=_value(measured, "ttft_s", scenario),
        speedup=_speedup(measured, scenario),
        peak_rss_bytes=_value(measured, "peak_rss_bytes", "all"),
        peak_device_bytes=_value(measured, "peak_device_bytes", "all"),
        kld=_value(measured, "mean_kld", ALL),
        scores=tuple(_domain_score(domain, measured, mine) for domain in domains),
        quality=_verdict(result.failure, own, speed=False),
        speed=_verdict(result.failure, own, speed=True),
        verdict=_whole_verdict(result.failure, own),
        failure=result.failure,
    )


def _whole_verdict(failure: VariantFailure | None, own: Sequence[Finding]) -> Verdict:
    """The worse half of those that were judged at all."""
    halves = {_is_timing(finding) for finding in own} or {False, True}
    return worst(_verdict(failure, own, speed=speed) for speed in halves)


def _is_timing(finding: Finding) -> bool:
    """Whether it belongs to the half of speed and memory."""
    return finding.comparison.aspect is not Aspect.QUALITY


def _verdict(failure: VariantFailure | None, own: Sequence[Finding], *, speed: bool) -> Verdict:
    """Worst of one half of a variant's findings. Gates that only inform count when there are no others."""
    half = [finding for finding in own if _is_timing(finding) is speed]
    judged = [finding for finding in half if finding.gate is not Gate.INFO] or half
    verdicts = [finding.verdict for finding in judged]
    return worst([*verdicts, failure.verdict] if failure else verdicts)


def _find(measured: Sequence[Measurement], metric: str, scope: str | None) -> Measurement | None:
    return next((m for m in measured if m.metric == metric and m.scope == scope), None)


def _value(measured: Sequence[Measurement], metric: str, scope: str | None) -> float | None:
    found = _find(measured, metric, scope)
    return found.value if found else None


def _speedup(measured: Sequence[Measurement], scenario: str | None) -> Speedup | None:
    found = _find(measured, _SPEEDUP, scenario) or _find(measured, _SPEEDUP, "all")
    if found is None or found.value is None:
        return None
    interval = speedup_interval(found.samples)
    return Speedup(ratio=found.value, interval=interval, launches=len(found.samples))


def _domain_score(domain: str, measured: Sequence[Measurement], trials: Sequence[Trial]) -> DomainScore:
    statuses = Counter(trial.score.status for trial in trials if trial.domain == domain)
    return DomainScore(
        domain=domain,
        score=_value(measured, _SCORE, domain),
        cases=statuses.total(),
        truncated=statuses[TrialStatus.TRUNCATED],
        empty=statuses[TrialStatus.EMPTY],
        unparsable=statuses[TrialStatus.UNPARSABLE],
        errors=statuses[TrialStatus.ERROR],
    )


def judge_failing(run: Run, findings: Sequence[Finding]) -> tuple[list[Finding], list[Finding]]:
    """What fails under the rules that were in force in the run, and what would, had its update not accepted it."""
    strict, required = run.settings.get("strict") == "yes", run.settings.get("require baselines") == "yes"
    broken = [finding for finding in findings if fails(finding, strict=strict, require_baselines=required)]
    update = run.settings.get("update")
    failed = [finding for finding in broken if not is_accepted(finding, update)]
    return failed, [finding for finding in broken if is_accepted(finding, update)]


def find_broken(run: Run, rows: Sequence[Row]) -> list[Row]:
    """Variants whose failure fails the run: one that could not be had does so only under the stricter rules."""
    strict = "yes" in (run.settings.get("strict"), run.settings.get("require baselines"))
    return [row for row in rows if row.failure and (strict or row.failure.verdict is not Verdict.NOT_MEASURED)]


def _totals(run: Run, findings: Sequence[Finding], *, failed: int, accepted: int) -> Totals:
    gates = [finding for finding in findings if is_gate(finding)]
    counts = Counter(finding.verdict for finding in gates)
    flips: set[tuple[str, Flip]] = {(f.variant, flip) for f in findings for flip in f.comparison.flips}
    return Totals(
        variants=len(run.variants),
        cases=len({trial.case for trial in run.trials} | {forced.case for forced in run.forced}),
        trials=len(run.trials),
        gates=len(gates),
        failed=failed,
        accepted=accepted,
        errors=sum(trial.score.status is TrialStatus.ERROR for trial in run.trials),
        verdicts={verdict: counts[verdict] for verdict in VERDICTS_WORST_FIRST if counts[verdict]},
        flips=len(flips),
    )


def _headline(totals: Totals, failed: Sequence[Finding], accepted: Sequence[Finding], broken: Sequence[Row]) -> str:
    """One sentence or a few: what failed, or how much held and what could not be told; then what is being accepted."""
    taken = ""
    if accepted:
        verb = "is" if totals.accepted == 1 else "are"
        taken = f" {counted(totals.accepted, 'gate')} {verb} being accepted: {_blamed(accepted)}."
    return _outcome(totals, failed, broken) + taken


def _outcome(totals: Totals, failed: Sequence[Finding], broken: Sequence[Row]) -> str:
    told = _blamed(failed, [f"{row.variant} {row.failure.verdict}" for row in broken if row.failure])
    lost = f"{counted(totals.errors, 'answer')} ended in {'an error' if totals.errors == 1 else 'errors'}"
    if failed:
        also = f" {lost}." if totals.errors else ""
        return f"{totals.failed} of {counted(totals.gates, 'gate')} failed: {told}.{also}"
    if broken:
        also = f" {lost}." if totals.errors else ""
        others = f" Of the others: {_held(totals)}" if totals.gates else ""
        return f"{counted(len(broken), 'variant')} failed: {told}.{also}{others}"
    return _held(totals, lost if totals.errors else "")


def _blamed(findings: Sequence[Finding], more: Sequence[str] = ()) -> str:
    names = [f"{finding.variant} {finding.verdict}" for finding in findings]
    return listed(list(dict.fromkeys([*names, *more])))


def _held(totals: Totals, lost: str = "") -> str:
    """The headline when no gate failed; `lost` says that answers ended in errors, so that not nothing failed."""
    first = f"{lost}. " if lost else ""
    failed = lost or "Nothing failed"
    if not totals.gates:
        return f"{first}Nothing was judged: this run has no gates."
    passed, improved = totals.verdicts.get(Verdict.PASS, 0), totals.verdicts.get(Verdict.IMPROVED, 0)
    others = ", ".join(f"{n} {verdict}" for verdict, n in totals.verdicts.items() if verdict is not Verdict.PASS)
    if passed == totals.gates:
        return f"{first}The one gate held." if passed == 1 else f"{first}All {passed} gates held."
    if passed + improved == totals.gates:
        gain = f"{improved} IMPROVED: accept the gain, or it hides the next regression."
        return f"{first}All {totals.gates} gates held, {gain}"
    if not passed + improved:
        return f"{failed}, and nothing could be judged either: {others}."
    return f"{failed}, {'and' if lost else 'but'} only {passed} of {counted(totals.gates, 'gate')} held: {others}."
