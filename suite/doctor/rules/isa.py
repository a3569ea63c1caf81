"""Instruction sets that the CPU has, and the build does not use."""

from __future__ import annotations

import re

from suite.doctor.reading import facts_of, is_on_gpu
from suite.doctor.rule import Rule, Said, cannot_be, found, passed
from suite.records import Run, VariantResult

OF_LLAMA_CPP = {"avx": "AVX", "avx2": "AVX2", "fma": "FMA", "f16c": "F16C", "avx512f": "AVX512", "asimddp": "DOTPROD"}
"""Flag of the kernel → name in llama.cpp's system info. Others it uses where it pays only."""
OF_TORCH = ("DEFAULT", "AVX2", "AVX512")
"""What torch's kernels are chosen by on x86, worst first (``torch.backends.cpu.get_cpu_capability``)."""


def check_isa(run: Run, result: VariantResult) -> Said:
    """The build's list against the CPU's; a variant on a GPU has other kernels."""
    facts, flags = facts_of(result), run.environment.identity.get("isa", "unknown").split()
    if is_on_gpu(result):
        return cannot_be("it runs on a GPU")
    if flags == ["unknown"]:
        return cannot_be("the machine does not tell its instruction sets")
    if "llama.cpp system" in facts:
        return _of_llama_cpp(facts["llama.cpp system"], flags)
    if "cpu capability" in facts:
        return _of_torch(facts["cpu capability"], flags)
    return cannot_be("the backend does not tell its kernels")


def _of_llama_cpp(system: str, flags: list[str]) -> Said:
    built = {name for name, on in re.findall(r"(\w+) = (\d)", system) if on == "1"}
    relevant = {flag: name for flag, name in OF_LLAMA_CPP.items() if flag in flags}
    missing = [name for name in relevant.values() if name not in built]
    if missing:
        return found(
            f"the CPU has {', '.join(missing)}, this build of llama.cpp does not use it",
            "rebuild llama-cpp-python on this machine, with GGML_NATIVE=on",
        )
    return passed(f"llama.cpp uses {', '.join(relevant.values()) or 'what there is'}")


def _of_torch(capability: str, flags: list[str]) -> Said:
    if capability not in OF_TORCH:
        return passed(f"torch uses its {capability} kernels")
    best = "AVX512" if {"avx512f", "avx512vl"} <= set(flags) else "AVX2" if {"avx2", "fma"} <= set(flags) else "DEFAULT"
    if OF_TORCH.index(capability) < OF_TORCH.index(best):
        return found(
            f"the CPU has {best}, torch uses its {capability} kernels",
            "another build of torch",
        )
    return passed(f"torch uses its {capability} kernels")


RULE = Rule(id="isa", title="instruction sets and kernels", of_variant=check_isa)
