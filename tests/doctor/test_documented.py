"""The list of rules that people read."""

from __future__ import annotations

import re
from pathlib import Path

from suite.doctor import RULES


def test_every_rule_is_documented() -> None:
    text = (Path(__file__).parents[2] / ".github" / "DOCTOR.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([a-z-]+)` \|", text, re.MULTILINE) == [rule.id for rule in RULES]
