"""The limits of the embedded model: what a token reads of it, and a speed pass that asks the CPUs."""

from __future__ import annotations

from typing import Any

import pytest
from support.real import ENGINES, FP16, GGUF, INT8, Launch, declare

from suite.engine.launching import Launcher
from suite.engine.preparing import Preparer
from suite.engine.progress import silent
from suite.engine.timing import SpeedPass, SpeedSink
from suite.metrics import measure
from suite.records import AttentionLayers, Deadlines, Matrix, Protocol, Scenario, SpeedSample
from suite.records import Launch as LaunchRecord

PARAMETERS = 134_515_008
HEAD = 49_152 * 576


@pytest.mark.parametrize("engine", ENGINES)
def test_each_engine_demands_what_it_holds(launch: Launch, engine: dict[str, Any]) -> None:
    with launch(**engine) as live:
        found = live.demand()
        assert found is not None
        assert (found.body_parameters, found.head_parameters) == (PARAMETERS - HEAD, HEAD)
        assert found.attention == (AttentionLayers(layers=30, kv_bytes=2 * 3 * 64 * 2, attended_flop=2 * 9 * 128),)
        assert found.weight_bytes == found.all_weight_bytes
        if engine is FP16:
            assert found.weight_bytes == 2 * PARAMETERS
        elif engine is GGUF:
            norms = 61 * 576
            assert found.weight_bytes == (PARAMETERS - norms) // 32 * 34 + norms * 4
        else:
            assert engine is INT8
            assert found.weight_bytes == int(live.loaded.facts["footprint_bytes"])


def test_weights_that_are_widened_while_they_are_loaded_take_what_they_take_then(launch: Launch) -> None:
    with launch("transformers", {"dtype": "float32"}) as live:
        found = live.demand()
        assert found is not None
        assert found.weight_bytes == 4 * PARAMETERS
        assert found.attention[0].kv_bytes == 2 * 3 * 64 * 4


def test_a_speed_pass_asks_the_cpus_and_no_share_is_beyond_all_of_it(preparer: Preparer, tmp_path: Any) -> None:
    matrix = Matrix(
        model="smollm2", variants=(declare("llama_cpp", make="Q8_0", name="q8_0"),),
        scenarios=(Scenario(name="short", prompt_tokens=64, new_tokens=16),),
        protocol=Protocol(launches=1, rounds=3, retries=0, warmup=1), policy={}, deadlines=Deadlines(), file="matrix.toml",
    )  # fmt: skip
    samples: list[SpeedSample] = []
    launches: list[LaunchRecord] = []
    demands = []
    sink = SpeedSink(
        sample=samples.append, launch=launches.append, failure=lambda variant, fault: pytest.fail(f"{variant.name}: {fault}"),
        opened=lambda live: demands.append(live.demand()),
    )  # fmt: skip
    launcher = Launcher(preparer=preparer, deadlines=Deadlines(), logs=tmp_path / "logs", progress=silent)
    SpeedPass(matrix, launcher, sink).run(matrix.variants, {}, 1)
    limits = launches[0].limits
    assert limits is not None
    assert [stream.size_bytes for stream in limits.streams] == [pytest.approx(145e6, rel=0.03)]
    assert (limits.device, limits.flop_type, limits.reason) == ("cpu", "float32", "")
    found = {m.metric: m for m in measure("q8_0", [], samples, launches, demand=demands[0])}
    assert 0 < (found["mbu"].value or 0) < 1.1  # beside neighbours the readings may lose more than the samples did
    assert (found["mfu"].value or 0) > 0


def test_what_is_asked_of_a_cuda_device_gives_plausible_rates_on_any() -> None:
    torch = pytest.importorskip("torch")
    from suite.backends.torch_rates import measure_device

    found = measure_device(torch, torch.device("cpu"), torch.bfloat16, 8 << 20, side=256)
    assert (found.device, found.threads, found.size_bytes, found.flop_type) == ("cpu", 0, 8 << 20, "bfloat16")
    assert 1e8 < found.read_bytes_s < 1e13
    assert 1e8 < found.flop_s < 1e15
