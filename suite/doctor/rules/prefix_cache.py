"""A prompt that was not evaluated because a cache had it: its time to first token is none."""

from __future__ import annotations

from suite.backends.base import ASSUMED, EVALUATED
from suite.doctor.reading import facts_of, samples_of, seen_in, trials_of
from suite.doctor.rule import Rule, Said, cannot_be, found, passed
from suite.records import Run, SampleStatus, VariantResult


def check_prefix(run: Run, result: VariantResult) -> Said:
    """Evaluated tokens against prompt tokens, of every timed sample and every answer that was given in this run.

    Of the samples only those that were rejected: a scenario may keep what it has evaluated on purpose.
    """
    timed = [s for s in samples_of(run, result, clean=False) if s.status is not SampleStatus.UNSUITED]
    answers = [trial.generation for trial in trials_of(run, result) if trial.generation and trial.cached_from is None]
    if not timed and not answers:
        return cannot_be("nothing was timed or answered")
    if seen_in(result).get(EVALUATED) == ASSUMED:
        done = facts_of(result).get("prefix cache")
        return cannot_be(
            "the server does not tell how many prompt tokens it evaluated"
            + (f" (prefix cache: {done})" if done else "")
        )
    short = [
        (s.prompt_tokens - s.kept_tokens, s.evaluated_tokens)
        for s in timed
        if s.status is SampleStatus.REJECTED and s.new_tokens
    ]
    short += [(said.prompt_tokens, said.evaluated_tokens) for said in answers]
    short = [(asked, evaluated) for asked, evaluated in short if evaluated < asked]
    total = len(timed) + len(answers)
    if short:
        asked, evaluated = short[0]
        return found(
            f"{len(short)} of {total} prompts were not evaluated whole (the first: {evaluated} of {asked} tokens)",
            "clear the state before each request, or give each prompt a beginning of its own",
        )
    return passed(f"the tokens of {total} prompts were all evaluated, where nothing was to be kept")


RULE = Rule(id="prefix-cache", title="no prefix cache in the times", of_variant=check_prefix)
