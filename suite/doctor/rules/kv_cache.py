"""A decode step must cost one token, however much text is before it."""

from __future__ import annotations

import math
from statistics import fmean, median

from suite.doctor.phrases import duration, percent
from suite.doctor.reading import middle, samples_of, trials_of
from suite.doctor.rule import Rule, Said, cannot_be, found, passed
from suite.metrics.speed import spread_chunks
from suite.records import Run, SpeedSample, Trial, VariantResult

LONG_PROMPT = 64
"""Prompt tokens from which evaluating them costs clearly more than one."""
RECOMPUTES = 0.5
"""A step that takes this share of evaluating the whole prompt may be evaluating all of it."""
LONG_ANSWER = 16
"""Gaps of an answer that tell how the cost of a step grows."""
CONTEXT_GROWS = 1.3
"""Growth of the context, from the first quarter of an answer to its last, that a step without a cache could not hide."""
GROWS_WITH_IT = 0.5
"""Exponent of the step's cost over the context, above which it follows the context: 1 is a pass over all of it, 0 is flat."""

FLAT = 0.2
"""Exponent below which the cost of a step is called flat."""


def check_cache(run: Run, result: VariantResult) -> Said:
    """Two signs must agree: a step costs about as much as a prompt, and its cost grows as the context does.

    Each alone has innocent causes: on a GPU a short prompt costs no more than one token, and attention over a long context
    grows by itself.
    """
    step = _step_share(samples_of(run, result))
    growth = _growth(trials_of(run, result))
    if step is None:
        return cannot_be(f"no clean sample of a prompt of {LONG_PROMPT} tokens or more to hold a decode step against")
    share, gap_s, prefill_s = step
    seen = f"a decode step takes {duration(gap_s)}, {percent(share)} of a whole prompt ({duration(prefill_s)})"
    if share < RECOMPUTES:
        return passed(f"{seen}; {_describe(growth)}")
    if growth is None:
        return cannot_be(f"{seen}, and no answer is long enough to tell whether a step's cost grows with the context")
    if growth > GROWS_WITH_IT:
        return found(
            f"{seen}, and its cost grows as context^{growth:.2f}: each step evaluates the whole text anew",
            "turn the KV cache on (use_cache), and keep it between steps",
        )
    return passed(f"{seen}, but {_describe(growth)}")


def _describe(growth: float | None) -> str:
    if growth is None:
        return "its cost along an answer was not measured"
    return f"its cost {'stays flat' if growth < FLAT else 'rises'} along an answer (as context^{growth:.2f})"


def _step_share(samples: list[SpeedSample]) -> tuple[float, float, float] | None:
    """Median gap over median prefill time, and both in seconds, of the scenario that decodes most after a long prompt.

    A prompt of which a part is kept, or that is one of a batch, is no whole prompt.
    """
    usable = [
        s
        for s in samples
        if s.prompt_tokens >= LONG_PROMPT and s.itl_s and s.prefill_s > 0 and not s.kept_tokens and s.batch == 1
    ]
    if not usable:
        return None
    most = max((len(sample.itl_s), sample.prompt_tokens) for sample in usable)
    chosen = [sample for sample in usable if (len(sample.itl_s), sample.prompt_tokens) == most]
    gap, prefill = median(g for s in chosen for g in spread_chunks(s.itl_s)), median(s.prefill_s for s in chosen)
    return gap / prefill, gap, prefill


def _growth(trials: list[Trial]) -> float | None:
    """Median exponent of the cost of a step over the length of its context, over answers that are long enough."""
    return middle([exponent for trial in trials if (exponent := _exponent(trial)) is not None])


def _exponent(trial: Trial) -> float | None:
    """log(gaps at the end / gaps at the beginning) / log(context at the end / at the beginning), by quarters."""
    said = trial.generation
    gaps = said.itl_s if said else ()
    quarter = len(gaps) // 4
    if said is None or len(gaps) < LONG_ANSWER:
        return None
    first, last = median(gaps[:quarter]), median(gaps[-quarter:])
    begins = said.prompt_tokens + fmean(range(1, quarter + 1))
    ends = said.prompt_tokens + len(gaps) - fmean(range(quarter))
    if first <= 0 or last <= 0 or ends / begins < CONTEXT_GROWS:
        return None
    return math.log(last / first) / math.log(ends / begins)


RULE = Rule(id="kv-cache", title="KV cache in use", of_variant=check_cache)
