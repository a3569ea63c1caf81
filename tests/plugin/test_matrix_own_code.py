"""What people bring along: tests, backends, scorers, a quant that was just downloaded, several processes."""

from __future__ import annotations

import gguf
import numpy as np
import pytest
from support.foreign_project import ForeignProject, verdicts

ANSWERS = "--matrix-only=answers"

OWN_TEST = """
import pytest

@pytest.mark.parametrize("size", ["long", "short"])
def test_polite(matrix_variant, size):
    answer = matrix_variant.ask("Which colour has the sky? Be " + size, max_new_tokens=16)
    assert answer.text == "blue"
    trial = matrix_variant.record(score=0.5, domain="format")
    assert trial.variant == matrix_variant.name == matrix_variant.variant.name
"""


def test_own_tests_run_for_each_variant_and_land_in_the_run(project: ForeignProject) -> None:
    project.pytester.makepyfile(test_own=OWN_TEST)
    project.write_matrix({"ref": {}, "q4": {}})
    result = project.run("test_own.py", "-v")
    result.assert_outcomes(passed=4)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*test_own.py::test_polite[[]q4-long[]] PASSED*"])
    trials = project.read_run()["trials"]
    assert {(t["variant"], t["case"], t["domain"], t["score"]) for t in trials} == {
        (variant, f"format/test_polite-{size}", "format", 0.5)
        for variant in ("ref", "q4")
        for size in ("long", "short")
    }


def test_own_tests_are_skipped_without_the_option(project: ForeignProject) -> None:
    project.pytester.makepyfile(test_own=OWN_TEST)
    result = project.pytester.runpytest_inprocess("-rs")
    result.assert_outcomes(skipped=2)
    result.stdout.fnmatch_lines(["*pytest --model-matrix*"])


def test_own_tests_change_no_baseline(project: ForeignProject) -> None:
    project.write_matrix({"q4": {}})
    assert project.run(ANSWERS, "--matrix-update=new", "--matrix-reason=before").ret == 0
    before = project.baseline_files()
    project.pytester.makepyfile(test_own=OWN_TEST)
    result = project.run(ANSWERS, "--matrix-update=changed", "--matrix-reason=after")
    assert set(result.parseoutcomes()) == {"passed"}
    assert project.baseline_files() == before
    assert all("format" not in key for key in verdicts(project.read_run(), "q4"))


def test_a_request_of_an_own_test_that_fails_does_not_fail_the_variant(project: ForeignProject) -> None:
    project.pytester.makepyfile(
        test_own="""
        from suite.errors import UsageError, VariantError
        import pytest

        def test_refusals(matrix_variant):
            with pytest.raises(VariantError, match="do not fit a context"):
                matrix_variant.ask("x" * 5000)
            with pytest.raises(UsageError, match="between 0 and 1"):
                matrix_variant.record(score=2.0)
            with pytest.raises(UsageError, match="'math/apples' is a case of the matrix"):
                matrix_variant.record(score=1.0, domain="math", name="apples")

        def test_asking_alone_counts_as_measured(matrix_variant):
            assert matrix_variant.ask("colour").finish_reason == "stop"
        """
    )
    project.write_matrix({"q4": {}})
    result = project.run("test_own.py")
    result.assert_outcomes(passed=2)
    assert result.ret == 0


def test_an_own_test_of_a_failed_variant_fails_with_its_failure(project: ForeignProject) -> None:
    project.pytester.makepyfile(test_own="def test_it(matrix_variant):\n    matrix_variant.ask('colour')\n")
    project.write_matrix({"bad": {"options": {"fault": "load"}}, "good": {}})
    result = project.run("test_own.py")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*bad is ERROR: planted failure while loading*"])


def test_own_backend_and_scorer_lie_in_the_root_directory(project: ForeignProject) -> None:
    project.pytester.makeini("[pytest]")
    project.pytester.makepyfile(
        my_backend="""
        from dataclasses import dataclass
        from suite.backends.fake import Fake, FakeModel, FakeOptions

        @dataclass(frozen=True, kw_only=True)
        class EchoOptions:
            word: str = "nothing"

        class Echo(Fake):
            options = EchoOptions

            def load(self, weights, options, prompt_format):
                return FakeModel(FakeOptions(reply=options.word))

        BACKEND = Echo()
        """,
        my_scorer="""
        from suite.scorers.base import scored

        def grade(answer, case, *, truncated):
            return scored(0.25, correct=False, answer=answer, rule="mine")
        """,
    )
    cases = project.root / "cases" / "own" / "own.toml"
    cases.parent.mkdir()
    cases.write_text(
        '[[case]]\nid = "word"\nversion = 1\nprompt = "Say it"\ntarget = "x"\nscorer = "my_scorer:grade"\nmax_new_tokens = 9'
    )
    project.write_matrix({"echo": {"backend": "my_backend:BACKEND", "options": {"word": "hush"}}})
    (project.root / "sub").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project.root / "sub")  # the worker, too, finds it from there
        result = project.run(ANSWERS, "-k", "own")
    assert result.ret == 0, result.outlines
    (trial,) = project.read_run()["trials"]
    assert (trial["score"], trial["answer"], trial["rule"], trial["text"]) == (0.25, "hush", "mine", "hush")


def test_a_downloaded_file_can_be_added_for_one_run(project: ForeignProject) -> None:
    writer = gguf.GGUFWriter(project.root / "tiny.Q8_0.gguf", "llama")
    writer.add_tensor("blk.0.ffn", np.ones((4, 34), dtype=np.uint8), raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    project.write_matrix({"ref": {}})
    before = (project.root / "matrix.toml").read_text()
    result = project.run("--matrix-add=tiny.Q8_0.gguf", "--collect-only", "-q")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["matrix.toml::test_case[[]q8_0-math/apples[]]"])
    assert (project.root / "matrix.toml").read_text() == before


def test_under_xdist_whole_variants_go_to_one_process_and_speed_is_not_measured(project: ForeignProject) -> None:
    project.write_matrix({"ref": {}, "q4": {}, "bad": {"options": {"shift_ids_from": 9}}})
    result = project.run_apart("-n2", "-v", "-rs")
    run = project.read_run()
    processes = {(item, process) for line in result.outlines for item, process in _where(line)}
    assert len({process for _, process in processes}) == 2
    assert {item for item, _ in processes} == {"ref", "q4", "bad"}
    assert len(processes) == 3
    assert sum(trial["variant"] == "q4" for trial in run["trials"]) == 7
    assert run["speed_samples"] == []
    speed = next(f for f in run["findings"] if f["metric"] == "decode_tok_s")
    assert speed["verdict"] == "NOT_MEASURED"
    assert "xdist" in speed["reason"]
    assert result.ret == 1
    failures = {variant["name"]: variant["failure"] for variant in run["variants"]}
    assert failures["ref"] is failures["q4"] is None
    assert failures["bad"]["verdict"] == "INVALID"
    assert len(project.run_directories()) == 1


def _where(line: str) -> list[tuple[str, str]]:
    """Variant and process of a line such as ``[gw0] [  5%] PASSED matrix.toml::test_case[q4-math/apples]``."""
    if not line.startswith("[gw") or "matrix.toml::" not in line:
        return []
    return [(line.partition("[gw")[2] and line.split("::")[1].partition("[")[2].split("-")[0], line[1:4])]
