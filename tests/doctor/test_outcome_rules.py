"""Faults that show in what was measured and answered, planted one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support import sample_health as health
from support import sample_runs as sample
from support.asking import ask, check_found

from suite.records import Health, Run, SampleStatus, Trial, Verdict


def uncached(trial: Trial, prefill_tok_s: float = 990.0) -> Trial:
    """The same answer by a model that evaluates all of the text for each token."""
    assert trial.generation is not None
    times, now = [], 0.0
    for number in range(24):
        now += (trial.generation.prompt_tokens + number) / prefill_tok_s
        times.append(now)
    return replace(trial, generation=replace(trial.generation, prefill_s=times[0], token_times_s=tuple(times)))


def without_cache(*, slow_steps: bool, growing: bool) -> Run:
    prefill = health.PROMPT / 990.0
    run = health.with_samples("q8_0", itl_s=(prefill,) * 15) if slow_steps else health.run()
    return replace(run, trials=tuple(uncached(t) if t.variant == "q8_0" and growing else t for t in run.trials))


def test_a_variant_that_evaluates_the_whole_text_for_each_token() -> None:
    run = without_cache(slow_steps=True, growing=True)
    check_found(
        "kv-cache", run, "q8_0", "a decode step takes 129 ms, 100 % of a whole prompt (129 ms), and its cost grows as"
    )


@pytest.mark.parametrize(("slow_steps", "growing"), [(True, False), (False, True)])
def test_one_sign_alone_is_innocent(slow_steps: bool, growing: bool) -> None:
    assert ask("kv-cache", without_cache(slow_steps=slow_steps, growing=growing), "q8_0").status is Health.PASS


def test_without_long_answers_it_cannot_be_told() -> None:
    run = replace(without_cache(slow_steps=True, growing=True), trials=())
    assert ask("kv-cache", run, "q8_0").status is Health.NOT_APPLICABLE


def test_a_prompt_that_a_cache_answered() -> None:
    run = health.with_samples("q8_0", evaluated_tokens=1, status=SampleStatus.REJECTED)
    check_found("prefix-cache", run, "q8_0", "6 of 8 prompts were not evaluated whole (the first: 1 of 128 tokens)")


def test_a_server_that_tells_nothing_of_its_cache_is_not_passed() -> None:
    run = health.with_launches("q8_0", seen={"evaluated tokens": "assumed"})
    item = ask("prefix-cache", run, "q8_0")
    assert item.status is Health.NOT_APPLICABLE
    assert "does not tell how many prompt tokens it evaluated" in item.evidence


def test_a_client_that_sees_less_than_its_server_makes() -> None:
    readings = {"client_decode_tok_s": 139.0, "server_decode_tok_s": 164.0}
    says = "139 tok/s for the client, 164 by the server's timings: 15 % less"
    run = health.with_launches("q8_0", readings=readings)
    check_found("served-rate", run, "q8_0", says)
    assert "what lies between them" in ask("served-rate", run, "q8_0").remedy
    more = health.with_launches("q8_0", readings={**readings, "server_decode_tok_s": 120.0})
    check_found("served-rate", more, "q8_0", "16 % more")
    assert "counts other time or other tokens" in ask("served-rate", more, "q8_0").remedy


def test_a_client_that_sees_what_its_server_makes() -> None:
    run = health.with_launches("q8_0", readings={"client_decode_tok_s": 162.0, "server_decode_tok_s": 164.0})
    item = ask("served-rate", run, "q8_0")
    assert (item.status, item.evidence) == (
        Health.PASS,
        "162 tok/s for the client, 164 by the server's timings: 1.2 % less",
    )


@pytest.mark.parametrize(
    ("readings", "says"),
    [({}, "it is no server"), ({"client_decode_tok_s": 162.0}, "the server does not tell how fast it decoded")],
)
def test_where_no_server_tells_there_is_nothing_to_hold_a_client_against(readings: dict[str, float], says: str) -> None:
    item = ask("served-rate", health.with_launches("q8_0", readings=readings), "q8_0")
    assert (item.status, item.evidence) == (Health.NOT_APPLICABLE, says)


def test_a_batch_that_evaluates_more_than_its_prompts() -> None:
    padded = {"batch": 4, "prompt_tokens": 512, "evaluated_tokens": 640, "status": SampleStatus.REJECTED}
    run = health.with_samples("q8_0", **padded)
    check_found("padding", run, "q8_0", "640 tokens were evaluated for 4 prompts of 512 together: 20 % is padding")
    assert ask("prefix-cache", run, "q8_0").status is Health.PASS


@pytest.mark.parametrize("evaluated", [512, 530])
def test_a_batch_of_prompts_that_are_as_long_as_one_another_is_not_padded(evaluated: int) -> None:
    run = health.with_samples("q8_0", batch=4, prompt_tokens=512, evaluated_tokens=evaluated)
    item = ask("padding", run, "q8_0")
    assert item.status is Health.PASS
    assert item.evidence == f"{evaluated} tokens were evaluated for 4 prompts of 512 together"


@pytest.mark.parametrize("changes", [{}, {"batch": 4, "evaluated_tokens": 0, "status": SampleStatus.UNSUITED}])
def test_what_was_not_timed_together_is_not_padded(changes: dict[str, Any]) -> None:
    assert ask("padding", health.with_samples("q8_0", **changes), "q8_0").status is Health.NOT_APPLICABLE


def test_evaluating_more_than_was_asked_is_no_cache() -> None:
    """All but 32 tokens were kept on purpose, and 48 were evaluated: rejected, but for the contrary."""
    run = health.with_samples(
        "q8_0", prompt_tokens=8136, kept_tokens=8104, evaluated_tokens=48, status=SampleStatus.REJECTED
    )
    assert ask("prefix-cache", run, "q8_0").status is Health.PASS
    again = health.with_samples(
        "q8_0", prompt_tokens=8136, kept_tokens=8104, evaluated_tokens=3, status=SampleStatus.REJECTED
    )
    check_found("prefix-cache", again, "q8_0", "6 of 8 prompts were not evaluated whole (the first: 3 of 32 tokens)")


def test_scenarios_that_a_variant_was_not_asked_are_not_counted() -> None:
    run = health.with_samples("q8_0", status=SampleStatus.UNSUITED, prompt_tokens=9999, evaluated_tokens=0)
    assert "the tokens of 2 prompts" in ask("prefix-cache", run, "q8_0").evidence


@pytest.mark.parametrize("changes", [{"kept_tokens": 96}, {"batch": 4}])
def test_a_prompt_that_is_not_whole_says_nothing_of_the_cost_of_one(changes: dict[str, int]) -> None:
    run = health.with_samples("q8_0", **changes)
    assert ask("kv-cache", run, "q8_0").status is Health.NOT_APPLICABLE
    assert ask("first-request", run, "q8_0").status is Health.NOT_APPLICABLE


def test_a_step_of_a_server_that_sends_chunks_is_a_share_of_a_chunk() -> None:
    gap = health.PROMPT / 990.0  # a server without a KV cache, four tokens a chunk
    run = health.with_samples("q8_0", itl_s=(0.0, 0.0, 0.0, 4 * gap) * 4)
    trials = tuple(uncached(trial) if trial.variant == "q8_0" else trial for trial in run.trials)
    check_found("kv-cache", replace(run, trials=trials), "q8_0", "100 % of a whole prompt")


def test_sequences_together_each_need_a_context_of_their_own() -> None:
    run = health.with_samples("q8_0", prompt_tokens=8 * 256, batch=8)
    assert "the longest prompt with its answer took 272 tokens" in ask("context", run, "q8_0").evidence


def test_answers_taken_from_an_earlier_run_say_nothing_of_a_cache() -> None:
    stale = tuple(
        replace(t, cached_from="earlier", generation=replace(t.generation, evaluated_tokens=1, token_times_s=()))
        for t in health.run().trials
        if t.generation is not None
    )
    assert ask("prefix-cache", replace(health.run(), trials=stale), "q8_0").status is Health.PASS


def test_prompts_with_other_token_ids() -> None:
    trials = tuple(
        replace(t, prompt_sha256="cd" * 32) if (t.variant, t.case) == ("q8_0", "math/apples") else t
        for t in health.run().trials
    )
    says = "1 of 2 prompts have other token ids in some variants (math/apples: q8_0)"
    check_found("prompt-parity", replace(health.run(), trials=trials), None, says)


def test_a_variant_that_was_left_out_for_its_prompts() -> None:
    out = sample.failed(
        "q8_0", Verdict.INVALID, "token ids differ from those of 'fp16' at position 3 of case math/apples"
    )
    check_found("prompt-parity", health.with_result(out), None, "q8_0 made other token ids")


def test_slower_than_the_reference() -> None:
    slow = health.with_samples("q8_0", itl_s=(0.03,) * 15)
    check_found("slower", slow, "q8_0", "decodes at 0.48× (95 %: 0.48 … 0.49) the speed of fp16")


def test_slower_by_less_than_the_launches_differ_is_no_finding() -> None:
    gaps = {0: 0.0140, 1: 0.0155, 2: 0.0142}
    timed = tuple(replace(one, itl_s=(gaps[one.launch],) * 15) for one in health.samples("q8_0"))
    run = health.with_result(health.result_of("q8_0", timed))
    assert ask("slower", run, "q8_0").status is Health.PASS


def test_four_bits_slower_than_eight() -> None:
    slow = health.with_samples("q4_k_m", itl_s=(0.007,) * 15)
    check_found("four-bit", slow, "q4_k_m", "the speed of q8_0; it holds 6.2 bits a weight")
    assert ask("four-bit", slow, "q4_k_m").remedy.startswith("take q8_0 where its memory fits")
    assert ask("four-bit", slow, "q8_0").evidence == "not a 4-bit variant"


def test_one_launch_tells_nothing_of_an_order() -> None:
    timed = tuple(one for one in health.samples("q4_k_m", itl_s=(0.03,) * 15) if one.launch == 0)
    run = health.with_result(health.result_of("q4_k_m", timed))
    assert ask("four-bit", run, "q4_k_m").status is Health.NOT_APPLICABLE
    assert ask("slower", run, "q4_k_m").status is Health.NOT_APPLICABLE


def test_a_slow_first_request() -> None:
    check_found("first-request", health.with_launches("q8_0", cold_ttft_s=1.5), "q8_0", "took 1.5 s to its first token")
    other = health.with_launches("q8_0", cold_ttft_s=1.5, cold_prompt_tokens=4000)
    assert ask("first-request", other, "q8_0").status is Health.NOT_APPLICABLE


@pytest.mark.parametrize(("variant", "cold_s"), [("q8_0", 0.325), ("fp16", 1.2)])
def test_a_first_request_that_nobody_feels_or_that_is_not_much_slower(variant: str, cold_s: float) -> None:
    assert ask("first-request", health.with_launches(variant, cold_ttft_s=cold_s), variant).status is Health.PASS
