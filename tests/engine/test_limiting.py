"""Asking a device for what it gives: who is asked, how large the buffer is, and that nothing here fails a variant."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from support.in_process import InProcessLauncher, make_variant

from suite.backends.base import DeviceRates
from suite.engine.launching import LiveVariant
from suite.engine.limiting import ELSEWHERE, LimitProbe, is_on_accelerator
from suite.engine.preparing import Prepared
from suite.models.anatomy import Anatomy
from suite.models.kv import KvShape, usual_layer
from suite.records import Scenario

MIB = 1 << 20
SHAPE = KvShape(layers=(usual_layer(heads=4, kv_heads=4, size_k=32, size_v=32),) * 8)
"""4 kB of keys and values a token, in half precision."""
ANATOMY = Anatomy(
    read_bytes=4 * MIB, all_bytes=4 * MIB, read_parameters=2 * MIB, all_parameters=2 * MIB, head_parameters=0,
    row_parameters=0, shape=SHAPE,
)  # fmt: skip
SHORT = Scenario(name="short", prompt_tokens=8, new_tokens=9)
DEEP = Scenario(name="deep", prompt_tokens=1024, new_tokens=9)


@pytest.fixture
def live() -> Iterator[LiveVariant]:
    """A variant that is not simulated as far as anybody here can tell."""
    with InProcessLauncher(logs=Path()).launch(make_variant("q4")) as found:
        prepared = Prepared(weights=None, artifact=None, anatomy=ANATOMY)
        yield dataclasses.replace(found, prepared=prepared, loaded=dataclasses.replace(found.loaded, simulated=False))


def on(live: LiveVariant, facts: Mapping[str, str], **options: object) -> LiveVariant:
    variant = dataclasses.replace(live.variant, options={**live.variant.options, **options})
    return dataclasses.replace(live, variant=variant, loaded=dataclasses.replace(live.loaded, facts=facts))


def test_cpus_are_read_over_as_much_as_a_token_reads(live: LiveVariant) -> None:
    with LimitProbe(()) as probe:
        for turn in range(2):
            for scenario in (SHORT, SHORT, DEEP):  # what is alike is read once a round
                probe.read(live, scenario, turn)
        found = probe.summarize("q4")
    assert found is not None
    assert [stream.size_bytes for stream in found.streams] == [4 * MIB + 4096 * 12.5 + 0.0, 8 * MIB + 4096 * 4.5]
    assert (found.device, found.threads, found.flop_type, found.reason) == ("cpu", 1, "float32", "")
    assert (found.flop_s or 0) > 1e8
    assert all(stream.read_bytes_s > 1e8 for stream in found.streams)


def test_a_declared_rate_takes_the_place_of_the_measured_one(live: LiveVariant) -> None:
    with LimitProbe((), 4e14) as probe:
        probe.read(live, SHORT, 0)
        found = probe.summarize("q4")
    assert found is not None
    assert (found.flop_s, found.flop_type) == (4e14, "declared")


def test_what_has_no_demand_or_no_real_time_is_not_asked(live: LiveVariant) -> None:
    with LimitProbe(()) as probe:
        probe.read(dataclasses.replace(live, prepared=Prepared(weights=None, artifact=None)), SHORT, 0)
        probe.read(dataclasses.replace(live, loaded=dataclasses.replace(live.loaded, simulated=True)), SHORT, 0)
        assert probe.summarize("q4") is None


@pytest.mark.parametrize(("facts", "options", "on_device"), [
    ({"device": "cpu"}, {}, False),
    ({"device": "cuda:0"}, {}, True),
    ({"gpu_offload": "False"}, {"n_gpu_layers": 0}, False),
    ({"gpu_offload": "True"}, {"n_gpu_layers": 0}, False),
    ({"gpu_offload": "True"}, {"n_gpu_layers": -1}, True),
    ({"gpu_offload": "False"}, {"n_gpu_layers": -1}, False),
    ({}, {}, False),
])  # fmt: skip
def test_who_lies_on_an_accelerator(
    live: LiveVariant, facts: Mapping[str, str], options: Mapping[str, object], on_device: bool
) -> None:
    assert is_on_accelerator(on(live, facts, **options)) is on_device


class Accelerated:
    """Only what is asked of it here."""

    def probe(self, size_bytes: int) -> DeviceRates:
        return DeviceRates(
            device="cuda:0", threads=0, size_bytes=size_bytes, read_bytes_s=3e12, flop_s=5e14, flop_type="float16"
        )


def test_an_accelerator_is_asked_through_the_model_that_lies_on_it(live: LiveVariant) -> None:
    cast("Any", live.worker)._server._model = Accelerated()
    with LimitProbe(()) as limits:
        limits.read(on(live, {"device": "cuda:0"}), SHORT, 0)
        found = limits.summarize("q4")
    assert found is not None
    assert (found.device, found.flop_s, found.streams[0].read_bytes_s) == ("cuda:0", 5e14, 3e12)


class Counting:
    """A worker that counts what is asked of it."""

    def __init__(self, worker: Any) -> None:
        self.worker = worker
        self.asked = 0

    def ask(self, request: object, deadline_s: float) -> object:
        self.asked += 1
        return self.worker.ask(request, deadline_s)


def test_a_backend_that_cannot_be_asked_is_told_with_the_reason_and_asked_once(live: LiveVariant) -> None:
    worker = Counting(live.worker)
    counted = dataclasses.replace(on(live, {"device": "cuda:0"}), worker=cast("Any", worker))
    with LimitProbe(()) as probe:
        for turn in range(2):
            probe.read(counted, SHORT, turn)
        found = probe.summarize("q4")
    assert found is not None
    assert (worker.asked, found.streams) == (1, ())
    assert found.reason == (
        "its device was not measured: its backend gives no way of measuring the device that it runs on"
    )


def test_a_process_that_dies_fails_no_variant(live: LiveVariant) -> None:
    with LimitProbe(()) as probe:
        probe.read(live, SHORT, 0)
        worker = probe._worker
        assert worker is not None
        worker.kill()
        probe.read(live, SHORT, 1)
        found = probe.summarize("q4")
    assert found is not None
    assert found.streams


def test_a_model_in_other_processes_demands_what_nobody_knows(live: LiveVariant) -> None:
    away = dataclasses.replace(live, loaded=dataclasses.replace(live.loaded, remote=True))
    assert live.demand() is not None
    assert away.demand() is None
    with LimitProbe(()) as probe:
        probe.read(away, SHORT, 0)
        found = probe.summarize("q4")
    assert found is not None
    assert (found.streams, found.reason) == ((), ELSEWHERE)
