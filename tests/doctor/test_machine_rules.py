"""Faults of the machine, planted one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support import sample_health as health
from support.asking import ask, check_found

from suite.records import Environment, Health, Run, SampleStatus, Yardstick


def on(environment: Environment, run: Run | None = None) -> Run:
    return replace(run or health.run(), environment=environment)


def governed(told: str) -> Run:
    environment = health.environment()
    return on(replace(environment, suspects={**environment.suspects, "governor": told}))


def test_little_memory_left() -> None:
    run = health.with_launches("q8_0", peak_rss_bytes=7_400_000_000)
    check_found("memory", run, "q8_0", "7.4 GB (weights 145 MB, KV cache 47.2 MB) of 8 GB of the machine: 92 %")


def test_the_limit_of_a_group_counts_where_it_is_smaller() -> None:
    item = ask("memory", on(health.environment(memory_limit_bytes=180e6)), "q8_0")
    assert item.status is Health.FINDING
    assert "of 180 MB of the limit of its group: 92 %" in item.evidence


def test_little_memory_left_on_a_device() -> None:
    run = health.with_launches(
        "q8_0", peak_device_bytes=78 * 2**30, facts={**health.OF_LLAMA_CPP, "layers offloaded": "31 of 31"}
    )
    identity = {**run.environment.identity, "device": "1x Sample GPU", "device memory": "80 GiB"}
    run = replace(run, environment=replace(run.environment, identity=identity))
    assert "of the device: 98 %" in ask("memory", run, "q8_0").evidence
    assert ask("memory", run, "q8_0").status is Health.FINDING


@pytest.mark.parametrize("device", ["2x Sample GPU", "1x Sample GPU + 1x Other GPU"])
def test_of_several_devices_the_fullest_is_not_known(device: str) -> None:
    run = health.with_launches(
        "fp16", peak_device_bytes=40 * 2**30, facts={**health.OF_TRANSFORMERS, "device": "cuda:0"}
    )
    identity = {**run.environment.identity, "device": device, "device memory": "160 GiB"}
    item = ask("memory", replace(run, environment=replace(run.environment, identity=identity)), "fp16")
    assert item.status is Health.NOT_APPLICABLE
    assert "of all devices together" in item.evidence


def test_all_variants_together_fill_the_memory() -> None:
    run = on(health.environment(memory_available_bytes=500e6))
    check_found("memory-together", run, None, "3 workers took 495 MB at most, 99 %")
    parted = replace(run, settings={"in memory together": "fp16; q8_0, q4_k_m"})
    assert ask("memory-together", parted).status is Health.NOT_APPLICABLE


@pytest.mark.parametrize(("told", "status"), [
    ("powersave (acpi-cpufreq)", Health.FINDING), ("powersave (intel_pstate)", Health.PASS),
    ("performance (acpi-cpufreq)", Health.PASS), ("schedutil (amd-pstate)", Health.PASS),
])  # fmt: skip
def test_governors(told: str, status: Health) -> None:
    assert ask("throttling", governed(told)).status is status


def test_throttle_events_during_launches() -> None:
    run = health.with_launches("q8_0", seen={"alive s": "10", "throttle events": "4"})
    check_found("throttling", run, None, "throttled 12 times in 3 launches")
    quiet = health.with_launches("q8_0", seen={"alive s": "10", "throttle events": "0"})
    assert ask("throttling", quiet).evidence == "3 launches without a throttle event"


def test_a_gpu_that_is_held_down() -> None:
    told = {"alive s": "10.0", "device throttled s": "4.0"}
    only = tuple(health.result_of(n, launches=(health.launch_of(n, 0, seen=told),)) for n in health.VARIANTS)
    check_found("throttling", replace(health.run(), variants=only), None, "by heat or power for 40 % of the time")


def test_a_reduced_power_limit() -> None:
    run = on(health.environment(device_power_limit_w=300.0, device_power_default_w=700.0))
    check_found("throttling", run, None, "300 W of the 700 W")


def test_a_neighbour_that_spoils_samples() -> None:
    witness = replace(health.sample_of("q8_0", 0, 0).witness, pressure=0.5)
    run = health.with_samples("q8_0", witness=witness, status=SampleStatus.CONTENDED)
    check_found("neighbours", run, None, "33 %: 6 of 18 timed samples were disturbed")
    assert ask("neighbours", run).remedy.startswith("stop what else runs here")
    stolen = replace(witness, pressure=0.0, steal=0.3)
    run = health.with_samples("q8_0", witness=stolen, status=SampleStatus.CONTENDED)
    assert ask("neighbours", run).remedy == "a host with fewer neighbours"


def test_processes_on_the_gpu() -> None:
    check_found("neighbours", on(health.environment(device_processes=2.0)), None, "2 other processes were on the GPU")


def test_a_machine_that_slowed_down_meanwhile() -> None:
    def slowed(name: str, index: int) -> Yardstick:
        return Yardstick(hash_bytes_s=1e9 if index < 2 else 0.8e9, copy_bytes_s=9e9)

    results = tuple(
        health.result_of(n, launches=tuple(health.launch_of(n, i, yardstick=slowed(n, i)) for i in range(3)))
        for n in health.VARIANTS
    )
    check_found(
        "yardstick", replace(health.run(), variants=results), None, "hashing differs by 20 % at most (launch 2)"
    )


def test_each_worker_counts_with_its_own_peak() -> None:
    run = on(health.environment(memory_available_bytes=6e9), health.with_launches("q8_0", peak_rss_bytes=1_000_000_000))
    assert "3 workers took 1.33 GB at most, 22 %" in ask("memory-together", run).evidence


def test_a_system_that_tells_steal_alone() -> None:
    stolen = replace(health.sample_of("q8_0", 0, 0).witness, pressure=None, steal=0.02)
    timed = tuple(replace(one, witness=stolen) for one in health.run().speed_samples)
    item = ask("neighbours", replace(health.run(), speed_samples=timed))
    assert item.status is Health.PASS
    assert "(steal 2.0 % in the middle, 2.0 % at worst)" in item.evidence


def test_a_system_that_tells_nothing_of_neighbours() -> None:
    blind = replace(health.sample_of("q8_0", 0, 0).witness, pressure=None, steal=None)
    timed = tuple(replace(one, witness=blind) for one in health.run().speed_samples)
    assert ask("neighbours", replace(health.run(), speed_samples=timed)).status is Health.NOT_APPLICABLE


@pytest.mark.parametrize("readings", [{"device_power_limit_w": 300.0}, {"device_power_default_w": 700.0}])
def test_half_a_power_reading_says_nothing(readings: dict[str, float]) -> None:
    assert ask("throttling", on(health.environment(**readings))).status is Health.NOT_APPLICABLE
