"""Runs made by hand that a person asks for advice: 400 cases, six variants, and what stands against each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from support.sample_fidelity import forced_of, measured
from support.sample_runs import (
    VARIANTS,
    artifact,
    comparison,
    failed,
    finding,
    generation,
    launch,
    matrix,
    result,
    run,
    score,
    trial,
    variant,
)

from suite.engine.assembling import TRACE_OF
from suite.engine.completing import find_losses
from suite.gate.advice.asked import Asked, Name, Preference, order_limits
from suite.records import Forced, Run, Trial, VariantResult, Verdict

CASES = 400
HERE = "x86_64-avx512-2c"
"""The machine that the runs were measured on."""
FLIPS: Mapping[str, tuple[int, int]] = {
    "int8": (3, 2), "f16": (0, 0), "q8_0": (1, 1), "q5_k_m": (14, 5), "q4_k_m": (40, 6),
}  # fmt: skip
"""Variant → cases that it lost and gained against the reference."""


def asked(
    *,
    loss: float | None = None,
    kld: float | None = None,
    speedup: float | None = None,
    memory: float | None = None,
    decode: float | None = None,
    ttft: float | None = None,
    prefer: Preference | None = None,
    scenario: str | None = None,
    machine: str = HERE,
) -> Asked:
    """What a person asks for."""
    limits: dict[Name, float | None] = {
        "loss": loss, "kld": kld, "speedup": speedup, "memory": memory, "decode": decode, "ttft": ttft,
    }  # fmt: skip
    return Asked(limits=order_limits(limits), prefer=prefer, scenario=scenario, machine=machine)


def answers(name: str, lost: int = 0, gained: int = 0, cases: int = CASES) -> list[Trial]:
    """The reference gets every other case right; the first ones it got right are lost, the first ones it did not are gained."""
    found = []
    for number in range(cases):
        right = number % 2 == 0
        flipped = number // 2 < (lost if right else gained)
        correct = right is not flipped
        said = generation(token_ids=(1, 2, int(flipped), number % 7))
        domain = ("code", "math", "reasoning")[number % 3]
        found.append(trial(name, f"{domain}/{number:03}", generation=said, score=score(correct=correct)))
    return found


def loaded(name: str, **changes: Any) -> VariantResult:
    """A healthy variant with its fidelity, three launches, and what its backend said of itself."""
    facts = {"llama-cpp-python": "0.3.36", "n_threads": "2", "n_ctx": "2048"}
    if name in ("fp16", "int8"):
        facts = {"torch": "2.13.0", "n_threads": "2"}
    launches = tuple(launch(name, index, facts=facts) for index in range(3))
    options = {"n_ctx": 2048, "n_threads": None} if "n_ctx" in facts else {"dtype": "float16", "n_threads": None}
    made = measured(name, launches=launches)
    return replace(made, variant=replace(made.variant, options=options), **changes)


def whole(results: list[VariantResult], **changes: Any) -> Run:
    """A run of `results` with answers, fidelity, and the losses that they amount to."""
    names = [one.variant.name for one in results if one.failure is None]
    trials = [answer for name in names for answer in answers(name, *FLIPS.get(name, (0, 0)))]
    forced: list[Forced] = [one for name in names if name in FLIPS or name == "fp16" for one in forced_of(name)]
    made = run(results, **{"trials": tuple(trials), "forced": tuple(forced), **changes})
    return replace(made, losses=find_losses(made))


@cache
def healthy() -> Run:
    """Six variants, nothing to be said against any."""
    return whole([loaded(name) for name in VARIANTS], matrix=matrix(notes=()))


def changed(one: VariantResult, metric: str, **changes: Any) -> VariantResult:
    """With one measurement changed."""
    return replace(
        one, measurements=tuple(replace(m, **changes) if m.metric == metric else m for m in one.measurements)
    )


@cache
def doubtful() -> Run:
    """A quick run: q8_0 regressed, q5_k_m saw other token ids, q4_k_m was timed beside a neighbour and is not what it says."""
    busy = {"status": "contended", "reason": "9 of 9 samples contended (CPU pressure 48 %)"}
    mismatch = "labelled Q4_K_M, but 180 of 241 tensors are Q5_0"
    slow = changed(changed(loaded("q4_k_m"), "speedup", **busy), "decode_tok_s", **busy)
    other = failed("q5_k_m", Verdict.INVALID, "token ids differ from fp16's at position 3 of case code/reverse")
    results = {name: loaded(name) for name in VARIANTS} | {
        "q4_k_m": replace(slow, artifact=artifact("q4_k_m", mismatch=mismatch)),
        "q5_k_m": other,
    }
    lost = comparison("mean_kld", "all", "q8_0", observed=0.004, baseline=0.003, drift=0.33)
    return whole(
        [results[name] for name in VARIANTS],
        findings=(finding(Verdict.REGRESSED, "q8_0: divergence rose", of=lost),),
        settings={"quick": "yes", "variants": ",".join(VARIANTS)},
    )


@cache
def single() -> Run:
    """One launch of each, so that no speed has a spread; without fidelity, and f16 broke off."""

    def once(name: str) -> VariantResult:
        made = result(name)
        kept = tuple(replace(m, samples=m.samples[1:2], launches=(0,)) for m in made.measurements)
        return replace(made, measurements=kept)

    results = [once(name) for name in ("fp16", "q8_0", "q4_k_m")]
    gone = failed("f16", Verdict.ERROR, "its worker was killed by SIGKILL while it loaded")
    return whole([*results, gone], forced=())


@cache
def unpaired() -> Run:
    """The reference was not there: its trace was, so that divergences are known, and speeds in themselves."""
    results = [
        replace(one, measurements=tuple(m for m in one.measurements if m.metric != "speedup"))
        for one in (loaded("q8_0"), loaded("q4_k_m"))
    ]
    return whole(results, matrix=matrix(["fp16", "q8_0", "q4_k_m"]), settings={TRACE_OF: "fp16"})


@cache
def hostile() -> Run:
    """Names, reasons, options and notes that attack whoever shows them."""
    attack = "\x1b[31m</code><script>alert(1)</script> | `x` [a](http://e.example) @all ```\n# x\u202e\u2066\u3164"
    name = f"q8_0{attack}"
    bad = loaded("q8_0")
    files = artifact("q8_0").files
    bad = replace(
        bad,
        variant=replace(
            variant("q8_0"), name=name, source=attack, make=attack, options={attack: attack, "n_ctx": 2048}
        ),
        artifact=replace(artifact("q8_0"), files=(replace(files[0], name=attack, sha256=attack),), mismatch=attack),
        launches=(launch(name, facts={"n_threads": attack, "n_ctx": attack}),),
    )
    results = [loaded("fp16"), bad, failed("int8", Verdict.ERROR, attack)]
    forced = (*forced_of("fp16"), *(replace(one, variant=name) for one in forced_of("q8_0")))
    told: dict[str, Any] = {"model": f"model {attack}", "id": f"run {attack}", "settings": {"only": attack}}
    return whole(results, matrix=matrix(["fp16"], notes=(attack,)), forced=forced, **told)


STORIES: Mapping[str, tuple[Callable[[], Run], Asked]] = {
    "taken": (healthy, asked(loss=3, speedup=1.5, memory=300e6)),
    "unsure": (healthy, asked(loss=1, speedup=2, memory=300e6)),
    "outside": (healthy, asked(kld=0.05, speedup=3.5, decode=400)),
    "unlimited": (healthy, asked()),
    "doubtful": (doubtful, asked(loss=3, speedup=2, machine="epyc-96c-1234abcd")),
    "single": (single, asked(kld=0.01, speedup=1.5, ttft=0.2)),
    "unpaired": (unpaired, asked(kld=0.01, speedup=1.5, decode=100)),
    "hostile": (hostile, asked(memory=700e6, kld=0.05)),
}
"""Story → the run, and what is asked of it."""
