"""Advice for programs, as ``.github/RECOMMEND.md`` says. Text is as it was found: escape it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from suite.gate.advice.advising import Advice, Advised
from suite.gate.advice.answering import Held
from suite.gate.advice.asked import QUANTITIES, Name
from suite.gate.advice.estimates import Estimate
from suite.gate.advice.fronts import Front
from suite.reporting.advice.settings import settings_of
from suite.reporting.advice.story import tell
from suite.reporting.rounding import rounded

SCHEMA = 1
"""Version of the layout."""
KIND = "advice"

Plain = dict[str, Any]


def advice_json(advice: Advice) -> str:
    """One JSON document, two spaces an indent, ending in a line feed; keys are added without a new schema, never removed."""
    run, asked = advice.run, advice.asked
    document: Plain = {
        "schema": SCHEMA,
        "kind": KIND,
        "run": run.id,
        "created": run.created,
        "model": run.model,
        "machine": run.environment.machine,
        "scenario": advice.scenario,
        "limits": {limit.quantity.name: limit.value for limit in asked.limits},
        "units": {name: quantity.unit for name, quantity in QUANTITIES.items()},
        "prefer": asked.preference,
        "headline": tell(advice).headline,
        "recommended": advice.choice.variant if advice.choice else None,
        "satisfying": list(advice.choice.among) if advice.choice else [],
        "rounds": [asdict(one) for one in advice.choice.rounds] if advice.choice else [],
        "nearest": advice.nearest,
        "front": _front(advice.front),
        "variants": [_variant(one, advice) for one in advice.variants],
        "caveats": list(advice.caveats),
    }
    return json.dumps(document, ensure_ascii=True, allow_nan=False, indent=2) + "\n"


def _variant(one: Advised, advice: Advice) -> Plain:
    satisfies = advice.choice is not None and one.variant in advice.choice.among
    return {
        "variant": one.variant,
        "answer": one.answer.value if one.answer else None,
        "excluded": one.excluded or None,
        "limits": [_held(held) for held in one.held],
        "estimates": _estimates(one.estimates),
        "caveats": list(one.caveats),
        "settings": asdict(settings_of(one.result)) if satisfies else None,
    }


def _held(held: Held) -> Plain:
    step = held.step
    return {
        "quantity": held.limit.quantity.name,
        "limit": held.limit.value,
        "answer": held.answer.value,
        "off": rounded(held.off),
        "step": None if step is None else {**asdict(step), "command": step.command or None},
    }


def _estimates(estimates: Mapping[Name, Estimate]) -> Plain:
    return {name: _estimate(one) for name, one in estimates.items()}


def _estimate(one: Estimate) -> Plain:
    return {
        "metric": one.metric,
        "scope": one.scope,
        "value": rounded(one.value),
        "interval": None if one.interval is None else [rounded(end) for end in one.interval],
        "confidence": None if one.interval is None or one.quantity == "memory" or one.exact else one.confidence,
        "n": one.n,
        "exact": one.exact,
        "doubt": one.doubt or None,
    }


def _front(front: Front) -> Plain:
    placed: Sequence[Plain] = [
        {
            "variant": one.variant,
            "on_front": one.standing.on_front,
            "dominated_by": list(one.standing.dominated_by),
            "behind": list(one.standing.beaten_by),
            "apart": {
                other: {name: relation.value for name, relation in told.items()} for other, told in one.apart.items()
            },
        }
        for one in front.placed
    ]
    return {
        "quantities": list(front.quantities),
        "variants": placed,
        "missing": {name: list(missing) for name, missing in front.missing.items()},
    }
