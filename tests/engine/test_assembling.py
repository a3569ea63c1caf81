"""From the records of a journal to a run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.in_process import make_case, make_matrix, make_variant

from suite.engine.assembling import (
    CONTROLS,
    LONE,
    LOOK,
    RESUMED,
    VOIDED,
    Ledger,
    RunHead,
    assemble,
    describe_loaded,
    drop_superseded,
    identity_of,
    join_journals,
    result_of,
    suspects_of,
)
from suite.engine.coverage import keep_complete
from suite.records import (
    Artifact,
    ArtifactFile,
    Environment,
    Launch,
    Measurement,
    Note,
    RenderedPrompts,
    ResolvedArtifact,
    Score,
    SpeedSample,
    Trial,
    TrialStatus,
    VariantFailure,
    Verdict,
    Witness,
)

ENVIRONMENT = Environment(machine="box", identity={"cpu": "x"}, suspects={"kernel": "6.1"}, readings={})
WITNESS = Witness(wall_s=1.0, cpu_s=1.0, threads=1)


def trial(case: str, *, variant: str = "q4", value: float = 1.0) -> Trial:
    return Trial(
        variant=variant, case=case, case_version=1, domain=case.partition("/")[0], family=None, scorer="number",
        prompt_sha256="0", score=Score(status=TrialStatus.SCORED, value=value, correct=value == 1.0), generation=None,
    )  # fmt: skip


def sample(launch: int, turn: int = 0, variant: str = "q4") -> SpeedSample:
    return SpeedSample(
        variant=variant, scenario="short", launch=launch, round=turn, prompt_tokens=8, evaluated_tokens=8, new_tokens=4,
        prefill_s=0.1, ttft_s=0.2, itl_s=(0.1, 0.1, 0.1), witness=WITNESS,
    )  # fmt: skip


def launch(index: int, variant: str = "q4") -> Launch:
    return Launch(
        variant=variant, index=index, load_s=1.0, cold_ttft_s=0.2, cold_prompt_tokens=8, peak_rss_bytes=10, uss_bytes=None,
        peak_device_bytes=None, kv_cache_bytes=None, kv_cache_reported_bytes=None, facts={},
    )  # fmt: skip


def failure(variant: str = "q4", reason: str = "killed") -> VariantFailure:
    return VariantFailure(variant=variant, verdict=Verdict.ERROR, reason=reason)


def fill(*records: object) -> Ledger:
    ledger = Ledger()
    for record in records:
        ledger.add(record)
    return ledger


def test_a_ledger_takes_every_record_of_a_journal() -> None:
    ledger = fill(
        ENVIRONMENT,
        Note(text="anything"),
        trial("math/a", value=0.0),
        trial("math/a", value=1.0),
        sample(0),
        launch(0),
        failure(reason="first"),
        failure(reason="second"),
        ResolvedArtifact(variant="q4", artifact=None, suspects={"lib": "1"}),
        RenderedPrompts(variant="q4", ids={"math/a": (1, 2)}),
    )
    assert ledger.trials["q4", "math/a"].score.value == 1.0  # a later trial replaces an earlier one
    assert ledger.failures["q4"].reason == "first"  # the first failure is the cause
    assert (len(ledger.samples), ledger.launches_of("q4"), ledger.launches_of("q5")) == (1, 1, 0)
    assert ledger.prompts == {"q4": {"math/a": (1, 2)}}
    assert ledger.artifacts["q4"].suspects == {"lib": "1"}


def test_what_was_resumed_forgets_failures_and_torn_launches() -> None:
    before = [trial("math/a"), sample(0), launch(0), sample(1), failure()]
    after = [sample(1), launch(1), failure("q5")]
    held = drop_superseded([*before, Note(text=RESUMED), *after])
    ledger = fill(*held)
    assert [s.launch for s in ledger.samples] == [0, 1]
    assert list(ledger.failures) == ["q5"]
    assert list(ledger.trials) == [("q4", "math/a")]
    assert drop_superseded(before) == before


def test_looks_are_counted_by_the_launches_that_they_saw() -> None:
    ledger = fill(launch(0), launch(1), launch(0, "q5"))
    assert (ledger.looks_of("q4"), ledger.is_newer_than_its_looks("q4")) == (0, True)
    ledger.add(Note(text=LOOK, data={"variant": "q4", "launches": "2"}))
    assert (ledger.looks_of("q4"), ledger.is_newer_than_its_looks("q4")) == (1, False)
    assert ledger.looks_of("q5") == 0
    ledger.add(launch(2))
    assert (ledger.looks_of("q4"), ledger.is_newer_than_its_looks("q4")) == (1, True)
    assert (ledger.next_launch_of("q4"), ledger.next_launch_of("q6")) == (3, 0)


def test_what_is_voided_takes_its_looks_and_its_control_along() -> None:
    look = Note(text=LOOK, data={"variant": "q4", "launches": "1"})
    other = Note(text=LOOK, data={"variant": "q5", "launches": "1"})
    before = [launch(0), *(trial("math/a", variant=f"q4{control}") for control in CONTROLS), look, other]
    voided = Note(text=VOIDED, data={"variant": "q4"})
    assert drop_superseded([*before, voided]) == [other, voided]
    ledger = fill(*before)
    ledger.void("q4")
    assert (ledger.looks_of("q4"), ledger.looks_of("q5"), ledger.trials, ledger.launches) == (0, 1, {}, [])


def test_a_lone_launch_is_forgotten_with_its_samples_and_may_come_again() -> None:
    lone = Note(text=LONE, data={"variant": "q4", "launch": "1"})
    look = Note(text=LOOK, data={"variant": "q4", "launches": "2"})
    before = [sample(0), launch(0), sample(1), launch(1), look]
    ledger = fill(*before, lone)
    assert ([s.launch for s in ledger.samples], ledger.launches_of("q4"), ledger.looks_of("q4")) == ([0], 1, 1)
    ledger.add(launch(1))
    assert ledger.is_newer_than_its_looks("q4")
    torn = drop_superseded([*before, lone, sample(1), Note(text=RESUMED), sample(1), sample(1, 1), launch(1)])
    assert [(s.launch, s.round) for s in fill(*torn).samples] == [(0, 0), (1, 0), (1, 1)]


def test_old_sides_are_apart_and_controls_left_out() -> None:
    q4 = make_variant("q4")
    old = replace(q4, name="q4@old", old_of="q4")
    ledger = fill(*(trial("math/a", variant=name) for name in ("q4", "q4@old", "q4@control")), launch(0, "q4@old"))
    head = RunHead(id="r", created="now", suite_version="0", settings={})
    run = assemble(head, ledger, make_matrix(q4), (), ENVIRONMENT, (old,))
    assert [result.variant.name for result in run.variants] == ["q4"]
    assert [(result.variant.name, len(result.launches)) for result in run.against] == [("q4@old", 1)]
    assert [t.variant for t in run.trials] == ["q4", "q4@old"]


def test_quality_of_a_part_is_not_reported_as_the_whole() -> None:
    cases = [make_case("math/a"), make_case("math/b"), make_case("code/c")]
    found = [
        Measurement(metric=metric, scope=scope, value=1.0)
        for metric in ("score", "decode_tok_s")
        for scope in ("math", "code", "all")
    ]
    kept = keep_complete(found, [trial("math/a"), trial("code/c")], cases)
    assert [(m.metric, m.scope) for m in kept] == [
        ("score", "code"), ("decode_tok_s", "math"), ("decode_tok_s", "code"), ("decode_tok_s", "all")
    ]  # fmt: skip
    assert len(keep_complete(found, [trial(case.id) for case in cases], cases)) == 6


def test_identity_holds_everything_that_makes_it_another_question() -> None:
    variant = make_variant("q4", n_ctx=1024, type_k="q8_0")
    matrix = make_matrix(variant)
    identity = identity_of(variant, matrix)
    assert identity["option.type_k"] == '"q8_0"'
    assert identity["scenario.short"] == "8 → 4 tokens"
    assert "greedy" in identity["decoding"]
    changes = {
        "backend": replace(variant, backend="llama_cpp"),
        "source": replace(variant, source="org/other"),
        "make": replace(variant, make="Q4_K_M"),
        "prompt format": replace(variant, prompt_format="raw"),
        "option.n_ctx": replace(variant, options={"n_ctx": 2048, "type_k": "q8_0"}),
    }
    for key, other in changes.items():
        changed = identity_of(other, matrix)
        assert {name for name in identity if identity[name] != changed[name]} == {key}
    assert identity_of(replace(variant, name="renamed", reference=True), matrix) == identity


def test_suspects_name_files_stably() -> None:
    artifact = Artifact(
        files=(
            ArtifactFile(name="0123456789abcdef0123.Q4_K_M.gguf", size_bytes=1, sha256="s1"),
            ArtifactFile(name="tiny.gguf", size_bytes=1, sha256="s2"),
        ),
        size_bytes=2,
        revision="abc",
    )
    suspects = suspects_of(artifact, {"llama-cpp-python": "0.3"}, ENVIRONMENT)
    assert suspects == {
        "kernel": "6.1", "llama-cpp-python": "0.3", "sha256 of *.Q4_K_M.gguf": "s1", "sha256 of tiny.gguf": "s2",
        "revision": "abc",
    }  # fmt: skip
    assert suspects_of(None, {}, ENVIRONMENT) == {"kernel": "6.1"}


def test_weights_quantized_while_loading_are_told_by_their_footprint() -> None:
    artifact = Artifact(files=(), size_bytes=200, parameters=100, bpw=16.0, derived_from="FP16 of it")
    loaded = describe_loaded(artifact, 110)
    assert loaded is not None
    assert loaded.size_bytes == 110
    assert loaded.bpw == pytest.approx(8.8)
    assert loaded.derived_from == "quantized while loading, from FP16 of it"
    assert describe_loaded(artifact, None) is artifact
    assert describe_loaded(None, 110) is None


def test_a_run_is_put_together_whole() -> None:
    matrix = make_matrix(replace(make_variant("ref"), reference=True), make_variant("q4"), make_variant("gone"))
    cases = [make_case("math/a")]
    ledger = fill(
        *(trial("math/a", variant=name) for name in ("ref", "q4")),
        *(record for name in ("ref", "q4") for record in (sample(0, variant=name), launch(0, variant=name))),
        trial("format/own", value=0.5),
        failure("gone"),
    )
    head = RunHead(id="r", created="2026-01-01", suite_version="0", settings={"only": "all"})
    run = assemble(head, ledger, matrix, cases, ENVIRONMENT)
    assert [result.variant.name for result in run.variants] == ["ref", "q4", "gone"]
    measured = {(m.metric, m.scope): m.value for m in run.variants[1].measurements}
    assert measured["score", "math"] == 1.0
    assert measured["decode_tok_s", "short"] == pytest.approx(10.0)
    assert measured["speedup", "short"] == pytest.approx(1.0)
    assert run.variants[2].failure == failure("gone")
    assert run.settings["sampling"] == "greedy"
    assert run.settings["only"] == "all"
    assert len(run.trials) == 3


@pytest.mark.parametrize(("answered", "told"), [((), None), (("math/a",), "1 of 2"), (("math/a", "math/b"), None)])
def test_a_run_knows_that_only_a_part_of_the_cases_was_answered(answered: tuple[str, ...], told: str | None) -> None:
    head = RunHead(id="r", created="2026-01-01", suite_version="0", settings={})
    cases = [make_case("math/a"), make_case("math/b")]
    held = fill(*(trial(case) for case in (*answered, "format/own")))
    assert assemble(head, held, make_matrix(make_variant("q4")), cases, ENVIRONMENT).settings.get("cases") == told


def test_a_resumed_run_asks_again_what_could_not_be_answered() -> None:
    failed = replace(trial("math/a"), score=Score(status=TrialStatus.ERROR), error="it raised")
    held = drop_superseded([failed, trial("math/b"), Note(text=RESUMED)])
    assert list(fill(*held).trials) == [("q4", "math/b")]


def test_what_was_voided_is_forgotten_in_every_journal() -> None:
    voided = Note(text=VOIDED, data={"variant": "q4"})
    mine = [trial("math/a"), trial("math/a", variant="q5"), sample(0), launch(0)]
    here = [*mine, Note(text=RESUMED), voided, trial("math/b"), sample(0), launch(0)]
    there = [trial("math/c"), trial("math/c", variant="q5"), Note(text=RESUMED), trial("math/d")]
    ledger = join_journals([there, here])
    assert sorted(ledger.trials) == [("q4", "math/b"), ("q4", "math/d"), ("q5", "math/a"), ("q5", "math/c")]
    assert (len(ledger.samples), len(ledger.launches)) == (1, 1)
    same = fill(*mine, ResolvedArtifact(variant="q4", artifact=None), failure())
    same.void("q4")
    assert same == fill(trial("math/a", variant="q5"))


def test_samples_of_a_launch_that_broke_off_measure_nothing() -> None:
    variant = make_variant("q4")
    ledger = fill(sample(0), launch(0), sample(1))
    result = result_of(variant, ledger, make_matrix(variant), [], ENVIRONMENT)
    speed = next(m for m in result.measurements if m.metric == "decode_tok_s")
    assert set(speed.launches) == {0}
