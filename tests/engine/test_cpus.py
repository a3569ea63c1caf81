"""Which CPUs a pass runs on, and who is to blame when they are full."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.in_process import InProcessLauncher, make_matrix, make_variant

from suite.engine.sampling import judge_sample
from suite.engine.timing import SpeedPass, SpeedSink
from suite.records import Protocol, SampleStatus, Scenario, SpeedSample, Witness

SHORT = Scenario(name="short", prompt_tokens=8, new_tokens=4)


def ignore(*_: Any) -> None:
    """What is delivered does not matter here."""


@pytest.mark.parametrize(("cpu_s", "cpus", "status"), [
    (1.95, 2, SampleStatus.CLEAN),
    (1.90, 2, SampleStatus.CONTENDED),
    (0.98, 1, SampleStatus.CLEAN),
    (1.95, 4, SampleStatus.CONTENDED),
    (1.95, 0, SampleStatus.CONTENDED),
])  # fmt: skip
def test_pressure_that_a_worker_makes_itself_is_no_neighbours(cpu_s: float, cpus: int, status: SampleStatus) -> None:
    """Sixteen threads on two CPUs wait for each other all the time, and nobody else takes anything."""
    sample = SpeedSample(
        variant="q4", scenario="short", launch=0, round=0, prompt_tokens=8, evaluated_tokens=8, new_tokens=4,
        prefill_s=0.1, ttft_s=0.2, itl_s=(0.1, 0.1, 0.1),
        witness=Witness(wall_s=1.0, cpu_s=cpu_s, threads=16, pressure=0.9, involuntary_switches=3),
    )  # fmt: skip
    assert judge_sample(sample, SHORT, Protocol(), cpus=cpus)[0] is status


def test_the_cpus_do_not_depend_on_which_variants_a_pass_is_about(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is taken up with one variant alone goes on where the whole matrix was measured."""
    one, four = (replace(make_variant(f"t{count}"), options={"n_threads": count}) for count in (1, 4))
    monkeypatch.setattr("suite.engine.timing.choose_cpus", lambda threads: tuple(range(threads)))
    monkeypatch.setattr(SpeedPass, "_measure_launch", ignore)
    matrix = make_matrix(one, four, launches=1, rounds=1)
    sink = SpeedSink(sample=ignore, launch=ignore, failure=ignore, opened=ignore)
    for told, expected in ((None, (0, 1, 2, 3)), ((7,), (7,))):
        speed = SpeedPass(matrix, InProcessLauncher(), sink, told)
        speed.run([one], {}, 1)
        assert speed._launcher.cpus == expected
