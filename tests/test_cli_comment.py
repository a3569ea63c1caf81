"""``quantdrift comment``: a refusal is exit status 2, a reason on standard error, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support import sample_diffs as diffs
from support import sample_stories as stories
from support.laid_out import lay_out

from suite.cli import main
from suite.reporting.comment import MARKS, MOST_BYTES
from suite.reporting.diff.json import diff_json


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    lay_out(tmp_path, stories.slower())
    return tmp_path / ".quantdrift" / "latest" / "run.json"


def test_a_run_becomes_a_comment(artifact: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["comment", str(artifact)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"{MARKS['run']}\n### 1 of 42 gates failed\n")


def test_a_diff_becomes_a_comment_in_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "diff.json").write_text(diff_json(diffs.regression()), encoding="utf-8")
    output = tmp_path / "new" / "comment.md"
    assert main(["comment", str(tmp_path / "diff.json"), "--kind", "diff", "--output", str(output)]) == 0
    assert capsys.readouterr().out == ""
    assert output.read_text(encoding="utf-8").startswith(MARKS["diff"])


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"kind": "run", "schema": 1}', b'{"kind": "x"}', b"\xff"])
def test_a_refusal_gives_a_reason_and_no_output(
    tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.json").write_bytes(content)
    output = tmp_path / "comment.md"
    assert main(["comment", str(tmp_path / "run.json"), "--output", str(output)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("quantdrift: run.json: ")
    assert said.err.endswith("nothing was rendered\n")
    assert not output.exists()


def test_the_other_kind_and_a_missing_file_are_refused(artifact: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["comment", str(artifact), "--kind", "diff"]) == 2
    assert main(["comment", str(artifact.with_name("absent.json"))]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "absent.json: cannot be read" in said.err


def test_a_file_that_never_ends_is_refused_without_being_read_whole(tmp_path: Path) -> None:
    huge = tmp_path / "run.json"
    with huge.open("wb") as file:
        file.truncate(200 * MOST_BYTES)  # a hole: it takes no disk, and would take 6 GB of memory
    done = subprocess.run(
        [sys.executable, "-m", "suite.cli", "comment", str(huge)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "more than" in done.stderr


def test_nothing_heavy_is_imported(artifact: Path) -> None:
    code = (
        "import sys, json; from suite.cli import main; main(['comment', sys.argv[1]]); "
        "print(json.dumps(sorted({'torch', 'transformers', 'llama_cpp', 'pytest', 'matplotlib'} & set(sys.modules))))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(artifact)], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == []
