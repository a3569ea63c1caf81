"""Baseline files: what a reviewer sees, and what is refused."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from suite.errors import StoreError
from suite.records import (
    BaselineCase,
    BaselineMetric,
    Provenance,
    QualityBaseline,
    SpeedBaseline,
    TrialStatus,
)
from suite.store.baselines import BaselineStore, as_stored, encode
from suite.store.codec import round_floats, round_significant

GOLDEN = Path(__file__).parent / "golden"

PROVENANCE = Provenance(accepted="2026-11-20T10:00:00+00:00", reason="first", run="2026-1", commit="abc", launches=3)
CASE = BaselineCase(
    version=1,
    scorer="number@1",
    prompt_sha256="ab" * 32,
    status=TrialStatus.SCORED,
    score=1.0,
    correct=True,
    answer="18",
    output_sha256="cd" * 32,
    output_tokens=41,
)
QUALITY = QualityBaseline(
    model="smol",
    variant="q4_k_m",
    identity={"prompt_format": "chat", "options.n_ctx": "2048"},
    suspects={"llama-cpp-python": "0.3.36"},
    provenance=PROVENANCE,
    metrics={
        "score/all": BaselineMetric(value=0.5, unit="credit"),
        "score/math": BaselineMetric(value=0.5, unit="credit"),
    },
    cases={
        "math/apples": CASE,
        "math/korean": dataclasses.replace(CASE, answer="사과", score=0.0, correct=False),
        "math/cut": dataclasses.replace(
            CASE, status=TrialStatus.TRUNCATED, score=None, correct=None, answer=None, output_tokens=96
        ),
    },
)
SPEED = SpeedBaseline(
    model="smol",
    variant="q4_k_m",
    machine="epyc-2c",
    identity={"machine.cpu": "AMD EPYC", "prompt_format": "chat"},
    suspects={"llama-cpp-python": "0.3.36"},
    provenance=PROVENANCE,
    metrics={
        "decode_tok_s/short": BaselineMetric(value=171.2345, unit="tok/s", launches=(171.2345, 170.0, 172.98765)),
        "peak_rss_bytes/all": BaselineMetric(value=642252800.0, unit="bytes", launches=(642252800.0,)),
    },
)


def rewrite(file: Path, **changes: Any) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


@pytest.mark.parametrize(("name", "baseline"), [("quality", QUALITY), ("speed", SPEED)])
def test_schema_1_files_are_written_and_read_as_ever(name: str, baseline: Any, tmp_path: Path) -> None:
    golden = (GOLDEN / f"{name}-schema-1.json").read_text(encoding="utf-8")
    assert encode(baseline) == golden
    store = BaselineStore(tmp_path)
    file = store.file_of(baseline)
    file.parent.mkdir(parents=True)
    file.write_text(golden, encoding="utf-8")
    read = store.read("smol", "q4_k_m", "epyc-2c")
    found = read.quality if name == "quality" else read.speed
    assert found is not None
    assert not found.edited
    assert found.provenance == PROVENANCE
    assert found.metrics.keys() == baseline.metrics.keys()


def test_a_metric_and_a_case_take_one_line_each() -> None:
    lines = encode(QUALITY).splitlines()
    assert sum('"unit"' in line for line in lines) == len(QUALITY.metrics)
    assert sum('"prompt_sha256"' in line for line in lines) == len(QUALITY.cases)
    assert any("사과" in line for line in lines)
    changed = dataclasses.replace(
        QUALITY, cases={**QUALITY.cases, "math/apples": dataclasses.replace(CASE, answer="19")}
    )
    differing = [pair for pair in zip(lines, encode(changed).splitlines(), strict=True) if pair[0] != pair[1]]
    assert len(differing) == 2, "the case and the digest"


def test_numbers_have_four_digits_but_hashes_and_counts_are_whole(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    store.write(SPEED)
    read = store.read_speed("smol", "epyc-2c", "q4_k_m")
    assert read is not None
    assert read.metrics["decode_tok_s/short"].launches == (171.2, 170.0, 173.0)
    assert read.metrics["peak_rss_bytes/all"].value == 642252800
    assert '"value": 642252800}' in store.file_of(SPEED).read_text()
    assert round_floats({"n": 123456789, "b": True, "h": "0.123456"}) == {"n": 123456789, "b": True, "h": "0.123456"}


def test_a_metric_reads_as_it_was_foreseen_to(tmp_path: Path) -> None:
    metrics = {**SPEED.metrics, "uss_bytes/all": BaselineMetric(value=123456.5, unit="bytes")}
    store = BaselineStore(tmp_path)
    store.write(dataclasses.replace(SPEED, metrics=metrics))
    read = store.read_speed("smol", "epyc-2c", "q4_k_m")
    assert read is not None
    assert read.metrics == {key: as_stored(metric) for key, metric in metrics.items()}
    assert read.metrics["uss_bytes/all"].value == 123500


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_rounding_is_idempotent_and_close(value: float) -> None:
    rounded = round_significant(value)
    assert round_significant(rounded) == rounded
    assert math.isclose(rounded, value, rel_tol=5.1e-4)


def test_what_is_missing_is_none(tmp_path: Path) -> None:
    found = BaselineStore(tmp_path).read("smol", "q4_k_m", "epyc-2c")
    assert (found.quality, found.speed, found.foreign) == (None, None, ())


def test_other_machines_are_foreign(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    store.write(SPEED)
    here = store.read("smol", "q4_k_m", "xeon-8c")
    assert here.speed is None
    assert [baseline.machine for baseline in here.foreign] == ["epyc-2c"]
    assert store.read("smol", "q4_k_m", "epyc-2c").foreign == ()


def test_writing_the_same_again_touches_nothing(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    file = store.write(QUALITY)
    before = file.stat()
    store.write(QUALITY)
    assert (file.stat().st_mtime_ns, file.stat().st_ino) == (before.st_mtime_ns, before.st_ino)
    read = store.read_quality("smol", "q4_k_m")
    assert read is not None
    store.write(read)
    assert file.stat().st_ino == before.st_ino


def test_a_hand_edit_is_noticed(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    file = store.write(SPEED)
    file.write_text(file.read_text().replace("171.2", "101.2"))
    read = store.read_speed("smol", "epyc-2c", "q4_k_m")
    assert read is not None
    assert read.edited


def test_reformatting_alone_is_no_edit(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    rewrite(store.write(SPEED))
    read = store.read_speed("smol", "epyc-2c", "q4_k_m")
    assert read is not None
    assert not read.edited


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": 2}, r"q4_k_m\.json: written by a newer quantdrift \(schema 2.*pip install --upgrade"),
        ({"schema": 0}, r"q4_k_m\.json: too old \(schema 0.*--matrix-update=all"),
        ({"schema": "1"}, "key 'schema' is '1', expected a whole number"),
        ({"schema": True}, "key 'schema' is True"),
        ({"kind": "run"}, "key 'kind' is 'run', expected 'speed-baseline'"),
        ({"varient": "x"}, "unknown key 'varient'; did you mean 'variant'"),
        ({"variant": "q8_0"}, "key 'variant' is 'q8_0', but the file lies where 'q4_k_m' belongs"),
        ({"machine": "xeon"}, "key 'machine' is 'xeon'"),
        ({"metrics": {"x": {"value": "fast", "unit": "s"}}}, r"key 'metrics\.x\.value'"),
        ({"edited": True}, "key 'edited' is never stored"),
    ],
)
def test_files_that_cannot_be_trusted_are_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    rewrite(store.write(SPEED), **changes)
    with pytest.raises(StoreError, match=message):
        store.read_speed("smol", "epyc-2c", "q4_k_m")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<<<<<<< HEAD\n", "not JSON.*line 1 column 1"),
        ("[]", "holds a JSON list"),
        ('{"kind": NaN}', "NaN is not a JSON number"),
        ("\udcff", "cannot be read"),
    ],
)
def test_damaged_files_name_the_file(text: str, message: str, tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    store.write(SPEED).write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(StoreError, match=r"q4_k_m\.json.*" + message):
        store.read_speed("smol", "epyc-2c", "q4_k_m")


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_numbers_that_are_none_are_never_written(value: float, tmp_path: Path) -> None:
    broken = dataclasses.replace(SPEED, metrics={"load_s/all": BaselineMetric(value=value, unit="s")})
    with pytest.raises(StoreError, match=r"key 'metrics\.load_s/all\.value' is not a finite number"):
        BaselineStore(tmp_path).write(broken)
    assert list(tmp_path.iterdir()) == []


def test_text_that_no_file_can_hold_is_refused(tmp_path: Path) -> None:
    broken = dataclasses.replace(QUALITY, suspects={"x": "\udcff"})
    with pytest.raises(StoreError, match="lone surrogate"):
        BaselineStore(tmp_path).write(broken)


@given(data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_read_is_written_again_to_the_letter(
    data: st.DataObject, records_of: Callable[[Any], st.SearchStrategy[Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    drawn = data.draw(records_of(QualityBaseline) | records_of(SpeedBaseline))
    named = {"model": "m", "variant": "v", "edited": False}
    baseline = dataclasses.replace(drawn, **named, **({"machine": "x"} if isinstance(drawn, SpeedBaseline) else {}))
    store = BaselineStore(tmp_path_factory.mktemp("store"))
    text = store.write(baseline).read_text(encoding="utf-8")
    found = store.read("m", "v", "x")
    read = found.quality or found.speed
    assert read is not None
    assert not read.edited
    assert encode(read) == text
    assert read.provenance == baseline.provenance
