"""The first request after a load, against a warm one."""

from __future__ import annotations

from suite.doctor.phrases import duration
from suite.doctor.reading import first_scenario, middle, samples_of
from suite.doctor.rule import Rule, Said, cannot_be, found, passed
from suite.records import Run, VariantResult

TIMES = 2.0
NOTABLE_S = 0.25
"""Seconds of waiting that a person feels."""


def check_first(run: Run, result: VariantResult) -> Said:
    """TTFT of the very first request against the same scenario warm: median over launches, and over clean samples."""
    scenario = first_scenario(run)
    whole = [s for s in samples_of(run, result) if s.scenario == scenario and not s.kept_tokens and s.batch == 1]
    warm = middle([sample.ttft_s for sample in whole])
    lengths = {sample.prompt_tokens for sample in whole}
    cold = middle([x.cold_ttft_s for x in result.launches if x.cold_ttft_s and x.cold_prompt_tokens in lengths])
    if not warm or not cold:
        return cannot_be("the run holds no cold and warm request of the same length")
    told = f"the first request took {duration(cold)} to its first token, a warm one {duration(warm)}"
    if cold > TIMES * warm and cold - warm > NOTABLE_S:
        return found(told, "send one request after loading, before anybody waits")
    return passed(told)


RULE = Rule(id="first-request", title="first request", of_variant=check_first)
