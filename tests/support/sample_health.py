"""A run in which nothing ails: the ground on which tests of the doctor plant one fault each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from support import sample_runs as sample

from suite.metrics.speed import measure_launches, measure_samples
from suite.records import Environment, Launch, Run, SpeedSample, Trial, VariantResult, Witness, Yardstick

VARIANTS = ("fp16", "q8_0", "q4_k_m")
LAUNCHES, ROUNDS = 3, 2
PROMPT, NEW = 128, 16
DECODE = {"fp16": 69.3, "q8_0": 164.2, "q4_k_m": 173.1}
PREFILL = {"fp16": 159.2, "q8_0": 990.0, "q4_k_m": 909.0}
OF_TRANSFORMERS: Mapping[str, str] = {
    "torch": "2.13.0",
    "device": "cpu",
    "attention": "sdpa",
    "cpu capability": "AVX512",
    "cuda": "None",
    "n_threads": "2",
    "interop threads": "2",
    "parameters by dtype": "float16=134515008",
    "parameters by device": "cpu=134515008",
    "eval mode": "yes",
    "use_cache": "yes",
    "gradient checkpointing": "no",
}
OF_LLAMA_CPP: Mapping[str, str] = {
    "llama-cpp-python": "0.3.36",
    "llama.cpp system": "CPU : SSE3 = 1 | AVX = 1 | AVX2 = 1 | F16C = 1 | FMA = 1 | AVX512 = 1 | OPENMP = 1 | REPACK = 1 | ",
    "n_threads": "2",
    "n_threads_batch": "2",
    "n_ctx": "2048",
    "gpu_offload": "False",
    "flash attention": "off",
    "KV types": "f16 f16",
}


def facts(name: str) -> Mapping[str, str]:
    """What a healthy backend tells."""
    return OF_TRANSFORMERS if name == "fp16" else OF_LLAMA_CPP


def environment(**readings: float | str) -> Environment:
    """Two physical cores, 8 GB, no GPU, nothing set."""
    return Environment(
        machine="sample-2c-00000000",
        identity={
            "device": "cpu",
            "device memory": "none",
            "cpu": "Sample",
            "isa": "sse4_2 avx avx2 fma f16c avx512f avx512vl",
            "cores": "2",
            "threads": "2",
            "os": "Linux x86_64",
        },
        suspects={"kernel": "6.1", "python": "3.11.7"},
        readings={"memory_bytes": 8e9, "memory_available_bytes": 6e9, "thread variables": "", **readings},
    )


def sample_of(name: str, launch: int, turn: int, **changes: Any) -> SpeedSample:
    """A clean sample; the launches of a variant differ a little."""
    gap = (1 + 0.002 * launch) / DECODE[name]
    prefill = PROMPT / PREFILL[name]
    made = SpeedSample(
        variant=name,
        scenario="short",
        launch=launch,
        round=turn,
        prompt_tokens=PROMPT,
        evaluated_tokens=PROMPT,
        new_tokens=NEW,
        prefill_s=prefill,
        ttft_s=prefill + 0.001,
        itl_s=(gap,) * (NEW - 1),
        witness=Witness(wall_s=1.0, cpu_s=1.98, threads=2, pressure=0.01, involuntary_switches=30, steal=0.0),
    )
    return replace(made, **changes)


def samples(name: str, **changes: Any) -> tuple[SpeedSample, ...]:
    """All of a variant's, changed alike."""
    return tuple(sample_of(name, launch, turn, **changes) for launch in range(LAUNCHES) for turn in range(ROUNDS))


def launch_of(name: str, index: int, **changes: Any) -> Launch:
    """A launch whose first request took as long as any."""
    made = sample.launch(
        name,
        index,
        facts=facts(name),
        cold_ttft_s=1.2 * PROMPT / PREFILL[name],
        cold_prompt_tokens=PROMPT,
        yardstick=Yardstick(hash_bytes_s=1e9 * (1 + 0.005 * index), copy_bytes_s=9e9 * (1 - 0.005 * index)),
        seen={"alive s": "30.000", **({"inference mode": "yes"} if name == "fp16" else {})},
    )
    return replace(made, **changes)


def trial_of(name: str, case: str, **changes: Any) -> Trial:
    """An answer of 24 tokens, one as fast as the other."""
    prefill, gap = 40 / PREFILL[name], 1 / DECODE[name]
    said = sample.generation(
        token_ids=tuple(range(24)),
        prefill_s=prefill,
        token_times_s=tuple(prefill + gap * number for number in range(24)),
    )
    return replace(sample.trial(name, case, generation=said), **changes)


def result_of(name: str, timed: tuple[SpeedSample, ...] | None = None, **changes: Any) -> VariantResult:
    """One variant; what was measured of it follows from its samples and launches."""
    launches = changes.pop("launches", tuple(launch_of(name, index) for index in range(LAUNCHES)))
    made = sample.result(
        name,
        launches=launches,
        suspects={"sha256 of *.gguf": "91c0" * 16, **facts(name)},
        measurements=(*measure_samples(samples(name) if timed is None else timed), *measure_launches(launches)),
    )
    return replace(made, **changes)


def run(**changes: Any) -> Run:
    """The healthy run."""
    made = Run(
        id="2026-11-29T18-04-11-7c1f",
        created="2026-11-29T18:04:11+00:00",
        suite_version="0.1.0",
        model="smollm2-135m-instruct",
        matrix=sample.matrix(VARIANTS),
        environment=environment(),
        variants=tuple(result_of(name) for name in VARIANTS),
        trials=tuple(trial_of(name, case) for name in VARIANTS for case in ("math/apples", "code/loops")),
        speed_samples=tuple(one for name in VARIANTS for one in samples(name)),
        settings={"temperature": "0", "batch size": "1"},
    )
    return replace(made, **changes)


def with_result(result: VariantResult, base: Run | None = None) -> Run:
    """The run with another result of one variant."""
    healthy = base or run()
    name = result.variant.name
    return replace(healthy, variants=tuple(result if r.variant.name == name else r for r in healthy.variants))


def with_told(name: str, told: Mapping[str, str | None]) -> Run:
    """The run in which the backend of one variant tells other facts; None leaves one out, and what is not named stays."""
    kept = {key: value for key, value in {**facts(name), **told}.items() if value is not None}
    launches = tuple(launch_of(name, index, facts=kept) for index in range(LAUNCHES))
    return with_result(result_of(name, launches=launches, suspects=kept))


def with_options(name: str, told: Mapping[str, str | None] | None = None, **options: Any) -> Run:
    """The run in which one variant asked for other options, and its backend told other facts."""
    changed = with_told(name, told or {})
    result = next(r for r in changed.variants if r.variant.name == name)
    asked = replace(result.variant, options={**result.variant.options, **options})
    return with_result(replace(result, variant=asked), changed)


def with_launches(name: str, **changes: Any) -> Run:
    """The run in which all launches of one variant are changed alike."""
    return with_result(result_of(name, launches=tuple(launch_of(name, index, **changes) for index in range(LAUNCHES))))


def with_samples(name: str, **changes: Any) -> Run:
    """The run in which all timed samples of one variant are changed alike."""
    timed = samples(name, **changes)
    others = tuple(one for one in run().speed_samples if one.variant != name)
    return replace(with_result(result_of(name, timed)), speed_samples=(*others, *timed))
