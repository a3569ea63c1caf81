"""A run that is stopped half-way goes on where it stopped; and pytest without the option stays light."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support.foreign_project import ForeignProject, verdicts

from suite.engine.locking import RunLock
from suite.records import VariantFailure, Verdict
from suite.store.journal import Journal

HEAVY = ("pydantic", "scipy", "psutil", "numpy", "torch", "transformers", "llama_cpp", "gguf", "huggingface_hub")


def read_lines(journal: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in journal.read_text().splitlines()]


def test_an_interrupted_run_is_resumed_without_asking_again(project: ForeignProject) -> None:
    project.write_script("slow", fault="hang", fault_at=2)
    project.write_matrix({"first": {}, "slow": {}})
    _interrupt(project, after="journal.jsonl", kind="trial", count=9)
    (directory,) = project.run_directories()
    journal = directory / "journal.jsonl"
    asked = [line["record"]["case"] for line in read_lines(journal) if line["kind"] == "trial"]
    assert len(asked) == 9
    assert not (directory / "run.json").exists()

    project.write_script("slow")
    resumed = project.run("--matrix-resume", "--matrix-only=answers")
    assert resumed.ret == 0, resumed.outlines
    trials = [line["record"] for line in read_lines(journal) if line["kind"] == "trial"]
    assert len(trials) == len({(trial["variant"], trial["case"]) for trial in trials}) == 14
    assert project.run_directories() == [directory]
    assert project.read_run()["id"] == directory.name


def _interrupt(project: ForeignProject, *, after: str, kind: str, count: int) -> None:
    """Start a run and send it Ctrl-C as soon as its journal holds `count` records of a kind."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "--model-matrix", "--matrix-only=answers"],
        cwd=project.root, stdout=subprocess.PIPE, text=True,
        # Tests that run in the background inherit an ignored SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no threads here
    )  # fmt: skip
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        journals = list(project.root.glob(f".quantdrift/runs/*/{after}"))
        if journals and journals[0].read_text().count(f'"kind":"{kind}"') >= count:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    told, _ = process.communicate(timeout=60)
    assert process.returncode == 2, told
    assert "9 answers and 0 launches are kept" in told
    assert "pytest --model-matrix --matrix-resume" in told


def test_a_resumed_run_forgets_failures_and_torn_launches(project: ForeignProject) -> None:
    project.write_matrix({"q4": {}})
    assert project.run().ret == 0
    (directory,) = project.run_directories()
    (directory / "run.json").unlink()
    whole = read_lines(directory / "journal.jsonl")
    kept = [json.dumps(line) for line in whole if line["kind"] != "launch" or line["record"]["index"] == 0]
    (directory / "journal.jsonl").write_text("\n".join(kept) + "\n")
    with Journal(directory / "journal.jsonl") as journal:
        journal.append(VariantFailure(variant="q4", verdict=Verdict.ERROR, reason="it was killed"))
    resumed = project.run("--matrix-resume")
    assert resumed.ret == 0, resumed.outlines
    run = project.read_run()
    assert run["id"] == directory.name
    assert run["variants"][0]["failure"] is None
    assert sorted((s["launch"], s["round"]) for s in run["speed_samples"]) == [
        (launch, turn) for launch in (0, 1, 2) for turn in (0, 1)
    ]
    assert [launch["index"] for launch in run["variants"][0]["launches"]] == [0, 1, 2]


def test_a_finished_run_is_taken_up_again_and_written_anew(project: ForeignProject) -> None:
    project.write_matrix({"q4": {}, "q5": {}})
    assert project.run("--matrix-only=answers").ret == 0
    (directory,) = project.run_directories()
    first = project.read_run()
    again = project.run("--matrix-resume", "--matrix-variants=q4")
    assert again.ret == 0, again.outlines
    assert project.run_directories() == [directory]
    run = project.read_run()
    assert run["id"] == first["id"]
    assert {v["name"]: len(v["launches"]) for v in run["variants"]} == {"q4": 3, "q5": 0}
    assert {(t["variant"], t["case"]) for t in run["trials"]} == {(t["variant"], t["case"]) for t in first["trials"]}
    assert verdicts(run, "q5") == verdicts(first, "q5")  # what was not selected keeps its findings
    assert not (directory / "lock").exists()


def test_the_run_that_was_accepted_is_not_held_against_itself(project: ForeignProject) -> None:
    project.write_matrix({"q4": {}})
    assert project.accept().ret == 0
    resumed = project.run("--matrix-resume", "--matrix-only=answers")
    assert resumed.ret == 0
    first, second = project.run_directories()
    resumed.stdout.fnmatch_lines(
        [f" {first.name} is what the baselines were accepted from, and was not taken up again*"]
    )
    assert project.read_run()["id"] == second.name


def test_next_steps_name_the_files_that_were_named(project: ForeignProject) -> None:
    project.write_matrix({"q4": {}})
    (project.root / "matrix.toml").rename(project.root / "other.toml")
    project.run("--matrix-file=other.toml", "--matrix-only=answers", "-k", "score and math")
    steps = {finding["next_step"] for finding in project.read_run()["findings"]}
    assert all("pytest --model-matrix --matrix-file=other.toml --matrix-variants q4" in step for step in steps), steps
    assert steps


def test_each_time_an_undecided_run_is_taken_up_it_gets_more_launches_and_another_look(
    project: ForeignProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("suite.engine.session.needs_more", lambda finding: finding.metric == "decode_tok_s")
    protocol = {"launches": 3, "max_launches": 4, "rounds": 1, "warmup": 0, "retries": 0}
    undecidable = "policy.decode_tok_s.relative = 0.001"  # sessions differ by more than that
    project.write_matrix({"q4": {}}, protocol=protocol, more=undecidable)
    assert project.accept().ret == 0
    counts, looks = [], []
    for arguments in ([], ["--matrix-resume"], ["--matrix-resume"]):
        project.run("-k", "test_speed and decode_tok_s", *arguments)
        run = project.read_run()
        (found,) = (f for f in run["findings"] if (f["metric"], f["scope"]) == ("decode_tok_s", "short"))
        counts.append(len(run["variants"][0]["launches"]))
        looks.append(found["comparison"]["looks"])
    assert (counts, looks) == ([4, 7, 10], [2, 3, 4])


def test_a_run_that_another_process_writes_is_left_alone(project: ForeignProject) -> None:
    project.write_matrix({"q4": {}})
    assert project.run("--matrix-only=answers").ret == 0
    (directory,) = project.run_directories()
    before = (directory / "run.json").read_text(), (directory / "journal.jsonl").read_text()
    lock = RunLock(directory)
    result = project.run("--matrix-resume")
    lock.release()
    assert result.ret == 2
    result.stdout.fnmatch_lines(["*another process is writing this run*"])
    assert ((directory / "run.json").read_text(), (directory / "journal.jsonl").read_text()) == before


def test_plain_pytest_imports_nothing_heavy_and_starts_no_model(project: ForeignProject) -> None:
    project.write_matrix({"q4": {}})
    project.pytester.makepyfile(
        f"""
        import sys

        def test_light():
            heavy = [name for name in {HEAVY!r} if name in sys.modules]
            assert heavy == []
            assert sorted(name for name in sys.modules if name.startswith("suite")) == [
                "suite", "suite.errors", "suite.plugin", "suite.settings",
            ]
        """
    )
    result = project.pytester.runpytest_subprocess("-p", "no:anyio", "-p", "no:hypothesispytest")
    result.assert_outcomes(passed=1)
    assert not (project.root / ".quantdrift").exists()


def test_importing_the_plugin_is_cheap() -> None:
    code = "import time, pytest; t = time.process_time(); import suite.plugin; print(time.process_time() - t)"
    spent = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(3)
    ]
    assert min(spent) < 0.05


def test_without_the_option_the_matrix_file_is_not_collected(project: ForeignProject) -> None:
    project.write_matrix({"q4": {}})
    assert project.pytester.runpytest_inprocess().ret == pytest.ExitCode.NO_TESTS_COLLECTED
