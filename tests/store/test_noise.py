"""The noise of a machine, as a file that people review."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from suite.errors import StoreError
from suite.records import Noise, NoiseFloor
from suite.store.baselines import BaselineStore

NOISE = Noise(
    model="smol",
    machine="epyc-2c",
    identity={"cpu": "AMD EPYC"},
    measured="2026-11-29T18:00:00+00:00",
    sessions=3,
    launches=4,
    floors={
        "itl_s": NoiseFloor(
            slice_sd=0.0123456,
            launch_sd=0.01,
            launch_df=18,
            session_sd=0.02,
            session_df=2,
            normaliser="copy",
            normalised_session_sd=0.0123456,
            pair_sd=0.006,
            pair_df=11,
        )
    },
    max_pressure=0.05,
    launch_s=31.4159,
)


def test_noise_is_read_as_it_was_written_with_four_digits(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    file = store.write_noise(NOISE)
    assert file.relative_to(tmp_path) == Path("smol/noise/epyc-2c.json")
    floor = dataclasses.replace(NOISE.floors["itl_s"], slice_sd=0.01235, normalised_session_sd=0.01235)
    assert store.read_noise("smol", "epyc-2c") == dataclasses.replace(NOISE, floors={"itl_s": floor}, launch_s=31.42)
    assert list(json.loads(file.read_text())) == sorted(json.loads(file.read_text()))


def test_everything_that_is_read_of_a_variant_holds_the_noise_of_its_machine(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    assert store.read("smol", "q4", "epyc-2c").noise is None
    store.write_noise(NOISE)
    assert store.read("smol", "q4", "epyc-2c").noise is not None
    assert store.read("smol", "q4", "xeon").noise is None


def test_an_edit_by_hand_is_noticed(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    file = store.write_noise(NOISE)
    file.write_text(file.read_text().replace("0.006", "0.001"))
    found = store.read_noise("smol", "epyc-2c")
    assert found is not None
    assert found.edited


def test_writing_the_same_again_touches_nothing(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    before = store.write_noise(NOISE).stat().st_ino
    assert store.write_noise(NOISE).stat().st_ino == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": 99}, r"epyc-2c\.json: written by a newer quantdrift"),
        ({"schema": 0}, r"too old.*quantdrift calibrate"),
        ({"kind": "speed-baseline"}, "expected 'noise'"),
        ({"machine": "xeon"}, "key 'machine' is 'xeon', but the file lies where 'epyc-2c' belongs"),
        ({"sesions": 3}, "unknown key 'sesions'; did you mean 'sessions'"),
        ({"edited": False}, "key 'edited' is never stored"),
    ],
)
def test_files_that_cannot_be_trusted_are_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    file = store.write_noise(NOISE)
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    with pytest.raises(StoreError, match=message):
        store.read_noise("smol", "epyc-2c")
