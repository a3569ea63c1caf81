"""How numbers and metric identifiers are worded for people. Units come from the identifier's ending."""

from __future__ import annotations

from suite.gate.decide import RATIOS, is_ratio
from suite.gate.wording import minus
from suite.metrics.catalog import SPECS
from suite.records import Comparison, Finding, Tier, Tolerance

ABSENT = "–"
"""Shown where there is no number; the sections under the table say why."""

_UNITS = (("_tok_s", "tok/s"), ("_bytes", ""), ("_s", ""))
_ACRONYMS = {
    "ttft": "TTFT", "itl": "ITL", "tpot": "TPOT", "rss": "RSS", "uss": "USS", "kv": "KV", "kld": "KLD", "ppl": "PPL",
    "mbu": "MBU", "mfu": "MFU",
}  # fmt: skip
_NAMES = {
    "peak_device_bytes": "peak device memory",
    "speedup": "speed-up",
    "same_top_1": "same top-1",
    "delta_p": "Δp",
    "rms_delta_p": "RMS Δp",
}
_GIGA, _MEGA, _KILO = 1e9, 1e6, 1e3
_PERCENT = 100
_SHARES = ("credit", "share")


def metric_name(metric: str) -> str:
    """``decode_tok_s`` → ``decode tok/s``; ``peak_rss_bytes`` → ``peak RSS``; ``score`` → ``score``."""
    if metric in _NAMES:
        return _NAMES[metric]
    stem, unit = metric, ""
    for ending, readable in _UNITS:
        if metric.endswith(ending):
            stem, unit = metric.removesuffix(ending), readable
            break
    words = [_ACRONYMS.get(word, word) for word in stem.split("_")]
    return " ".join([*words, unit] if unit else words)


def value(metric: str, number: float | None) -> str:
    """A value of `metric` with its unit: ``171 tok/s``, ``205 MB``, ``98.2 ms``, ``.52``."""
    if number is None:
        return ABSENT
    if metric.endswith("_tok_s"):
        return f"{rate(number)} tok/s"
    if metric.endswith("_bytes"):
        return size(number)
    if metric.endswith("_s"):
        return duration(number)
    if metric in RATIOS:
        return f"{nats(number)} nats"
    return score(number) if 0 <= number <= 1 else minus(f"{number:.4g}")


def rate(number: float | None) -> str:
    """Tokens a second, three significant digits at least: ``7.62``, ``69.3``, ``1228``."""
    if number is None:
        return ABSENT
    decimals = 0 if number >= 99.95 else 1 if number >= 9.995 else 2
    return f"{number:.{decimals}f}"


def size(number: float | None) -> str:
    """Bytes in decimal units: ``145 MB``, ``4.92 GB``."""
    if number is None:
        return ABSENT
    if number >= 0.9995 * _GIGA:
        return f"{number / _GIGA:.3g} GB" if number < 999.5 * _GIGA else f"{number / _GIGA:.0f} GB"
    if number >= 0.9995 * _MEGA:
        return f"{number / _MEGA:.3g} MB"
    return f"{number / _KILO:.3g} kB"


def duration(number: float | None) -> str:
    """Seconds, or milliseconds below one second: ``98.2 ms``, ``1.24 s``."""
    if number is None:
        return ABSENT
    return f"{number:.3g} s" if number >= 0.9995 else f"{number * 1000:.3g} ms"


def score(number: float | None) -> str:
    """A score of 0..1 with two decimals and no leading zero: ``.52``, ``1.00``."""
    if number is None:
        return ABSENT
    text = f"{number:.2f}"
    return text.removeprefix("0")


def nats(number: float | None) -> str:
    """A divergence, three significant digits: ``0.058``, ``1.7e-05``, ``0``."""
    return ABSENT if number is None else f"{number:.3g}"


def short_nats(number: float | None) -> str:
    """A divergence for a narrow column: ``.0580``, ``1.23``, ``<.0001``; ``0`` is nothing at all."""
    if number is None:
        return ABSENT
    if number < 0.00005:
        return "<.0001" if number else "0"
    return f"{number:.4f}".removeprefix("0") if number < 0.99995 else f"{number:.3g}"


def lead(number: float) -> str:
    """By how many nats one token is preferred to another: ``0.09``, ``−0.56``; ``<0.01`` is as good as none, either way."""
    return "<0.01" if abs(number) < 0.005 else minus(f"{number:.2f}")


def drift(comparison: Comparison) -> str:
    """The drift in words, never by sign alone: ``11.8 % worse``, ``4.2 points better``, ``unchanged``."""
    if comparison.drift is None:
        return "not known"
    if comparison.drift == 0:
        return "unchanged"
    text = _amount(comparison, abs(comparison.drift))
    return f"{text} worse" if comparison.drift > 0 else f"{text} better"


def bare_interval(comparison: Comparison) -> str:
    """The 95 % interval of the drift, positive is worse: ``+10.4 … +13.1 %``, or nothing."""
    if comparison.interval is None or comparison.drift is None:  # what grew from nothing has no share that it grew by
        return ""
    low, high = (_signed(comparison, bound) for bound in comparison.interval)
    return f"{low} … {high} {_unit(comparison)}"


def drift_interval(comparison: Comparison) -> str:
    """The same with what it is: ``95 %: +10.4 … +13.1 % (+ is worse)``, or nothing."""
    bare = bare_interval(comparison)
    return f"95 %: {bare} (+ is worse)" if bare else ""


def tested(finding: Finding) -> str:
    """The test behind a verdict: ``p = 0.0012, needed ≤ 0.0049 (one of 24 such checks in this run)``, or nothing."""
    if finding.p_value is None or finding.p_needed is None:
        return ""
    among = f" (one of {finding.family} such checks in this run)" if finding.family > 1 else ""
    return f"p = {finding.p_value:.2g}, needed ≤ {finding.p_needed:.2g}{among}"


def detectable(comparison: Comparison) -> str:
    """The smallest worsening that could have been told from noise: ``could have seen 1.9 %``."""
    if comparison.mde is None:
        return "what it could have seen is not known"
    return f"could have seen {_amount(comparison, comparison.mde)}"


def tolerance(limit: Tolerance | None, comparison: Comparison) -> str:
    """A tolerance: ``10 %``, ``10 % and 2 tok/s``, ``2 points``; or that there is none."""
    if limit is None:
        return "none set"
    side_by_side = comparison.tier is Tier.DUET and limit.duet is not None
    relative = limit.duet if side_by_side and limit.duet is not None else limit.relative
    parts = [f"{relative * _PERCENT:.3g} %"] if relative else []
    if limit.absolute:
        own = is_ratio(comparison)  # then the absolute part is no share, but in the metric's own unit
        parts.append(value(comparison.metric, limit.absolute) if own else _amount(comparison, limit.absolute))
    return " and ".join(parts) or "0"


def listed(names: list[str] | tuple[str, ...], limit: int = 6) -> str:
    """``a, b, c`` with what exceeds `limit` counted: ``a, b and 4 more``."""
    if len(names) <= limit:
        return ", ".join(names)
    return f"{', '.join(names[: limit - 1])} and {len(names) - limit + 1} more"


def counted(number: int, noun: str) -> str:
    """``1 gate``, ``3 gates``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _amount(comparison: Comparison, number: float) -> str:
    amount = _digits(number * _scale(comparison))
    unit = _unit(comparison)
    return f"{amount} {unit.removesuffix('s') if amount == '1' else unit}"


def _signed(comparison: Comparison, number: float) -> str:
    sign = "+" if number > 0 else "−" if number < 0 else ""
    return sign + _digits(abs(number) * _scale(comparison))


def _digits(number: float) -> str:
    return f"{number:.3g}" if number < _PERCENT else f"{number:.0f}"


def _unit(comparison: Comparison) -> str:
    """Drift of speed, memory and divergences is relative; that of answers is in the metric's own unit, shares as points."""
    if is_ratio(comparison):
        return "%"
    spec = SPECS.get(comparison.metric)
    return "points" if spec is None or spec.unit in _SHARES else spec.unit


def _scale(comparison: Comparison) -> int:
    return _PERCENT if _unit(comparison) in ("%", "points") else 1
