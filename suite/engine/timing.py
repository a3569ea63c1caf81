"""The speed pass: fresh launches, scenarios of fixed token counts, variants interleaved round by round."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from suite.engine.launching import Launcher, LiveVariant
from suite.engine.passage import PASSAGE, scenario_prompt
from suite.engine.residency import group_by_memory
from suite.engine.yardstick import YardstickKernel, summarize
from suite.errors import QuantdriftError, StoreError, VariantInvalid
from suite.records import Launch, Matrix, Protocol, SampleStatus, Scenario, SpeedSample, Variant, Witness, Yardstick

BUSY_SHARE = 0.9
"""Where the system tells no pressure: a CPU backend that got the CPU for less than this share of the wall time waited."""
COLD_TOKENS = 2
"""New tokens of the very first request after a load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedSink:
    """Where the pass delivers what it measures, at once."""

    sample: Callable[[SpeedSample], None]
    launch: Callable[[Launch], None]
    failure: Callable[[Variant, QuantdriftError], None]
    """A variant failed; the pass goes on without it."""
    opened: Callable[[LiveVariant], None]
    """A launch succeeded."""


class SpeedPass:
    """Measures the variants of a matrix. Launches that were delivered earlier (a resumed run) are not repeated."""

    def __init__(self, matrix: Matrix, launcher: Launcher, sink: SpeedSink) -> None:
        self._matrix = matrix
        self._launcher = launcher
        self._sink = sink
        self._failed: set[str] = set()
        self._passage: tuple[str, tuple[int, ...]] | None = None
        self._kernel = YardstickKernel()

    def run(self, variants: Sequence[Variant], done: Mapping[str, int]) -> None:
        """Measure `variants`; `done` is the number of launches that each already has."""
        for index in range(self._matrix.protocol.launches):
            pending = [v for v in variants if done.get(v.name, 0) <= index and v.name not in self._failed]
            for group in group_by_memory(pending, self._matrix.protocol, self._launcher.preparer):
                self._measure_launch(group, index)

    def _measure_launch(self, group: Sequence[Variant], index: int) -> None:
        """One launch of every variant in `group`, all in memory at once."""
        protocol = self._matrix.protocol
        with ExitStack() as stack:
            lives = [live for v in group if (live := self._open(stack, v, index)) is not None]
            colds = {live.variant.name: cold for live in lives if (cold := self._warm(live)) is not None}
            readings: dict[str, list[Yardstick]] = {live.variant.name: [] for live in lives}
            for turn in range(protocol.rounds):
                self._launcher.progress(
                    f"speed: launch {index + 1} of {protocol.launches}, round {turn + 1} of {protocol.rounds}"
                )
                order = lives if turn % 2 == 0 else lives[::-1]  # ABBA: a linear drift of the machine cancels out
                for live in order:
                    if not live.loaded.simulated:
                        readings[live.variant.name].append(self._kernel.read())
                    self._take_round(live, index, turn)
            for live in lives:
                name = live.variant.name
                if name in colds:
                    self._finish(live, index, colds[name], summarize(readings[name]))

    def _open(self, stack: ExitStack, variant: Variant, index: int) -> LiveVariant | None:
        with self._guard(variant):
            live = stack.enter_context(self._launcher.launch(variant, index))
            self._sink.opened(live)
            self._check_passage(live)
            return live
        return None

    def _check_passage(self, live: LiveVariant) -> None:
        """Every variant times the same token ids."""
        ids = live.encode(PASSAGE)
        if not ids:
            raise VariantInvalid("the passage that scenarios prefill has no token ids: the tokenizer does not work")
        if self._passage is None:
            self._passage = (live.variant.name, ids)
        elif ids != self._passage[1]:
            raise VariantInvalid(
                f"the passage that scenarios prefill has other token ids than with '{self._passage[0]}' "
                f"({len(ids)} and {len(self._passage[1])} tokens): speeds would be of different work"
            )

    def _prompt(self, scenario: Scenario, turn: int) -> tuple[int, ...]:
        if self._passage is None:
            raise VariantInvalid("no variant could encode the passage that scenarios prefill")
        return scenario_prompt(self._passage[1], scenario.prompt_tokens, turn)

    def _warm(self, live: LiveVariant) -> tuple[float | None, int, Witness] | None:
        """The cold request, then untimed samples of each scenario. None when the variant failed."""
        with self._guard(live.variant):
            first = self._matrix.scenarios[0]
            cold, witness = live.generate(self._prompt(first, -1), COLD_TOKENS, stop_at_end=False)
            for scenario in self._matrix.scenarios:
                for turn in range(self._matrix.protocol.warmup):
                    live.generate(self._prompt(scenario, -2 - turn), scenario.new_tokens, stop_at_end=False)
            return cold.ttft_s, cold.prompt_tokens, witness
        return None

    def _take_round(self, live: LiveVariant, index: int, turn: int) -> None:
        for scenario in self._matrix.scenarios:
            if live.variant.name in self._failed:
                return
            with self._guard(live.variant):
                for _attempt in range(1 + self._matrix.protocol.retries):
                    sample = self._take_sample(live, scenario, index, turn)
                    self._sink.sample(sample)
                    if sample.status is SampleStatus.CLEAN:
                        break

    def _take_sample(self, live: LiveVariant, scenario: Scenario, index: int, turn: int) -> SpeedSample:
        prompt = self._prompt(scenario, index * self._matrix.protocol.rounds + turn)
        generation, witness = live.generate(prompt, scenario.new_tokens, stop_at_end=False)
        sample = SpeedSample(
            variant=live.variant.name,
            scenario=scenario.name,
            launch=index,
            round=turn,
            prompt_tokens=len(prompt),
            evaluated_tokens=generation.evaluated_tokens,
            new_tokens=len(generation.token_ids),
            prefill_s=generation.prefill_s,
            ttft_s=generation.ttft_s or 0.0,
            itl_s=generation.itl_s,
            witness=witness,
        )
        status, reason = judge_sample(sample, scenario, self._matrix.protocol, device=device_of(live.loaded.facts))
        return dataclasses.replace(sample, status=status, reason=reason)

    def _finish(
        self, live: LiveVariant, index: int, cold: tuple[float | None, int, Witness], yardstick: Yardstick | None
    ) -> None:
        if live.variant.name in self._failed:
            return
        with self._guard(live.variant):
            memory = live.memory()
            tokens = memory.kv_cache_tokens
            self._sink.launch(
                Launch(
                    variant=live.variant.name,
                    index=index,
                    load_s=live.loaded.load_s,
                    cold_ttft_s=cold[0],
                    cold_prompt_tokens=cold[1],
                    peak_rss_bytes=memory.peak_rss_bytes,
                    uss_bytes=memory.uss_bytes,
                    peak_device_bytes=memory.peak_device_bytes,
                    kv_cache_bytes=live.kv_cache_bytes(tokens) if tokens else None,
                    kv_cache_reported_bytes=memory.kv_cache_bytes,
                    facts=live.loaded.facts,
                    witness=cold[2],
                    yardstick=yardstick,
                )
            )

    @contextmanager
    def _guard(self, variant: Variant) -> Iterator[None]:
        """A failure of one variant is delivered, and the others go on."""
        try:
            yield
        except StoreError:
            raise  # a full disk is no fault of the variant
        except QuantdriftError as fault:
            self._failed.add(variant.name)
            self._sink.failure(variant, fault)


def device_of(facts: Mapping[str, str]) -> str:
    """What a backend says that it runs on. llama.cpp names no device, only that its build can give work to a GPU."""
    return facts.get("device", "gpu" if facts.get("gpu_offload") == "True" else "cpu")


def judge_sample(
    sample: SpeedSample, scenario: Scenario, protocol: Protocol, *, device: str = "cpu"
) -> tuple[SampleStatus, str | None]:
    """Whether a sample may be used, and if not, why. `device` is what the backend says that it runs on."""
    if sample.evaluated_tokens != sample.prompt_tokens:
        return (
            SampleStatus.REJECTED,
            f"{sample.evaluated_tokens} of {sample.prompt_tokens} prompt tokens were evaluated",
        )
    if sample.new_tokens != scenario.new_tokens:
        return SampleStatus.REJECTED, f"{sample.new_tokens} of {scenario.new_tokens} tokens were generated"
    pressure = sample.witness.pressure
    if pressure is not None and pressure > protocol.max_pressure:
        return (
            SampleStatus.CONTENDED,
            f"another process waited for a CPU {pressure:.0%} of the time (limit {protocol.max_pressure:.0%})",
        )
    if pressure is None and device == "cpu":
        return _judge_cpu_time(sample.witness)
    return SampleStatus.CLEAN, None


def _judge_cpu_time(witness: Witness) -> tuple[SampleStatus, str | None]:
    """The witness where the system tells no pressure (not Linux, or PSI is off): the worker's own CPU time.

    One thread at least computes all the time. More cannot be asked: libraries run parts of a step on one thread only.
    """
    is_simulated = witness.involuntary_switches is None
    if is_simulated or witness.cpu_s >= BUSY_SHARE * witness.wall_s:
        return SampleStatus.CLEAN, None
    return (
        SampleStatus.CONTENDED,
        f"the worker had a CPU for {witness.cpu_s / witness.wall_s:.0%} of the time only (limit {BUSY_SHARE:.0%}; "
        "told by its CPU time, for this system tells no CPU pressure)",
    )
