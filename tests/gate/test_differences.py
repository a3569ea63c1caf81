"""What counts as changed since a baseline was accepted."""

from __future__ import annotations

from suite.gate.differences import describe_changes, describe_differences

SHA = "ab" * 32


def test_a_fact_that_nobody_wrote_down_then_is_no_change() -> None:
    was = {"torch": "2.12"}
    now = {"torch": "2.13", "flash attention": "off"}
    assert describe_changes(was, now) == ("torch: 2.12 → 2.13",)
    assert describe_differences(was, now) == ("flash attention: (absent) → off", "torch: 2.12 → 2.13")


def test_a_fact_that_is_gone_is_a_change() -> None:
    assert describe_changes({"governor": "performance"}, {}) == ("governor: performance → (absent)",)


def test_a_file_that_was_not_there_is_a_change() -> None:
    assert describe_changes({}, {"sha256 of adapter.gguf": SHA}) == (
        "sha256 of adapter.gguf: (absent) → abababababab…",
    )
