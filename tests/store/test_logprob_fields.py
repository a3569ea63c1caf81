"""Log-probabilities in the files: left out of baselines that have none, and unknown in journals from before."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from suite.records import (
    BaselineCase,
    Generation,
    Provenance,
    QualityBaseline,
    Score,
    Trial,
    TrialStatus,
)
from suite.store.baselines import BaselineStore, encode
from suite.store.journal import Journal, read_journal

BARE = BaselineCase(
    version=1, scorer="number@1", prompt_sha256="ab", status=TrialStatus.SCORED, score=1.0, correct=True, answer="18",
    output_sha256="cd", output_tokens=3,
)  # fmt: skip
GENERATION = Generation(
    token_ids=(4, 5), text="18", finish_reason="stop", prompt_tokens=3, evaluated_tokens=3, prefill_s=0.1,
    token_times_s=(0.2, 0.3), logprobs=(-0.123456, -1e-9),
)  # fmt: skip
TRIAL = Trial(
    variant="q4", case="math/a", case_version=1, domain="math", family=None, scorer="number@1", prompt_sha256="ab",
    score=Score(status=TrialStatus.SCORED, value=1.0, correct=True), generation=GENERATION, accepted_logprob=-0.25,
    accepted_sha256="cd",
)  # fmt: skip


def baseline(*cases: BaselineCase) -> QualityBaseline:
    return QualityBaseline(
        model="smol", variant="q4", identity={}, suspects={}, metrics={},
        provenance=Provenance(accepted="2026-11-20", reason="first", run="r0"),
        cases={f"math/{number}": case for number, case in enumerate(cases)},
    )  # fmt: skip


def test_a_case_has_its_ids_and_four_digits_in_its_line_or_neither(tmp_path: Path) -> None:
    weighed = dataclasses.replace(BARE, output_ids="5 60 700", logprob=-0.123456)
    store = BaselineStore(tmp_path)
    lines = store.write(baseline(BARE, weighed)).read_text().splitlines()
    bare, full = (next(line for line in lines if f'"math/{number}"' in line) for number in (0, 1))
    assert "output_ids" not in bare
    assert "logprob" not in bare
    assert '"logprob": -0.1235' in full
    assert '"output_ids": "5 60 700"' in full
    found = store.read_quality("smol", "q4")
    assert found is not None
    assert not found.edited
    assert found.cases == {"math/0": BARE, "math/1": dataclasses.replace(weighed, logprob=-0.1235)}
    assert encode(found) == encode(baseline(BARE, weighed))


def test_a_journal_keeps_them_and_one_from_before_reads_without(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        journal.append(TRIAL)
    assert read_journal(path)[0].record == TRIAL
    head, line = path.read_text().splitlines()
    before = json.loads(line)
    del before["record"]["accepted_logprob"], before["record"]["accepted_sha256"]
    del before["record"]["generation"]["logprobs"]
    path.write_text(f"{head}\n{json.dumps(before)}\n")
    read = read_journal(path)[0].record
    assert read == dataclasses.replace(
        TRIAL,
        generation=dataclasses.replace(GENERATION, logprobs=None),
        accepted_logprob=None,
        accepted_sha256=None,
    )
