"""A run made by hand whose variants were taken through the reference trace: fp16 is the reference, f16 the GGUFs' peer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from support.sample_runs import (
    DOMAINS,
    VARIANTS,
    comparison,
    environment,
    finding,
    generation,
    held,
    measurements,
    result,
    run,
    score,
    trial,
)

from suite.metrics.fidelity import measure_fidelity
from suite.records import Departure, Forced, Run, Tolerance, Trial, VariantResult, Verdict

CASES = tuple(f"{domain}/{case}" for domain in DOMAINS for case in ("apples", "trains"))
ANSWER: tuple[int, ...] = (11, 12, 13, 14, 15, 16)
END = 2
"""The token that ends an answer; traces have it, generations do not."""
DOSES: Mapping[str, float] = {
    "fp16": 0.0, "int8": 0.02, "f16": 0.00002, "q8_0": 0.004, "q5_k_m": 0.079, "q4_k_m": 0.058,
}  # fmt: skip
"""Variant → its mean divergence from the reference, nats."""
REFERENCE_LOGPROB = -1.2
_SHAPE = (0.2, 0.4, 3.2, 1.0, 0.6, 0.5, 1.1)
"""How the divergence is spread over the positions of an answer; the mean is 1."""


DEPARTURES: Mapping[str, tuple[tuple[int, int, float], ...]] = {
    "math/apples": ((2, 77, 0.07), (4, 78, 1.1)),
    "code/trains": ((2, 77, 0.9),),
    "reasoning/apples": ((5, END, 0.04),),
    "math/trains": ((3, 80, 0.02),),
}
"""Where the two K-quants prefer another token: position, token, and by how many nats. Math/trains was decoded like the
reference all the same, as happens at a near tie."""


def forced(variant: str = "q4_k_m", case: str = "math/apples", dose: float = 0.058, **changes: Any) -> Forced:
    """An answer of six tokens and its end, along the batched path."""
    weight = 1.2 if case.startswith("math") else 0.9
    kld = tuple(round(dose * weight * part, 8) for part in _SHAPE)
    made = Forced(
        variant=variant,
        case=case,
        domain=case.split("/", maxsplit=1)[0],
        family=None,
        path="batched",
        trace="7e" * 32,
        kld=kld,
        logprobs=tuple(REFERENCE_LOGPROB - value for value in kld),
        reference_logprobs=(REFERENCE_LOGPROB,) * len(kld),
    )
    return replace(made, **changes)


def departing(found: Forced, *leads: tuple[int, int, float]) -> Forced:
    """With departures: position, token, and by how many nats it leads."""
    made = [
        Departure(position=at, token=token, logprob=found.logprobs[at] + lead, lead=lead) for at, token, lead in leads
    ]
    return replace(found, departures=tuple(made))


def forced_of(name: str) -> list[Forced]:
    """What one variant makes of all cases, and of the first of each domain along the decode path too."""
    dose = DOSES[name]
    gguf = name.startswith("q")
    found = []
    for case in CASES:
        batched = forced(name, case, dose)
        if gguf or name == "int8":
            peer = "f16" if gguf else "fp16"
            batched = replace(batched, peer=peer, peer_kld=tuple(value * 0.99 for value in batched.kld))
        if dose > 0.05:
            batched = departing(batched, *DEPARTURES.get(case, ()))
        found.append(batched)
        if case.endswith("apples"):
            apart = 0.006 if gguf else 0.0
            decoded = replace(batched, path="decode", distance=(apart,) * len(batched.kld), peer=None, peer_kld=None)
            found.append(decoded)
    return found


def answered(name: str, case: str, text: str, ids: Sequence[int], *, correct: bool, answer: str | None) -> Trial:
    """One graded answer."""
    return trial(
        name, case, generation=generation(text, token_ids=tuple(ids)), score=score(correct=correct, answer=answer)
    )


def answers_of(name: str) -> list[Trial]:
    """The reference's answers; of the two K-quants, one that was lost, one that was gained, and one that differs only."""
    found = []
    for case in CASES:
        right = case != "code/trains"
        text, ids, correct, answer = "3 boxes of 6 are 18.", ANSWER, right, "18" if right else "19"
        if DOSES[name] > 0.05 and case == "math/apples":
            text, ids, correct, answer = "3 boxes\nof 6 are 17.", (11, 12, 77, 20, 21), False, "17"
        elif DOSES[name] > 0.05 and case == "code/trains":
            text, ids, correct, answer = "3 boxes of 9 hold 18.", (11, 12, 77, 14, 15, 16), True, "18"
        elif DOSES[name] > 0.05 and case == "reasoning/apples":
            text, ids = "3 boxes of 6 are", ANSWER[:5]
        found.append(answered(name, case, text, ids, correct=correct, answer=answer))
    return found


def measured(name: str, found: Sequence[Forced] | None = None, **changes: Any) -> VariantResult:
    """A variant with what was measured of its fidelity."""
    fidelity = measure_fidelity(forced_of(name) if found is None else found)
    facts: dict[str, Any] = {
        "identity": {"prompt format": "chat", "option.type_k": '"f16"'},
        "measurements": (*measurements(name), *fidelity),
    }
    return result(name, **{**facts, **changes})


def damaged() -> Run:
    """Fidelity of six variants; q4_k_m has other weights than those that were accepted, and q5_k_m another KV cache."""
    results = [measured(name) for name in VARIANTS]
    results[VARIANTS.index("q5_k_m")] = measured(
        "q5_k_m", identity={"prompt format": "chat", "option.type_k": '"q4_0"'}
    )
    lost = comparison(
        "mean_kld",
        "all",
        observed=0.058,
        baseline=0.0461,
        drift=0.258,
        interval=(0.19, 0.33),
        log_drift=0.2296,
        log_se=0.02,
        log_df=5,
        numeric_floor=0.0001,
        n=6,
        mde=0.04,
        identical=False,
        suspects=("sha256 of model-q4_k_m.gguf: 91c091c091c0… → 5be25be25be2…",),
    )
    judged = finding(
        Verdict.REGRESSED,
        "q4_k_m: divergence from the reference (all) rose by 25.8 %, 0.0461 nats → 0.058 nats; tolerance 10.0 %, could "
        "have seen 4.0 %",
        of=lost,
        tolerance=Tolerance(relative=0.1, absolute=0.0005),
        next_step="find out why:\nquantdrift explain --variant q4_k_m",
        p_value=0.0003,
        p_needed=0.001,
        family=40,
    )
    kept = [found for name in VARIANTS for found in held(name)]
    return run(
        results,
        findings=(*kept, judged),
        trials=tuple(answer for name in VARIANTS for answer in answers_of(name)),
        forced=tuple(one for name in VARIANTS for one in forced_of(name)),
        environment=environment(),
    )
