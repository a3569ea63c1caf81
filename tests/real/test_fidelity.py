"""Teacher forcing of the embedded model: what is equal is 0, what is coarser is further, and two paths are two paths."""

from __future__ import annotations

from statistics import fmean
from typing import Any

import numpy
import pytest
from support.real import ENGINES, FP16, INT8, QUESTION, Launch

from suite.engine.distributions import Rows, divergence
from suite.engine.launching import LiveVariant
from suite.engine.tracing import rows_of, trace_case
from suite.records import Case, ScorerSpec, TracedCase
from suite.worker.forcing import log_softmax

PROMPTS = (
    QUESTION,
    "Write a Python function that adds two numbers.",
    "A train travels 60 km in 1.5 hours. What is its speed in km/h? Think step by step.",
    "List three fruits that are red.",
)
TOKENS = 48


def trace(live: LiveVariant) -> list[TracedCase]:
    found = []
    for number, prompt in enumerate(PROMPTS):
        case = Case(
            id=f"own/{number}", domain="own", version=1, prompt=prompt, target="", scorer=ScorerSpec(name="exact"),
            max_new_tokens=TOKENS,
        )  # fmt: skip
        ids = live.render_one(prompt)
        answer, _ = live.generate(ids, TOKENS, stop_at_end=True, logprobs=True)
        traced = trace_case(live, case, ids, answer)
        assert traced is not None
        found.append(traced)
    return found


def force(live: LiveVariant, traced: TracedCase, *, batched: bool = True) -> Rows:
    rows = live.force(traced.prompt_ids, traced.answer_ids, batched=batched, asked=rows_of(traced).ids.tolist())
    assert rows is not None
    return rows


def mean_kld(live: LiveVariant, cases: list[TracedCase], *, batched: bool = True) -> float:
    klds = [divergence(rows_of(traced), force(live, traced, batched=batched)) for traced in cases]
    return float(numpy.concatenate(klds).mean())


@pytest.mark.parametrize("engine", ENGINES)
def test_a_variant_against_its_own_trace_is_exactly_zero(launch: Launch, engine: dict[str, Any]) -> None:
    with launch(**engine) as live:
        cases = trace(live)
        assert mean_kld(live, cases) == 0.0  # the cache of the last prompt is used again where it can be
        live.generate(cases[0].prompt_ids[:7], 3, stop_at_end=False)
        assert mean_kld(live, cases[::-1]) == 0.0
    with launch(**engine) as again:
        assert mean_kld(again, cases) == 0.0


@pytest.mark.parametrize("engine", ENGINES)
def test_log_probabilities_are_those_of_the_logits(launch: Launch, engine: dict[str, Any]) -> None:
    """Along the decode path they are what generating said; at each position they sum to one."""
    with launch(**engine) as live:
        ids = live.render_one(QUESTION)
        answer, _ = live.generate(ids, TOKENS, stop_at_end=True, logprobs=True)
        rows = live.force(ids, answer.token_ids, batched=False, top=64)
    assert rows is not None
    assert answer.logprobs is not None
    assert rows.chosen.tolist() == pytest.approx(list(answer.logprobs), abs=1e-4)
    assert rows.best.tolist() == list(answer.token_ids)  # greedy
    mass = numpy.exp(rows.logprobs.astype(float)).sum(axis=1) + numpy.exp(rows.rest.astype(float))
    assert mass == pytest.approx(1.0, abs=1e-5)
    assert log_softmax(numpy.zeros(4)).tolist() == pytest.approx([-1.3862943611] * 4)


def test_coarser_weights_are_further_from_the_reference(launch: Launch) -> None:
    with launch("llama_cpp", make="F16") as live:
        cases = trace(live)
    found = {}
    for make in ("F16", "Q8_0", "Q5_K_M", "Q4_0", "Q2_K"):
        with launch("llama_cpp", make=make) as live:
            found[make] = mean_kld(live, cases)
    assert found["F16"] == 0.0
    assert 0 < found["Q8_0"] < found["Q5_K_M"] < found["Q4_0"] < found["Q2_K"]
    assert 0.0005 < found["Q8_0"] < 0.02


def test_the_engine_leg_is_small_beside_what_eight_bits_cost(launch: Launch) -> None:
    with launch(**FP16) as live:
        cases = trace(live)
    with launch("llama_cpp", make="F16") as live:
        engine = mean_kld(live, cases)
    with launch(**INT8) as live:
        eight = mean_kld(live, cases)
        paths = fmean(
            float(divergence(force(live, traced), force(live, traced, batched=False)).mean()) for traced in cases
        )
    assert engine < 1e-4
    assert eight > 50 * engine
    assert paths > 0.1 * eight  # INT8 mixes the rows of a batch: its two paths are as far apart as its whole loss
