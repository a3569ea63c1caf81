"""Numbers and verdicts in the words of one plain sentence. Words carry the direction; no sign is needed to read it."""

from __future__ import annotations

from collections.abc import Callable

from suite.gate.decide import RATIOS, blames_machine, flip_counts, grew_from_nothing, is_estimated, is_ratio, limit_of
from suite.gate.family import Decision
from suite.gate.sensitivity import can_pass
from suite.metrics.catalog import SPECS
from suite.metrics.fidelity import BROKEN
from suite.metrics.kinds import HELD_TO_NONE
from suite.records import Aspect, Comparison, Direction, Tier, Tolerance, Verdict
from suite.stats.binomial import ALPHA

TITLES = {
    "prefill_tok_s": "prefill rate",
    "ttft_s": "time to first token",
    "cold_ttft_s": "time to first token after a load",
    "decode_tok_s": "decode rate",
    "itl_s": "gap between tokens",
    "tpot_s": "time per token",
    "itl_p95_s": "95th percentile of the gaps between tokens",
    "itl_p99_s": "99th percentile of the gaps between tokens",
    "resent_ttft_s": "time to first token with the conversation sent again",
    "turn_gain": "gain of keeping the KV state",
    "late_slowdown": "slowdown within a generation",
    "held_bytes": "memory held after a slice",
    "growth_bytes": "memory that goes on growing while it generates",
    "unreturned_bytes": "memory not given back after an unload",
    "evaluated_tokens": "tokens evaluated with the KV state kept",
    "resent_tokens": "tokens evaluated with the conversation sent again",
    "reevaluated_tokens": "kept tokens evaluated again",
    "reevaluated_share": "share of the kept tokens evaluated again, by its time",
    "load_s": "load time",
    "peak_rss_bytes": "peak memory",
    "uss_bytes": "own memory",
    "peak_device_bytes": "peak accelerator memory",
    "kv_cache_bytes": "KV cache",
    "exact": "share of right answers",
    "output_tokens": "answer length",
    "logprob": "log-probability of the accepted answers",
    "mean_kld": "divergence from the reference",
    "decode_kld": "divergence from the reference, decoding",
    "path_distance": "distance between its prefill and decode paths",
    "broken_logits": "share of logits that are no numbers",
    "truncated": "share of truncated answers",
    "empty": "share of empty answers",
    "unparsable": "share of unparsable answers",
}


NATS = "nats a token"
_UNITS = {"tokens": "tokens", "nats": NATS}
"""Unit of a metric of answers → that of its amounts; all others are shares, told in points of 100."""
_INTERVALS = {Aspect.SPEED: "95 %", Aspect.QUALITY: "95 % one-sided bounds", Aspect.MEMORY: "any launch beside any"}
"""What an interval is."""


def sentence(comparison: Comparison, tolerance: Tolerance, decision: Decision) -> str:
    """The one sentence that a person reads first."""
    subject = f"{comparison.variant}: {TITLES.get(comparison.metric, comparison.metric)} ({comparison.scope})"
    if comparison.unresolved is not None:
        return f"{subject} {_UNRESOLVED.get(comparison.unresolved, 'has no verdict')}: {comparison.reason}"
    if comparison.observed is None or comparison.baseline is None:
        return f"{subject} was not measured"
    if comparison.metric == BROKEN:
        return f"{subject} {_broken(comparison, tolerance)}"
    if comparison.metric in HELD_TO_NONE:
        return f"{subject} {_none_expected(comparison, tolerance, decision)}"
    return f"{subject} {_change(comparison)}{_evidence(comparison)}; {_limits(comparison, tolerance, decision)}"


def _broken(comparison: Comparison, tolerance: Tolerance) -> str:
    """Logits that are no numbers: held against none at all, whatever was accepted."""
    share, cases = f"{100 * (comparison.observed or 0.0):.3g} %", _counted_cases(comparison.n)
    if not comparison.observed:
        return f"is {share}, as it must be, on {cases}"
    most = f"at most {100 * tolerance.absolute:.2g} % may be" if tolerance.absolute else "none may be"
    where = f", {comparison.reason}" if comparison.reason else ""
    return f"is {share}, on {cases}{where}; {most}"


def _none_expected(comparison: Comparison, tolerance: Tolerance, decision: Decision) -> str:
    """What there must be none of, however much was there before."""
    now, most = (format_value(comparison.metric, value) for value in (comparison.observed or 0.0, tolerance.absolute))
    low, high = (format_value(comparison.metric, bound) for bound in comparison.interval or (0.0, 0.0))
    spread = f": {low} … {high}" if low != high else ""
    words = f"is {now} ({_now(comparison)}{spread}); at most {most} may be"
    if decision.verdict is Verdict.INCONCLUSIVE:
        why = f"the machine was not ours ({comparison.contended})" if comparison.contended else "not in every launch"
        return f"{words}, cannot tell: {why}"
    return words if comparison.observed else f"is {now}, as it must be ({_now(comparison)})"


def _now(comparison: Comparison) -> str:
    return f"{comparison.n} launch{'es' * (comparison.n != 1)}"


_UNRESOLVED = {
    Verdict.ERROR: "could not be measured",
    Verdict.INVALID: "was measured of something else",
    Verdict.NOT_MEASURED: "was not measured",
    Verdict.INCONCLUSIVE: "cannot be told",
    Verdict.UNBASELINED: "has no baseline",
    Verdict.NOT_COMPARABLE: "cannot be compared with its baseline",
}


def format_value(metric: str, value: float) -> str:
    """A value with its unit: ``171.2 tok/s``, ``12.3 ms``, ``612.0 MB``, ``0.521``."""
    match SPECS[metric].unit:
        case "s":
            return f"{value:.3g} s" if value >= 1 else f"{1000 * value:.3g} ms"
        case "bytes":
            return f"{value / 1e6:.1f} MB"
        case "tok/s":
            return f"{value:.4g} tok/s"
        case "tokens":
            return f"{value:.1f} tokens"
        case "nats":
            return f"{value:#.3g} nats" if metric in RATIOS else minus(f"{value:.4f}")
        case _:
            return f"{value:.3f}"


def format_amount(comparison: Comparison, amount: float) -> str:
    """An amount on the scale of the drift: percent, points of 100, tokens, or nats a token."""
    return f"{_number(comparison, amount)} {_unit(comparison)}"


def span(interval: tuple[float, float], number: Callable[[float], str], unit: str) -> str:
    """An interval in words, where positive is worse: ``10.4 … 13.1 % worse``, ``2.1 % better … 3.6 % worse``."""
    low, high = interval
    if low < 0 < high and number(0.0) not in (number(-low), number(high)):
        return f"{number(-low)} {unit} better … {number(high)} {unit} worse"
    near, far = sorted((abs(low), abs(high)))
    return f"{number(near)} … {number(far)} {unit} {'better' if -low > high else 'worse'}"


def minus(number: str) -> str:
    """A number with a minus instead of a hyphen."""
    return f"−{number[1:]}" if number.startswith("-") else number


def _number(comparison: Comparison, amount: float) -> str:
    match _unit(comparison):
        case "tokens":
            return f"{amount:.1f}"
        case unit if unit == NATS:
            return f"{amount:.3f}"
        case _:
            return f"{100 * amount:.1f}"


def _unit(comparison: Comparison) -> str:
    if is_ratio(comparison):
        return "%"
    return _UNITS.get(SPECS[comparison.metric].unit, "points")


def _change(comparison: Comparison) -> str:
    old, new = (format_value(comparison.metric, value or 0.0) for value in (comparison.baseline, comparison.observed))
    if comparison.identical:
        return f"is unchanged at {new}: {_identical(comparison)}"
    if comparison.drift is None:
        return f"rose from nothing to {new}"
    if comparison.drift == 0:
        return f"is unchanged at {new}"
    falls = (comparison.drift > 0) is (SPECS[comparison.metric].direction is Direction.HIGHER)
    moved = f"{'fell' if falls else 'rose'} by {format_amount(comparison, abs(comparison.drift))}"
    if comparison.tier is Tier.DUET and is_estimated(comparison) and comparison.aspect is Aspect.SPEED:
        return f"{moved}, slice beside slice (medians of all: {old} → {new})"  # the two need not agree
    return f"{moved}, {old} → {new}"


def _identical(comparison: Comparison) -> str:
    if comparison.metric in RATIOS:
        return "it is the same in every case"
    if is_estimated(comparison):
        return f"every accepted answer is as likely as it was, on {comparison.n} cases"
    return f"every answer is the same, token for token, on {comparison.n} cases"


def _evidence(comparison: Comparison) -> str:
    """Interval, counts and test, as far as there are any, in brackets."""
    parts = []
    if comparison.interval is not None and not comparison.identical:
        told = span(comparison.interval, lambda amount: _number(comparison, amount), _unit(comparison))
        parts.append(f"{_INTERVALS[comparison.aspect]}: {told}")
    if is_estimated(comparison) and comparison.aspect is Aspect.QUALITY:
        parts.append(f"{_counted_cases(comparison.n)}, families counted once")
    parts += _floor(comparison)
    if comparison.aspect is Aspect.SPEED:
        parts.append(_launches(comparison))
    if comparison.p_value is not None and not comparison.identical:
        lost, gained = flip_counts(comparison)
        flips = f"{lost} lost and {gained} gained of " if comparison.metric in ("score", "exact") else ""
        parts.append(f"{flips}{comparison.n} cases, p = {comparison.p_value:.2g}")
    if comparison.tier is not Tier.NONE:
        parts.append(f"tier {comparison.tier}")
    parts += _mute(comparison)
    if comparison.contended:
        parts.append(comparison.contended)
    return f" ({'; '.join(parts)})" if parts else ""


def _floor(comparison: Comparison) -> list[str]:
    """What was added to both sides of a ratio, where it is large enough to be seen in it."""
    floor = comparison.numeric_floor
    if comparison.identical or 100 * floor < abs(comparison.baseline or 0.0) or not floor:
        return []
    return [f"{floor:.3g} nats of numerics added to either side"]


def _counted_cases(count: int) -> str:
    return f"{count} case{'s' * (count != 1)}"


def _mute(comparison: Comparison) -> list[str]:
    """How many cases cannot testify, and why."""
    swaying = len(comparison.unsteady)
    why = {
        "differ from one run to the next": swaying,
        "depend on the number of threads": len(comparison.left_out) - swaying,
    }
    return [f"{count} cases {words} and cannot testify" for words, count in why.items() if count]


def _launches(comparison: Comparison) -> str:
    if comparison.tier is Tier.DUET:
        return f"{comparison.n} launches side by side"
    return f"launches: {comparison.n} now, {comparison.n_baseline} then"


def _limits(comparison: Comparison, tolerance: Tolerance, decision: Decision) -> str:
    """Tolerance, what could have been seen, and why it cannot be told when it cannot."""
    limit = limit_of(comparison, tolerance)
    in_nats = _is_told_in_nats(comparison, limit, tolerance)
    words = [f"tolerance {_tell_limit(comparison, limit, in_nats=in_nats)}"]
    if comparison.mde is not None:
        words.append(f"could have seen {_tell_limit(comparison, comparison.mde, in_nats=in_nats)}")
    elif comparison.p_value is not None:
        words.append(f"{comparison.n} cases are too few to show any loss")
    if not comparison.identical and not can_pass(comparison, limit):
        words.append("which makes the tolerance tighter than the noise allows")
    if decision.verdict is Verdict.INCONCLUSIVE:
        words.append(f"cannot tell: {_doubt(comparison, limit, decision)}")
    if comparison.reason and not comparison.contended:
        words.append(comparison.reason)
    return ", ".join(words)


def _is_told_in_nats(comparison: Comparison, limit: float, tolerance: Tolerance) -> bool:
    """Whether a share of the old value would be a silly one: of next to nothing, where the absolute tolerance counts."""
    return comparison.metric in RATIOS and limit > max(tolerance.relative, tolerance.duet or 0.0) + 1e-6


def _tell_limit(comparison: Comparison, limit: float, *, in_nats: bool) -> str:
    """An amount on the scale of the tolerance; what grew from nothing has no share that it grew by."""
    if in_nats:
        return f"{limit * (abs(comparison.baseline or 0.0) + comparison.numeric_floor):.3g} nats"
    if grew_from_nothing(comparison):
        return format_value(comparison.metric, limit)
    return format_amount(comparison, limit)


def _doubt(comparison: Comparison, limit: float, decision: Decision) -> str:
    if comparison.contended:
        return "the machine was not ours"
    if comparison.flags:
        return f"the machine was not as it should be ({'; '.join(comparison.flags)})"
    if is_estimated(comparison) and comparison.aspect is Aspect.QUALITY:
        return _doubt_logprob(comparison, limit, decision)
    if comparison.aspect is Aspect.QUALITY:
        return _doubt_answers(comparison, limit, decision)
    return _doubt_speed(comparison, limit, decision)


def _doubt_speed(comparison: Comparison, limit: float, decision: Decision) -> str:
    if comparison.aspect is Aspect.MEMORY:
        return "its launches differ by as much among themselves"
    if comparison.interval is None:
        side_by_side = comparison.tier is Tier.DUET
        return (
            "fewer than two launches are clean on both sides"
            if side_by_side
            else "one launch on each side has no spread"
        )
    if blames_machine(comparison, limit, decision.p_needed or 0.0):
        worst = max(comparison.machine_drift, key=abs)
        word = "slower" if worst > 0 else "faster"
        return f"the machine itself is {100 * abs(worst):.0f} % {word} than when the baseline was accepted (yardstick)"
    low, high = comparison.interval
    if comparison.assumed and (low > limit or high < -limit):
        return (
            "how much whole sessions of this machine differ was never measured; on a shared one by up to 15 %. "
            "Find out with: quantdrift calibrate"
        )
    if low > limit:
        return f"beyond the tolerance by itself, but not among {decision.family} checks of one run"
    return "the interval spans the tolerance" if high > limit else "the interval is too close to the tolerance"


def _doubt_logprob(comparison: Comparison, limit: float, decision: Decision) -> str:
    if comparison.interval is None:
        return "a single case has no spread"
    if comparison.interval[0] > limit:
        return f"beyond the tolerance by itself, but not among {decision.family} such checks of one run"
    return "the interval spans the tolerance"


def _doubt_answers(comparison: Comparison, limit: float, decision: Decision) -> str:
    loss = comparison.drift or 0.0
    if loss <= limit:
        most = format_amount(comparison, comparison.interval[1]) if comparison.interval else "any amount"
        return f"on other cases like these {most} may be lost"
    if (comparison.p_value or 1.0) <= ALPHA and decision.family > 1:
        return f"beyond the tolerance by itself, but not among {decision.family} such checks of one run"
    return "so few changed answers may be luck"
