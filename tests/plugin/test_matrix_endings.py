"""How a run ends: what it exits with, what it leaves on the disk, and what it never touches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.foreign_project import ForeignProject

ANSWERS = "--matrix-only=answers"


def test_a_dead_variant_fails_the_run_although_its_test_swallowed_it(project: ForeignProject) -> None:
    project.pytester.makepyfile(
        test_own="""
        def test_swallowing(matrix_variant):
            try:
                matrix_variant.ask("colour")
            except Exception:
                pass
        """
    )
    project.write_matrix({"bad": {"options": {"fault": "kill"}}, "good": {}})
    result = project.run("test_own.py")
    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert project.read_run()["variants"][0]["failure"]["verdict"] == "ERROR"


def write_persons_files(directory: Path) -> dict[str, str]:
    (directory / "logs").mkdir(parents=True)
    files = {"logs/mine.txt": "a", "journal-of-mine.jsonl": '{"day": 1}\n', "notes.txt": "b"}
    for name, text in files.items():
        (directory / name).write_text(text)
    return files


def read_files(directory: Path) -> dict[str, str]:
    return {
        str(file.relative_to(directory)): file.read_text() for file in sorted(directory.rglob("*")) if file.is_file()
    }


def test_a_named_directory_keeps_a_persons_files(project: ForeignProject) -> None:
    project.pytester.makepyfile(
        absent_backend="""
        from suite.backends.fake import Fake

        class Absent(Fake):
            requires = ("not_there",)

        BACKEND = Absent()
        """
    )
    project.write_matrix({"other": {"backend": "absent_backend:BACKEND", "options": {}}})
    files = write_persons_files(project.root / "out")
    assert project.run("--matrix-report=out").ret == 3
    assert read_files(project.root / "out") == files
    project.write_matrix({"q4": {}})
    for _ in range(2):
        assert project.run(ANSWERS, "--matrix-report=out").ret == 0
    assert files.items() <= read_files(project.root / "out").items()


@pytest.mark.parametrize("name", ["run.json", "report.md", "report.html", "journal.jsonl"])
def test_a_file_that_a_run_would_write_over_is_refused(project: ForeignProject, name: str) -> None:
    project.write_matrix({"q4": {}})
    (project.root / "out").mkdir()
    (project.root / "out" / name).write_text('{"kind": "mine"}\n')
    status, told = project.refuse("--matrix-report=out")
    assert status == 2
    assert f"{name} is there and was not written by a run" in told
    assert (project.root / "out" / name).read_text() == '{"kind": "mine"}\n'


def test_a_latest_that_cannot_be_linked_is_a_warning(project: ForeignProject) -> None:
    project.write_matrix({"q4": {}})
    (project.root / ".quantdrift" / "latest" / "mine").mkdir(parents=True)
    result = project.run(ANSWERS)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*warning *latest: could not link to*"])
    (directory,) = project.run_directories()
    assert (directory / "run.json").exists()


def test_a_baseline_that_cannot_be_read_at_the_end_does_not_lose_the_run(project: ForeignProject) -> None:
    project.write_matrix({"q4": {}})
    assert project.accept().ret == 0
    for file in (project.root / "baselines").rglob("quality/q4.json"):
        (project.root / "name").write_text(str(file))
    project.pytester.makeconftest(
        """
        from pathlib import Path

        def pytest_runtest_teardown(item, nextitem):
            if nextitem is None:
                Path(Path("name").read_text()).write_text("{")
        """
    )
    result = project.run("-k", "test_speed")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*not everything was judged: *q4.json*"])
    assert len(project.read_run()["speed_samples"]) == 6


def test_what_a_library_wrote_reaches_no_terminal_raw(project: ForeignProject) -> None:
    project.pytester.makepyfile(
        loud_backend="""
        from suite.backends.fake import Fake
        from suite.errors import LoadError

        class Loud(Fake):
            def load(self, weights, options, prompt_format):
                raise LoadError("broken\\x1b]0;owned\\x07 file\\nmore \\x1b[2J detail")

        BACKEND = Loud()
        """
    )
    project.write_matrix({"bad": {"backend": "loud_backend:BACKEND", "options": {}}})
    result = project.run(ANSWERS, "-rs")
    assert result.ret == 3
    told = "\n".join(result.outlines)
    assert "\x1b]" not in told
    assert "\x1b[2J" not in told
    assert "bad is ERROR: broken file" in told
    assert "more  detail" in told


@pytest.mark.parametrize("scheme", ["-x", "--sw"])
@pytest.mark.parametrize("processes", [(), ("-n2",)])
def test_a_run_that_stops_at_its_first_failure_is_concluded(
    project: ForeignProject, scheme: str, processes: tuple[str, ...]
) -> None:
    project.write_matrix({"bad": {"options": {"fault": "kill", "fault_at": 2}}, "good": {}})
    result = project.run_apart(ANSWERS, scheme, *processes)
    assert result.ret in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED), result.outlines
    told = "\n".join(result.outlines)
    assert "interrupted: " not in told
    assert "have no result" not in told
    assert project.read_run()["variants"][0]["failure"]["verdict"] == "ERROR"


def test_an_id_with_an_at_sign_is_not_lost(project: ForeignProject) -> None:
    project.pytester.makepyfile(
        test_own="""
        import pytest

        @pytest.mark.parametrize("address", ["a@b", "a@c"])
        def test_it(matrix_variant, address):
            matrix_variant.record(score=1.0)
        """
    )
    project.write_matrix({"q4": {}})
    assert project.run("test_own.py").ret == 0
    assert {t["case"] for t in project.read_run()["trials"]} == {"own/test_it-a@b", "own/test_it-a@c"}


OWN = """
class TestFormat:
    def test_json(self, matrix_variant):
        matrix_variant.record(score=0.25)

def test_json(matrix_variant):
    matrix_variant.record(score=0.5)
"""


def test_own_tests_of_one_name_do_not_overwrite_each_other(project: ForeignProject) -> None:
    project.pytester.makepyfile(
        test_one=OWN, test_two="def test_json(matrix_variant): matrix_variant.record(score=0.75)"
    )
    project.write_matrix({"q4": {}})
    assert project.run("test_one.py", "test_two.py").ret == 0
    assert {t["case"]: t["score"] for t in project.read_run()["trials"]} == {
        "own/TestFormat.test_json": 0.25, "own/test_one.test_json": 0.5, "own/test_two.test_json": 0.75
    }  # fmt: skip


def test_a_second_record_under_one_name_is_refused(project: ForeignProject) -> None:
    project.pytester.makepyfile(
        test_own="""
        def test_first(matrix_variant):
            matrix_variant.record(score=0.5, name="json")
            matrix_variant.record(score=0.75, name="json")

        def test_second(matrix_variant):
            matrix_variant.record(score=1.0, name="json")
        """
    )
    project.write_matrix({"q4": {}})
    result = project.run("test_own.py")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*UsageError: 'own/json' was recorded by test_own.py::test_first[[]q4[]] already*"])
    assert [t["score"] for t in project.read_run()["trials"]] == [0.75]


CHANGING_BACKEND = """
from pathlib import Path
from suite.backends.fake import Fake, FakeModel

class Changing(Fake):
    def load(self, weights, options, prompt_format):
        model = super().load(weights, options, prompt_format)
        model.facts = {**model.facts, "library": Path("library.txt").read_text()}
        return model

BACKEND = Changing()
"""


@pytest.mark.parametrize(("selected", "measured"), [
    ((ANSWERS,), {"trial"}), ((), {"trial", "launch"}), (("-k", "test_speed"), {"launch"})
])  # fmt: skip
@pytest.mark.parametrize("library", ["1.0", "2.0"])
def test_a_resumed_run_measures_anew_what_another_library_holds_now(
    project: ForeignProject, library: str, selected: tuple[str, ...], measured: set[str]
) -> None:
    project.pytester.makepyfile(changing_backend=CHANGING_BACKEND)
    (project.root / "library.txt").write_text("1.0")
    project.write_matrix({"ref": {}, "q4": {"backend": "changing_backend:BACKEND"}})
    assert project.run(*selected).ret == 0
    (directory,) = project.run_directories()
    (directory / "run.json").unlink()
    journal = directory / "journal.jsonl"
    before = len(journal.read_text().splitlines())
    (project.root / "library.txt").write_text(library)
    assert project.run("--matrix-resume", *selected).ret == 0
    assert project.run_directories() == [directory]
    after = [json.loads(line) for line in journal.read_text().splitlines()[before:]]
    anew = {(line["kind"], line["record"]["variant"]) for line in after if line["kind"] in ("trial", "launch")}
    assert anew == ({(kind, "q4") for kind in measured} if library == "2.0" else set())
    run = project.read_run()
    assert len(run["trials"]) == (14 if "trial" in measured else 0)
    assert {v["name"]: len(v["launches"]) for v in run["variants"]} == dict.fromkeys(
        ("ref", "q4"), 3 if "launch" in measured else 0
    )
    assert {v["name"]: v["suspects"].get("library") for v in run["variants"]} == {"ref": None, "q4": library}


def test_a_path_behind_a_space_does_not_move_the_run_elsewhere(project: ForeignProject) -> None:
    """pytest looks for its root before it knows our options, and takes such a path for what to run."""
    project.write_matrix({"q4": {}})
    (project.root / "pyproject.toml").unlink(missing_ok=True)
    elsewhere = project.root.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "pytest.ini").write_text("[pytest]\n")
    status, said = project.refuse("--matrix-baselines", str(elsewhere))
    assert status == 2
    assert f'write --matrix-baselines={elsewhere}, with "="' in said
    assert not list(elsewhere.glob(".quantdrift"))
    assert project.run(f"--matrix-baselines={elsewhere}", "--matrix-only=answers").ret == 0
    assert project.read_run()["variants"]
