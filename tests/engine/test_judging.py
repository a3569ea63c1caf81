"""All gates that were selected are measured first and judged together; what is undecided gets more launches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from support.bench import CASES, Bench
from support.in_process import InProcessLauncher, make_variant

from suite.engine.assembling import LOOK, RESUMED, Ledger, RunHead, assemble, drop_superseded
from suite.engine.failures import VariantFailed
from suite.engine.launching import LiveVariant
from suite.engine.timing import SpeedPass
from suite.gate import judge
from suite.records import Comparison, Finding, Launch, Matrix, Noise, Note, Protocol, Tier, Variant, Verdict
from suite.store.journal import read_journal

RIGHT = "the answer is 18"


@pytest.fixture
def make_bench(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., Bench]:
    def make(*variants: Variant, **options: Any) -> Bench:
        bench = Bench(tmp_path, *variants, **options)
        request.addfinalizer(bench.session.close)
        return bench

    return make


def old_of(variant: Variant, **options: Any) -> Variant:
    return replace(variant, name=f"{variant.name}@old", old_of=variant.name, options={**variant.options, **options})


def find(bench: Bench, metric: str, scope: str = "all", variant: int = 0) -> Finding:
    found = bench.session.findings(bench.matrix.variants[variant], bench.gate(metric, scope))
    return next(finding for finding in found if finding.scope == scope)


def watch_judging(monkeypatch: pytest.MonkeyPatch) -> list[list[tuple[str, str, str]]]:
    """What was judged together, each time."""
    seen: list[list[tuple[str, str, str]]] = []
    honest = judge.judge_all

    def watching(comparisons: list[Comparison], *args: Any, **more: Any) -> tuple[Finding, ...]:
        seen.append([(c.variant, c.metric, c.scope) for c in comparisons])
        return honest(comparisons, *args, **more)

    monkeypatch.setattr("suite.engine.session.judge_all", watching)
    return seen


def test_the_first_gate_measures_and_judges_all_that_were_selected(
    make_bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    together = watch_judging(monkeypatch)
    bench = make_bench(make_variant("a", reply=RIGHT), make_variant("b", reply=RIGHT))
    bench.select(bench.gate("score", "math"), bench.gate("decode_tok_s", "short"))
    assert find(bench, "score", "math").verdict is Verdict.UNBASELINED
    assert [(name, metric) for name, metric, _ in together[0]] == [
        ("a", "score"), ("a", "decode_tok_s"), ("b", "score"), ("b", "decode_tok_s")
    ]  # fmt: skip
    asked = len(bench.asked())
    find(bench, "decode_tok_s", "short", variant=1)
    assert (len(bench.asked()), len(together)) == (asked, 1)
    assert bench.kinds().count("finding") == 4
    assert len(bench.session.ledger.trials) == 2 * len(CASES)


def test_only_what_selected_gates_need_is_measured(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(make_variant("a"), make_variant("b"))
    bench.session.select([(bench.matrix.variants[1], bench.gate("score", "math"))])
    find(bench, "score", "math", variant=1)
    assert {event.partition(":")[0] for event in bench.asked()} == {"b"}
    assert bench.kinds().count("launch") == 0


def test_a_gate_that_was_not_selected_is_judged_alone(
    make_bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    together = watch_judging(monkeypatch)
    bench = make_bench(make_variant("a"), make_variant("b"))
    bench.select(bench.gate("score", "math"))
    find(bench, "score", "all")
    assert together == [[("a", "score", "all")]]


def test_where_several_processes_share_the_work_each_variant_is_judged_apart(
    make_bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    together = watch_judging(monkeypatch)
    bench = make_bench(make_variant("a"), make_variant("b"), apart=True, speed_excluded="tests run in parallel")
    bench.select(bench.gate("score", "math"), bench.gate("decode_tok_s", "short"))
    assert find(bench, "decode_tok_s", "short").verdict is Verdict.NOT_MEASURED
    assert {name for name, _, _ in together[0]} == {"a"}


def test_a_variant_that_failed_takes_no_part_and_tells_it_at_its_own_first_gate(
    make_bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    together = watch_judging(monkeypatch)
    bench = make_bench(make_variant("good"), make_variant("bad", fault="load"))
    bench.select(bench.gate("score", "math"), bench.gate("decode_tok_s", "short"))
    find(bench, "score", "math")
    assert {name for name, _, _ in together[0]} == {"good"}
    for first in (True, False):
        with pytest.raises(VariantFailed) as failed:
            find(bench, "score", "math", variant=1)
        assert failed.value.first is first


# ---------------------------------------------------------------------------------------------- more launches


def slower(share: float) -> tuple[Variant, Variant]:
    """A variant and its old side, which is faster by `share`."""
    new = make_variant("q4", reply=RIGHT, decode_tok_s=100.0, token_noise=0.0, launch_noise=0.0)
    return new, old_of(new, decode_tok_s=100.0 * (1 + share))


def test_what_is_undecided_gets_more_launches_and_a_second_look(make_bench: Callable[..., Bench]) -> None:
    new, old = slower(0.04)  # the tolerance is 3 %, and two launches cannot tell 4 from 3
    bench = make_bench(new, shadows=(old,), protocol={"max_launches": 6})
    bench.select(bench.gate("itl_s", "short"))
    found = find(bench, "itl_s", "short")
    assert (found.comparison.tier, found.comparison.looks) == (Tier.DUET, 2)
    assert found.verdict is Verdict.REGRESSED
    assert {name: bench.session.ledger.launches_of(name) for name in ("q4", "q4@old")} == {"q4": 6, "q4@old": 6}
    notes = [entry.record for entry in read_journal(bench.journal) if isinstance(entry.record, Note)]
    looks = [note.data for note in notes if note.text == LOOK]
    assert looks == [{"variant": "q4", "launches": "2"}, {"variant": "q4", "launches": "6"}]


def test_what_is_decided_gets_no_more(make_bench: Callable[..., Bench]) -> None:
    new, old = slower(0.0)
    bench = make_bench(new, shadows=(old,), protocol={"launches": 3, "max_launches": 6})
    bench.select(bench.gate("itl_s", "short"))
    assert find(bench, "itl_s", "short").verdict is Verdict.PASS
    assert bench.session.ledger.launches_of("q4") == 3


def test_judging_the_same_launches_again_is_no_new_look(make_bench: Callable[..., Bench], tmp_path: Path) -> None:
    new, old = slower(0.0)
    bench = make_bench(new, shadows=(old,), protocol={"launches": 3, "max_launches": 6})
    find(bench, "itl_s", "short")
    bench.session.close()
    (tmp_path / "again").mkdir()
    again = Bench(tmp_path / "again", new, shadows=(old,), protocol={"launches": 3}, ledger=bench.session.ledger)
    assert find(again, "itl_s", "short").comparison.looks == 1
    again.session.close()


def test_without_anything_to_compare_with_no_look_is_spent(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(make_variant("q4"))
    assert find(bench, "decode_tok_s", "short").verdict is Verdict.UNBASELINED
    assert bench.session.ledger.looks == {}


def test_the_sides_of_a_duet_go_on_at_the_same_launch(make_bench: Callable[..., Bench], tmp_path: Path) -> None:
    new, old = slower(0.0)
    bench = make_bench(new, shadows=(old,))
    bench.session.time_variants([new])
    bench.session.close()
    records = [entry.record for entry in read_journal(bench.journal)]
    last = max(index for index, record in enumerate(records) if isinstance(record, Launch))
    ledger = Ledger()
    for record in drop_superseded([*records[:last], Note(text=RESUMED)]):  # killed in the last launch of one side
        ledger.add(record)
    assert ledger.launches_of("q4") != ledger.launches_of("q4@old")
    (tmp_path / "again").mkdir()
    again = Bench(tmp_path / "again", new, shadows=(old,), ledger=ledger)
    with closing(again.session):
        again.session.time_variants([new], {"q4": 4})
    for name in ("q4", "q4@old"):
        assert [launch.index for launch in ledger.launches if launch.variant == name] == [0, 1, 2, 3]
    taken = [(s.variant, s.round) for s in ledger.samples if s.launch == 1 and s.scenario == "short"]
    assert taken == [("q4@old", 0), ("q4", 0), ("q4", 1), ("q4@old", 1)]  # side by side, and nothing of before


# ---------------------------------------------------------------------------------------------- what was decided


@contextmanager
def taken_up(bench: Bench, directory: Path, *variants: Variant, **options: Any) -> Iterator[Bench]:
    """A session over what the journal of another one holds."""
    bench.session.close()
    ledger = Ledger()
    for record in drop_superseded([*(e.record for e in read_journal(bench.journal)), Note(text=RESUMED)]):
        ledger.add(record)
    directory.mkdir()
    again = Bench(directory, *variants, ledger=ledger, finished=True, **options)
    again.select(again.gate("itl_s", "short"), again.gate("decode_tok_s", "short"))
    with closing(again.session):
        yield again


@pytest.mark.parametrize(
    ("share", "verdict"), [(0.5, Verdict.REGRESSED), (0.0, Verdict.PASS), (-0.4, Verdict.IMPROVED)]
)
def test_what_was_decided_is_not_decided_again_when_the_run_is_taken_up(
    make_bench: Callable[..., Bench], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: float, verdict: Verdict
) -> None:
    new, old = slower(share)
    protocol = {"launches": 3, "max_launches": 3}
    bench = make_bench(new, shadows=(old,), protocol=protocol)
    bench.select(bench.gate("itl_s", "short"), bench.gate("decode_tok_s", "short"))
    first = find(bench, "itl_s", "short")
    assert first.verdict is verdict
    monkeypatch.setattr("suite.engine.session.needs_more", lambda finding: finding.metric == "decode_tok_s")
    undecided = replace(find(bench, "decode_tok_s", "short"), verdict=Verdict.INCONCLUSIVE)
    bench.session._record(undecided)
    # From now on the old side is as fast as the new one, or slower: taken together nothing would be decided.
    changed = replace(old, options={**old.options, "decode_tok_s": 100.0 if share else 180.0})
    together = watch_judging(monkeypatch)
    with taken_up(bench, tmp_path / "again", new, shadows=(changed,), protocol=protocol) as again:
        found = find(again, "itl_s", "short")
        assert again.session.ledger.launches_of("q4") == 6
        assert found == first
        assert found.comparison.n == 3
    assert ("q4", "itl_s", "short") in together[-1]


def test_a_change_of_the_tolerance_is_judged_anew(make_bench: Callable[..., Bench], tmp_path: Path) -> None:
    new, old = slower(0.5)
    bench = make_bench(new, shadows=(old,), protocol={"launches": 3, "max_launches": 3})
    bench.select(bench.gate("itl_s", "short"))
    assert find(bench, "itl_s", "short").verdict is Verdict.REGRESSED
    protocol = {"launches": 3, "max_launches": 3}
    with taken_up(bench, tmp_path / "again", new, shadows=(old,), protocol=protocol) as again:
        lenient = replace(again.plan.policy["itl_s"], duet=0.9)
        again.session.plan = replace(again.plan, policy={**again.plan.policy, "itl_s": lenient})
        assert find(again, "itl_s", "short").verdict is Verdict.PASS


def test_what_was_decided_at_the_first_look_is_written_down_before_the_second(
    make_bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    new, old = slower(0.5)
    bench = make_bench(new, shadows=(old,), protocol={"launches": 3, "max_launches": 4})
    bench.select(bench.gate("itl_s", "short"), bench.gate("prefill_tok_s", "short"))
    monkeypatch.setattr("suite.engine.session.needs_more", lambda finding: finding.metric == "prefill_tok_s")
    assert find(bench, "itl_s", "short").comparison.n == 3
    kinds = bench.kinds()
    assert kinds.index("finding") < len(kinds) - 1 - kinds[::-1].index("launch")


# ---------------------------------------------------------------------------------------------- old side, control


def test_an_old_side_that_fails_leaves_the_variant_not_measured(make_bench: Callable[..., Bench]) -> None:
    new = make_variant("q4", reply=RIGHT)
    bench = make_bench(new, shadows=(old_of(new, fault="load"),))
    bench.select(bench.gate("score", "math"), bench.gate("decode_tok_s", "short"))
    for metric, scope in (("score", "math"), ("decode_tok_s", "short")):
        found = find(bench, metric, scope)
        assert found.verdict is Verdict.NOT_MEASURED
        assert "planted failure while loading" in found.comparison.reason
    assert list(bench.session.ledger.failures) == ["q4@old"]


def test_other_token_ids_of_the_old_side_are_its_own_fault(make_bench: Callable[..., Bench]) -> None:
    new, other = make_variant("q4", reply=RIGHT), make_variant("q5", reply=RIGHT)
    bench = make_bench(new, other, shadows=(old_of(new, shift_ids_from=5),))
    bench.select(bench.gate("score", "math"))
    assert find(bench, "score", "math").verdict is Verdict.NOT_MEASURED
    assert find(bench, "score", "math", variant=1).verdict is Verdict.UNBASELINED
    assert list(bench.session.ledger.failures) == ["q4@old"]


@dataclass(frozen=True, kw_only=True)
class SwayingLauncher(InProcessLauncher):
    """Under another number of threads the model answers something else."""

    reply: str = RIGHT

    @contextmanager
    def launch(self, variant: Variant, index: int = 0) -> Iterator[LiveVariant]:
        if variant.name.endswith("@control"):
            variant = replace(variant, options={**variant.options, "reply": self.reply})
        with super().launch(variant, index) as live:
            yield live


@dataclass(frozen=True, kw_only=True)
class FickleLauncher(InProcessLauncher):
    """Asked once more, the model answers something else, under whatever number of threads."""

    @contextmanager
    def launch(self, variant: Variant, index: int = 0) -> Iterator[LiveVariant]:
        if variant.name.endswith("@again"):
            variant = replace(variant, options={**variant.options, "reply": RIGHT})
        with super().launch(variant, index) as live:
            yield live


def test_what_answers_otherwise_when_it_is_asked_again_as_it_was_cannot_testify(
    make_bench: Callable[..., Bench],
) -> None:
    new = make_variant("q4", reply="the answer is 99")
    bench = make_bench(new, shadows=(old_of(new, reply=RIGHT),), launcher=FickleLauncher())
    found = find(bench, "score", "math")
    assert "no case of it can testify, for all differ from one run to the next" in found.sentence
    launches = [event for event in bench.asked() if "launch" in event]
    assert launches[-2:] == ["q4@control:launch 0", "q4@again:launch 0"]
    run = assemble(
        RunHead(id="r", created="now", suite_version="0", settings={}), bench.session.ledger, bench.matrix, CASES,
        bench.plan.environment,
    )  # fmt: skip
    assert not [trial for trial in run.trials if "@again" in trial.variant]


@pytest.mark.parametrize(("reply", "silent"), [(RIGHT, True), ("the answer is 99", False)])
def test_what_another_number_of_threads_grades_otherwise_cannot_testify(
    make_bench: Callable[..., Bench], reply: str, silent: bool
) -> None:
    new = make_variant("q4", reply="the answer is 99")
    bench = make_bench(new, shadows=(old_of(new, reply=RIGHT),), launcher=SwayingLauncher(reply=reply))
    assert ("no case of it can testify" in find(bench, "score", "math").sentence) is silent
    assert [event for event in bench.asked() if event == "q4@control:launch 0"]
    controls = [t for t in bench.session.ledger.trials.values() if t.variant == "q4@control"]
    assert [t.case for t in controls] == ["math/a", "math/b"]


def test_where_no_grade_changed_nothing_is_asked_again(make_bench: Callable[..., Bench]) -> None:
    new = make_variant("q4", reply=RIGHT)
    bench = make_bench(new, shadows=(old_of(new),))
    assert find(bench, "score", "math").verdict is Verdict.PASS
    assert not [event for event in bench.asked() if event.startswith("q4@control")]


def test_a_control_that_dies_silences_nobody(make_bench: Callable[..., Bench]) -> None:
    new = make_variant("q4", reply="the answer is 99")
    launcher = InProcessLauncher(deaths={"q4@control": 0})
    bench = make_bench(new, shadows=(old_of(new, reply=RIGHT),), launcher=launcher)
    assert find(bench, "score", "math").comparison.left_out == ()
    assert bench.session.ledger.failures == {}
    notes = [entry.record for entry in read_journal(bench.journal) if isinstance(entry.record, Note)]
    assert [note.data["variant"] for note in notes if note.text == "control failed"] == ["q4"]


def test_variants_that_were_never_in_memory_together_are_told(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(make_variant("a"), make_variant("b"), protocol={"resident": "one"})
    bench.session.time_variants(bench.matrix.variants)
    assert bench.session.ledger.groups == ["a | b"]
    head = RunHead(id="r", created="now", suite_version="0", settings={})
    run = assemble(head, bench.session.ledger, bench.matrix, CASES, bench.plan.environment)
    assert run.settings["in memory together"] == "a | b"


def test_of_the_limits_of_calibration_and_of_the_protocol_the_smaller_ones_count(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(make_variant("a"), protocol={"max_pressure": 0.5, "max_steal": 0.02})
    found = Noise(
        model="toy", machine="box", identity={}, measured="2026-11-29T12:00:00+00:00", sessions=3, launches=5, floors={},
        max_pressure=0.07, max_steal=0.2,
    )  # fmt: skip
    bench.baselines.write_noise(found)
    protocols: list[Protocol] = []

    class Watched(SpeedPass):
        def __init__(self, matrix: Matrix, *rest: Any) -> None:
            protocols.append(matrix.protocol)
            super().__init__(matrix, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("suite.engine.measuring.SpeedPass", Watched)
        bench.session.time_variants(bench.matrix.variants)
    assert [(p.max_pressure, p.max_steal) for p in protocols] == [(0.07, 0.02)]
