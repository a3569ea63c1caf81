"""The machine, read from fixture files of other machines."""

from __future__ import annotations

from pathlib import Path

import pytest

from suite.engine.environment import capture_environment, default_threads, usable_cpus
from suite.records import Environment

X86 = """\
processor\t: 0
vendor_id\t: AuthenticAMD
cpu family\t: 25
model\t\t: 17
model name\t: AMD EPYC 9654 96-Core Processor
stepping\t: 1
flags\t\t: fpu sse4_2 avx avx2 fma f16c avx512f avx512_vnni
bugs\t\t: sysret_ss_attrs
power management:

processor\t: 1
model name\t: Another CPU
flags\t\t: fpu
power management:
"""
GRAVITON = """\
processor\t: 0
BogoMIPS\t: 2100.00
Features\t: fp asimd asimddp sve i8mm bf16
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x1
CPU part\t: 0xd40
CPU revision\t: 1

processor\t: 1
CPU part\t: 0xfff
"""


def read(tmp_path: Path, text: str) -> Environment:
    file = tmp_path / "cpuinfo"
    file.write_text(text)
    return capture_environment(cpuinfo=file)


def test_an_x86_machine(tmp_path: Path) -> None:
    environment = read(tmp_path, X86)
    assert environment.identity["cpu"] == "AMD EPYC 9654 96-Core Processor (25/17/1)"
    assert environment.identity["isa"] == "sse4_2 avx avx2 fma f16c avx512f avx512_vnni"
    assert environment.machine.startswith("amd-epyc-9654-96")
    assert {"device", "device memory", "cpu", "isa", "cores", "threads", "os"} == set(environment.identity)


def test_arm_machines_of_two_generations_differ(tmp_path: Path) -> None:
    three = read(tmp_path, GRAVITON)
    two = read(tmp_path, GRAVITON.replace("0xd40", "0xd0c"))
    assert three.identity["isa"] == "asimd asimddp i8mm bf16 sve"
    assert three.identity["cpu"].endswith("(0x41/0x1/0xd40/1)")
    assert three.identity["cpu"] != two.identity["cpu"]
    assert three.machine != two.machine


def test_the_same_machine_has_the_same_name_whatever_its_load(tmp_path: Path) -> None:
    first, second = read(tmp_path, X86), read(tmp_path, X86)
    assert first.machine == second.machine
    assert first.identity == second.identity
    assert first.readings["memory_bytes"] == second.readings["memory_bytes"]


def test_what_cannot_be_read_says_so(tmp_path: Path) -> None:
    environment = capture_environment(cpuinfo=tmp_path / "nowhere")
    assert environment.identity["isa"] == "unknown"
    assert environment.identity["cpu"]


def test_the_name_is_a_directory_name(tmp_path: Path) -> None:
    environment = read(tmp_path, X86.replace("AMD EPYC 9654 96-Core Processor", "  /../ Äpfel & Co (R)  "))
    assert environment.machine == environment.machine.strip("-./")
    assert set(environment.machine) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


def test_threads_are_cores_that_may_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 1 <= default_threads() <= usable_cpus()
    monkeypatch.setattr("suite.engine.environment.usable_cpus", lambda: 64)
    monkeypatch.setattr("psutil.cpu_count", lambda logical=True: None if not logical else 64)
    assert default_threads() == 64
