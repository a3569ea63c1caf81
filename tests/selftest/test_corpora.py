"""Corpora: what is stored is what was recorded, and a broken file is told by name."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from support.made_corpora import make_duets, make_sessions

from suite.engine.sampling import judge_sample
from suite.errors import StoreError
from suite.metrics.speed import pair_logs
from suite.records import Protocol, Scenario, SpeedSample, Witness
from suite.selftest import recording
from suite.selftest.corpus import DIRECTORY, Corpus, corpus_file, read_corpora, read_corpus, write_corpus
from suite.selftest.recording import COARSE, Shape, extend_corpus, places_of, shape_of, start_corpus
from suite.selftest.resampling import MIN_LAUNCHES, launch_logs


@pytest.mark.parametrize("corpus", [make_duets("quiet", launches=3), make_sessions(sessions=2)])
def test_a_corpus_is_read_as_it_was_written_one_launch_a_line(corpus: object, tmp_path: Path) -> None:
    file = write_corpus(corpus, tmp_path)  # type: ignore[arg-type]
    assert read_corpus(file) == corpus
    rows = [line for line in file.read_text().splitlines() if line.startswith("  {")]
    stored = json.loads(file.read_text())
    assert len(rows) == len(stored.get("launches") or stored["sessions"])


def test_only_what_is_there_is_read(tmp_path: Path) -> None:
    write_corpus(make_duets("coarse", launches=2), tmp_path)
    assert list(read_corpora(("quiet", "coarse"), tmp_path)) == ["coarse"]


@pytest.mark.parametrize(
    ("text", "told"), [("{", "no corpus can be read"), ('{"schema": 9}', "schema 9"), ("[]", "schema None")]
)
def test_a_broken_corpus_is_named(text: str, told: str, tmp_path: Path) -> None:
    file = corpus_file("quiet", tmp_path)
    file.write_text(text)
    with pytest.raises(StoreError, match=told) as raised:
        read_corpus(file)
    assert str(file) in str(raised.value)


def test_launch_logs_are_those_of_the_metrics() -> None:
    """The arrays of the replay and `pair_logs` on the same slices agree, for the median and for the stall guard."""
    corpus = disturb(make_duets("contended", launches=4))
    for metric in ("itl_s", "decode_tok_s"):
        new: list[SpeedSample] = []
        old: list[SpeedSample] = []
        for index, launch in enumerate(corpus.launches):
            for arm, side in ((launch.b, new), (launch.a, old)):
                times = arm.median_ms if metric == "itl_s" else arm.mean_ms
                seen = zip(times, arm.pressure, strict=True)
                side.extend(sample(index, turn, time / 1e3, pressure) for turn, (time, pressure) in enumerate(seen))
        expected = list(pair_logs(metric, new, old).values())
        assert len(expected) == 3  # the last launch has no clean pair
        assert launch_logs(corpus, metric).tolist() == pytest.approx(expected, abs=1e-12)
        assert len(launch_logs(corpus, metric, clean=False)) == 4


def disturb(corpus: Corpus) -> Corpus:
    """A neighbour in one slice of the first launch, and in all of the last."""
    first, *middle, last = corpus.launches
    first = dataclasses.replace(first, a=dataclasses.replace(first.a, pressure=(0.5, None, 0.0, 0.0, 0.0, 0.15)))
    last = dataclasses.replace(last, b=dataclasses.replace(last.b, pressure=(0.5,) * 6))
    return dataclasses.replace(corpus, launches=(first, *middle, last))


def sample(launch: int, turn: int, gap_s: float, pressure: float | None) -> SpeedSample:
    made = SpeedSample(
        variant="x", scenario="s", launch=launch, round=turn, prompt_tokens=1, evaluated_tokens=1, new_tokens=4,
        prefill_s=0.1, ttft_s=0.1, itl_s=(gap_s,) * 3,
        witness=Witness(wall_s=1.0, cpu_s=1.0, threads=1, pressure=pressure),
    )  # fmt: skip
    status, _ = judge_sample(made, Scenario(name="s", prompt_tokens=1, new_tokens=4), Protocol())
    return dataclasses.replace(made, status=status)


def test_coarse_slices_are_longer_and_fewer() -> None:
    usual = Shape()
    coarse = shape_of("coarse", usual)
    assert coarse.tokens == COARSE * usual.tokens
    assert coarse.pairs < usual.pairs
    assert shape_of("quiet", usual) == usual


def test_arms_share_a_cpu_except_where_the_regime_is_about_that() -> None:
    first, second = places_of("quiet", 3)
    assert first == second
    assert any(places_of("unpinned", index)[0] == () for index in range(4))


@pytest.mark.parametrize("regime", ["quiet", "sessions"])
def test_a_recording_goes_on_where_it_was_broken_off(
    regime: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "SESSION_LAUNCHES", 2)
    shape = Shape(tokens=12, pairs=2, solo=1, pause_s=0.0)
    begun = start_corpus(regime, shape, "test")  # type: ignore[arg-type]
    grown = list(extend_corpus(begun, shape, 1))[-1]
    write_corpus(grown, tmp_path)
    again = list(extend_corpus(read_corpus(corpus_file(grown.regime, tmp_path)), shape, 2))
    assert len(again) == 1
    held = again[0].sessions or again[0].launches
    assert len(held) == 2
    assert held[0] == (grown.sessions or grown.launches)[0]
    arms = [launch.arm for s in again[0].sessions for launch in s.launches] or [
        arm for launch in again[0].launches for arm in (launch.a, launch.b)
    ]
    assert all(value > 0 for arm in arms for value in (*arm.median_ms, *arm.mean_ms, arm.cold_ms))


def test_every_regime_has_its_corpus() -> None:
    corpora = {file.stem: read_corpus(file) for file in DIRECTORY.glob("*.json")}
    assert set(corpora) == {"quiet", "contended", "unpinned", "coarse", "sessions"}
    for name, corpus in corpora.items():
        assert corpus.regime == name
        assert len(corpus.launches) + len(corpus.sessions) >= MIN_LAUNCHES
        script, *rest = corpus.command.removeprefix("python ").split()
        assert script == "benchmarks/record_corpora.py"
        assert not any("/" in word for word in rest), "a path of the machine that it was recorded on"
