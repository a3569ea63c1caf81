"""Nothing is found where nothing ails, and nothing is too sparse or too strange to be looked at."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest
from support import sample_fidelity, sample_health, sample_runs, sample_stories

from suite.doctor import RULES, examine
from suite.metrics.catalog import SPECS
from suite.records import Environment, Health, Run
from suite.store.runs import decode_run, encode_run

SILENT = {"padding", "gpu-support", "throttling", "served-rate"}
"""Rules that have nothing to look at on a virtual machine of two cores at batch one, without a server."""
STRANGE = (
    "",
    "x",
    "nan",
    "inf",
    "-1",
    "0",
    "9" * 400,
    "1 of",
    "=",
    "a=b",
    "\x1b[31m",
    "0 of 0",
    "a=" + "9" * 5000,
    "9" * 5000 + " of 1",
)


def test_a_healthy_run_has_no_finding() -> None:
    found = [item for item in examine(sample_health.run()) if item.status is Health.FINDING]
    assert found == []


def test_every_rule_that_can_passes_it_with_its_numbers() -> None:
    items = examine(sample_health.run())
    assert {item.rule for item in items if item.status is Health.PASS} == {rule.id for rule in RULES} - SILENT
    assert all(item.evidence and not item.remedy for item in items)


def test_rules_are_told_apart() -> None:
    assert len({rule.id for rule in RULES}) == len({rule.title for rule in RULES}) == len(RULES) >= 15


def test_each_rule_looks_at_each_variant_or_at_the_run_once() -> None:
    run = sample_health.run()
    counts = Counter(item.rule for item in examine(run))
    for rule in RULES:
        assert counts[rule.id] == (1 if rule.of_run else len(run.variants)), rule.id


def test_one_variant_alone_keeps_what_concerns_the_run() -> None:
    names = {item.variant for item in examine(sample_health.run(), "q8_0")}
    assert names == {None, "q8_0"}


def test_the_same_run_read_back_from_a_file_says_the_same() -> None:
    run = sample_health.run()
    stored = json.loads(json.dumps(encode_run(run, SPECS)))
    assert examine(decode_run(stored, where="run.json")) == examine(run)


def test_an_older_file_without_what_workers_saw_is_looked_at() -> None:
    stored = json.loads(json.dumps(encode_run(sample_health.run(), SPECS)))
    for variant in stored["variants"]:
        for launch in variant["launches"]:
            del launch["seen"]
    items = examine(decode_run(stored, where="run.json"))
    assert not [item for item in items if item.status is Health.FINDING]


@pytest.mark.parametrize("story", sample_stories.STORIES)
def test_no_story_is_too_sparse(story: str) -> None:
    items = examine(sample_stories.STORIES[story]())
    assert not failed(sample_stories.STORIES[story]())
    assert {item.rule for item in items} == {rule.id for rule in RULES}


@pytest.mark.parametrize(
    "sparse",
    [
        sample_runs.run([]),
        sample_runs.run([], environment=Environment(machine="m", identity={}, suspects={}, readings={})),
        replace(sample_health.run(), speed_samples=(), trials=()),
        replace(sample_health.run(), matrix=sample_runs.matrix(sample_health.VARIANTS, scenarios=())),
        replace(
            sample_health.run(), variants=tuple(sample_health.result_of(n, launches=()) for n in sample_health.VARIANTS)
        ),
        sample_fidelity.damaged(),
    ],
    ids=["no variants", "no machine", "no samples", "no scenarios", "no launches", "cached answers"],
)
def test_what_is_absent_is_no_finding(sparse: Run) -> None:
    assert not failed(sparse)
    found = {item.rule for item in examine(sparse) if item.status is Health.FINDING}
    assert found <= {"slower"}  # the sampled INT8 is


@pytest.mark.parametrize("value", STRANGE)
@pytest.mark.parametrize("variant", ["fp16", "q8_0"])
def test_no_fact_is_too_strange(variant: str, value: str) -> None:
    for name in sample_health.facts(variant):
        assert not failed(sample_health.with_told(variant, {name: value}))


@pytest.mark.parametrize("value", STRANGE)
def test_no_machine_is_too_strange(value: str) -> None:
    healthy = sample_health.run()
    for name in healthy.environment.identity:
        strange = replace(healthy.environment, identity={**healthy.environment.identity, name: value})
        assert not failed(replace(healthy, environment=strange))
    for name in ("thread variables", "cpu_quota", "memory_bytes", "device_processes"):
        assert not failed(replace(healthy, environment=sample_health.environment(**{name: value})))


def failed(run: Run) -> list[str]:
    """Rules that could not look at a run."""
    return [item.rule for item in examine(run) if "the rule failed" in item.evidence]


def test_a_rule_that_fails_costs_nobody_the_run() -> None:
    """What numbers are computed from is checked when a run is read, not when one is put together."""
    broken = replace(sample_health.run(), environment=replace(sample_health.environment(), identity=None))  # type: ignore[arg-type]
    assert failed(broken)
    assert {item.status for item in examine(broken) if item.rule in failed(broken)} <= {
        Health.NOT_APPLICABLE,
        Health.PASS,
    }
