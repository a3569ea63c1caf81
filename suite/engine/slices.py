"""One timed slice of a scenario: what is asked of the worker for each kind, and the sample that comes of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from suite.engine.launching import LiveVariant
from suite.engine.passage import scenario_prompt
from suite.errors import Unavailable
from suite.records import Cycle, Held, SampleStatus, Scenario, SpeedSample, Turn, Witness
from suite.worker.messages import Generate, GenerateBatch, Generated, GeneratedBatch, Loaded

READINGS = 64
"""How often memory is read in a slice that is watched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Which slice it is, and what it prefills: token ids out of the passage, other ones for each slice of a launch."""

    passage: tuple[int, ...]
    launch: int
    round: int
    seed: int
    """Where in the passage prompts begin."""
    salt: str = ""
    """With which prompts begin, where a server may still hold those of an earlier run, or of another variant."""

    def prompt(self, tokens: int, part: int = 0) -> list[int]:
        """A prompt; another one for each `part`, where a slice needs several."""
        salt = f"{self.salt} {self.launch}" if self.salt else ""
        return list(scenario_prompt(self.passage, tokens, self.seed + 101 * part, salt))

    def head(self, tokens: int) -> list[int]:
        """What is kept: the same in all slices of a launch, and a shorter one begins a longer one."""
        return list(scenario_prompt(self.passage, tokens, self.launch))

    def again(self, attempt: int) -> Place:
        """The same slice once more: with the same prompts, unless a server may hold them by now."""
        return dataclasses.replace(self, salt=f"{self.salt} {attempt}") if self.salt else self


def take_slice(live: LiveVariant, scenario: Scenario, place: Place) -> SpeedSample:
    """Time one slice. Raises Unavailable when the backend cannot do this kind."""
    if scenario.batch > 1:
        return _take_batch(live, scenario, place)
    if scenario.turns > 1:
        return _converse(live, scenario, place)
    kept = scenario.kept_tokens
    request = Generate(
        prompt=[*place.head(kept), *place.prompt(scenario.prompt_tokens - kept)],
        max_new_tokens=scenario.new_tokens,
        stop_at_end=False,
        kept=kept or None,
        watch=max(scenario.new_tokens // READINGS, 1) if scenario.watch else 0,
    )
    answer: Generated = live.ask(request)
    memory = tuple(Held(tokens=tokens, bytes=held) for tokens, held in answer.memory)
    return dataclasses.replace(_sample(live, scenario, place, answer), kept_tokens=kept, memory=memory)


def hold(live: LiveVariant, scenario: Scenario, place: Place, held: int) -> int:
    """Evaluate, untimed, what the slices of `scenario` keep: the number of its tokens that then lie in the state, where
    `held` of them lie already.

    Raises Unavailable when the backend cannot go on from a state.
    """
    if held < scenario.kept_tokens:
        prompt = place.head(scenario.kept_tokens)
        live.ask(Generate(prompt=prompt, max_new_tokens=1, stop_at_end=False, kept=held or None))
    return scenario.kept_tokens


def take_cycles(live: LiveVariant, scenario: Scenario, place: Place) -> Iterator[SpeedSample]:
    """Load and unload again and again. The first time, which loads libraries and fills their pools, is left out.

    Raises Unavailable where the system does not tell how much memory a process holds.
    """
    request = Generate(
        prompt=place.prompt(scenario.prompt_tokens), max_new_tokens=scenario.new_tokens, stop_at_end=False
    )
    live.ask(request)
    before = live.unload()
    for cycle in range(scenario.reloads):
        loaded = live.load()
        answer: Generated = live.ask(request)
        during, after = live.memory().held_bytes, live.unload()
        if before is None or during is None or after is None:
            raise Unavailable("this system does not tell how much memory a process holds")
        sample = _sample(live, scenario, dataclasses.replace(place, round=cycle), answer)
        seen = Cycle(load_s=loaded.load_s, before_bytes=before, loaded_bytes=during, after_bytes=after)
        yield dataclasses.replace(sample, cycle=seen)
        before = after


def misfit(loaded: Loaded, scenario: Scenario) -> str:
    """Why a variant that has just been loaded cannot do a scenario; empty where nothing is known against it."""
    if scenario.context_tokens > loaded.context_tokens:
        return f"it needs {scenario.context_tokens} tokens of context, and the variant has {loaded.context_tokens}"
    if loaded.remote and (scenario.reloads or scenario.watch):
        return "its model lies in other processes: the memory of its worker says nothing of it"
    return ""


def unsuited(live: LiveVariant, scenario: Scenario, launch: int, reason: str) -> SpeedSample:
    """What stands for the slices of a scenario that a variant cannot do."""
    return _without_times(live, scenario, SampleStatus.UNSUITED, at=(launch, 0), reason=reason)


def failed_slice(live: LiveVariant, scenario: Scenario, place: Place, reason: str) -> SpeedSample:
    """What stands for a slice whose request failed."""
    return _without_times(live, scenario, SampleStatus.REJECTED, at=(place.launch, place.round), reason=reason)


def _without_times(
    live: LiveVariant, scenario: Scenario, status: SampleStatus, *, at: tuple[int, int], reason: str
) -> SpeedSample:
    return SpeedSample(
        variant=live.variant.name,
        scenario=scenario.name,
        launch=at[0],
        round=at[1],
        prompt_tokens=scenario.prompt_tokens,
        evaluated_tokens=0,
        new_tokens=0,
        prefill_s=0.0,
        ttft_s=0.0,
        itl_s=(),
        witness=Witness(wall_s=0.0, cpu_s=0.0, threads=live.loaded.threads),
        status=status,
        reason=reason,
    )


def _take_batch(live: LiveVariant, scenario: Scenario, place: Place) -> SpeedSample:
    """Sequences with prompts of their own, decoded together."""
    prompts = [place.prompt(scenario.prompt_tokens, part) for part in range(scenario.batch)]
    answer: GeneratedBatch = live.ask(GenerateBatch(prompts=prompts, max_new_tokens=scenario.new_tokens))
    return dataclasses.replace(_sample(live, scenario, place, answer), batch=len(answer.token_ids))


def _converse(live: LiveVariant, scenario: Scenario, place: Place) -> SpeedSample:
    """A conversation with the KV state kept from turn to turn, then each of its turns with everything sent again.

    The last token of an answer was never evaluated: it is new to the next turn, like the next message.
    """
    prompt = place.prompt(scenario.prompt_tokens)
    answer: Generated = live.ask(_speak(prompt, scenario.new_tokens))
    kept_way: list[tuple[list[int], int, Generated]] = []
    for turn in range(1, scenario.turns):
        kept = len(prompt) + len(answer.token_ids) - 1
        prompt = [*prompt, *answer.token_ids, *place.prompt(scenario.prompt_tokens, turn)]
        answer = live.ask(_speak(prompt, scenario.new_tokens, kept=kept))
        kept_way.append((prompt, kept, answer))
    resent: list[Generated] = [live.ask(_speak(whole, 1)) for whole, _, _ in kept_way]
    turns = tuple(
        Turn(
            prompt_tokens=len(whole),
            kept_tokens=kept,
            evaluated_tokens=mine.evaluated_tokens,
            ttft_s=mine.token_times_s[0],
            resent_evaluated_tokens=again.evaluated_tokens,
            resent_ttft_s=again.token_times_s[0],
        )
        for (whole, kept, mine), again in zip(kept_way, resent, strict=True)
    )
    sample = _sample(live, scenario, place, answer)
    return dataclasses.replace(
        sample,
        kept_tokens=turns[-1].kept_tokens,
        turns=turns,
        witness=_join(sample.witness, Witness(**_fields(resent[-1].witness))),
    )


def _speak(prompt: list[int], new_tokens: int, kept: int | None = None) -> Generate:
    return Generate(prompt=prompt, max_new_tokens=new_tokens, stop_at_end=False, kept=kept)


def _join(one: Witness, other: Witness) -> Witness:
    """The witness of two pieces that are only of use together: the worse of what each saw."""
    return dataclasses.replace(
        one,
        wall_s=one.wall_s + other.wall_s,
        cpu_s=one.cpu_s + other.cpu_s,
        pressure=_worse(one.pressure, other.pressure),
        steal=_worse(one.steal, other.steal),
        involuntary_switches=(one.involuntary_switches or 0) + (other.involuntary_switches or 0)
        if one.involuntary_switches is not None
        else None,
    )


def _worse(one: float | None, other: float | None) -> float | None:
    known = [value for value in (one, other) if value is not None]
    return max(known, default=None)


def _sample(live: LiveVariant, scenario: Scenario, place: Place, answer: Generated | GeneratedBatch) -> SpeedSample:
    times: Sequence[float] = answer.token_times_s
    return SpeedSample(
        variant=live.variant.name,
        scenario=scenario.name,
        launch=place.launch,
        round=place.round,
        prompt_tokens=answer.prompt_tokens,
        evaluated_tokens=answer.evaluated_tokens,
        new_tokens=len(times),
        prefill_s=answer.prefill_s,
        ttft_s=times[0] if times else 0.0,
        itl_s=tuple(later - earlier for earlier, later in pairwise(times)),
        witness=Witness(**_fields(answer.witness)),
        held_bytes=answer.held_bytes,
    )


def _fields(witness: Any) -> dict[str, Any]:
    return dict(witness)
