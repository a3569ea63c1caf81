"""The speed pass: fresh launches, scenarios of fixed token counts, variants interleaved slice by slice."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from suite.engine.environment import usable_cpus
from suite.engine.launching import Launcher, LiveVariant, remembers
from suite.engine.limiting import LimitProbe
from suite.engine.lineup import in_turn, pair_up
from suite.engine.passage import PASSAGE, salt_of
from suite.engine.pinning import choose_cpus, threads_of
from suite.engine.residency import group_by_memory
from suite.engine.sampling import device_of, judge_sample
from suite.engine.slices import Place, failed_slice, hold, misfit, take_cycles, take_slice, unsuited
from suite.engine.warming import warm_up
from suite.engine.yardstick import YardstickKernel, summarize
from suite.errors import (
    LoadError,
    QuantdriftError,
    StoreError,
    Unavailable,
    VariantError,
    VariantInvalid,
    WorkerDied,
    WorkerTimeout,
)
from suite.records import Launch, Matrix, SampleStatus, Scenario, SpeedSample, Variant, Witness, Yardstick
from suite.worker.affinity import on_cpus

COLD_TOKENS = 2
"""New tokens of the very first request after a load."""

SMALL = Scenario(name="small", prompt_tokens=16, new_tokens=16)
"""What warms up a variant that is timed in no plain scenario."""


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
        self._limits = LimitProbe(())
        self._in_vain = 0
        """Samples in a row that could not be had clean."""
        self._unsuited: set[tuple[str, str]] = set()
        """Variant and scenario, of the launch that goes on, that do not suit one another."""
        self._faults: dict[str, int] = {}
        """Variant → requests in a row that failed."""
        self._held: dict[str, int] = {}
        """Variant → how many tokens of what scenarios keep lie in its state."""

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
        self._in_vain, self._unsuited, self._held = 0, set(), {}
        launches: list[Launch] = []
        with ExitStack() as stack:
            self._limits = stack.enter_context(
                LimitProbe(self._launcher.cpus, self._matrix.protocol.peak_flop_s or None)
            )
            lives = [live for v in group if (live := self._open(stack, v, index)) is not None]
            for live in sorted(
                lives, key=lambda live: live.variant.old_of is not None
            ):  # the new side sets the passage
                self._check_passage(live)
            self._check_suited(lives, index)
            colds = {live.variant.name: cold for live in lives if (cold := self._warm(live, index)) is not None}
            readings: dict[str, list[Yardstick]] = {live.variant.name: [] for live in lives}
            for scenarios in self._blocks():
                self._hold(lives, scenarios[0], index)
                rounds = max(map(self._rounds, scenarios))
                for turn in range(rounds):
                    self._launcher.progress(f"speed: launch {index + 1} of {upto}, round {turn + 1} of {rounds}")
                    due = [scenario for scenario in scenarios if turn < self._rounds(scenario)]
                    self._take_round(lives, due, (index, turn), readings)
            for live in lives:
                name = live.variant.name
                if name in colds and not self._is_out(live.variant):
                    launches += self._finish(live, index, colds[name], summarize(readings[name]))
        for variant in group:
            self._reload(variant, index)
        for launch in launches:
            if launch.variant not in self._failed:
                self._sink.launch(launch)

    def _blocks(self) -> list[list[Scenario]]:
        """Scenarios that are taken in turn, round by round; then those that keep a state, one after the other.

        Another scenario would clear the state. The shallow ones go first, since their state begins that of the deeper ones.
        """
        together = [s for s in self._matrix.scenarios if not s.kept_tokens and not s.reloads]
        deep = sorted((s for s in self._matrix.scenarios if s.kept_tokens), key=lambda s: s.kept_tokens)
        return [block for block in (together, *([scenario] for scenario in deep)) if block]

    def _rounds(self, scenario: Scenario) -> int:
        return scenario.rounds or self._matrix.protocol.rounds

    def _place(self, variant: Variant, scenario: Scenario, index: int, turn: int) -> Place:
        """The slice of one round, or an untimed one (`turn` below 0).

        A variant that remembers has prompts of its own: another one may be at the same server.
        """
        if self._passage is None:
            raise VariantInvalid("no variant could encode the passage that scenarios prefill")
        seed = turn if turn < 0 else index * self._rounds(scenario) + turn
        salt = f"{salt_of(self._launcher.logs)} {variant.name}" if remembers(variant) else ""
        return Place(passage=self._passage[1], launch=index, round=turn, seed=seed, salt=salt)

    def _suits(self, live: LiveVariant, scenario: Scenario) -> bool:
        return not self._is_out(live.variant) and (live.variant.name, scenario.name) not in self._unsuited

    def _check_suited(self, lives: Sequence[LiveVariant], index: int) -> None:
        """Leave out, of each variant, the scenarios that it is known now to be unable to do."""
        for live in lives:
            for scenario in self._matrix.scenarios:
                reason = misfit(live.loaded, scenario)
                if reason and not self._is_out(live.variant):
                    self._leave_out(live, scenario, index, reason)

    def _leave_out(self, live: LiveVariant, scenario: Scenario, index: int, reason: str) -> None:
        self._unsuited.add((live.variant.name, scenario.name))
        self._sink.sample(unsuited(live, scenario, index, reason))

    @contextmanager
    def _suit(self, live: LiveVariant, scenario: Scenario, index: int) -> Iterator[None]:
        """A failure is the variant's, but what its backend cannot do is left out, and the rest goes on."""
        with self._guard(live.variant):
            try:
                yield
            except Unavailable as fault:
                self._leave_out(live, scenario, index, str(fault))

    def _hold(self, lives: Sequence[LiveVariant], scenario: Scenario, index: int) -> None:
        """Have every variant evaluate, untimed, what `scenario` keeps."""
        if not scenario.kept_tokens:
            return
        for live in lives:
            if self._suits(live, scenario):
                with self._suit(live, scenario, index):
                    self._held[live.variant.name] = hold(
                        live,
                        scenario,
                        self._place(live.variant, scenario, index, 0),
                        self._held.get(live.variant.name, 0),
                    )

    def _reload(self, variant: Variant, index: int) -> None:
        """Load and unload a variant in a process of its own, where a scenario asks for it."""
        for scenario in self._matrix.scenarios:
            if not scenario.reloads or self._is_out(variant) or (variant.name, scenario.name) in self._unsuited:
                continue
            self._launcher.progress(f"speed: {variant.name} is loaded and unloaded {scenario.reloads} times")
            with self._guard(variant), self._launcher.launch(variant, index) as live, self._suit(live, scenario, index):
                for sample in take_cycles(live, scenario, self._place(variant, scenario, index, 0)):
                    self._sink.sample(sample)

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

    def _warm(self, live: LiveVariant, index: int) -> tuple[float | None, int, Witness] | None:
        """The cold request, then untimed samples until decoding is steady. None when the variant failed."""
        if self._is_out(live.variant) or self._passage is None:
            return None
        with self._guard(live.variant):
            fitting = [scenario for scenario in self._matrix.scenarios if self._suits(live, scenario)]
            plain = [scenario for scenario in fitting if scenario.is_plain] or [SMALL]
            first = self._place(live.variant, plain[0], index, -1).prompt(plain[0].prompt_tokens)
            cold, witness = live.generate(first, COLD_TOKENS, stop_at_end=False)
            warm_up(live, dataclasses.replace(self._matrix, scenarios=tuple(plain)), self._passage[1])
            for scenario in fitting:
                if (scenario.batch > 1 or scenario.turns > 1) and self._matrix.protocol.warmup:
                    with self._suit(live, scenario, index):
                        take_slice(live, scenario, self._place(live.variant, scenario, index, -1))
            return cold.ttft_s, cold.prompt_tokens, witness
        return None

    def _take_round(
        self,
        lives: Sequence[LiveVariant],
        scenarios: Sequence[Scenario],
        at: tuple[int, int],
        readings: Mapping[str, list[Yardstick]],
    ) -> None:
        """Each scenario once in each variant; one scenario after the other, so that old and new slices are adjacent.

        `at` is the launch and the round.
        """
        for scenario in scenarios:
            for live in in_turn(lives, at[1]):
                if self._is_out(live.variant):
                    continue
                if scenario is scenarios[0] and not live.loaded.simulated:
                    readings[live.variant.name].append(self._read_yardstick())
                if self._suits(live, scenario):
                    self._take_clean(live, scenario, self._place(live.variant, scenario, *at))
                    self._limits.read(
                        live, scenario, at[1]
                    )  # after it: on an accelerator it empties what was warmed up

    def _read_yardstick(self) -> Yardstick:
        """Where the workers run, too."""
        with on_cpus(self._launcher.cpus[:1]):
            return self._kernel.read()

    def _take_clean(self, live: LiveVariant, scenario: Scenario, place: Place) -> None:
        """One sample, and again while it is contended or rejected, as often as the protocol allows. All are kept.

        When nothing of that helped several times in a row, the machine is not ours, and the rest of the launch is taken as
        it comes: trying on would only make a run that cannot tell take three times as long.
        """
        with self._suit(live, scenario, place.launch):
            retries = self._matrix.protocol.retries if self._in_vain < HOPELESS else 0
            for attempt in range(1 + retries):
                sample = self._take(live, scenario, place.again(attempt))
                self._sink.sample(sample)
                if sample.status is SampleStatus.CLEAN:
                    self._in_vain = 0
                    return
                self._launcher.progress(f"speed: a sample of {live.variant.name} does not count: {sample.reason}")
            self._in_vain += 1

    def _take(self, live: LiveVariant, scenario: Scenario, place: Place) -> SpeedSample:
        """One slice, judged. A request that failed in a worker that lives on, as one to a server may, is a sample without
        times; the variant fails when that goes on.
        """
        name = live.variant.name
        try:
            taken = take_slice(live, scenario, place)
        except (LoadError, WorkerDied, WorkerTimeout):
            raise
        except VariantError as fault:
            self._faults[name] = self._faults.get(name, 0) + 1
            if self._faults[name] >= HOPELESS:
                raise
            return failed_slice(live, scenario, place, str(fault))
        self._faults[name] = 0
        return self._judge(live, scenario, taken)

    def _judge(self, live: LiveVariant, scenario: Scenario, sample: SpeedSample) -> SpeedSample:
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
    ) -> list[Launch]:
        """The launch as it ends; nothing when the variant fails at that."""
        with self._guard(live.variant):
            memory = live.memory()
            tokens = memory.kv_cache_tokens
            return [
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
                    seen=memory.seen,
                    limits=self._limits.summarize(live.variant.name),
                    kv_cache_tokens=tokens,
                    readings=memory.readings,
                )
            ]
        return []

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
