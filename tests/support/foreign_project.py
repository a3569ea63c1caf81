"""A project of somebody else's: its own matrix, cases and scripted models, beside which pytest is run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

MATH = {"apples": "18", "pears": "7", "plums": "12", "figs": "3", "nuts": "40", "dates": "25"}
REPLIES = {**{f"How many {name}": f"The answer is {number}" for name, number in MATH.items()}, "colour": "blue"}
WRONG = dict.fromkeys(REPLIES, "The answer is 99")
FAST: Mapping[str, Any] = {"launches": 3, "max_launches": 3, "rounds": 2, "warmup": 0, "retries": 0}


@dataclass
class ForeignProject:
    """Runs pytest in a directory that has nothing to do with this repository."""

    pytester: pytest.Pytester

    @property
    def root(self) -> Path:
        return self.pytester.path

    @property
    def baselines(self) -> Path:
        return self.root / "baselines"

    def write_matrix(
        self, variants: Mapping[str, Mapping[str, Any]], *, protocol: Mapping[str, Any] = FAST, more: str = ""
    ) -> None:
        """Each variant gives its keys; `options` is scripted by ``<name>.json`` unless given."""
        lines = [
            'model = { name = "toy", source = "org/toy" }',
            "scenarios.short = { prompt_tokens = 24, new_tokens = 6 }",
        ]
        lines += [f"protocol = {_inline(protocol)}", more]
        for name, keys in variants.items():
            table = {"backend": "fake", "options": {"script": f"{name}.json"}, **keys}
            lines.append(f"variants.{name} = {_inline(table)}")
            if not (self.root / f"{name}.json").exists():
                self.write_script(name)
        (self.root / "matrix.toml").write_text("\n".join(lines))

    def write_script(self, name: str, **options: Any) -> None:
        """What the scripted model of a variant is, whatever is declared."""
        (self.root / f"{name}.json").write_text(json.dumps({"replies": REPLIES, **options}))

    def write_cases(self, *, versions: Mapping[str, int] | None = None) -> None:
        """Six cases of arithmetic and one of reasoning."""
        versions = versions or {}
        math = "\n".join(
            _case(name, f"How many {name} are there?", number, "number", versions.get(name, 1))
            for name, number in MATH.items()
        )
        sky = _case("sky", "Which colour has the sky?", "blue", "exact", versions.get("sky", 1))
        for domain, text in {"math": math, "reasoning": sky}.items():
            (self.root / "cases" / domain).mkdir(parents=True, exist_ok=True)
            (self.root / "cases" / domain / "own.toml").write_text(text)

    def run(self, *arguments: str) -> pytest.RunResult:
        """``pytest --model-matrix`` in this process."""
        return self.pytester.runpytest_inprocess("--model-matrix", "-p", "no:hypothesispytest", *arguments)

    def run_apart(self, *arguments: str) -> pytest.RunResult:
        """The same in a process of its own."""
        return self.pytester.runpytest_subprocess("--model-matrix", *arguments)

    def refuse(self, *arguments: str) -> tuple[int | None, str]:
        """Exit status and message of a run that ends before it begins."""
        with pytest.raises(pytest.exit.Exception) as stopped:
            self.pytester.parseconfigure("--model-matrix", *arguments)
        return stopped.value.returncode, stopped.value.msg

    def accept(self, mode: str = "new") -> pytest.RunResult:
        """``pytest --model-matrix --matrix-update``."""
        return self.run(f"--matrix-update={mode}", "--matrix-reason=because the test says so")

    def read_run(self) -> dict[str, Any]:
        """``run.json`` of the newest finished run."""
        document: dict[str, Any] = json.loads((self.root / ".quantdrift" / "latest" / "run.json").read_text())
        return document

    def run_directories(self) -> list[Path]:
        return sorted((self.root / ".quantdrift" / "runs").glob("*"))

    def baseline_files(self) -> dict[str, str]:
        """Content of every baseline by path, without the frozen ones beside them."""
        files = [file for file in sorted(self.baselines.rglob("*.json")) if ".frozen." not in file.name]
        return {str(file.relative_to(self.root)): file.read_text() for file in files}


def verdicts(run: Mapping[str, Any], variant: str) -> dict[str, str]:
    """``metric/scope`` → verdict of one variant."""
    return {
        f"{found['metric']}/{found['scope']}": found["verdict"]
        for found in run["findings"]
        if found["variant"] == variant
    }


def junit_properties(file: Path, name: str) -> dict[str, str]:
    """Properties of one item in a JUnit file."""
    item = next(case for case in ElementTree.parse(file).iter("testcase") if case.get("name") == name)
    return {entry.attrib["name"]: entry.attrib["value"] for entry in item.iter("property")}


def _case(name: str, prompt: str, target: str, scorer: str, version: int) -> str:
    values = {
        "id": name,
        "version": version,
        "prompt": prompt,
        "target": target,
        "scorer": scorer,
        "max_new_tokens": 40,
    }
    return "[[case]]\n" + "\n".join(f"{key} = {json.dumps(value)}" for key, value in values.items())


def _inline(table: Mapping[str, Any]) -> str:
    return "{ " + ", ".join(f"{key} = {_value(value)}" for key, value in table.items()) + " }"


def _value(value: Any) -> str:
    return _inline(value) if isinstance(value, Mapping) else json.dumps(value)
