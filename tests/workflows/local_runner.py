"""Runs the steps of a workflow file here: each `run:` as the runner would, artifacts as real archives, no network.

It knows as much of GitHub's expressions as our files use, and fails on what it does not know. What a test gives as context
are the expressions themselves: ``{"github.token": "t"}``.
"""

from __future__ import annotations

import io
import json
import os
import re
import stat
import subprocess
import sys
import zipfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]  # its stubs are a package of their own, for this one call

ROOT = Path(__file__).parents[2]
WORKFLOWS = ROOT / ".github" / "workflows"
NOTHING_TO_DO = ("actions/checkout@", "actions/setup-python@", "actions/cache@")
_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}", re.DOTALL)
_COMPARISON = re.compile(r"(?P<left>[\w.-]+) (?P<sign>==|!=) '(?P<right>[^']*)'")
_OUTPUT = re.compile(r"steps\.(\w+)\.outputs\.(\w+)")


def read_yaml(file: Path) -> dict[str, Any]:
    """A workflow or an action. YAML 1.1 takes the key ``on`` for true."""
    document: dict[Any, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return {"on" if key is True else key: value for key, value in document.items()}


@dataclass
class Step:
    """What became of one step."""

    name: str
    outcome: str
    """``success``, ``failure``, ``skipped``."""
    log: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass
class GitHub:
    """What the stand-in for ``gh`` knows and was asked."""

    state: Path

    def __post_init__(self) -> None:
        self.state.mkdir(parents=True, exist_ok=True)

    def read(self, name: str, empty: Any = ()) -> Any:
        file = self.state / f"{name}.json"
        return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else empty

    def write(self, name: str, content: Any) -> None:
        (self.state / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")

    def calls(self) -> list[dict[str, Any]]:
        file = self.state / "calls.jsonl"
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.is_file() else []

    def add_artifact(self, run: int, name: str, packed: bytes, **more: Any) -> None:
        """An uploaded archive; `more` overrides what GitHub says of it."""
        known = list(self.read("artifacts", []))
        made = {"id": len(known) + 1, "name": name, "run": run, "expired": False, "size_in_bytes": len(packed), **more}
        (self.state / f"{made['id']}.zip").write_bytes(packed)
        self.write("artifacts", [*known, made])

    def read_artifact(self, run: int, name: str) -> zipfile.ZipFile:
        known = [one for one in self.read("artifacts", []) if (one["run"], one["name"]) == (run, name)]
        if not known:
            raise FileNotFoundError(name)
        return zipfile.ZipFile(self.state / f"{known[-1]['id']}.zip")


@dataclass
class Runner:
    """A machine that jobs run on: a home, a temporary directory, and a PATH that begins with our ``gh`` and ``python``."""

    home: Path
    github: GitHub
    run_id: int = 1

    def __post_init__(self) -> None:
        for directory in (self.bin, self.temp):
            directory.mkdir(parents=True, exist_ok=True)
        stand_in = Path(__file__).with_name("gh_stand_in.py")
        write_program(self.bin / "gh", f'exec "{sys.executable}" "{stand_in}" "$@"')
        write_program(self.bin / "python", f'exec "{sys.executable}" "$@"')

    @property
    def bin(self) -> Path:
        return self.home / "bin"

    @property
    def temp(self) -> Path:
        return self.home / f"temp-{self.run_id}"

    def environment(self, **more: str) -> dict[str, str]:
        """What a step finds: nothing of ours but PATH, and coverage where it is taken."""
        own = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE") or name == "LANG"}
        return {
            **own,
            "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.home),
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_REPOSITORY": "org/toy",
            "GITHUB_RUN_ID": str(self.run_id),
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_STEP_SUMMARY": str(self.temp / "summary.md"),
            "GH_STAND_IN": str(self.github.state),
            "QUANTDRIFT_CACHE": str(self.home / "cache"),
            **more,
        }

    def run_job(
        self,
        file: Path,
        job: str | None,
        *,
        workspace: Path,
        context: Mapping[str, str],
        event: Mapping[str, Any] | None = None,
        event_name: str = "",
        leave_out: Collection[str] = (),
        more: Mapping[str, str] | None = None,
    ) -> dict[str, Step]:
        """Run the steps of a job (of a composite action without `job`); what became of each, by name."""
        document = read_yaml(file)
        part = document["jobs"][job] if job else document["runs"]
        self.temp.mkdir(exist_ok=True)
        event_file = self.temp / "event.json"
        event_file.write_text(json.dumps(event or {}), encoding="utf-8")
        known = {"runner.temp": str(self.temp), "!cancelled()": "true", **context}
        base = self.environment(GITHUB_EVENT_PATH=str(event_file), GITHUB_EVENT_NAME=event_name, **(more or {}))
        for level in (document, part):
            base |= {name: _fill(str(value), known) for name, value in level.get("env", {}).items()}
        steps: dict[str, Step] = {}
        failed = False
        for number, declared in enumerate(part["steps"]):
            name = str(declared.get("name", declared.get("uses", f"step {number}")))
            condition = declared.get("if")
            wanted = name not in leave_out and (not failed or condition == "${{ !cancelled() }}")
            if not wanted or (condition is not None and not _holds(condition, known)):
                steps[name] = Step(name, "skipped")
                continue
            steps[name] = self._run_step(name, declared, base, known, workspace)
            failed |= steps[name].outcome == "failure" and not declared.get("continue-on-error", False)
        return steps

    def _run_step(
        self, name: str, declared: Mapping[str, Any], base: Mapping[str, str], known: dict[str, str], workspace: Path
    ) -> Step:
        if "uses" in declared:
            return self._use(name, declared, known, workspace)
        own = {key: _fill(str(value), known) for key, value in declared.get("env", {}).items()}
        output = self.temp / "output"
        output.write_text("")
        environment = {**base, **own, "GITHUB_OUTPUT": str(output)}
        script = self.temp / "step.sh"
        script.write_text(declared["run"], encoding="utf-8")
        place = workspace / _fill(declared.get("working-directory", "."), known)
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=place, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=240,
        )  # fmt: skip
        for line in output.read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition("=")
            known[f"steps.{declared.get('id')}.outputs.{key}"] = value
        outcome = "success" if done.returncode == 0 else "failure"
        return Step(name, outcome, done.stdout.decode(errors="replace"), environment)

    def _use(self, name: str, declared: Mapping[str, Any], known: Mapping[str, str], workspace: Path) -> Step:
        action = declared["uses"]
        if action.startswith(NOTHING_TO_DO):
            return Step(name, "success")
        given = {key: _fill(str(value), known) for key, value in declared.get("with", {}).items()}
        if action.startswith("actions/upload-artifact@"):
            return self._upload(name, given, workspace)
        if action.startswith("actions/download-artifact@"):
            try:
                self.github.read_artifact(self.run_id, given["name"]).extractall(given["path"])
            except FileNotFoundError:
                return Step(name, "failure", f"no artifact {given['name']}")
            return Step(name, "success")
        raise AssertionError(f"{action}: what it does is not known here")

    def _upload(self, name: str, given: Mapping[str, str], workspace: Path) -> Step:
        """As actions/upload-artifact: files lie below the directory that all of them share."""
        asked = [workspace / line.strip() for line in given["path"].splitlines() if line.strip()]
        files = [
            file for path in asked for file in ([path] if path.is_file() else sorted(path.rglob("*"))) if file.is_file()
        ]
        if not files:
            return Step(name, "failure" if given["if-no-files-found"] == "error" else "success")
        root = asked[0] if asked[0].is_dir() else asked[0].parent
        packed = pack({str(file.relative_to(root)): file.read_bytes() for file in files})
        self.github.add_artifact(self.run_id, given["name"], packed)
        return Step(name, "success")


def pack(files: Mapping[str, bytes]) -> bytes:
    """A zip archive of `files`."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


def write_program(file: Path, command: str) -> None:
    """A program that runs one command of the shell."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{command}\n", encoding="utf-8")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


def _fill(text: str, known: Mapping[str, str]) -> str:
    return _EXPRESSION.sub(lambda found: _value(found[1], known), text)


def _value(expression: str, known: Mapping[str, str]) -> str:
    if expression not in known and _OUTPUT.fullmatch(expression):
        return ""  # of a step that set none
    return known[expression]


def _holds(condition: str, known: Mapping[str, str]) -> bool:
    expression = _EXPRESSION.sub(r"\1", condition).strip()
    compared = _COMPARISON.fullmatch(expression)
    if compared is None:
        return _value(expression, known) == "true"
    return (_value(compared["left"], known) == compared["right"]) == (compared["sign"] == "==")
