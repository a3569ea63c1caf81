"""What goes wrong with one variant stays with that variant, and says what it was."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import gguf
import numpy as np
import pytest
from support.foreign_project import REPLIES, ForeignProject, junit_properties, verdicts

ANSWERS = "--matrix-only=answers"
PAGE = 4096


def test_a_killed_worker_is_an_error_and_the_others_complete(project: ForeignProject) -> None:
    project.write_matrix({
        "bad": {"options": {"fault": "kill", "fault_at": 3}},
        "good": {},
    })  # fmt: skip
    result = project.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*bad is ERROR: worker of bad was killed by SIGKILL*out of memory*'generate'*"])
    outcomes = result.parseoutcomes()
    assert outcomes["failed"] == 1
    run = project.read_run()
    bad, good = run["variants"]
    assert bad["failure"]["verdict"] == "ERROR"
    assert good["failure"] is None
    assert sum(trial["variant"] == "bad" for trial in run["trials"]) == 3
    assert sum(trial["variant"] == "good" for trial in run["trials"]) == 7
    assert {sample["variant"] for sample in run["speed_samples"]} == {"good"}


def test_junit_has_a_verdict_for_every_item_of_a_failed_variant(project: ForeignProject) -> None:
    project.write_matrix({"bad": {"options": {"fault": "load"}}, "good": {}})
    project.run(ANSWERS, "--junitxml=junit.xml")
    for item in ("test_case[bad-math/apples]", "test_quality[bad-math-score]"):
        told = junit_properties(project.root / "junit.xml", item)
        assert (told["quantdrift.variant"], told["quantdrift.verdict"]) == ("bad", "ERROR")
        assert "planted failure while loading" in told["quantdrift.reason"]


def test_an_abort_shows_what_the_library_wrote(project: ForeignProject) -> None:
    project.write_matrix({"bad": {"options": {"fault": "abort", "fault_at": 1}}})
    result = project.run(ANSWERS)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*killed by SIGABRT*", "*GGML_ASSERT(planted) failed*"])


def test_a_hang_is_an_error_that_names_the_deadline(project: ForeignProject) -> None:
    project.write_matrix(
        {"bad": {"options": {"fault": "hang", "fault_at": 1}}, "good": {}}, more="deadlines = { answer_s = 1.5 }"
    )
    result = project.run(ANSWERS)
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["*bad is ERROR: *did not answer 'generate' within 1.5 s and was killed*[[]deadlines]*"]
    )
    assert sum(trial["variant"] == "good" for trial in project.read_run()["trials"]) == 7


def test_a_variant_that_does_not_load_measures_nothing_and_keeps_its_log(project: ForeignProject) -> None:
    project.write_matrix({"bad": {"options": {"fault": "load"}}})
    result = project.run(ANSWERS)
    assert result.ret == 3
    result.stdout.fnmatch_lines(
        ["*bad is ERROR: planted failure while loading*", "*nothing was measured (exit status 3)*"]
    )
    assert result.parseoutcomes()["failed"] == 1
    (directory,) = project.run_directories()
    assert (directory / "logs" / "bad.log").exists()


def test_other_token_ids_are_invalid_with_the_position(project: ForeignProject) -> None:
    project.write_matrix({"ref": {}, "bad": {"options": {"shift_ids_from": 9}}})
    result = project.run(ANSWERS)
    assert result.ret == 1
    outcomes = result.parseoutcomes()
    assert outcomes["failed"] == 1  # the first item tells it, the others only point at it
    result.stdout.fnmatch_lines(
        ["*bad is INVALID: token ids differ from those of 'ref' at position 9 of case math/apples*"]
    )
    run = project.read_run()
    assert run["variants"][1]["failure"]["verdict"] == "INVALID"
    assert {trial["variant"] for trial in run["trials"]} == {"ref"}


def test_a_cached_prefill_is_invalid(project: ForeignProject) -> None:
    project.write_matrix({"bad": {"options": {"fault": "cached", "fault_at": 2}}, "good": {}})
    result = project.run(ANSWERS)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*bad is INVALID: case math/figs: 1 of * prompt tokens were evaluated*cache*"])


def test_cached_samples_are_rejected_and_decide_nothing(project: ForeignProject) -> None:
    project.write_matrix({"bad": {"options": {"fault": "cached", "fault_at": 0}}})
    project.run("-k", "test_speed")
    run = project.read_run()
    assert {sample["status"] for sample in run["speed_samples"]} == {"rejected"}
    assert "PASS" not in verdicts(run, "bad").values()


def test_what_libraries_print_does_not_disturb_the_channel(project: ForeignProject) -> None:
    project.write_matrix({
        "printing": {"options": {"fault": "stdout", "fault_at": 1}},
        "flooding": {"options": {"fault": "flood", "fault_at": 1}},
    })  # fmt: skip
    assert project.run(ANSWERS).ret == 0
    (directory,) = project.run_directories()
    assert "prints to standard output" in (directory / "logs" / "printing.log").read_text()


def test_an_uninstalled_backend_is_skipped_with_the_reason(project: ForeignProject) -> None:
    project.pytester.makepyfile(absent_backend=BACKEND_THAT_NEEDS_MORE)
    project.write_matrix({"other": {"backend": "absent_backend:BACKEND", "options": {}}, "q4": {}})
    result = project.run(ANSWERS, "-rs")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["*other is NOT_MEASURED: *needs not_there, which is not installed: pip install not_there*"]
    )
    assert {trial["variant"] for trial in project.read_run()["trials"]} == {"q4"}
    required = project.run(ANSWERS, "--matrix-strict")
    assert required.ret == 1


def test_only_uninstalled_backends_leave_nothing_behind(project: ForeignProject) -> None:
    project.pytester.makepyfile(absent_backend=BACKEND_THAT_NEEDS_MORE)
    project.write_matrix({"other": {"backend": "absent_backend:BACKEND", "options": {}}})
    result = project.run()
    assert result.ret == 3
    result.stdout.fnmatch_lines(
        ["*nothing was measured (exit status 3)*", "*other: NOT_MEASURED: *pip install not_there*"]
    )
    assert not (project.root / ".quantdrift").exists()


BACKEND_THAT_CANNOT_MAKE = """
from suite.backends.fake import Fake, FakeOptions
from suite.errors import LoadError

class Options(FakeOptions):
    MAKES = ("F16",)

class Maker(Fake):
    options = Options
    weights_format = "gguf"
    makes = ("F16",)

    def make(self, recipe, source, destination):
        raise LoadError("iostream error")

BACKEND = Maker()
"""


def test_weights_that_cannot_be_made_name_the_cache_and_its_room(project: ForeignProject) -> None:
    project.pytester.makepyfile(making_backend=BACKEND_THAT_CANNOT_MAKE)
    writer = gguf.GGUFWriter(project.root / "tiny.gguf", "llama")
    writer.add_tensor("blk.0.ffn", np.ones((4, 8), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    project.write_matrix(
        {"q4": {"backend": "making_backend:BACKEND", "source": "./tiny.gguf", "make": "F16", "options": {}}}
    )
    result = project.run(ANSWERS)
    assert result.ret == 3
    result.stdout.fnmatch_lines(
        ["   q4: ERROR: iostream error (it was made in *, where * MB are free; QUANTDRIFT_CACHE names another place)"]
    )
    assert "what the workers printed" not in result.stdout.str()  # nothing was started that could have


def test_what_several_variants_lack_is_told_once(project: ForeignProject) -> None:
    project.pytester.makepyfile(absent_backend=BACKEND_THAT_NEEDS_MORE)
    project.write_matrix({name: {"backend": "absent_backend:BACKEND", "options": {}} for name in ("one", "two")})
    result = project.run()
    result.stdout.fnmatch_lines(["   one, two: NOT_MEASURED: *pip install not_there"])


def test_weights_that_are_no_weights_are_told_once(project: ForeignProject) -> None:
    (project.root / "empty").mkdir()
    lacking = {"backend": "llama_cpp", "source": "./empty", "options": {}}
    project.write_matrix({"one": lacking, "two": lacking, "three": {}})
    result = project.run(ANSWERS)
    assert result.ret == 1
    result.stdout.fnmatch_lines([" one, two are ERROR*", "   *./empty* holds no weights*"])


def test_a_run_that_measured_nothing_spares_a_directory_that_a_person_named(project: ForeignProject) -> None:
    project.pytester.makepyfile(absent_backend=BACKEND_THAT_NEEDS_MORE)
    project.write_matrix({"other": {"backend": "absent_backend:BACKEND", "options": {}}})
    precious = project.root / "reports" / "precious.txt"
    precious.parent.mkdir()
    precious.write_text("mine")
    assert project.run(ANSWERS, "--matrix-report=reports").ret == 3
    assert [path.name for path in precious.parent.iterdir()] == ["precious.txt"]


def test_a_report_directory_holds_one_run_at_a_time(project: ForeignProject) -> None:
    project.write_matrix({"q4": {}})
    for _ in range(2):
        assert project.run("--matrix-report=out", "-k", "test_speed").ret == 0
        assert (project.root / "out" / "run.json").exists()
        assert len(project.read_run()["speed_samples"]) == 6


def test_a_full_disk_leaves_baselines_intact(project: ForeignProject, tmp_path_factory: pytest.TempPathFactory) -> None:
    small = tmp_path_factory.mktemp("small")
    if (
        shutil.which("mount") is None
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(small)], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("needs the right to mount a small file system")
    try:
        _check_full_disk(project, small)
    finally:
        subprocess.run(["umount", "--lazy", str(small)], check=True)


def _check_full_disk(project: ForeignProject, small: Path) -> None:
    (project.root / "baselines").symlink_to(small)
    project.write_matrix({"q4": {}})
    assert project.run(ANSWERS, "--matrix-update=new", "--matrix-reason=first").ret == 0
    before = project.baseline_files()
    with (small / "filler").open("wb", buffering=0) as filler, suppress(OSError):
        while filler.write(b"x" * 512):
            pass
    project.write_script("q4", replies={**REPLIES, "How many figs": "The answer is 4"})
    accepting = project.run(ANSWERS, "--matrix-update=all", "--matrix-reason=second")
    assert accepting.ret == 3
    accepting.stdout.fnmatch_lines(["*No space left on device*"])
    assert project.baseline_files() == before
    with (small / "filler").open("r+b") as filler:
        filler.truncate((small / "filler").stat().st_size - PAGE)  # the journal begins, and has no room to go on
    full = project.run(ANSWERS, f"--matrix-report={small}/report")
    assert full.ret == 3
    full.stdout.fnmatch_lines(["*journal.jsonl: could not be appended to: No space left on device*"])
    full.stdout.fnmatch_lines(
        [f" what was measured is kept in {small}/report: once that is mended, add --matrix-resume to the same command"]
    )
    assert full.parseoutcomes().get("passed", 0) < 7
    assert full.parseoutcomes()["failed"] == 1  # measuring on would be in vain


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a directory that takes no files from anybody")
def test_baselines_that_cannot_be_written_lose_no_run_and_need_no_measuring_again(project: ForeignProject) -> None:
    project.write_matrix({"q4": {}})
    accept = (ANSWERS, "--matrix-update=new", "--matrix-reason=first")
    refused = project.run(*accept, "--matrix-baselines=/proc/self")
    assert refused.ret == 3
    refused.stdout.fnmatch_lines([
        " q4 *",
        " not everything was accepted: /proc/*: could not be written: *",
        " *add --matrix-resume to the same command",
    ])  # fmt: skip
    first = project.read_run()
    assert project.run(*accept, "--matrix-resume").ret == 0
    assert project.read_run()["id"] == first["id"]
    assert project.baseline_files()


def test_collecting_only_measures_nothing_and_is_no_failure(project: ForeignProject) -> None:
    project.write_matrix({"q4": {}})
    assert project.run("--collect-only").ret == 0


BACKEND_THAT_NEEDS_MORE = """
from suite.backends.fake import Fake

class Absent(Fake):
    requires = ("not_there",)

BACKEND = Absent()
"""
