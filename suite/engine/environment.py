"""The machine: what must be equal for speeds to be compared, what may be to blame, and how it was just now."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from suite.engine.conditions import count_processes, read_governor, read_grants, read_power, read_thread_variables
from suite.records import Environment
from suite.worker.nvml import ask_nvml

ISA_FLAGS = ("sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512vl", "avx512_vnni", "avx512_bf16", "avx_vnni",
             "amx_int8", "asimd", "asimddp", "i8mm", "bf16", "sve", "sve2")  # fmt: skip
"""Instruction sets for which the backends have kernels of their own."""


CPU_DETAIL = ("cpu family", "model", "stepping", "CPU implementer", "CPU variant", "CPU part", "CPU revision")
"""What tells CPUs apart beside their name: the first three on x86, the others on ARM, where there is often no name."""


def usable_cpus() -> int:
    """Logical CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def default_threads() -> int:
    """Threads for a backend that was told no number: physical cores that this process may use."""
    return max(1, min(usable_cpus(), psutil.cpu_count(logical=False) or usable_cpus()))


def capture_environment(*, cpuinfo: Path = Path("/proc/cpuinfo")) -> Environment:
    """Read the machine. Fields that cannot be read say ``unknown`` rather than being left out."""
    cpu, flags = _read_cpu(cpuinfo)
    devices = _read_devices()
    identity = {
        "device": devices.get("name", "cpu"),
        "device memory": devices.get("memory", "none"),
        "cpu": cpu,
        "isa": " ".join(flag for flag in ISA_FLAGS if flag in flags) or "unknown",
        "cores": str(psutil.cpu_count(logical=False) or "unknown"),
        "threads": str(usable_cpus()),
        "os": f"{platform.system()} {platform.machine()}",
    }
    suspects = {"kernel": platform.release(), "python": platform.python_version()}
    if "driver" in devices:
        suspects["driver"] = devices["driver"]
    if governor := read_governor():
        suspects["governor"] = governor
    readings = {**_read_state(), **read_grants(), "thread variables": read_thread_variables()}
    for question in (count_processes, read_power):
        readings.update(ask_nvml(question) or {})
    return Environment(machine=_slug(identity), identity=identity, suspects=suspects, readings=readings)


def _slug(identity: Mapping[str, str]) -> str:
    """A readable directory name: device or CPU, cores, and eight digits of the whole identity's hash."""
    digest = hashlib.sha256(json.dumps(dict(identity), sort_keys=True).encode()).hexdigest()[:8]
    name = identity["cpu"] if identity["device"] == "cpu" else identity["device"]
    words = re.sub(r"\((r|tm)\)|processor|cpu|core|with.*", " ", name.lower())
    plain = re.sub(r"[^a-z0-9]+", "-", words).strip("-")[:32].strip("-") or "machine"
    return f"{plain}-{identity['cores']}c-{digest}"


def _read_cpu(cpuinfo: Path) -> tuple[str, frozenset[str]]:
    try:
        text = cpuinfo.read_text()
    except OSError:
        return platform.processor() or "unknown", frozenset()
    fields = dict(re.findall(r"^(.+?)[ \t]*:[ \t]*(.*)$", text, re.MULTILINE)[::-1])  # the first CPU's lines win
    name = fields.get("model name", platform.processor() or "unknown")
    detail = [fields[key] for key in CPU_DETAIL if key in fields]
    flags = str(fields.get("flags") or fields.get("Features") or "")
    return f"{name} ({'/'.join(detail)})" if detail else name, frozenset(flags.split())


def free_device_bytes() -> int | None:
    """Memory that is free now on all NVIDIA devices together; None where there are none."""
    return ask_nvml(lambda nvml, handles: sum(int(nvml.nvmlDeviceGetMemoryInfo(handle).free) for handle in handles))


def _read_devices() -> dict[str, str]:
    """NVIDIA devices through NVML; empty where there are none. Names of several equal ones are counted."""

    def describe(nvml: Any, handles: list[Any]) -> dict[str, str]:
        names = sorted(str(nvml.nvmlDeviceGetName(handle)) for handle in handles)
        memory = sum(int(nvml.nvmlDeviceGetMemoryInfo(handle).total) for handle in handles)
        return {
            "name": " + ".join(f"{names.count(name)}x {name}" for name in dict.fromkeys(names)),
            "memory": f"{round(memory / 2**30)} GiB",
            "driver": str(nvml.nvmlSystemGetDriverVersion()),
        }

    return ask_nvml(describe) or {}


def _read_state() -> dict[str, float | str]:
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    frequency = psutil.cpu_freq()
    memory = psutil.virtual_memory()
    readings: dict[str, float | str] = {
        "memory_available_bytes": float(memory.available),
        "memory_bytes": float(memory.total),
    }
    if load is not None:
        readings["load_1min"] = load
    if frequency is not None and frequency.current:
        readings["cpu_mhz"] = float(frequency.current)
    return readings
