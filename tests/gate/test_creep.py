"""Creeping by a little each time is seen beside the first baseline."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from suite.gate.creep import creep
from suite.records import Baselines

FIRST, LATEST, NOW = (171.0, 172.0, 170.0), (163.0, 164.0, 162.0), (158.0, 159.0, 157.0)
PREFILL = (900.0, 905.0, 895.0)


def stored(made: Any, *, latest: Any = LATEST, **first: Any) -> Baselines:
    def speed(decode: Any, **changes: Any) -> Any:
        return made.speed_baseline({"decode_tok_s/short": decode, "prefill_tok_s/short": PREFILL}, **changes)

    return Baselines(speed=speed(latest), frozen_speed=speed(FIRST, **first))


def found(made: Any, baselines: Baselines) -> Any:
    result = made.result(made.speed("decode_tok_s", NOW), made.speed("prefill_tok_s", PREFILL))
    return creep(result, (), baselines, made.environment)


def test_only_what_moved_since_the_first_baseline_is_held_against_it(made: Any) -> None:
    (comparison,) = found(made, stored(made))
    assert (comparison.metric, comparison.scope, comparison.baseline) == ("decode_tok_s", "short", 171.0)
    assert comparison.drift == pytest.approx(13 / 171, abs=1e-3)
    assert comparison.accepted.startswith("first accepted 2026-11-20")


def test_nothing_is_said_while_the_first_baseline_is_the_latest(made: Any) -> None:
    assert found(made, stored(made, latest=FIRST)) == ()


def test_nothing_is_said_without_a_first_baseline_or_of_another_question(made: Any) -> None:
    assert found(made, dataclasses.replace(stored(made), frozen_speed=None)) == ()
    assert found(made, stored(made, identity={"prompt_format": "raw"})) == ()


def test_lost_answers_add_up_too(made: Any) -> None:
    first, latest, now = made.trials(*[1.0] * 8), made.trials(0.0, *[1.0] * 7), made.trials(0.0, 0.0, *[1.0] * 6)
    baselines = Baselines(quality=made.quality_baseline(latest), frozen_quality=made.quality_baseline(first))
    comparisons = creep(made.result(trials=now), now, baselines, made.environment)
    scores = {c.scope: c.drift for c in comparisons if c.metric == "score"}
    assert scores == {"math": pytest.approx(0.25), "all": pytest.approx(0.25)}
