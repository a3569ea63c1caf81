"""What a person sees of scenarios that keep a state, watch memory, and of variants that cannot do them."""

from __future__ import annotations

import pytest
from support.foreign_project import ForeignProject, verdicts

SPEED = "--matrix-only=speed"
TALK = "scenarios.talk = { prompt_tokens = 64, new_tokens = 8, turns = 3 }"
LONG = "scenarios.long = { prompt_tokens = 8, new_tokens = 128, watch = true, rounds = 1 }"
DEEP = "scenarios.deep = { prompt_tokens = 520, new_tokens = 6, kept_tokens = 512 }"


def test_a_variant_that_evaluates_its_state_again_in_silence_is_found_without_any_baseline(
    project: ForeignProject,
) -> None:
    for name, state in {"keeps": "kept", "counts": "evaluated", "lies": "silent"}.items():
        project.write_script(name, state=state)
    project.write_matrix({"keeps": {}, "counts": {}, "lies": {}}, more=TALK)
    result = project.run(SPEED)
    assert result.ret == 1
    keeps, counts, lies = (verdicts(project.read_run(), name) for name in ("keeps", "counts", "lies"))
    held = {"reevaluated_tokens/talk", "reevaluated_share/talk"}
    assert {key: keeps[key] for key in held} == dict.fromkeys(held, "PASS")
    assert {key: counts[key] for key in held} == dict.fromkeys(held, "REGRESSED")
    assert {key: lies[key] for key in held} == {
        "reevaluated_tokens/talk": "PASS", "reevaluated_share/talk": "REGRESSED",
    }  # fmt: skip
    result.stdout.fnmatch_lines(
        ["*REGRESSED: lies: share of the kept tokens evaluated again, by its time (talk) is *(3*"]
    )
    assert keeps["ttft_s/talk"] == "UNBASELINED"


def test_a_leak_fails_its_gate_and_a_baseline_excuses_none(project: ForeignProject) -> None:
    project.write_script("leaky", leak_bytes=256 << 10)
    project.write_matrix({"q4": {}, "leaky": {}}, more=LONG)
    result = project.run(SPEED)
    assert result.ret == 1
    run = project.read_run()
    assert verdicts(run, "q4")["growth_bytes/long"] == "PASS"
    assert verdicts(run, "leaky")["growth_bytes/long"] == "REGRESSED"
    result.stdout.fnmatch_lines(
        ["*REGRESSED: leaky: memory that goes on growing while it generates (long) is 1?.? MB (3 launches*"]
    )
    project.accept("all")
    assert project.baseline_files()
    assert not any("growth_bytes" in text for text in project.baseline_files().values())
    assert project.run(SPEED).ret == 1


def test_what_a_variant_cannot_do_is_skipped_with_the_reason_and_its_speed_is_accepted(project: ForeignProject) -> None:
    project.write_script("small", n_ctx=256)
    project.write_matrix({"q4": {}, "small": {}}, more=DEEP)
    result = project.run("-rs")
    assert result.ret == 0
    found = verdicts(project.read_run(), "small")
    assert found["decode_tok_s/deep"] == "NOT_MEASURED"
    assert found["decode_tok_s/short"] == "UNBASELINED"
    result.stdout.fnmatch_lines(["*it needs 526 tokens of context, and the variant has 256*"])
    (deep,) = {f["next_step"] for f in project.read_run()["findings"] if f["verdict"] == "NOT_MEASURED"}
    assert deep == "nothing, if that is meant; else give it what it lacks"
    assert project.accept().ret == 0
    speeds = {name: text for name, text in project.baseline_files().items() if "/speed/" in name}
    assert len(speeds) == 2
    assert project.run(SPEED).ret == 0
    assert verdicts(project.read_run(), "q4")["decode_tok_s/deep"] == "PASS"


@pytest.mark.parametrize("mode", ["new", "changed"])
def test_a_baseline_that_knows_no_tails_stays_as_it_is(project: ForeignProject, mode: str) -> None:
    """An older version accepted it: what is measured besides since then is no reason to take a new speed."""
    project.write_matrix({"q4": {}}, more="scenarios.long = { prompt_tokens = 8, new_tokens = 128 }")
    assert project.accept().ret == 0
    (speed,) = [project.root / name for name in project.baseline_files() if "/speed/" in name]
    late = ("itl_p9", "held_bytes", "digest")
    lines = speed.read_text().splitlines()
    assert sum(any(word in line for word in late) for line in lines) > 3
    speed.write_text(
        "\n".join(line for line in lines if not any(word in line for word in late)).replace("},\n}", "}\n}")
    )
    project.write_script("q4", seed=5)  # other luck, the same speed
    kept = {line for line in speed.read_text().splitlines() if '"launches"' in line}
    assert project.accept(mode).ret == 0
    assert {line for line in speed.read_text().splitlines() if '"launches"' in line} == kept
