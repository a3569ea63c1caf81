"""run.json: what users rely on, and that nothing is lost on the way."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import sample_limits

from suite.errors import StoreError
from suite.metrics.catalog import SPECS
from suite.records import (
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
    SpeedSample,
    Tier,
    Tolerance,
    Trial,
    TrialStatus,
    Variant,
    VariantResult,
    Verdict,
    Witness,
)
from suite.store.runs import decode_run, encode_run, read_run, write_run

WITNESS = Witness(wall_s=0.3, cpu_s=0.59, threads=2, pressure=0.01)
VARIANT = Variant(name="q4", model="smol", backend="llama_cpp", source="x.gguf", options={"n_ctx": 2048})
TRIAL = Trial(
    variant="q4",
    case="math/apples",
    case_version=1,
    domain="math",
    family=None,
    scorer="number@1",
    prompt_sha256="ab",
    score=Score(status=TrialStatus.SCORED, value=1.0, correct=True, answer="18", rule="boxed"),
    generation=Generation(
        token_ids=(5, 6, 7),
        text="18",
        finish_reason="stop",
        prompt_tokens=10,
        evaluated_tokens=10,
        prefill_s=0.1,
        token_times_s=(0.11, 0.13, 0.15),
    ),
)
RUN = Run(
    id="2026-11-29T18-04-11-7c1f",
    created="2026-11-29T18:04:11+00:00",
    suite_version="0.1.0",
    model="smol",
    matrix=Matrix(
        model="smol",
        variants=(VARIANT,),
        scenarios=(Scenario(name="short", prompt_tokens=8, new_tokens=3),),
        protocol=Protocol(),
        policy={"score": Tolerance(absolute=0.08)},
        deadlines=Deadlines(),
        file="matrix.toml",
    ),
    environment=Environment(machine="epyc-2c", identity={"cpu": "EPYC"}, suspects={}, readings={"load": 0.1}),
    variants=(
        VariantResult(
            variant=VARIANT,
            artifact=None,
            measurements=(
                Measurement(metric="decode_tok_s", scope="short", value=50.0, samples=(50.0,), launches=(0,)),
                Measurement(metric="score", scope="math", value=1.0, samples=(1.0,)),
                Measurement(metric="score", scope="all", value=0.5, samples=(1.0, 0.0)),
            ),
            launches=(
                Launch(
                    variant="q4",
                    index=0,
                    load_s=1.0,
                    cold_ttft_s=0.2,
                    cold_prompt_tokens=8,
                    peak_rss_bytes=10,
                    uss_bytes=9,
                    peak_device_bytes=None,
                    kv_cache_bytes=4,
                    kv_cache_reported_bytes=4,
                    facts={},
                ),
            ),
            failure=None,
            identity={},
            suspects={},
        ),
    ),
    trials=(TRIAL, dataclasses.replace(TRIAL, score=Score(status=TrialStatus.ERROR), generation=None, error="killed")),
    speed_samples=(
        SpeedSample(
            variant="q4",
            scenario="short",
            launch=0,
            round=0,
            prompt_tokens=8,
            evaluated_tokens=8,
            new_tokens=3,
            prefill_s=0.1,
            ttft_s=0.11,
            itl_s=(0.02, 0.02),
            witness=WITNESS,
        ),
    ),
    settings={"temperature": "0"},
    findings=(
        Finding(
            variant="q4",
            metric="decode_tok_s",
            scope="short",
            verdict=Verdict.PASS,
            gate=Gate.BLOCK,
            sentence="q4: decode rate (short) is unchanged",
            tolerance=Tolerance(relative=0.1),
            comparison=Comparison(
                variant="q4",
                metric="decode_tok_s",
                scope="short",
                aspect=Aspect.SPEED,
                tier=Tier.STORED,
                observed=50.0,
                baseline=50.0,
                drift=0.0,
                interval=(-0.03, 0.03),
                mde=0.03,
                n=3,
                n_baseline=3,
            ),
        ),
    ),
)


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = write_run(RUN, tmp_path, specs=SPECS)
    assert file == tmp_path / "run.json"
    assert read_run(file) == RUN


def test_metrics_carry_unit_direction_formula_and_their_primary_scope() -> None:
    metrics = encode_run(RUN, SPECS)["variants"][0]["metrics"]
    assert metrics["decode_tok_s"]["unit"] == "tok/s"
    assert metrics["decode_tok_s"]["direction"] == "higher"
    assert metrics["decode_tok_s"]["formula"].startswith("(n - 1) / (last - first token time)")
    assert (metrics["decode_tok_s"]["scope"], metrics["decode_tok_s"]["value"]) == ("short", 50.0)
    assert (metrics["score"]["scope"], metrics["score"]["value"]) == ("all", 0.5)
    assert metrics["score"]["scopes"]["math"]["value"] == 1.0


def test_trials_are_flat_with_derived_rates_and_nulls_where_nothing_was_generated() -> None:
    answered, failed = encode_run(RUN, SPECS)["trials"]
    assert (answered["status"], answered["score"], answered["answer"], answered["rule"]) == (
        "scored",
        1.0,
        "18",
        "boxed",
    )
    assert answered["prefill_tok_s"] == pytest.approx(100)
    assert answered["decode_tok_s"] == pytest.approx(50)
    assert answered["tpot_s"] == pytest.approx(0.02)
    assert answered["itl_s"] == pytest.approx([0.02, 0.02])
    assert (answered["ttft_s"], answered["new_tokens"], answered["evaluated_tokens"]) == (0.11, 3, 10)
    assert failed.keys() == answered.keys()
    assert (failed["text"], failed["decode_tok_s"], failed["error"]) == (None, None, "killed")


def test_speed_samples_and_findings_carry_what_users_ask_for() -> None:
    document = encode_run(RUN, SPECS)
    assert document["speed_samples"][0]["decode_tok_s"] == pytest.approx(50)
    assert document["speed_samples"][0]["prefill_tok_s"] == pytest.approx(80)
    finding = document["findings"][0]
    assert (finding["verdict"], finding["tier"], finding["mde"]) == ("PASS", "stored", 0.03)
    assert (finding["estimate"], finding["interval"], finding["reason"]) == (
        0.0,
        [-0.03, 0.03],
        "q4: decode rate (short) is unchanged",
    )


def test_every_key_of_the_file_is_documented() -> None:
    documented = set(
        re.findall(r"`([^`]+)`", (Path(__file__).parents[2] / ".github" / "RUN_JSON.md").read_text("utf-8"))
    )
    document = encode_run(RUN, SPECS)
    variant = document["variants"][0]
    metric = variant["metrics"]["decode_tok_s"]
    layers = [document, variant, metric, metric["scopes"]["short"], *document["trials"], *document["speed_samples"],
              *document["findings"], *variant["launches"], document["speed_samples"][0]["witness"]]  # fmt: skip
    keys = set(itertools.chain.from_iterable(layers))
    assert keys - documented == set()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": 2}, r"run\.json: written by a newer quantdrift"),
        ({"schema": 0}, r"run\.json: too old .*make it anew with: pytest --model-matrix"),
        ({"kind": "speed-baseline"}, "expected 'run'"),
        ({"trials": None}, "not laid out as a run"),
        ({"trials": [{"variant": "q4"}]}, r"key 'trials\.0\.case' is missing"),
        ({"id": None}, "key 'id'"),
        ({"variants": [{"metrics": {"score": {}}}]}, "not laid out as a run"),
    ],
)
def test_damaged_runs_are_refused_by_name(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    file = write_run(RUN, tmp_path, specs=SPECS)
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    with pytest.raises(StoreError, match=message):
        read_run(file)


def test_a_quantity_measured_twice_is_refused(tmp_path: Path) -> None:
    twice = dataclasses.replace(RUN.variants[0], measurements=RUN.variants[0].measurements[:1] * 2)
    with pytest.raises(StoreError, match="decode_tok_s/short was measured twice"):
        write_run(dataclasses.replace(RUN, variants=(twice,)), tmp_path, specs=SPECS)


def test_infinity_is_refused_and_the_old_file_stays(tmp_path: Path) -> None:
    file = write_run(RUN, tmp_path, specs=SPECS)
    broken = dataclasses.replace(RUN.trials[0].score, value=float("inf"))
    trials = (dataclasses.replace(RUN.trials[0], score=broken),)
    with pytest.raises(StoreError, match=r"key 'trials\.0\.score' is not a finite number"):
        write_run(dataclasses.replace(RUN, trials=trials), tmp_path, specs=SPECS)
    assert read_run(file) == RUN


def grouped(result: VariantResult) -> VariantResult:
    """Each metric and scope once, grouped by metric, as `suite.metrics.measure` gives them."""
    once = {(m.metric, m.scope): m for m in result.measurements}
    order = list(dict.fromkeys(metric for metric, _ in once))
    return dataclasses.replace(
        result, measurements=tuple(sorted(once.values(), key=lambda m: order.index(m.metric)))
    )  # fmt: skip


@given(data=st.data())
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_any_run_survives(
    data: st.DataObject, records_of: Callable[[Any], st.SearchStrategy[Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    drawn = data.draw(records_of(Run))
    sides = {"variants": tuple(map(grouped, drawn.variants)), "against": tuple(map(grouped, drawn.against))}
    run = dataclasses.replace(drawn, **sides)
    assert read_run(write_run(run, tmp_path_factory.mktemp("run"), specs=SPECS)) == run


def test_what_a_device_gave_and_what_was_demanded_of_it_survive(tmp_path: Path) -> None:
    run = sample_limits.limited()
    file = write_run(run, tmp_path, specs=SPECS)
    assert read_run(file) == run
    written = json.loads(file.read_text(encoding="utf-8"))["variants"][0]
    assert written["artifact"]["demand"]["attention"][0]["kv_bytes"] == 768
    assert written["launches"][0]["limits"]["streams"][0]["read_bytes_s"] == 62e9
    assert written["metrics"]["mbu"]["unit"] == "share"


def test_a_run_from_before_there_were_limits_is_read(tmp_path: Path) -> None:
    run = sample_limits.limited()
    document = encode_run(run, SPECS)
    for row in document["variants"]:
        (row["artifact"] or {}).pop("demand")
        for launch in row["launches"]:
            del launch["limits"], launch["kv_cache_tokens"]
    old = decode_run(document, where="old")
    assert old.variants[0].artifact is not None
    assert (old.variants[0].artifact.demand, old.variants[0].launches[0].limits) == (None, None)
