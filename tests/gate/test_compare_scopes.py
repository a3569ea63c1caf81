"""Which differences of identity matter to which comparison."""

from __future__ import annotations

import pytest

from suite.gate.differences import concerning

DIFFERENCES = ("option.n_ctx: 2048 → 4096", "scenario.long: (absent) → 512 → 16 tokens", "scenario.short: 64 → 32")


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("short", ("option.n_ctx: 2048 → 4096", "scenario.short: 64 → 32")),
        ("other", ("option.n_ctx: 2048 → 4096",)),
        ("all", DIFFERENCES),
    ],
)
def test_a_change_of_one_scenario_does_not_touch_another(scope: str, expected: tuple[str, ...]) -> None:
    assert concerning(DIFFERENCES, scope) == expected
