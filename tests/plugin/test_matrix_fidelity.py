"""Fidelity as a person meets it: a trace that is made and kept, gates that go by it, faults that turn them red."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.foreign_project import MATH, ForeignProject, verdicts

from suite.store.traces import read_trace

ANSWERS = "--matrix-only=answers"
FIDELITY = ("mean_kld/all", "decode_kld/all", "path_distance/all", "broken_logits/all")


@pytest.fixture
def matrix(project: ForeignProject) -> ForeignProject:
    """A reference and a quantized variant whose logits are a little noisy."""
    project.write_script("q4", noise=0.3)
    project.write_matrix({"fp": {"reference": True}, "q4": {}})
    return project


@pytest.fixture
def accepted(matrix: ForeignProject) -> ForeignProject:
    """The same with everything accepted."""
    result = matrix.accept()
    assert result.ret == 0, result.outlines
    return matrix


def fidelity(project: ForeignProject, variant: str = "q4") -> dict[str, str]:
    found = verdicts(project.read_run(), variant)
    return {key: found[key] for key in FIDELITY}


def said(result: pytest.RunResult) -> str:
    """What was printed, in one line."""
    return " ".join(result.stdout.str().split())


def metric(project: ForeignProject, name: str, variant: str = "q4") -> float:
    row = next(row for row in project.read_run()["variants"] if row["name"] == variant)
    value: float = row["metrics"][name]["scopes"]["all"]["value"]
    return value


def test_life_of_a_trace(matrix: ForeignProject) -> None:
    first = matrix.run(ANSWERS)
    assert first.ret == 0
    assert fidelity(matrix) == {**dict.fromkeys(FIDELITY, "UNBASELINED"), "broken_logits/all": "PASS"}
    assert metric(matrix, "mean_kld") > 0
    assert metric(matrix, "mean_kld", "fp") == 0.0
    assert metric(matrix, "path_distance") == 0.0
    assert read_trace(matrix.baselines, "toy") is None

    accepting = matrix.accept()
    assert accepting.ret == 0
    accepting.stdout.fnmatch_lines(["*accepted baselines/toy/trace.npz"])
    trace = read_trace(matrix.baselines, "toy")
    assert trace is not None
    assert (trace.reference, trace.top, len(trace.cases)) == ("fp", 64, len(MATH) + 1)
    assert all(case.answer_ids[-1] == 0 for case in trace.cases.values())  # the end token is traced too
    quality = json.loads((matrix.baselines / "toy" / "quality" / "q4.json").read_text())
    assert quality["metrics"]["mean_kld/all"]["value"] == pytest.approx(metric(matrix, "mean_kld"), rel=1e-3)

    files = matrix.baseline_files()
    data = (matrix.baselines / "toy" / "trace.npz").read_bytes()
    assert matrix.run(ANSWERS).ret == 0
    assert set(fidelity(matrix).values()) == {"PASS"}
    assert matrix.accept("all").ret == 0
    assert (matrix.baselines / "toy" / "trace.npz").read_bytes() == data
    assert matrix.baseline_files().keys() == files.keys()


@pytest.mark.parametrize(
    ("change", "red"),
    [
        ({"noise": 0.6}, {"mean_kld/all", "decode_kld/all"}),
        ({"noise": 0.3, "path_noise": 0.6}, {"decode_kld/all", "path_distance/all"}),
        ({"noise": 0.3, "broken_at": 3}, {"broken_logits/all"}),
    ],
)
def test_a_fault_turns_its_gate_red(accepted: ForeignProject, change: dict[str, Any], red: set[str]) -> None:
    accepted.write_script("q4", **change)
    result = accepted.run(ANSWERS)
    assert result.ret == 1
    found = fidelity(accepted)
    assert {key for key, verdict in found.items() if verdict == "REGRESSED"} == red
    assert (
        verdicts(accepted.read_run(), "q4")["score/all"] == "PASS"
    )  # the answers are the same: only the trace sees it
    assert set(fidelity(accepted, "fp").values()) == {"PASS"}


def test_other_noise_of_the_same_size_is_no_drift(accepted: ForeignProject) -> None:
    accepted.write_script("q4", noise=0.3, seed=7)
    accepted.run(ANSWERS)
    assert fidelity(accepted)["mean_kld/all"] in ("PASS", "INCONCLUSIVE")


def test_without_the_reference_the_stored_trace_holds_every_gate(accepted: ForeignProject) -> None:
    assert accepted.run(ANSWERS, "--matrix-variants=q4").ret == 0
    assert set(fidelity(accepted).values()) == {"PASS"}
    accepted.write_script("q4", noise=0.6)
    accepted.write_matrix({"q4": {}})  # a machine that cannot hold it: it is not even declared
    assert accepted.run(ANSWERS).ret == 1
    assert fidelity(accepted)["mean_kld/all"] == "REGRESSED"


def test_without_trace_and_reference_there_is_nothing_to_hold_against(matrix: ForeignProject) -> None:
    result = matrix.run(ANSWERS, "--matrix-variants=q4")
    assert result.ret == 0
    assert set(fidelity(matrix).values()) == {"NOT_MEASURED"}
    reason = next(f["reason"] for f in matrix.read_run()["findings"] if f["metric"] == "mean_kld")
    assert "run it with the reference once" in reason


def test_a_trace_of_another_reference_is_made_anew_and_nothing_is_compared(accepted: ForeignProject) -> None:
    accepted.write_matrix({"fp": {"reference": True, "options": {"script": "fp.json", "n_ctx": 2048}}, "q4": {}})
    accepted.run(ANSWERS)
    assert fidelity(accepted)["mean_kld/all"] == "PASS"  # the very same distributions: the trace of each case is equal
    accepted.write_script("fp", logprob=-0.4)
    accepted.run(ANSWERS)
    assert fidelity(accepted)["mean_kld/all"] == "NOT_COMPARABLE"
    told = next(f for f in accepted.read_run()["findings"] if (f["variant"], f["metric"]) == ("q4", "mean_kld"))
    assert "it is of another reference: option.n_ctx: 4096 → 2048" in told["reason"]
    refused = accepted.accept("new")
    refused.stdout.fnmatch_lines(["*refused the reference trace: what 'fp' says was refused*"])
    assert accepted.accept("changed").ret == 0
    trace = read_trace(accepted.baselines, "toy")
    assert trace is not None
    assert trace.key["option.n_ctx"] == "2048"
    assert accepted.run(ANSWERS).ret == 0
    assert fidelity(accepted)["mean_kld/all"] == "PASS"


def test_a_case_that_is_new_is_added_to_the_trace_and_the_others_stay(accepted: ForeignProject) -> None:
    before = read_trace(accepted.baselines, "toy")
    accepted.write_cases(versions={"apples": 2})
    assert accepted.accept("changed").ret == 0
    after = read_trace(accepted.baselines, "toy")
    assert before is not None
    assert after is not None
    assert after.cases["math/apples"].version == 2
    assert {c for c in before.cases if before.cases[c] != after.cases[c]} == {"math/apples"}


def test_a_damaged_trace_is_told_before_anything_is_measured(accepted: ForeignProject) -> None:
    file = accepted.baselines / "toy" / "trace.npz"
    file.write_bytes(file.read_bytes()[:200])
    status, message = accepted.refuse()
    assert status == 2
    assert "trace.npz: not a trace, or damaged" in message
    assert "--matrix-update" in message


def test_fidelity_survives_a_resumed_run(accepted: ForeignProject) -> None:
    accepted.run(ANSWERS)
    before = metric(accepted, "mean_kld")
    accepted.run(ANSWERS, "--matrix-resume")
    assert metric(accepted, "mean_kld") == before
    assert set(fidelity(accepted).values()) == {"PASS"}


def test_another_template_is_invalid_by_the_stored_trace_alone(accepted: ForeignProject) -> None:
    accepted.write_script("q4", noise=0.3, shift_ids_from=5)
    result = accepted.run(ANSWERS, "--matrix-variants=q4")
    assert result.ret == 3  # nothing else was measured
    assert "q4 is INVALID: token ids differ from those of 'fp (stored trace)' at position 5" in said(result)


def test_gates_that_held_are_a_pass_although_nothing_else_was_asked_for(accepted: ForeignProject) -> None:
    result = accepted.run("--matrix-only=fidelity")
    assert result.ret == 0
    result.stdout.re_match_lines([r" q4 .* PASS$"])


def test_fidelity_alone_asks_nobody_anything(accepted: ForeignProject) -> None:
    accepted.write_script("q4", noise=0.6)
    result = accepted.run("--matrix-only=fidelity")
    assert result.ret == 1
    run = accepted.read_run()
    assert run["trials"] == []
    assert {found["metric"] for found in run["findings"]} == {
        "mean_kld", "decode_kld", "path_distance", "broken_logits",
    }  # fmt: skip
    assert fidelity(accepted)["mean_kld/all"] == "REGRESSED"
    accepted.baselines.joinpath("toy", "trace.npz").unlink()
    accepted.run("--matrix-only=fidelity")  # the reference answers, since somebody has to say what is right
    assert {trial["variant"] for trial in accepted.read_run()["trials"]} == {"fp"}
    assert fidelity(accepted)["mean_kld/all"] == "REGRESSED"


def test_a_resumed_run_looks_at_the_weights_before_it_judges_what_it_holds(accepted: ForeignProject) -> None:
    accepted.run("--matrix-only=fidelity", "--matrix-variants=q4")
    assert fidelity(accepted)["mean_kld/all"] == "PASS"
    accepted.write_script("q4", noise=0.6)  # the same declaration; the fake has no files whose hash could tell
    (file,) = accepted.root.glob(".quantdrift/latest/journal.jsonl")
    file.write_text(file.read_text().replace('"fake":"1"', '"fake":"0"'))  # what was measured then was another build
    accepted.run("--matrix-only=fidelity", "--matrix-variants=q4", "--matrix-resume")
    assert fidelity(accepted)["mean_kld/all"] == "REGRESSED"


@pytest.mark.parametrize("gone", ["--matrix-variants=q4", ""])
def test_a_budget_on_divergence_goes_by_the_stored_trace(accepted: ForeignProject, gone: str) -> None:
    budget = "budget.mean_kld = { limit = 0.0001, gate = 'block' }"
    variants = {"fp": {"reference": True}, "q4": {}} if gone else {"q4": {}}
    accepted.write_matrix(variants, more=budget)
    result = accepted.run("--matrix-only=fidelity", *filter(None, [gone]))
    assert result.ret == 1
    assert "test_budget[q4-all-mean_kld]" in said(result)
    assert "over budget: q4: divergence (all) is 0.0" in said(result)
    assert "against the reference of the stored trace" in said(result)
    assert f"{len(MATH) + 1} cases" in said(result)
    assert accepted.read_run()["losses"][0]["answer"] == "over budget"
    accepted.write_matrix(variants, more=budget.replace("0.0001", "0.5"))
    assert accepted.run("--matrix-only=fidelity", *filter(None, [gone])).ret == 0


def test_a_budget_on_divergence_without_trace_and_reference_is_refused(project: ForeignProject) -> None:
    project.write_matrix({"q4": {}}, more="budget.mean_kld = { limit = 0.1, gate = 'block' }")
    status, message = project.refuse()
    assert (status, "none is marked reference = true" in message) == (2, True)


def test_a_trace_of_another_declared_reference_is_not_used_where_that_is_not_loaded(accepted: ForeignProject) -> None:
    accepted.write_matrix({"fp": {"reference": True, "options": {"script": "fp.json", "n_ctx": 2048}}, "q4": {}})
    accepted.run(ANSWERS, "--matrix-variants=q4")
    found = next(f for f in accepted.read_run()["findings"] if f["metric"] == "mean_kld")
    assert found["verdict"] == "NOT_MEASURED"
    assert "the stored trace is of another reference (option.n_ctx: 4096 → 2048)" in found["reason"]


def test_baselines_are_not_accepted_along_a_trace_that_is_refused(matrix: ForeignProject) -> None:
    matrix.write_script("fp", fault="raise", fault_at=1)  # one case of the reference ends in an error
    result = matrix.accept()
    result.stdout.fnmatch_lines(["*refused the reference trace: what 'fp' says was refused*"])
    quality = json.loads((matrix.baselines / "toy" / "quality" / "q4.json").read_text())
    assert not any("fidelity" in case for case in quality["cases"].values())
    assert "mean_kld/all" not in quality["metrics"]


def test_a_single_case_that_asks_something_else_is_named_and_no_invalid_variant(accepted: ForeignProject) -> None:
    cases = accepted.root / "cases" / "math" / "own.toml"
    cases.write_text(cases.read_text().replace("How many figs are there?", "How many figs are here?"))
    accepted.run("--matrix-only=fidelity", "--matrix-variants=q4")
    found = next(f for f in accepted.read_run()["findings"] if f["metric"] == "mean_kld")
    assert found["verdict"] == "PASS"
    assert "1 case that was accepted could not be forced (case math/figs" in found["reason"]
    assert "other token ids than in the trace" in found["reason"]
