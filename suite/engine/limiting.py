"""What the device of each variant gives, asked for between its slices: the bounds that its speed is held against."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

import psutil

from suite.engine.launching import LiveVariant
from suite.engine.sampling import device_of
from suite.errors import QuantdriftError
from suite.metrics.roofline import Work, decode_bytes
from suite.records import Limits, Scenario, Streamed
from suite.stats.robust import median
from suite.worker.messages import Probe, Probed
from suite.worker.process import Worker

MOST_BYTES = 1 << 30
"""Of a buffer: what is larger is in no cache either."""
MEMORY_SHARE = 1 / 8
"""Of the memory that is free now, which a buffer may take at most."""
STEP = 1.25
"""Sizes within this ratio are taken for the same."""
DEADLINE_S = 60.0
ELSEWHERE = "no limits, since its model lies in other processes, which may hold it in other types than its file has"


class LimitProbe:
    """Takes readings beside one launch of the variants. A context manager: leaving it ends its process.

    CPUs are read by a process of its own, pinned as the workers are, with as many threads as the variant decodes with; an
    accelerator by the variant's worker. Whatever goes wrong here is told with the result, and never fails a variant.
    """

    def __init__(self, cpus: Sequence[int], peak_flop_s: float | None = None) -> None:
        self._cpus = tuple(cpus)
        self._peak = peak_flop_s
        self._worker: Worker | None = None
        self._readings: dict[tuple[str, int], list[Probed]] = {}
        """By variant and step of size."""
        self._reasons: dict[str, str] = {}

    def read(self, live: LiveVariant, scenario: Scenario, turn: int) -> None:
        """One reading for this variant, as large as what a step of decoding reads in this scenario; once a round."""
        if live.loaded.remote:
            self._reasons[live.variant.name] = ELSEWHERE
            return
        demand = live.demand()
        if demand is None or live.loaded.simulated or live.variant.name in self._reasons:
            return
        needed = scenario.batch * decode_bytes(demand, work_of(scenario))
        key = live.variant.name, round(math.log(max(needed, 2), STEP))
        if len(self._readings.setdefault(key, [])) > turn:
            return
        size = min(round(needed), MOST_BYTES, int(psutil.virtual_memory().available * MEMORY_SHARE))
        try:
            self._readings[key].append(self._ask(live, size))
        except (QuantdriftError, OSError) as fault:
            self._reasons[live.variant.name] = f"its device was not measured: {str(fault).splitlines()[0]}"

    def summarize(self, name: str) -> Limits | None:
        """The medians of a launch; None where nobody asked."""
        found = {step: taken for (variant, step), taken in self._readings.items() if variant == name and taken}
        reason = self._reasons.get(name, "")
        if not found:
            return Limits(reason=reason) if reason else None
        everything = [reading for taken in found.values() for reading in taken]
        last = everything[-1]
        return Limits(
            streams=tuple(
                Streamed(size_bytes=taken[-1].size_bytes, read_bytes_s=median([one.read_bytes_s for one in taken]))
                for taken in found.values()
            ),
            flop_s=self._peak or median([one.flop_s for one in everything]),
            flop_type="declared" if self._peak else last.flop_type,
            device=last.device,
            threads=last.threads,
            reason=reason,
        )

    def _ask(self, live: LiveVariant, size: int) -> Probed:
        request = Probe(size_bytes=size, threads=live.loaded.threads)
        worker = self._worker_of(live)
        answer: Probed = worker.ask(request, DEADLINE_S)
        return answer

    def _worker_of(self, live: LiveVariant) -> Worker:
        if is_on_accelerator(live):
            return live.worker
        if self._worker is not None and not self._worker.alive:
            self._worker.close()
            self._worker = None
        if self._worker is None:
            self._worker = Worker("the device's limits", cpus=self._cpus)
        return self._worker

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._worker is not None:
            self._worker.close()
            self._worker = None


def is_on_accelerator(live: LiveVariant) -> bool:
    """Whether any of its weights lie elsewhere than in the memory of the CPUs."""
    device = device_of(live.loaded.facts)
    layers = live.variant.options.get("n_gpu_layers")
    return device not in ("cpu", "gpu") if layers is None else device == "gpu" and layers != 0


def work_of(scenario: Scenario) -> Work:
    """What one slice of a scenario evaluates; of a conversation, its last turn with the state kept."""
    before = (scenario.turns - 1) * (scenario.prompt_tokens + scenario.new_tokens)
    return Work(
        prompt_tokens=before + scenario.prompt_tokens,
        new_tokens=scenario.new_tokens,
        kept_tokens=before + scenario.kept_tokens,
        batch=scenario.batch,
    )
