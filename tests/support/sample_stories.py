"""Whole runs with one story each: what a report has to be able to tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from support.sample_fidelity import damaged
from support.sample_limits import limited
from support.sample_runs import (
    ACCEPT,
    VARIANTS,
    artifact,
    comparison,
    failed,
    finding,
    held,
    matrix,
    measurements,
    result,
    run,
    trials,
    unresolved,
    variant,
)
from support.sample_served import served

from suite.records import Finding, Flip, Measurement, Run, Tier, Tolerance, TrialStatus, Verdict


def healthy() -> Run:
    """Six variants, every gate held; one file is not what its label says, and some answers had no score."""
    results = [result(name) for name in VARIANTS]
    mismatch = "labelled Q4_K_M, but 180 of 241 tensors are Q5_0"
    results[-1] = result("q4_k_m", artifact=artifact("q4_k_m", mismatch=mismatch))
    odd = {
        "math/apples": TrialStatus.TRUNCATED,
        "code/apples": TrialStatus.UNPARSABLE,
        "math/trains": TrialStatus.EMPTY,
    }
    answers = [t for name in VARIANTS for t in trials(name, odd if name == "int8" else None)]
    no_device = Measurement(
        metric="peak_device_bytes", scope="all", value=None, status="not_measured", reason="no GPU on this machine"
    )
    results = [replace(item, measurements=(*item.measurements, no_device)) for item in results]
    return run(results, trials=tuple(answers), findings=tuple(f for name in VARIANTS for f in held(name)))


def slower() -> Run:
    """Decode of q4_k_m fell beyond its tolerance; q5_k_m gained; q8_0 could not be told."""
    kept = [f for name in VARIANTS for f in held(name) if not _is(f, "decode_tok_s", "q4_k_m", "q5_k_m", "q8_0")]
    lost = comparison(
        observed=152.7,
        baseline=173.1,
        drift=0.118,
        interval=(0.104, 0.131),
        suspects=("llama-cpp-python: 0.3.35 → 0.3.36", "build flags: AVX512 → AVX2"),
    )
    sentence = (
        "q4_k_m: decode rate (short) fell by 11.8 %, 173.1 tok/s → 152.7 tok/s (95 %: 10.4 … 13.1 % worse; launches: 3 "
        "now, 5 then); tolerance 10.0 %, could have seen 1.9 %"
    )
    gained = comparison(name="q5_k_m", observed=201.0, baseline=172.0, drift=-0.169, interval=(-0.19, -0.15))
    unsure = comparison(
        name="q8_0",
        drift=0.021,
        interval=(-0.019, 0.12),
        mde=0.14,
        contended="a neighbour took 31 % of the samples",
    )
    judged = [
        finding(Verdict.REGRESSED, sentence, of=lost, next_step=f"find out why, or accept it: {ACCEPT}"),
        finding(
            Verdict.IMPROVED,
            "q5_k_m: decode rate (short) rose by 16.9 %, 172 tok/s → 201 tok/s; tolerance 10.0 %",
            of=gained,
            next_step="accept it, a stale baseline hides the next regression: " + ACCEPT.replace("q4_k_m", "q5_k_m"),
        ),
        finding(
            Verdict.INCONCLUSIVE,
            "q8_0: decode rate (short) fell by 2.1 % (a neighbour took 31 % of the samples); tolerance 10.0 %, "
            "so it cannot be told",
            of=unsure,
            next_step="measure again: pytest --model-matrix --matrix-variants q8_0 --matrix-only=speed",
        ),
    ]
    results = [result(name) for name in VARIANTS]
    slow = tuple(replace(m, value=152.7) if m.metric == "decode_tok_s" else m for m in measurements("q4_k_m"))
    results[-1] = result("q4_k_m", measurements=slow)
    return run(results, findings=(*kept, *judged))


def duet() -> Run:
    """Old and new side by side: decode of q4_k_m fell, one gate cannot be told, and the machine was flagged at q8_0."""
    kept = [replace(f, comparison=replace(f.comparison, tier=Tier.DUET)) for name in VARIANTS for f in held(name)]
    kept = [f for f in kept if not _is(f, "decode_tok_s", "q4_k_m", "q8_0")]
    lost = comparison(
        "decode_tok_s",
        observed=151.0,
        baseline=171.2,
        drift=0.118,
        interval=(0.104, 0.134),
        tier=Tier.DUET,
        n=5,
        n_baseline=5,
        accepted="measured beside ../old/.venv/bin/python",
        suspects=("llama-cpp-python: 0.3.35 → 0.3.36",),
    )
    flagged = comparison(
        "decode_tok_s", name="q8_0", tier=Tier.DUET, flags=("a neighbour took 21 of 30 slices",), n=10, looks=2
    )
    judged = [
        finding(
            Verdict.REGRESSED,
            "q4_k_m: decode rate (short) fell by 11.8 %, 171.2 tok/s → 151 tok/s (95 %: 10.4 … 13.4 % worse; 5 launches "
            "side by side; tier duet); tolerance 10.0 %, could have seen 1.4 %",
            of=lost,
            tolerance=Tolerance(relative=0.15, duet=0.1),
            p_value=0.00012,
            p_needed=0.0005,
            family=24,
            next_step=f"find out why, or accept it: {ACCEPT}",
        ),
        finding(
            Verdict.INCONCLUSIVE,
            "q8_0: decode rate (short) is unchanged at 164 tok/s; tolerance 10.0 %, cannot tell: the machine was not as it "
            "should be (a neighbour took 21 of 30 slices)",
            of=flagged,
            next_step="add launches to these when nothing else runs: pytest --model-matrix --matrix-variants q8_0 "
            "--matrix-only=speed --matrix-resume",
        ),
    ]
    old = replace(result("q4_k_m"), variant=variant("q4_k_m@old", old_of="q4_k_m"))
    return run(
        findings=(*kept, *judged), against=(old,), settings={"against": "../old/.venv/bin/python", "quick": "yes"}
    )


def worse() -> Run:
    """q4_k_m lost answers in math, in Korean too, after its weights changed."""
    flips = (
        Flip(case="math/apples", was_correct=True, is_correct=False, was="18", now="17"),
        Flip(case="math/korean-trains", was_correct=True, is_correct=False, was="시속 60킬로미터", now="시속 육십"),
        Flip(case="math/ferry", was_correct=True, is_correct=False, was="4", now=None),
        Flip(case="math/coins", was_correct=False, is_correct=True, was="", now="7"),
    )
    lost = comparison(
        "score",
        "math",
        observed=0.31,
        baseline=0.4,
        drift=0.0833,
        interval=(0.01, 0.16),
        p_value=0.031,
        mde=0.06,
        identical=False,
        flips=flips,
        suspects=("weights sha256: 91c091c091c0 → 5be25be25be2",),
    )
    sentence = (
        "q4_k_m: score (math) fell by 8.3 points, 0.400 → 0.310 (95 %: 1.0 … 16.0 points worse; 3 lost and 1 gained of "
        "24 cases, p = 0.031); tolerance 2.0 points, could have seen 6.0 points"
    )
    kept = [f for name in VARIANTS for f in held(name) if not (_is(f, "score", "q4_k_m") and f.scope == "math")]
    judged = finding(
        Verdict.REGRESSED, sentence, of=lost, next_step=f"look at the answers in report.md\naccept: {ACCEPT}"
    )
    return run(findings=(*kept, judged))


def killed() -> Run:
    """The worker of int8 was killed; the others held."""
    reason = "its worker was killed by SIGKILL while it answered math/apples (out of memory?)"
    detail = "loading shard 1/1\n\x1b[31mUserWarning\x1b[0m: MatMul8bitLt casts inputs\n\nKilled\n"
    results = [failed(n, Verdict.ERROR, reason, detail) if n == "int8" else result(n) for n in VARIANTS]
    lost = unresolved("int8", Verdict.ERROR, reason, "pytest --model-matrix --matrix-resume")
    return run(results, findings=(*(f for n in VARIANTS if n != "int8" for f in held(n)), *lost))


def invalid() -> Run:
    """q4_k_m saw other token ids than the reference, and f16 has no backend here."""
    reason = "token ids differ from fp16's at position 3 of case code/reverse (id 198 instead of 271)"
    absent = "llama-cpp-python is not installed: pip install 'quantdrift[llama-cpp]'"
    failures = {"q4_k_m": (Verdict.INVALID, reason), "f16": (Verdict.NOT_MEASURED, absent)}
    results = [failed(n, *failures[n]) if n in failures else result(n) for n in VARIANTS]
    lost = [f for n, (verdict, why) in failures.items() for f in unresolved(n, verdict, why)]
    return run(results, findings=(*(f for n in VARIANTS if n not in failures for f in held(n)), *lost))


def first() -> Run:
    """No baseline yet."""
    reason = "nothing was accepted for this variant yet"
    found: list[Finding] = []
    for name in VARIANTS:
        step = f'pytest --model-matrix --matrix-variants {name} --matrix-update=new --matrix-reason "..."'
        found += unresolved(name, Verdict.UNBASELINED, reason, f"accept what was measured: {step}")
    return run(findings=tuple(found))


def elsewhere() -> Run:
    """Quality held; speed baselines are another machine's, and the speed of two variants was not measured."""
    found: list[Finding] = []
    for name in VARIANTS:
        reason = "machine.cpu differs: AMD EPYC → Intel Xeon"
        moved = unresolved(name, Verdict.NOT_COMPARABLE, reason, "pytest --model-matrix --matrix-update=new")
        found += [f for f in held(name) if f.metric == "score"] + [f for f in moved if f.metric != "score"]
    return run(findings=tuple(found))


def hostile() -> Run:
    """Names, answers and errors that try to break the page."""
    attack = "\x1b[2J\x1b]0;owned\x07<script>alert(1)</script> | `code` | \u202egnp.exe\x00\r\n"
    attack += "# heading ``` [x](javascript:1) @someone"
    flips = (Flip(case="math/apples", was_correct=True, is_correct=False, was="18", now=attack),)
    lost = comparison(
        "score",
        "math",
        drift=0.0833,
        identical=False,
        flips=flips,
        suspects=(f"template: a → {attack}",),
        reason=attack,
    )
    judged = finding(Verdict.REGRESSED, f"worse: {attack}", of=lost, next_step=f"pytest {attack}")
    error = failed("int8", Verdict.ERROR, f"failed: {attack}", f"first\n{attack}\n    ```\nlast")
    results = [result("fp16"), error, result("q4_k_m", artifact=artifact("q4_k_m", mismatch=f"labelled {attack}"))]
    declared = matrix(["fp16", "int8", "q4_k_m"], notes=(attack,))
    return run(results, matrix=declared, findings=(judged,), model=f"model {attack}")


def _is(found: Finding, metric: str, *names: str) -> bool:
    return found.metric == metric and found.variant in names


STORIES: Mapping[str, Callable[[], Run]] = {
    "healthy": healthy,
    "slower": slower,
    "duet": duet,
    "worse": worse,
    "damaged": damaged,
    "killed": killed,
    "invalid": invalid,
    "first": first,
    "elsewhere": elsewhere,
    "hostile": hostile,
    "limited": limited,
    "served": served,
}
