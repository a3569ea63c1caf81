"""The first baseline that was accepted is kept beside the latest one."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from suite.errors import StoreError
from suite.matrix.tables import KEPT
from suite.records import BaselineMetric, Provenance, SpeedBaseline
from suite.store.baselines import BaselineStore, encode
from suite.store.layout import FROZEN, frozen_file

FIRST = SpeedBaseline(
    model="smol",
    variant="q4",
    machine="epyc-2c",
    identity={"machine.cpu": "AMD EPYC"},
    suspects={},
    provenance=Provenance(accepted="2026-11-20T10:00:00+00:00", reason="first", run="r1", launches=5),
    metrics={"decode_tok_s/short": BaselineMetric(value=100.0, unit="tok/s", launches=(100.0, 101.0, 99.0))},
)


def slower(value: float) -> SpeedBaseline:
    metric = BaselineMetric(value=value, unit="tok/s", launches=(value,) * 3)
    return dataclasses.replace(FIRST, metrics={"decode_tok_s/short": metric})


def frozen_value(store: BaselineStore) -> float | None:
    found = store.read("smol", "q4", "epyc-2c").frozen_speed
    return found.metrics["decode_tok_s/short"].value if found else None


def test_the_first_one_is_frozen_and_stays_when_others_follow(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    for baseline in (FIRST, slower(99.0), slower(98.0)):
        store.write(baseline)
    read = store.read("smol", "q4", "epyc-2c")
    assert read.speed is not None
    assert read.speed.metrics["decode_tok_s/short"].value == 98.0
    assert frozen_value(store) == 100.0
    assert read.frozen_quality is None


def test_a_deliberate_new_start_is_frozen_anew(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    store.write(FIRST)
    store.write(slower(90.0), anew=True)
    assert frozen_value(store) == 90.0


def test_a_new_start_that_says_nothing_new_keeps_the_first_one(tmp_path: Path) -> None:
    """Accepting all because of one variant's answers must not forget from where the speeds came."""
    store = BaselineStore(tmp_path)
    for baseline in (FIRST, slower(90.0)):
        store.write(baseline)
    again = dataclasses.replace(
        slower(90.0), provenance=dataclasses.replace(FIRST.provenance, run="r9"), suspects={"kernel": "6.2"}
    )
    file = store.write(again, anew=True)
    assert frozen_value(store) == 100.0
    assert '"r9"' in file.read_text()


@pytest.mark.parametrize("anew", [False, True])
def test_an_accepted_new_question_is_frozen_anew(tmp_path: Path, anew: bool) -> None:
    """Nothing of another identity could ever be held against the old one."""
    store = BaselineStore(tmp_path)
    store.write(FIRST)
    asked = dataclasses.replace(slower(90.0), identity={"machine.cpu": "AMD EPYC", "prompt_format": "raw"})
    store.write(asked, anew=anew)
    assert frozen_value(store) == 90.0
    store.write(dataclasses.replace(asked, metrics=slower(89.0).metrics))
    assert frozen_value(store) == 90.0


def test_what_was_accepted_before_anything_was_frozen_is_kept_to_the_letter_when_it_is_replaced(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    file = store.write(FIRST)
    frozen_file(file).unlink()
    edited = file.read_text().replace("101.0", "105.0")
    file.write_text(edited)
    store.write(slower(90.0))
    assert frozen_file(file).read_text() == edited
    found = store.read("smol", "q4", "epyc-2c").frozen_speed
    assert found is not None
    assert found.edited


def test_an_unchanged_refresh_freezes_nothing(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    file = store.write(FIRST)
    frozen_file(file).unlink()
    store.write(FIRST)
    assert [entry.name for entry in file.parent.iterdir()] == ["q4.json"]


def test_a_variant_cannot_be_named_like_a_frozen_baseline(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"'q4\.frozen' must not end in '\.frozen'"):
        BaselineStore(tmp_path).write(dataclasses.replace(FIRST, variant="q4.frozen"))


def test_the_matrix_file_and_the_store_agree_on_what_no_variant_may_be_named() -> None:
    assert KEPT == FROZEN


def test_a_damaged_frozen_file_is_named(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    frozen_file(store.write(FIRST)).write_text("{")
    with pytest.raises(StoreError, match=r"q4\.frozen\.json: not JSON"):
        store.read("smol", "q4", "epyc-2c")


def test_the_frozen_file_reads_as_the_baseline_does(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    file = store.write(FIRST)
    assert frozen_file(file).read_text() == file.read_text() == encode(FIRST)
