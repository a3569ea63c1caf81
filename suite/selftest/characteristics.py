"""From what was measured and replayed to rows of the table: what is asked of each, and whether it holds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from suite.records import Verdict
from suite.selftest.corpus import Corpus, Regime
from suite.selftest.live import KINDS, LiveRun
from suite.selftest.naive import LAUNCHES, naive_alarms
from suite.selftest.quality import DOSES, Dosed
from suite.selftest.replay import Rule, Tally, cover, replay
from suite.selftest.resampling import MIN_LAUNCHES, draw_blocks, launch_logs
from suite.selftest.stored import StoredReplay
from suite.selftest.table import Row, Section, rate_row, share_text, told_row

FALSE_ALARMS = 0.01
"""Share of unchanged live runs that may say REGRESSED."""
UNDECIDED = 0.05
"""Share of checks of an unchanged quiet machine that may stay INCONCLUSIVE."""
COVERAGE = (0.92, 0.98)
"""What a nominal 95 % interval must hold."""
POWER: Mapping[str, float] = {"slower5": 0.90, "slower10": 0.95, "faster5": 0.90, "stalls": 0.95}
"""Share of live runs of each kind that must find it."""
SHIFTS: Mapping[float, float] = {0.05: 0.90, 0.10: 0.95, 0.15: 0.95}
"""By how much one check of a replayed matrix is slower → share of the matrices that must find it, arms kept on one CPU."""
STORED_SHIFT, STORED_POWER = 0.15, 0.95
PINNED: tuple[Regime, ...] = ("quiet", "contended")
"""Regimes about which power is promised: the others break the protocol on purpose, and only must not cry wolf."""


# ---------------------------------------------------------------------------------------------- live


def live_section(runs: Sequence[LiveRun]) -> Section:
    """Rows about every kind of live run that was made."""
    rows = [row for name in KINDS for row in _live_rows(name, [run for run in runs if run.kind == name])]
    return Section(title="Live: the kernel beside itself, real processes, the real gate", rows=tuple(rows))


def _live_rows(name: str, runs: Sequence[LiveRun]) -> list[Row]:
    if not runs:
        return []
    kind = KINDS[name]
    quiet = [run for run in runs if not run.crowded]
    cost = f"{sum(r.cost_s for r in runs) / len(runs):.0f} s a run; {len(runs) - len(quiet)} crowded"
    return [
        *(_power_rows_live(name, quiet) if kind.found else _unchanged_rows(name, runs, quiet)),
        told_row(f"{kind.about}: cost; most slices lost to others", cost, len(runs)),
    ]


def _power_rows_live(name: str, runs: Sequence[LiveRun]) -> list[Row]:
    """Of runs that were not crowded: what a neighbour hides, no rule can see."""
    about = KINDS[name].about
    metric, verdict = next(iter(KINDS[name].found.items()))
    found = rate_row(f"{about}: {metric} {verdict}", sum(r.success for r in runs), len(runs), least=POWER[name])
    if name != "stalls":
        return [found]
    blind = sum(run.checks["itl_s"].verdict is not Verdict.REGRESSED for run in runs)
    return [found, told_row(f"{about}: the median is blind", share_text(blind, len(runs)), len(runs))]


def _unchanged_rows(name: str, runs: Sequence[LiveRun], quiet: Sequence[LiveRun]) -> list[Row]:
    """False alarms of all runs; what stays undecided, of those that were not crowded."""
    about = KINDS[name].about
    checks = [checked for run in quiet for checked in run.checks.values()]
    undecided = sum(checked.verdict is Verdict.INCONCLUSIVE for checked in checks)
    label = f"{about}: a check INCONCLUSIVE"
    alarms = rate_row(f"{about}: any REGRESSED", sum(r.false_alarm for r in runs), len(runs), most=FALSE_ALARMS)
    if name == "aa":
        return [alarms, rate_row(label, undecided, len(checks), most=UNDECIDED)]
    return [alarms, told_row(label, share_text(undecided, len(checks)), len(checks))]


# ---------------------------------------------------------------------------------------------- replay


def duet_section(corpus: Corpus, seed: int, matrices: int, rule: Rule) -> Section:
    """Rows about matrices replayed out of one regime's launches."""
    logs, all_logs = launch_logs(corpus), launch_logs(corpus, clean=False)
    title = f"Replayed, {corpus.regime}: {corpus.about}; {len(logs)} of {len(corpus.launches)} launches"
    if len(all_logs) < MIN_LAUNCHES:
        return Section(title=title, rows=(missing_row(corpus.regime),))
    random = stream(seed, corpus.regime)
    if len(logs) < MIN_LAUNCHES:
        return Section(title=title, rows=_crowded_rows(corpus, all_logs, matrices, random, rule))
    title += f", SD {float(logs.std(ddof=1)):.2%}"
    in_order = replay(logs, matrices, random, rule=rule, draw=draw_blocks)
    rows = [
        *_replay_rows(corpus.regime, replay(logs, matrices, random, rule=rule)),
        rate_row("the same, in the order recorded: any REGRESSED", in_order.alarmed, in_order.matrices, most=0.0),
        *_power_rows(corpus.regime, logs, max(matrices // 3, 1), random, rule),
        _coverage_row(logs, max(matrices // 3, 300), random),
    ]
    if logs.tolist() != all_logs.tolist():
        dirty = replay(all_logs, matrices, random, rule=rule)
        label = "unclean slices not left out: any REGRESSED"
        rows.append(rate_row(label, dirty.alarmed, dirty.matrices, most=0.0))
    return Section(title=title, rows=(*rows, *naive_rows(corpus, corpus, matrices, random)))


def _crowded_rows(corpus: Corpus, all_logs: Any, matrices: int, random: Any, rule: Rule) -> tuple[Row, ...]:
    """Where hardly a launch has clean slices a run says INCONCLUSIVE; even what it leaves out must not cry wolf."""
    dirty = replay(all_logs, matrices, random, rule=rule)
    return (
        told_row("too few launches with clean slices: a run says", "INCONCLUSIVE", len(corpus.launches)),
        rate_row("unclean slices not left out: any REGRESSED", dirty.alarmed, dirty.matrices, most=FALSE_ALARMS),
        *naive_rows(corpus, corpus, matrices, random),
    )


def _replay_rows(regime: Regime, tally: Tally) -> list[Row]:
    undecided = tally.checks[Verdict.INCONCLUSIVE]
    label, n = "a check INCONCLUSIVE", tally.honest
    return [
        rate_row("any false REGRESSED among 20 checks", tally.alarmed, tally.matrices, most=0.0),
        rate_row(label, undecided, n, most=UNDECIDED)
        if regime == "quiet"
        else told_row(label, share_text(undecided, n), n),
        told_row("all 20 checks PASS", share_text(tally.passed, tally.matrices), tally.matrices),
        told_row("launches of a check", f"{tally.launches / n:.2f} on average", n),
    ]


def _power_rows(regime: Regime, logs: Any, matrices: int, random: Any, rule: Rule) -> list[Row]:
    rows = []
    for shift, least in SHIFTS.items():
        tally = replay(logs, matrices, random, shift=math.log1p(shift), rule=rule)
        label = f"one of 20 checks {shift:.0%} slower: REGRESSED"
        if regime in PINNED:
            rows.append(rate_row(label, tally.found, tally.matrices, least=least))
        else:
            rows.append(told_row(label, share_text(tally.found, tally.matrices), tally.matrices))
    return rows


def _coverage_row(logs: Any, trials: int, random: Any) -> Row:
    covered = cover(logs, trials, random)
    return rate_row("95 % interval of 5 launches holds 0", covered, trials, least=COVERAGE[0], most=COVERAGE[1])


def naive_rows(stored: Corpus, later: Corpus, comparisons: int, random: Any) -> list[Row]:
    """What the rules of others make of unchanged work; none where there are too few launches for two runs."""
    fewest = 2 * LAUNCHES
    if min(len(stored.launches), len(later.launches)) < fewest:
        return []
    alarms = naive_alarms(stored, later, comparisons, random)
    return [
        told_row(f"others, {rule}: fails", share_text(count, comparisons), comparisons)
        for rule, count in alarms.items()
    ]


def stored_section(corpus: Corpus, seed: int, matrices: int) -> Section:
    """Rows about the stored tier: not calibrated, calibrated, and with the yardstick where it narrows the spread."""
    rows: list[Row] = []
    for label, calibrated, normalise in (
        ("not calibrated", False, False),
        ("calibrated", True, False),
        ("calibrated, yardstick", True, True),
    ):
        stored = StoredReplay(corpus, calibrated=calibrated, normalise=normalise)
        if normalise and not stored.normalisers:
            rows.append(told_row(f"{label}: it does not narrow the spread", "not used", 0))
            continue
        named = f"{label} ({', '.join(sorted(stored.normalisers))})" if normalise else label
        rows += _stored_rows(named, stored, matrices, stream(seed, label))
    count = sum(len(session.launches) for session in corpus.sessions)
    title = f"Replayed, stored baselines: {len(corpus.sessions)} sessions, {count} launches of one arm alone"
    return Section(title=title, rows=tuple(rows))


def _stored_rows(label: str, stored: StoredReplay, matrices: int, random: Any) -> list[Row]:
    tally = stored.run(matrices, random)
    shifted = stored.run(max(matrices // 3, 1), random, shift=math.log1p(STORED_SHIFT))
    undecided = share_text(tally.checks[Verdict.INCONCLUSIVE], tally.honest)
    power = f"{label}: one of 20 {STORED_SHIFT:.0%} slower: REGRESSED"
    spread = "assumed" if stored.spread is None else f"SD {stored.spread:.2%}"
    return [
        told_row(f"{label}: spread between sessions", spread, 0),
        rate_row(f"{label}: any false REGRESSED", tally.alarmed, tally.matrices, most=FALSE_ALARMS),
        told_row(f"{label}: a check INCONCLUSIVE", undecided, tally.honest),
        rate_row(power, shifted.found, shifted.matrices, least=STORED_POWER)
        if label != "not calibrated"
        else told_row(power, share_text(shifted.found, shifted.matrices), shifted.matrices),
    ]


# ---------------------------------------------------------------------------------------------- answers


def quality_section(doses: Sequence[Dosed]) -> Section:
    """Rows about corrupted answers."""
    rows = []
    for dosed in doses:
        wanted = DOSES[dosed.corrupted]
        rows.append(
            Row(
                check=f"{dosed.corrupted} of 72 labelled answers corrupted",
                asked=wanted,
                result=dosed.verdict,
                trials=1,
                outcome="holds" if dosed.verdict is wanted else "FAILS",
            )
        )
    told = {dosed.mde for dosed in doses}
    counted = {dosed.enumerated for dosed in doses}
    rows.append(
        Row(
            check="smallest loss that could be seen, as printed",
            asked=_points(counted),
            result=_points(told),
            trials=len(doses),
            outcome="holds" if told == counted else "FAILS",
        )
    )
    return Section(title="Answers: dosed damage through compare and judge", rows=tuple(rows))


def missing_row(regime: Regime) -> Row:
    """A corpus that is not there, or too small, proves nothing."""
    return Row(check=f"corpus {regime}", asked="recorded", result="missing", trials=0, outcome="FAILS")


def _points(shares: set[float | None]) -> str:
    return ", ".join(f"{100 * share:.1f} points" if share is not None else "never" for share in shares)


def stream(seed: int, name: str) -> Any:
    """A stream of its own for each part, so that leaving one out does not change another."""
    import numpy

    return numpy.random.default_rng([seed, *name.encode()])
