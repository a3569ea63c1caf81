"""From a matrix that was run to a recommendation, and back into a matrix file."""

from __future__ import annotations

import json
import tomllib

import pytest
from support.foreign_project import ForeignProject

from suite.cli import main


def advised(project: ForeignProject, capsys: pytest.CaptureFixture[str], *limits: str) -> dict[str, object]:
    """What is advised of the latest run, for programs."""
    capsys.readouterr()
    main(["recommend", *limits, "--format", "json"])
    document: dict[str, object] = json.loads(capsys.readouterr().out)
    return document


def test_a_run_is_advised_on_and_what_is_taken_can_be_declared_again(
    project: ForeignProject, capsys: pytest.CaptureFixture[str]
) -> None:
    fast, faster = {"script": "q8.json", "decode_tok_s": 200.0}, {"script": "q4.json", "decode_tok_s": 300.0}
    project.write_matrix({"f16": {"reference": True}, "q8": {"options": fast}, "q4": {"options": faster}})
    project.run()
    declared = tomllib.loads((project.root / "matrix.toml").read_text())["variants"]

    document = advised(project, capsys, "--min-speedup", "1.5", "--prefer", "speed")
    assert document["recommended"] == "q4"
    assert document["satisfying"] == ["q8", "q4"]
    taken = document["variants"][0]["settings"]  # type: ignore[index]
    table = tomllib.loads(taken["toml"])["variants"]["q4"]
    assert table["backend"] == declared["q4"]["backend"]
    assert declared["q4"]["options"].items() <= table["options"].items()

    assert advised(project, capsys, "--min-speedup", "9")["recommended"] is None
    few = advised(project, capsys, "--max-loss", "1")["variants"]
    steps = {one["variant"]: one["limits"][0]["step"] for one in few}  # type: ignore[attr-defined]
    assert steps["q4"]["cases"] > 7
    assert steps["q4"]["command"] == "pytest --model-matrix --matrix-variants f16,q4"
    assert steps["f16"] is None
