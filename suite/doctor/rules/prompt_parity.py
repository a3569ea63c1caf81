"""All variants must have been asked the same token ids."""

from __future__ import annotations

from suite.doctor.phrases import listed
from suite.doctor.rule import Rule, Said, cannot_be, found, passed
from suite.records import Run, Verdict

REMEDY = "compare chat template, BOS and tokenizer of the two; kv_overrides can mend those of a GGUF"


def check_prompts(run: Run) -> Said:
    """Hashes of the prompts' token ids, case by case; a variant that was left out for its prompts is named."""
    out = [
        result.variant.name
        for result in run.variants
        if result.failure and result.failure.verdict is Verdict.INVALID and "token ids" in result.failure.reason
    ]
    if out:
        return found(
            f"{listed(out)} made other token ids of the same prompts and {'was' if len(out) == 1 else 'were'} left out",
            REMEDY,
        )
    hashes: dict[str, dict[str, list[str]]] = {}
    for trial in run.trials:
        hashes.setdefault(trial.case, {}).setdefault(trial.prompt_sha256, []).append(trial.variant)
    shared = {
        case: by_hash for case, by_hash in hashes.items() if len({v for who in by_hash.values() for v in who}) > 1
    }
    if not shared:
        return cannot_be("fewer than two variants answered the same case")
    unequal = [case for case, by_hash in shared.items() if len(by_hash) > 1]
    if unequal:
        smallest = min((who for who in shared[unequal[0]].values()), key=len)
        return found(
            f"{len(unequal)} of {len(shared)} prompts have other token ids in some variants ({unequal[0]}: {listed(smallest)})",
            REMEDY,
        )
    return passed(f"{len(shared)} prompts have the same token ids in every variant")


RULE = Rule(id="prompt-parity", title="template and tokenizer parity", of_run=check_prompts)
