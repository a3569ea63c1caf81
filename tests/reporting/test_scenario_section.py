"""What the report tells of scenarios, where the table above does not tell it all."""

from __future__ import annotations

from dataclasses import replace

from support import sample_stories as stories

from suite.records import Measurement, Run, Scenario, Verdict
from suite.reporting import markdown
from suite.reporting.model import build_report
from suite.reporting.unmeasured import unmeasured

PLAIN = Scenario(name="short", prompt_tokens=64, new_tokens=16)
TALK = Scenario(name="talk", prompt_tokens=100, new_tokens=10, turns=4)
DEEP = Scenario(name="deep", prompt_tokens=4032, new_tokens=16, kept_tokens=4000)
MEASURED = {
    "talk": {
        "prefill_tok_s": 900.0, "ttft_s": 0.111, "decode_tok_s": 120.0, "itl_s": 0.008, "resent_ttft_s": 0.444,
        "turn_gain": 4.0, "evaluated_tokens": 101.0, "resent_tokens": 430.0, "held_bytes": 5e7,
    },
    "deep": {"decode_tok_s": 60.0, "itl_s": 0.0166, "itl_p95_s": 0.02, "growth_bytes": 0.0, "late_slowdown": 1.25},
}  # fmt: skip


def run_of(*scenarios: Scenario) -> Run:
    """A healthy run in which the first variant has figures of these scenarios, and the second cannot do them."""
    run = stories.healthy()
    can, cannot, *others = run.variants
    figures = tuple(
        Measurement(metric=metric, scope=scope, value=value)
        for scope, values in MEASURED.items()
        for metric, value in values.items()
    )
    missing = Measurement(
        metric="itl_s", scope="deep", value=None, status="not_measured",
        reason="it needs 4048 tokens of context, and the variant has 2048",
    )  # fmt: skip
    variants = (
        replace(can, measurements=(*can.measurements, *figures)),
        replace(cannot, measurements=(*cannot.measurements, missing)),
        *others,
    )
    return replace(run, variants=variants, matrix=replace(run.matrix, scenarios=scenarios))


def section(run: Run) -> list[str]:
    text = markdown.render(build_report(run))
    return text.partition("## Scenarios")[2].partition("\n## ")[0].splitlines()


def test_two_plain_scenarios_need_no_section() -> None:
    assert section(run_of(PLAIN, replace(PLAIN, name="long"))) == []
    assert section(run_of(PLAIN, replace(PLAIN, name="long"), replace(PLAIN, name="longer")))


def test_a_conversation_and_a_depth_tell_what_is_theirs() -> None:
    found = section(run_of(PLAIN, TALK, DEEP))
    talk = next(line for line in found if line.startswith("| `talk`"))
    assert talk == (
        "| `talk` 100 → 10 tokens, 4 turns | `fp16` | 900 | 111 ms | 120 | 8 ms | – | – | 50 MB | sent again: TTFT 444 ms, "
        "4 times as long; 101 of 430 tokens evaluated with the state kept |"
    )
    deep = [line for line in found if line.startswith("| `deep`")]
    assert deep[0].endswith(
        "| 60.0 | 16.6 ms | 20 ms | – | – | memory grew by 0 kB over the second half; its last gaps are 1.25 times its first |"
    )
    assert deep[1].endswith("| – | it needs 4048 tokens of context, and the variant has 2048 |")
    assert len(deep) == 2  # of the others nothing is known


def test_what_a_variant_and_a_scenario_are_called_cannot_break_the_table() -> None:
    rows = section(run_of(PLAIN, replace(TALK, name="talk")))
    width = {line.replace("\\|", "").count("|") for line in rows if line.startswith("|")}
    assert width == {11}


def test_a_busy_machine_is_one_sentence_however_many_scenarios_there_are() -> None:
    run = stories.healthy()
    first, *others = run.variants
    busy = tuple(
        Measurement(
            metric="itl_s",
            scope=f"s{number}",
            value=0.01,
            status="contended",
            reason=f"{number} of {number} samples contended",
        )
        for number in range(1, 6)
    )

    def told(count: int) -> list[str]:
        variants = (replace(first, measurements=(*first.measurements, *busy[:count])), *others)
        return [said for said in unmeasured(replace(run, variants=variants)) if said.startswith("no clean sample")]

    assert len(told(3)) == 3
    assert told(5) == ["no clean sample: fp16 in s1, s2, s3, s4, s5; in s1, for one: 1 of 1 samples contended"]


def test_what_a_finding_says_of_a_scenario_is_not_said_again_of_its_other_metrics() -> None:
    run = run_of(PLAIN, DEEP)
    reason = "it needs 4048 tokens of context, and the variant has 2048"
    assert any(reason in said for said in unmeasured(run))
    finding = next(f for f in run.findings if f.variant == run.variants[1].variant.name)
    spoken = replace(
        finding, metric="decode_tok_s", scope="deep", verdict=Verdict.NOT_MEASURED,
        comparison=replace(finding.comparison, reason=reason),
    )  # fmt: skip
    assert not any(reason in said for said in unmeasured(replace(run, findings=(*run.findings, spoken))))
