"""A machine that was not as it should be: never a PASS, and no accusation either."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from suite.gate.compare import compare
from suite.gate.duet import OldSide
from suite.gate.flags import find_flags
from suite.gate.judge import judge, needs_more
from suite.gate.policy import DEFAULT_POLICY
from suite.records import Aspect, Baselines, Finding, Launch, SampleStatus, SpeedSample, Verdict, Yardstick

OLD = (0.0101, 0.0099, 0.0100, 0.0100, 0.0100)
Spoil = Callable[[Sequence[SpeedSample], Sequence[Launch]], tuple[Sequence[SpeedSample], Sequence[Launch]]]


def seen(**readings: Any) -> Spoil:
    """The witnesses of every slice saw something."""
    return lambda samples, launches: (
        [dataclasses.replace(s, witness=dataclasses.replace(s.witness, **readings)) for s in samples],
        launches,
    )


def crowded(samples: Sequence[SpeedSample], launches: Sequence[Launch]) -> tuple[Sequence[SpeedSample], Any]:
    """Two of the three slices of each launch were not ours."""
    return [dataclasses.replace(s, status=SampleStatus.CONTENDED) if s.round else s for s in samples], launches


def unsteady(samples: Sequence[SpeedSample], launches: Sequence[Launch]) -> tuple[Any, Sequence[Launch]]:
    """The machine itself was twice as fast in one launch."""
    fast = Yardstick(hash_bytes_s=2e9, copy_bytes_s=1e10)
    return samples, [dataclasses.replace(launches[0], yardstick=fast), *launches[1:]]


FLAGS = {
    "a neighbour took 10 of 15 slices": crowded,
    "the hypervisor took 3% of the CPU time": seen(steal=0.03),
    "500 involuntary context switches a second and thread": seen(involuntary_switches=1000),
    "the machine's own speed varied by 31% between launches": unsteady,
}


def timed(made: Any, gap: float) -> tuple[Sequence[SpeedSample], Sequence[Launch]]:
    return made.slices(*[[gap * value / 0.01] * 3 for value in OLD]), [made.launch(index) for index in range(5)]


def judged(made: Any, gap: float, spoil: Spoil | None = None) -> Finding:
    samples, launches = timed(made, gap)
    if spoil is not None:
        samples, launches = spoil(samples, launches)
    stored = Baselines(speed=made.speed_baseline({"itl_s/short": OLD}), noise=made.noise("itl_s"))
    found = compare(made.timed(samples, launches), (), stored, made.environment, samples=samples)
    return judge(next(c for c in found if c.metric == "itl_s"), DEFAULT_POLICY)


@pytest.mark.parametrize(
    ("gap", "verdict"), [(0.0098, Verdict.PASS), (0.013, Verdict.REGRESSED), (0.008, Verdict.IMPROVED)]
)
@pytest.mark.parametrize("flag", FLAGS)
def test_each_flag_alone_makes_any_verdict_inconclusive(made: Any, gap: float, verdict: Verdict, flag: str) -> None:
    assert judged(made, gap).verdict is verdict
    finding = judged(made, gap, FLAGS[flag])
    assert finding.comparison.flags == (flag,)
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert f"the machine was not as it should be ({flag})" in finding.sentence
    assert finding.next_step.startswith("add launches to these when nothing else runs:\n")
    assert needs_more(finding)


def test_a_quiet_machine_raises_none(made: Any) -> None:
    assert find_flags(*timed(made, 0.01)) == ()
    assert find_flags((), ()) == ()


@pytest.mark.parametrize(
    ("spoil", "flagged"),
    [
        (seen(steal=0.02), False), (seen(steal=0.021), True), (seen(steal=None), False),
        (seen(involuntary_switches=200), False), (seen(involuntary_switches=202), True),
        (seen(involuntary_switches=None), False), (seen(involuntary_switches=1000, wall_s=0.0), False),
    ],
)  # fmt: skip
def test_where_the_limits_lie(made: Any, spoil: Spoil, flagged: bool) -> None:
    assert bool(find_flags(*spoil(*timed(made, 0.01)))) is flagged


def test_half_of_the_slices_may_be_taken_and_rejected_ones_do_not_count(made: Any) -> None:
    samples = made.slices((0.01,) * 4)
    half = [dataclasses.replace(s, status=SampleStatus.CONTENDED) if s.round < 2 else s for s in samples]
    assert find_flags(half, ()) == ()
    rejected = [dataclasses.replace(half[3], status=SampleStatus.REJECTED), *half[:3]]
    assert find_flags(rejected, ()) == ("a neighbour took 2 of 3 slices",)


def test_what_unclean_slices_saw_raises_no_flag(made: Any) -> None:
    """One slice of five with a lot of steal, and it is not used."""
    samples = made.slices((0.01,) * 5)
    stolen = dataclasses.replace(samples[0].witness, steal=0.9, involuntary_switches=9999)
    spoilt = dataclasses.replace(samples[0], witness=stolen, status=SampleStatus.CONTENDED)
    assert find_flags([spoilt, *samples[1:]], ()) == ()


def test_two_launches_say_nothing_about_the_machines_spread(made: Any) -> None:
    _, launches = unsteady((), [made.launch(index) for index in range(3)])
    assert find_flags((), launches) != ()
    assert find_flags((), launches[:2]) == ()
    assert find_flags((), [dataclasses.replace(launch, yardstick=None) for launch in launches]) == ()


def test_a_flag_concerns_the_scenario_that_it_was_seen_in(made: Any) -> None:
    samples, launches = timed(made, 0.01)
    stolen, _ = seen(steal=0.5)(samples, launches)
    elsewhere = [dataclasses.replace(s, scenario="long") for s in stolen]
    stored = Baselines(speed=made.speed_baseline({"itl_s/short": OLD, "itl_s/long": OLD}))
    everything = [*samples, *elsewhere]
    found = compare(made.timed(everything, launches), (), stored, made.environment, samples=everything)
    flags = {c.scope: bool(c.flags) for c in found if c.metric == "itl_s"}
    assert flags == {"short": False, "long": True}


@pytest.mark.parametrize("identity", [None, {"prompt_format": "raw"}])
def test_flags_are_told_where_nothing_can_be_compared(made: Any, identity: dict[str, str] | None) -> None:
    samples, launches = seen(steal=0.5)(*timed(made, 0.01))
    stored = Baselines(speed=made.speed_baseline({"itl_s/short": OLD}, identity=identity) if identity else None)
    found = compare(made.timed(samples, launches), (), stored, made.environment, samples=samples)
    assert {c.unresolved for c in found} == {Verdict.NOT_COMPARABLE if identity else Verdict.UNBASELINED}
    assert all(bool(c.flags) is (c.aspect is Aspect.SPEED) for c in found)


def test_samples_of_other_variants_raise_no_flag(made: Any) -> None:
    samples, launches = timed(made, 0.01)
    others = [dataclasses.replace(s, variant="q8") for s in seen(steal=0.5)(samples, launches)[0]]
    stored = Baselines(speed=made.speed_baseline({"itl_s/short": OLD}))
    found = compare(made.timed(samples, launches), (), stored, made.environment, samples=[*samples, *others])
    assert {c.flags for c in found} == {()}


def test_memory_is_judged_whatever_the_machine_did(made: Any) -> None:
    samples, launches = seen(steal=0.5)(*timed(made, 0.01))
    stored = Baselines(speed=made.speed_baseline({"peak_rss_bytes/all": (100.0 * 2**20,)}))
    found = compare(made.timed(samples, launches), (), stored, made.environment, samples=samples)
    assert judge(next(c for c in found if c.metric == "peak_rss_bytes"), DEFAULT_POLICY).verdict is Verdict.PASS


def test_side_by_side_the_old_sides_flags_count_too_and_name_it(made: Any) -> None:
    samples, launches = timed(made, 0.01)
    spoilt, _ = crowded(samples, launches)
    shadow = made.timed(tuple(spoilt), launches)
    old = OldSide(result=shadow, samples=tuple(spoilt), described="old.gguf")
    found = compare(made.timed(samples, launches), (), Baselines(), made.environment, samples=samples, old=old)
    finding = judge(next(c for c in found if c.metric == "itl_s"), DEFAULT_POLICY)
    assert finding.comparison.flags == ("old.gguf: a neighbour took 10 of 15 slices",)
    assert finding.verdict is Verdict.INCONCLUSIVE
