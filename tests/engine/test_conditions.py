"""How a machine is set, read from files of other machines."""

from __future__ import annotations

from pathlib import Path

from suite.engine.conditions import count_processes, read_governor, read_grants, read_power, read_thread_variables


def test_the_governor_with_its_driver(tmp_path: Path) -> None:
    (tmp_path / "scaling_governor").write_text("powersave\n")
    (tmp_path / "scaling_driver").write_text("intel_pstate\n")
    assert read_governor(tmp_path) == "powersave (intel_pstate)"
    assert read_governor(tmp_path / "nowhere") is None


def test_only_variables_that_steer_threads() -> None:
    told = read_thread_variables(
        {"OMP_NUM_THREADS": "8", "OMPI_HOME": "/x", "MKL_NUM_THREADS": "1", "OMP_DISPLAY_ENV": "true"}
    )
    assert told == "MKL_NUM_THREADS=1; OMP_NUM_THREADS=8"
    assert read_thread_variables({}) == ""


def lay_out(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        file = root / "cgroup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    own = root / "own"
    own.write_text("0::/pod/container\n")
    return own


def test_the_smallest_grant_of_a_group_and_those_around_it(tmp_path: Path) -> None:
    own = lay_out(tmp_path, {
        "pod/cpu.max": "150000 100000\n", "pod/container/cpu.max": "max 100000\n",
        "pod/memory.max": "8589934592\n", "pod/container/memory.max": "1073741824\n",
    })  # fmt: skip
    assert read_grants(tmp_path / "cgroup", own) == {"cpu_quota": 1.5, "memory_limit_bytes": 2.0**30}


def test_what_is_not_limited_or_not_told_is_left_out(tmp_path: Path) -> None:
    own = lay_out(tmp_path, {"pod/container/cpu.max": "max 100000\n", "pod/container/memory.max": "max\n"})
    assert read_grants(tmp_path / "cgroup", own) == {}
    assert read_grants(tmp_path / "cgroup", tmp_path / "nowhere") == {}
    own.write_text("12:cpu:/old\n")
    assert read_grants(tmp_path / "cgroup", own) == {}


class OneDevice:
    """What of NVML is asked, of one device at 300 of its 700 W, on which two processes compute."""

    def nvmlDeviceGetComputeRunningProcesses(self, _device: object) -> list[str]:  # noqa: N802 - NVML's name
        return ["one", "another"]

    def nvmlDeviceGetPowerManagementLimit(self, _device: object) -> int:  # noqa: N802
        return 300_000

    def nvmlDeviceGetPowerManagementDefaultLimit(self, _device: object) -> int:  # noqa: N802
        return 700_000


def test_devices_are_told_together_in_watts() -> None:
    assert count_processes(OneDevice(), ["a", "b"]) == {"device_processes": 4.0}
    assert read_power(OneDevice(), ["a"]) == {"device_power_limit_w": 300.0, "device_power_default_w": 700.0}
