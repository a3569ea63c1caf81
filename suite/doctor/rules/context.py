"""Context that is allocated and never used; or that is too small for what was asked."""

from __future__ import annotations

from suite.doctor.phrases import percent, size
from suite.doctor.reading import facts_of, number
from suite.doctor.rule import Rule, Said, cannot_be, found, passed
from suite.records import Run, VariantResult

FAR_ABOVE = 4
"""How many times what is needed a context may be."""
NOTABLE, NOTABLE_BYTES = 0.1, 128 * 2**20
"""Share of the peak memory, and bytes, that unused KV cache may take: both, since neither alone is missed by anybody."""
TOO_SMALL = "do not fit a context"


def check_context(run: Run, result: VariantResult) -> Said:
    """Allocated tokens, against the longest prompt with its answer."""
    lost = [
        trial.case for trial in run.trials if trial.variant == result.variant.name and TOO_SMALL in (trial.error or "")
    ]
    if lost or (result.failure and TOO_SMALL in result.failure.reason):
        where = f"{len(lost)} answers (the first: {lost[0]})" if lost else "what was asked"
        return found(f"the context is too small for {where}", "a larger n_ctx, or shorter cases and scenarios")
    context = number(facts_of(result), "n_ctx")
    if not context:
        return cannot_be("the backend allocates its KV cache as it goes")
    needed = _needed(run, result.variant.name)
    if not needed:
        return cannot_be("nothing was asked of it in this run")
    cache = max((launch.kv_cache_reported_bytes or 0 for launch in result.launches), default=0)
    peak = max((launch.peak_rss_bytes or 0 for launch in result.launches), default=0)
    unused = cache * (1 - min(1.0, needed / context))
    told = f"n_ctx is {context:.0f}, the longest prompt with its answer took {needed} tokens"
    if context > FAR_ABOVE * needed and peak and unused > max(NOTABLE * peak, NOTABLE_BYTES):
        return found(
            f"{told}: {size(unused)} of KV cache lie idle, {percent(unused / peak)} of its memory",
            f"n_ctx = {_round_up(needed)}, unless you run longer prompts elsewhere",
        )
    return passed(told)


def _needed(run: Run, variant: str) -> int:
    """Tokens of the longest prompt with its answer: of the cases, and of the timed samples, whatever their scenario."""
    answers = (t.generation for t in run.trials if t.variant == variant and t.generation is not None)
    longest = max((said.prompt_tokens + len(said.token_ids) for said in answers), default=0)
    timed = (s.prompt_tokens // s.batch + s.new_tokens for s in run.speed_samples if s.variant == variant)
    return max(longest, max(timed, default=0))


def _round_up(tokens: int) -> int:
    """The next multiple of 256, of which llama.cpp allocates."""
    return -(-tokens // 256) * 256


RULE = Rule(id="context", title="context wanted against used", of_variant=check_context)
