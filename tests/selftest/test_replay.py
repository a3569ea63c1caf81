"""The replay finds what was put in, and a wrong rule does not get through."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy
import pytest
from support.made_corpora import make_duets, make_sessions, write_all

from suite.gate.family import Decision
from suite.records import Comparison, Tolerance, Verdict
from suite.selftest.characteristics import duet_section, stored_section
from suite.selftest.corpus import DUETS, Regime, corpus_file, read_corpus
from suite.selftest.naive import NAIVE, naive_alarms
from suite.selftest.prove import Extent, prove
from suite.selftest.replay import FIRST, MOST, compare_logs, cover, judge_matrix, replay
from suite.selftest.resampling import draw_matrix, launch_logs
from suite.selftest.stored import StoredReplay, calibrate, compare_sessions, read_sessions
from suite.selftest.table import failed
from suite.selftest.traps import DUET_TRAPS, spring_duets, spring_stored
from suite.stats.intervals import paired_mean

Items = Sequence[tuple[Comparison, Tolerance]]


def cry_wolf(items: Items) -> list[Decision]:
    return [Decision(Verdict.REGRESSED) for _ in items]


def sleep_well(items: Items) -> list[Decision]:
    return [Decision(Verdict.PASS) for _ in items]


def shrug(items: Items) -> list[Decision]:
    return [Decision(Verdict.INCONCLUSIVE) for _ in items]


def test_comparisons_of_many_rows_are_those_of_one() -> None:
    drawn = numpy.random.default_rng(0).normal(0.01, 0.01, (5, 7))
    drawn[0] = 0.01  # no spread at all: the floor
    for row, comparison in zip(drawn.tolist(), compare_logs(drawn), strict=True):
        estimate = paired_mean(row)
        assert estimate is not None
        found = comparison.log_drift, comparison.log_se, comparison.log_df
        assert found == pytest.approx((estimate.mean, estimate.se, estimate.df))


def test_an_even_matrix_passes_and_slower_work_is_found() -> None:
    random = numpy.random.default_rng(1)
    logs = random.normal(0, 0.005, 60)
    even = replay(logs, 20, random)
    assert (even.alarmed, even.passed, even.launches) == (0, 20, 20 * 20 * FIRST)
    slower = replay(logs, 20, random, shift=math.log(1.1))
    assert slower.found == 20
    assert slower.honest == 20 * 19


def test_undecided_checks_get_more_launches_and_a_second_look() -> None:
    looks: list[set[int]] = []

    def undecided(items: Items) -> list[Decision]:
        looks.append({comparison.looks for comparison, _ in items})
        return [Decision(Verdict.PASS if comparison.n == MOST else Verdict.INCONCLUSIVE) for comparison, _ in items]

    verdicts, launches = judge_matrix(numpy.zeros((4, MOST)), undecided)
    assert verdicts == [Verdict.PASS] * 4
    assert launches == [MOST] * 4
    assert looks == [{1}, {2}]


def test_the_truth_of_drawn_launches_is_zero() -> None:
    """Arms of a corpus may differ by luck that stays; turned around at random they do not."""
    drawn = draw_matrix(numpy.full(10, 0.05), 40, 50, numpy.random.default_rng(2))
    assert set(numpy.abs(drawn).ravel()) == {0.05}
    assert abs(float(drawn.mean())) < 0.005


def test_intervals_cover_what_they_claim_and_pooled_ones_would_not() -> None:
    random = numpy.random.default_rng(3)
    logs = random.normal(0, 0.01, 100)
    assert 0.93 <= cover(logs, 2000, random) / 2000 <= 0.97
    assert cover(logs, 2000, random, launches=2) / 2000 >= 0.93


@pytest.mark.parametrize(
    ("rule", "bad"),
    [(cry_wolf, "any false REGRESSED"), (sleep_well, "slower: REGRESSED"), (shrug, "a check INCONCLUSIVE")],
)
def test_a_wrong_rule_fails_the_replay(rule: object, bad: str) -> None:
    section = duet_section(make_duets("quiet"), 0, 60, rule)  # type: ignore[arg-type]
    assert any(bad in row.check for row in failed([section]))


def test_the_production_rule_passes_it() -> None:
    section = duet_section(make_duets("quiet", spread=0.003), 0, 60, Extent().rule)
    assert failed([section]) == []


def test_a_rule_that_cries_wolf_falls_into_every_trap(tmp_path: Path) -> None:
    sections = list(prove(Extent(parts=("traps",), trap_runs=20, corpora=write_all(tmp_path), rule=cry_wolf), print))
    assert len(failed(sections)) == len(DUET_TRAPS) + 1


def test_the_production_rule_falls_into_none(tmp_path: Path) -> None:
    sections = list(prove(Extent(parts=("traps",), trap_runs=40, corpora=write_all(tmp_path)), print))
    assert failed(sections) == []


def test_a_corpus_that_is_missing_proves_nothing(tmp_path: Path) -> None:
    sections = list(prove(Extent(parts=("replay", "traps"), matrices=1, corpora=tmp_path), print))
    assert all(row.result == "missing" for row in failed(sections))
    assert len(failed(sections)) == 5 + len(DUET_TRAPS) + 1


def test_a_corpus_of_a_few_launches_proves_nothing() -> None:
    section = duet_section(make_duets("quiet", launches=4), 0, 5, Extent().rule)
    assert [row.result for row in failed([section])] == ["missing"]


def test_naive_rules_fail_unchanged_work_on_a_drifting_machine() -> None:
    random = numpy.random.default_rng(4)
    corpus = make_duets("quiet", launches=60)
    alarms = naive_alarms(corpus, corpus, 200, random)
    assert set(alarms) == set(NAIVE)
    assert alarms["Mann-Whitney on slices, p < .05"] > 20  # ten times what 5 % would be of independent slices
    faster = make_duets("quiet", launches=60, seed=2)
    assert max(naive_alarms(corpus, faster, 50, random).values()) <= 50


@pytest.mark.parametrize("regime", DUETS)
def test_committed_launches_raise_no_alarm(regime: Regime) -> None:
    """A hundred matrices of each recorded regime; `quantdrift selftest` takes three thousand."""
    file = corpus_file(regime)
    if not file.is_file():
        pytest.skip(f"{regime} was not recorded yet")
    section = duet_section(read_corpus(file), 0, 100, Extent().rule)
    assert not any("REGRESSED" in row.check and "false" in row.check for row in failed([section]))


def test_the_same_seed_gives_the_same_table() -> None:
    corpus = make_duets("unpinned")
    tables = [duet_section(corpus, seed, 10, Extent().rule) for seed in (1, 1, 2)]
    assert tables[0] == tables[1]
    assert tables[0] != tables[2]


# ------------------------------------------------------------------------------------------ stored baselines


def test_a_yardstick_normalises_only_where_it_narrows() -> None:
    lonely, helped = (calibrate(make_sessions(spread=0.03, follows=f).sessions) for f in (0.0, 1.0))
    assert lonely is not None
    assert helped is not None
    assert lonely.normaliser == "none"
    assert helped.normaliser == "copy"
    assert helped.normalised_session_sd is not None
    assert helped.normalised_session_sd < 0.5 * helped.session_sd


def test_a_stored_comparison_is_that_of_production_and_sees_the_shift() -> None:
    corpus = make_sessions()
    sessions, floor = read_sessions(corpus), calibrate(corpus.sessions)
    same = compare_sessions(sessions[0], sessions[0], floor)
    slower = compare_sessions(sessions[0], sessions[0], floor, shift=0.2)
    assert same.log_drift == pytest.approx(0.0, abs=1e-12)
    assert slower.log_drift == pytest.approx(0.2, abs=1e-9)
    assert compare_sessions(sessions[0], sessions[1], floor, unclean="a neighbour").contended


def test_stored_matrices_do_not_cry_wolf_and_see_a_large_shift() -> None:
    stored = StoredReplay(make_sessions(spread=0.005), calibrated=True, normalise=False)
    random = numpy.random.default_rng(5)
    assert stored.run(20, random).alarmed == 0
    assert stored.run(20, random, shift=math.log(1.3)).found == 20


def test_stored_section_tells_all_three_ways() -> None:
    section = stored_section(make_sessions(spread=0.02, follows=1.0), 0, 4)
    checks = " ".join(row.check for row in section.rows)
    assert "not calibrated" in checks
    assert "yardstick (copy)" in checks


def test_a_busy_run_against_a_quiet_baseline_is_contended_not_regressed() -> None:
    busy = make_duets("contended", launches=12)
    corpora = {"contended": busy, "sessions": make_sessions()}
    assert spring_stored(corpora, 20, numpy.random.default_rng(6)) == 0  # type: ignore[arg-type]
    assert spring_stored(corpora, 20, numpy.random.default_rng(6), cry_wolf) == 20  # type: ignore[arg-type]


def test_traps_are_sprung_one_check_a_run() -> None:
    sizes: list[int] = []

    def counting(items: Items) -> list[Decision]:
        sizes.append(len(items))
        return sleep_well(items)

    logs = launch_logs(make_duets("quiet"))
    assert spring_duets(lambda random: random.choice(logs, size=MOST), 3, numpy.random.default_rng(0), counting) == 0
    assert sizes == [1, 1, 1]
