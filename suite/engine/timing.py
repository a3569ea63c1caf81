"""The speed pass: fresh launches, scenarios of fixed token counts, variants interleaved slice by slice."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from suite.engine.environment import usable_cpus
from suite.engine.launching import Launcher, LiveVariant
from suite.engine.lineup import in_turn, pair_up
from suite.engine.passage import PASSAGE, scenario_prompt
from suite.engine.pinning import choose_cpus, threads_of
from suite.engine.residency import group_by_memory
from suite.engine.sampling import device_of, judge_sample
from suite.engine.warming import warm_up
from suite.engine.yardstick import YardstickKernel, summarize
from suite.errors import QuantdriftError, StoreError, VariantInvalid
from suite.records import Launch, Matrix, SampleStatus, Scenario, SpeedSample, Variant, Witness, Yardstick
from suite.worker.affinity import on_cpus

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
    parted: Callable[[Sequence[Sequence[Variant]]], None] | None = None
    """The variants did not fit into memory together, but in these groups."""


HOPELESS = 4
"""Samples in a row that no retry could mend, after which a launch tries no more."""


class SpeedPass:
    """Measures the variants of a matrix, each old side of a duet next to its variant.

    Launches that were delivered earlier (a resumed run) are not repeated. `cpus` are those of the workers, under ``pin``;
    None chooses them for the whole matrix, so that they do not depend on which variants a pass is about.
    """

    def __init__(
        self, matrix: Matrix, launcher: Launcher, sink: SpeedSink, cpus: tuple[int, ...] | None = None
    ) -> None:
        self._matrix = matrix
        self._launcher = launcher
        self._sink = sink
        self._cpus = cpus
        self._failed: set[str] = set()
        self._passage: tuple[str, tuple[int, ...]] | None = None
        self._kernel = YardstickKernel()
        self._in_vain = 0
        """Samples in a row that could not be had clean."""

    def run(self, variants: Sequence[Variant], done: Mapping[str, int], upto: int | Mapping[str, int]) -> None:
        """Measure `variants` until each has `upto` launches; `done` is the number that each already has.

        Under ``pin`` all workers of the pass, and the yardstick, run on the same CPUs.
        """
        cpus = self._choose_cpus(variants) if self._matrix.protocol.pin and variants else ()
        self._launcher = dataclasses.replace(self._launcher, cpus=cpus)
        wanted = {variant.name: upto if isinstance(upto, int) else upto.get(variant.name, 0) for variant in variants}
        for index in range(max(wanted.values(), default=0)):
            pending = [v for v in variants if done.get(v.name, 0) <= index < wanted[v.name] and not self._is_out(v)]
            groups = list(group_by_memory(pair_up(pending, index), self._matrix.protocol, self._launcher.preparer))
            if len(groups) > 1 and self._sink.parted is not None:
                self._sink.parted(groups)
            for group in groups:
                self._measure_launch(group, index, max(wanted.values()))

    def _choose_cpus(self, variants: Sequence[Variant]) -> tuple[int, ...]:
        everybody = [*self._matrix.variants, *variants]
        return choose_cpus(threads_of(everybody)) if self._cpus is None else self._cpus

    def _is_out(self, variant: Variant) -> bool:
        """Whether it failed, or is the old side of one that did: there is nothing left to compare it with."""
        return variant.name in self._failed or variant.old_of in self._failed

    def _measure_launch(self, group: Sequence[Variant], index: int, upto: int) -> None:
        """One launch of every variant in `group`, all in memory at once."""
        rounds = self._matrix.protocol.rounds
        self._in_vain = 0
        with ExitStack() as stack:
            lives = [live for v in group if (live := self._open(stack, v, index)) is not None]
            for live in sorted(
                lives, key=lambda live: live.variant.old_of is not None
            ):  # the new side sets the passage
                self._check_passage(live)
            colds = {live.variant.name: cold for live in lives if (cold := self._warm(live)) is not None}
            readings: dict[str, list[Yardstick]] = {live.variant.name: [] for live in lives}
            for turn in range(rounds):
                self._launcher.progress(f"speed: launch {index + 1} of {upto}, round {turn + 1} of {rounds}")
                self._take_round(lives, index, turn, readings)
            for live in lives:
                name = live.variant.name
                if name in colds:
                    self._finish(live, index, colds[name], summarize(readings[name]))

    def _open(self, stack: ExitStack, variant: Variant, index: int) -> LiveVariant | None:
        with self._guard(variant):
            live = stack.enter_context(self._launcher.launch(variant, index))
            self._sink.opened(live)
            return live
        return None

    def _check_passage(self, live: LiveVariant) -> None:
        """Every variant times the same token ids."""
        with self._guard(live.variant):
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
        """The cold request, then untimed samples until decoding is steady. None when the variant failed."""
        if self._is_out(live.variant) or self._passage is None:
            return None
        with self._guard(live.variant):
            first = self._matrix.scenarios[0]
            cold, witness = live.generate(self._prompt(first, -1), COLD_TOKENS, stop_at_end=False)
            warm_up(live, self._matrix, self._passage[1])
            return cold.ttft_s, cold.prompt_tokens, witness
        return None

    def _take_round(
        self, lives: Sequence[LiveVariant], index: int, turn: int, readings: Mapping[str, list[Yardstick]]
    ) -> None:
        """Each scenario once in each variant; one scenario after the other, so that old and new slices are adjacent."""
        for scenario in self._matrix.scenarios:
            for live in in_turn(lives, turn):
                if self._is_out(live.variant):
                    continue
                if scenario is self._matrix.scenarios[0] and not live.loaded.simulated:
                    readings[live.variant.name].append(self._read_yardstick())
                self._take_clean(live, scenario, index, turn)

    def _read_yardstick(self) -> Yardstick:
        """Where the workers run, too."""
        with on_cpus(self._launcher.cpus[:1]):
            return self._kernel.read()

    def _take_clean(self, live: LiveVariant, scenario: Scenario, index: int, turn: int) -> None:
        """One sample, and again while it is contended or rejected, as often as the protocol allows. All are kept.

        When nothing of that helped several times in a row, the machine is not ours, and the rest of the launch is taken as
        it comes: trying on would only make a run that cannot tell take three times as long.
        """
        with self._guard(live.variant):
            retries = self._matrix.protocol.retries if self._in_vain < HOPELESS else 0
            for _attempt in range(1 + retries):
                sample = self._take_sample(live, scenario, index, turn)
                self._sink.sample(sample)
                if sample.status is SampleStatus.CLEAN:
                    self._in_vain = 0
                    return
            self._in_vain += 1

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
        status, reason = judge_sample(
            sample,
            scenario,
            self._matrix.protocol,
            device=device_of(live.loaded.facts),
            cpus=len(self._launcher.cpus) or usable_cpus(),
        )
        return dataclasses.replace(sample, status=status, reason=reason)

    def _finish(
        self, live: LiveVariant, index: int, cold: tuple[float | None, int, Witness], yardstick: Yardstick | None
    ) -> None:
        if self._is_out(live.variant):
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
                    readings=memory.readings,
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
