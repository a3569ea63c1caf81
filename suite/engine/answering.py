"""One generation of one case, graded; and the check that all variants were asked the same question."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from suite.engine.launching import LiveVariant
from suite.errors import VariantError, VariantInvalid, WorkerDied, WorkerTimeout
from suite.records import Case, Generation, Score, Trial, TrialStatus
from suite.scorers import grade, identify

Prompts = Mapping[str, tuple[int, ...]]
"""Token ids by case id."""

OWN_TEST = "own-test"
"""The scorer of an answer that a test of the user's own graded: no scorer that could be looked up."""


def hash_ids(ids: Sequence[int]) -> str:
    """sha256 of token ids, as hexadecimal digits."""
    return hashlib.sha256(json.dumps(list(ids)).encode()).hexdigest()


def check_same_prompts(here: Prompts, there: Prompts, *, other: str) -> None:
    """Raise VariantInvalid with the first position in which token ids differ from those of the variant `other`.

    Other ids mean another tokenizer or another template; answers to them say nothing about quantization.
    """
    for case in sorted(here.keys() & there.keys()):
        mine, theirs = here[case], there[case]
        if mine == theirs:
            continue
        at = next(
            (i for i, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b), min(len(mine), len(theirs))
        )
        raise VariantInvalid(
            f"token ids differ from those of '{other}' at position {at} of case {case}: "
            f"{_window(mine, at)} here, {_window(theirs, at)} there ({len(mine)} and {len(theirs)} tokens in all). "
            "The tokenizer or the chat template is another one; this is not a loss from quantization"
        )


def _window(ids: Sequence[int], at: int) -> str:
    shown = " ".join(map(str, ids[at : at + 3]))
    return f"[{shown} …]" if shown else "[end]"


def answer_once(
    live: LiveVariant, prompt: Sequence[int], max_new_tokens: int, *, what: str, logprobs: bool = False
) -> Generation | VariantError:
    """One greedy answer to `prompt`, with log-probabilities if asked for, or why the request failed while the worker lives on.

    Raises WorkerDied, WorkerTimeout, and VariantInvalid, naming `what` was asked, when a cache answered for a part of it.
    """
    try:
        generation, _ = live.generate(prompt, max_new_tokens, stop_at_end=True, logprobs=logprobs)
    except (WorkerDied, WorkerTimeout):
        raise
    except VariantError as fault:
        return fault
    if generation.evaluated_tokens != len(prompt):
        raise VariantInvalid(
            f"{what}: {generation.evaluated_tokens} of {len(prompt)} prompt tokens were evaluated; the rest came "
            "from a cache, which changes answers and makes prefill look free"
        )
    return generation


def take_trial(live: LiveVariant, case: Case, prompt: Sequence[int]) -> Trial:
    """Ask one case and grade the answer.

    A request that fails while the worker lives on becomes a trial of status ERROR. Raises WorkerDied, WorkerTimeout
    and VariantInvalid.
    """
    answer = answer_once(live, prompt, case.max_new_tokens, what=f"case {case.id}", logprobs=True)
    if isinstance(answer, VariantError):
        score = Score(status=TrialStatus.ERROR, explanation=str(answer))
        return make_trial(live.variant.name, case, prompt, score, None, error=str(answer))
    return make_trial(live.variant.name, case, prompt, grade(case, answer), answer)


def make_trial(
    variant: str,
    case: Case,
    prompt: Sequence[int],
    score: Score,
    generation: Generation | None,
    *,
    error: str | None = None,
) -> Trial:
    """Put a trial together."""
    return Trial(
        variant=variant,
        case=case.id,
        case_version=case.version,
        domain=case.domain,
        family=case.family,
        scorer=case.scorer.name if case.scorer.name == OWN_TEST else identify(case.scorer),
        prompt_sha256=hash_ids(prompt),
        score=score,
        generation=generation,
        error=error,
    )
