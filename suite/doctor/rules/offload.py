"""Layers that were to be on the GPU, and are not."""

from __future__ import annotations

import re

from suite.doctor.reading import facts_of, has_gpu, shares
from suite.doctor.rule import Rule, Said, cannot_be, found, passed
from suite.records import Run, VariantResult


def check_offload(run: Run, result: VariantResult) -> Said:
    """What was asked for, against what the backend says that it placed."""
    facts = facts_of(result)
    if "parameters by device" in facts:
        return _by_device(shares(facts["parameters by device"]))
    asked = result.variant.options.get("n_gpu_layers")
    if not isinstance(asked, int):
        return cannot_be("the backend places no layers")
    if asked == 0:
        return _none_asked(run, facts.get("gpu_offload"))
    if facts.get("gpu_offload") == "False":
        return found(
            f"{_wanted(asked)} asked for, none there: this build of llama.cpp has no GPU support",
            'rebuild llama-cpp-python with CMAKE_ARGS="-DGGML_CUDA=on", or n_gpu_layers = 0',
        )
    return _by_layers(asked, facts.get("layers offloaded", ""))


def _by_layers(asked: int, layers: str) -> Said:
    told = re.match(r"(\d{1,9}) of (\d{1,9})\b", layers)
    if not told:
        return cannot_be("the backend does not tell how many layers it placed")
    placed, there = int(told[1]), int(told[2])
    if placed < (there if asked < 0 else min(asked, there)):
        return found(
            f"{_wanted(asked)} asked for, {placed} of {there} are on the GPU", "free GPU memory, or a smaller n_ctx"
        )
    return passed(f"{placed} of {there} layers are on the GPU, as asked")


def _wanted(asked: int) -> str:
    return "all layers" if asked < 0 else f"{asked} layers"


def _none_asked(run: Run, supported: str | None) -> Said:
    if has_gpu(run) and supported == "True":
        return found(
            f"no layer is on the GPU, although there is one ({run.environment.identity['device']}) and this build can use it",
            "n_gpu_layers = -1",
        )
    if supported == "False":
        return cannot_be("this build of llama.cpp has no GPU support")
    return cannot_be("no layers were asked to be on a GPU, and there is none")


def _by_device(devices: dict[str, int]) -> Said:
    total = sum(devices.values())
    if not total:
        return cannot_be("the backend does not tell where its parameters are")
    if len(devices) > 1:
        parts = ", ".join(f"{100 * count / total:.0f} % on {name}" for name, count in devices.items())
        return found(f"the parameters are spread: {parts}", "a smaller variant, or a device that holds all of it")
    return passed(f"all parameters are on {next(iter(devices))}")


RULE = Rule(id="offload", title="layers offloaded", of_variant=check_offload)
