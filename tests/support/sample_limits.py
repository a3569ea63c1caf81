"""A run in which devices were asked what they give."""

from __future__ import annotations

from dataclasses import replace

from support.sample_runs import VARIANTS, artifact, held, launch, measurement, result, run

from suite.metrics.limits import measure_limits
from suite.records import (
    AttentionLayers,
    Demand,
    Limits,
    Run,
    SpeedSample,
    Streamed,
    VariantResult,
    Witness,
)

KEPT = AttentionLayers(layers=30, kv_bytes=768, attended_flop=2304)
BANDWIDTH = 62e9
GIVEN = Limits(flop_s=290e9, flop_type="float32", device="cpu", threads=2)


def samples(name: str, prefill: float, decode: float) -> tuple[SpeedSample, ...]:
    """One of each of three launches."""
    return tuple(
        SpeedSample(
            variant=name, scenario="short", launch=index, round=0, prompt_tokens=128, evaluated_tokens=128, new_tokens=32,
            prefill_s=128 / prefill, ttft_s=128 / prefill + 1 / decode, itl_s=(1 / decode,) * 31,
            witness=Witness(wall_s=1.0, cpu_s=2.0, threads=2),
        )
        for index in range(3)
    )  # fmt: skip


def limited() -> Run:
    """All six variants against a device; one keeps more keys and values than it should, of one nothing is told."""
    made = [_limited(name) for name in VARIANTS]
    results = tuple(one for one, _ in made)
    return run(
        results,
        speed_samples=tuple(sample for _, taken in made for sample in taken),
        findings=tuple(finding for name in VARIANTS for finding in held(name)),
    )


def _limited(name: str) -> tuple[VariantResult, tuple[SpeedSample, ...]]:
    plain = result(name)
    speeds = {m.metric: m.value for m in plain.measurements if m.metric.endswith("_tok_s")}
    taken = samples(name, speeds["prefill_tok_s"] or 1.0, speeds["decode_tok_s"] or 1.0)
    size = plain.artifact.size_bytes if plain.artifact else 0
    demand = Demand(
        weight_bytes=size,
        all_weight_bytes=size,
        body_parameters=106_203_456,
        head_parameters=28_311_552,
        attention=(KEPT,),
        batch_tokens=512,
    )
    streams = (Streamed(size_bytes=size, read_bytes_s=BANDWIDTH),)
    launches = tuple(
        launch(
            name,
            index,
            limits=replace(GIVEN, streams=streams),
            kv_cache_tokens=2048,
            kv_cache_reported_bytes=94_371_840 if name == "q8_0" else 47_185_920,
        )
        for index in range(3)
    )
    if name == "int8":
        return replace(plain, launches=tuple(replace(one, limits=None) for one in launches)), taken
    scoped = [measurement(metric, "short", value) for metric, value in speeds.items()]
    shares = measure_limits(demand, scoped, taken, launches)
    made = replace(
        plain,
        artifact=artifact(name, demand=demand),
        launches=launches,
        measurements=(*plain.measurements, *shares),
    )
    return made, taken
