"""A GPU in the machine, and a library that was built without it."""

from __future__ import annotations

from suite.doctor.reading import facts_of, has_gpu
from suite.doctor.rule import Rule, Said, cannot_be, found, passed
from suite.records import Run, VariantResult


def check_build(run: Run, result: VariantResult) -> Said:
    """llama.cpp says whether it can offload, torch for which CUDA it was built."""
    facts = facts_of(result)
    if not has_gpu(run):
        return cannot_be("no GPU was found in this machine")
    device = run.environment.identity["device"]
    if facts.get("gpu_offload") == "False":
        return found(
            f"there is a GPU ({device}), but this build of llama.cpp cannot use one",
            'rebuild llama-cpp-python with CMAKE_ARGS="-DGGML_CUDA=on"',
        )
    if facts.get("cuda") == "None":
        return found(
            f"there is a GPU ({device}), but this torch was built without CUDA", "install a CUDA build of torch"
        )
    if "gpu_offload" in facts or "cuda" in facts:
        return passed(f"built for a GPU, and there is one ({device})")
    return cannot_be("the backend does not tell what it was built for")


RULE = Rule(id="gpu-support", title="GPU support compiled in", of_variant=check_build)
