"""Faults in how a variant was set up, planted one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support import sample_health as health
from support import sample_runs as sample
from support.asking import ask, check_found

from suite.records import Health, Run


def of_gpu_machine(run: Run) -> Run:
    identity = {**run.environment.identity, "device": "1x Sample GPU", "device memory": "80 GiB"}
    return replace(run, environment=replace(run.environment, identity=identity))


@pytest.mark.parametrize(
    ("rule", "told", "says"),
    [
        ("modes", {"eval mode": "no"}, "training mode"),
        ("cache-switches", {"gradient checkpointing": "yes"}, "gradient checkpointing is on"),
        ("cache-switches", {"use_cache": "no"}, "use_cache is false"),
        ("attention", {"attention": "eager"}, "eager attention"),
        ("dtypes", {"parameters by dtype": "float16=100000000 float32=34515008"}, "26 % of the parameters are float32"),
        ("dtypes", {"parameters by dtype": "float16=100 bfloat16=100"}, "float16 and bfloat16"),
        ("offload", {"parameters by device": "cuda:0=100 cpu=300"}, "25 % on cuda:0, 75 % on cpu"),
        ("threads", {"n_threads": "8"}, "8 threads on 2 physical cores"),
        ("isa", {"cpu capability": "AVX2"}, "the CPU has AVX512, torch uses its AVX2 kernels"),
        ("isa", {"cpu capability": "DEFAULT"}, "torch uses its DEFAULT kernels"),
    ],
)
def test_a_fault_of_a_transformers_variant(rule: str, told: dict[str, str | None], says: str) -> None:
    check_found(rule, health.with_told("fp16", told), "fp16", says)


@pytest.mark.parametrize(
    ("rule", "told", "says"),
    [
        ("threads", {"n_threads_batch": "4"}, "4 threads on 2 physical cores"),
        ("kv-types", {"KV types": "q8_0 q8_0"}, "asked for K and V of f16 f16, got q8_0 q8_0"),
        ("isa", {"llama.cpp system": "CPU : SSE3 = 1 | AVX = 1 | AVX2 = 0 | "}, "the CPU has AVX2, FMA, F16C, AVX512"),
    ],
)
def test_a_fault_of_a_llama_cpp_variant(rule: str, told: dict[str, str | None], says: str) -> None:
    check_found(rule, health.with_told("q8_0", told), "q8_0", says)


def test_a_forward_pass_that_keeps_gradients() -> None:
    run = health.with_launches("fp16", seen={"inference mode": "no"})
    check_found("modes", run, "fp16", "kept what gradients need")


@pytest.mark.parametrize("asked", ["flash_attention_2", "eager"])
def test_another_attention_than_was_asked_for(asked: str) -> None:
    run = health.with_options("fp16", attention=asked)
    check_found("attention", run, "fp16", f"asked {asked}, got sdpa")


def test_an_attention_that_was_asked_for_and_is_in_force_passes() -> None:
    assert (
        ask("attention", health.with_options("fp16", attention="sdpa"), "fp16").evidence == "sdpa is in force, as asked"
    )


def test_flash_attention_that_was_turned_off() -> None:
    run = health.with_options("q8_0", flash_attn=True)
    check_found("attention", run, "q8_0", "asked flash_attn, got the plain path")
    on = health.with_options("q8_0", {"flash attention": "on"}, flash_attn=True)
    assert ask("attention", on, "q8_0").status is Health.PASS


def test_kv_types_that_were_asked_for_and_are_in_force_pass() -> None:
    run = health.with_options("q8_0", {"KV types": "q8_0 q4_0"}, type_k="q8_0", type_v="q4_0")
    assert ask("kv-types", run, "q8_0").status is Health.PASS


@pytest.mark.parametrize("asked", [-1, 20])
def test_layers_for_a_build_without_a_gpu(asked: int) -> None:
    check_found("offload", health.with_options("q8_0", n_gpu_layers=asked), "q8_0", "has no GPU support")


@pytest.mark.parametrize(("asked", "placed", "status"), [
    (-1, "20 of 31", Health.FINDING), (-1, "31 of 31", Health.PASS), (20, "12 of 31", Health.FINDING),
    (20, "20 of 31", Health.PASS), (99, "31 of 31", Health.PASS),
])  # fmt: skip
def test_layers_offloaded_against_asked(asked: int, placed: str, status: Health) -> None:
    run = health.with_options("q8_0", {"layers offloaded": placed, "gpu_offload": "True"}, n_gpu_layers=asked)
    assert ask("offload", of_gpu_machine(run), "q8_0").status is status


def test_a_gpu_that_nobody_uses() -> None:
    run = of_gpu_machine(health.with_options("q8_0", {"gpu_offload": "True"}, n_gpu_layers=0))
    assert "no layer is on the GPU, although there is one (1x Sample GPU)" in ask("offload", run, "q8_0").evidence


def test_builds_without_support_for_the_gpu_that_is_there() -> None:
    run = of_gpu_machine(health.run())
    assert "this build of llama.cpp cannot use one" in ask("gpu-support", run, "q8_0").evidence
    assert "this torch was built without CUDA" in ask("gpu-support", run, "fp16").evidence
    built = of_gpu_machine(health.with_told("fp16", {"cuda": "12.8"}))
    assert ask("gpu-support", built, "fp16").status is Health.PASS
    assert ask("gpu-support", health.run(), "fp16").status is Health.NOT_APPLICABLE


def test_more_threads_than_a_quota_of_cpu_time() -> None:
    run = replace(health.run(), environment=health.environment(cpu_quota=1.5))
    item = ask("threads", run, "q8_0")
    assert (item.status, item.remedy) == (Health.FINDING, "n_threads = 1, or a larger quota")
    assert ask("threads", replace(run, environment=health.environment(cpu_quota=2.0)), "q8_0").status is Health.PASS


@pytest.mark.parametrize(("variables", "says"), [
    ("OMP_WAIT_POLICY=PASSIVE", "puts threads to sleep"),
    ("OMP_DYNAMIC=true; OMP_PLACES=cores", "lets OpenMP take fewer"),
    ("MKL_NUM_THREADS=8", "MKL_NUM_THREADS=8 starts more threads than there are cores (2)"),
    ("OMP_THREAD_LIMIT=1", "OMP_THREAD_LIMIT=1 holds back 2 threads"),
])  # fmt: skip
def test_variables_that_fight(variables: str, says: str) -> None:
    run = replace(health.run(), environment=health.environment(**{"thread variables": variables}))
    item = ask("thread-variables", run, "q8_0")
    assert item.status is Health.FINDING
    assert says in item.evidence
    assert item.remedy == f"unset {variables.split('=', maxsplit=1)[0]}"


def test_fewer_threads_by_a_variable_count_only_where_fewer_ran() -> None:
    environment = health.environment(**{"thread variables": "OMP_NUM_THREADS=1"})
    witness = replace(health.sample_of("q8_0", 0, 0).witness, cpu_s=1.02)
    slow = replace(health.with_samples("q8_0", witness=witness), environment=environment)
    check_found("thread-variables", slow, "q8_0", "OMP_NUM_THREADS=1 holds back 2 threads, which had 1.0 CPUs")
    assert ask("thread-variables", replace(health.run(), environment=environment), "q8_0").status is Health.PASS


def test_a_kv_cache_that_its_shape_does_not_explain() -> None:
    run = health.with_launches("q8_0", kv_cache_reported_bytes=60_000_000)
    check_found("kv-size", run, "q8_0", "27 % more")
    assert (
        ask("kv-size", health.with_launches("q8_0", kv_cache_reported_bytes=47_900_000), "q8_0").status is Health.PASS
    )


def test_a_label_that_lies() -> None:
    artifact = sample.artifact("q4_k_m", mismatch="labelled Q4_K_M, but 60 % of its weights are Q5_0, none Q4_K")
    run = health.with_result(health.result_of("q4_k_m", artifact=artifact))
    check_found("label", run, "q4_k_m", "60 % of its weights are Q5_0")


def test_a_context_far_above_what_is_needed() -> None:
    idle = {"kv_cache_bytes": 755_000_000, "kv_cache_reported_bytes": 755_000_000, "peak_rss_bytes": 900_000_000}
    launches = tuple(
        health.launch_of("q8_0", n, facts={**health.OF_LLAMA_CPP, "n_ctx": "32768"}, **idle)
        for n in range(health.LAUNCHES)
    )
    run = health.with_result(health.result_of("q8_0", launches=launches))
    check_found("context", run, "q8_0", "n_ctx is 32768, the longest prompt with its answer took 144 tokens: 752 MB")
    assert ask("context", run, "q8_0").remedy.startswith("n_ctx = 256,")


def test_a_context_that_is_too_small() -> None:
    fault = "ValueError: 600 prompt tokens + 64 new tokens do not fit a context of 512; raise n_ctx or shorten the case"
    trials = (*health.run().trials, health.trial_of("q8_0", "math/long", generation=None, error=fault))
    check_found(
        "context", replace(health.run(), trials=trials), "q8_0", "too small for 1 answers (the first: math/long)"
    )


def test_a_context_is_measured_by_what_was_asked_of_the_variant_itself() -> None:
    long = replace(sample.generation(), prompt_tokens=900, token_ids=tuple(range(100)))
    trials = (
        health.trial_of("q8_0", "math/long", generation=long),
        health.trial_of("fp16", "math/lost", generation=None),
    )
    run = replace(health.run(), trials=(*health.run().trials, *trials))
    assert "took 1000 tokens" in ask("context", run, "q8_0").evidence
    assert "took 144 tokens" in ask("context", run, "q4_k_m").evidence


@pytest.mark.parametrize("types", ["float16=134000000 float32=500000", "float32=134515008"])
def test_norms_and_whole_models_in_float32_are_no_left_overs(types: str) -> None:
    assert ask("dtypes", health.with_told("fp16", {"parameters by dtype": types}), "fp16").status is Health.PASS


def test_a_file_that_cannot_be_read_whole() -> None:
    artifact = sample.artifact("q8_0", inspection_error="model.gguf: cut off")
    check_found("label", health.with_result(health.result_of("q8_0", artifact=artifact)), "q8_0", "cut off")
    bare = health.with_result(health.result_of("q8_0", artifact=None))
    assert ask("label", bare, "q8_0").status is Health.NOT_APPLICABLE


@pytest.mark.parametrize(("asked", "wanted"), [(-1, "all layers asked for"), (20, "20 layers asked for")])
def test_what_was_asked_for_is_said(asked: int, wanted: str) -> None:
    assert wanted in ask("offload", health.with_options("q8_0", n_gpu_layers=asked), "q8_0").evidence


@pytest.mark.parametrize(
    ("supported", "says"), [("False", "this build of llama.cpp has no GPU support"), ("True", "there is none")]
)
def test_no_layers_asked_for_and_no_gpu(supported: str, says: str) -> None:
    item = ask("offload", health.with_options("q8_0", {"gpu_offload": supported}, n_gpu_layers=0), "q8_0")
    assert item.status is Health.NOT_APPLICABLE
    assert says in item.evidence


def test_what_flash_attention_needs_is_said() -> None:
    assert (
        "install flash-attn"
        in ask("attention", health.with_options("fp16", attention="flash_attention_2"), "fp16").remedy
    )
    assert "see why eager" in ask("attention", health.with_options("fp16", attention="eager"), "fp16").remedy
