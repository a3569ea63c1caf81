"""Servers in a matrix: they answer, are timed and judged like any other variant, and what they cannot do is said."""

from __future__ import annotations

import math
import sys
from typing import Any

from support import fake_openai
from support.fake_openai import FakeOpenAI, Script
from support.foreign_project import FAST, REPLIES, ForeignProject, verdicts

QUICK: dict[str, Any] = {**FAST, "launches": 2, "max_launches": 2, "rounds": 1, "max_warmup": 0, "pin": False}


def options(**more: Any) -> dict[str, Any]:
    return {"options": {"tokenizer": "server", "chunk_s": 5.0, **more}, "backend": "server"}


def test_a_server_takes_part_in_answers_and_speed(project: ForeignProject) -> None:
    metrics = "vllm:kv_cache_usage_perc 0.5\n"
    with FakeOpenAI(replies=REPLIES, metrics=metrics, scripts=[Script(gap_s=0.002)]).running() as fake:
        project.write_matrix({"served": options(url=fake.url, metrics="/metrics")}, protocol=QUICK)
        project.run()
        (variant,) = project.read_run()["variants"]
        assert variant["failure"] is None
        assert variant["metrics"]["score"]["value"] == 1
        assert variant["metrics"]["decode_tok_s"]["value"] > 5
        assert variant["metrics"]["peak_rss_bytes"]["status"] == "not_measured"
        launch = variant["launches"][0]
        assert launch["peak_rss_bytes"] is None
        assert launch["facts"]["server"] == "vllm"
        assert launch["readings"]["server_kv_cache_usage"] == 0.5
        assert launch["readings"]["client_decode_tok_s"] > 5
        assert all(str(fake.port) not in value for value in launch["facts"].values())
        assert "\n## Servers\n" in (project.root / ".quantdrift" / "latest" / "report.md").read_text()


def test_answers_of_weights_that_nobody_knows_are_never_taken_from_earlier_runs(project: ForeignProject) -> None:
    with FakeOpenAI(replies=REPLIES).running() as fake:
        project.write_matrix({"served": options(url=fake.url), "known": {}}, protocol=QUICK)
        for _ in range(2):
            project.run("--matrix-only=answers", "--matrix-cached")
        trials = project.read_run()["trials"]
        cached = {trial["variant"] for trial in trials if trial["cached_from"]}
        assert cached == {"known"}


def test_a_prefix_cache_makes_answers_invalid(project: ForeignProject) -> None:
    with FakeOpenAI(replies=REPLIES, scripts=[Script(cached=5)]).running() as fake:
        project.write_matrix({"caching": options(url=fake.url)}, protocol=QUICK)
        result = project.run("--matrix-only=answers")
        result.stdout.fnmatch_lines(
            "*caching is INVALID: case * prompt tokens were evaluated; the rest came from a cache*"
        )
        assert result.ret == 3


def test_a_server_that_dies_is_an_error_and_the_others_go_on(project: ForeignProject) -> None:
    command = [sys.executable, fake_openai.__file__, "--port", "{port}", "--exit-after", "3", "--gap", "0.01"]
    with FakeOpenAI(replies=REPLIES).running() as fake:
        variants = {"dying": options(command=command), "living": options(url=fake.url)}
        project.write_matrix(variants, protocol=QUICK)
        project.run("--matrix-only=answers")
        run = project.read_run()
        dying = [trial for trial in run["trials"] if trial["variant"] == "dying"]
        living = [trial for trial in run["trials"] if trial["variant"] == "living"]
        assert {trial["status"] for trial in living} == {"scored"}
        assert "error" in {trial["status"] for trial in dying}
        assert {found["verdict"] for found in run["findings"] if found["variant"] == "living"} == {"UNBASELINED"}


def test_the_memory_of_a_model_elsewhere_is_not_looked_for(project: ForeignProject) -> None:
    more = (
        "scenarios.watched = { prompt_tokens = 8, new_tokens = 64, watch = true }\n"
        "scenarios.again = { prompt_tokens = 31, new_tokens = 4, reloads = 3 }\n"
    )
    with FakeOpenAI(replies=REPLIES, scripts=[Script(gap_s=0.002)]).running() as fake:
        project.write_matrix({"served": options(url=fake.url)}, protocol=QUICK, more=more)
        project.run()
        asked = {len(body["prompt"]) for body in fake.bodies if "ignore_eos" in body}
    run = project.read_run()
    reasons = {s["scenario"]: (s["status"], s["reason"]) for s in run["speed_samples"] if s["status"] == "unsuited"}
    away = ("unsuited", "its model lies in other processes: the memory of its worker says nothing of it")
    assert reasons == {"watched": away, "again": away}
    assert asked == {24}
    assert run["variants"][0]["failure"] is None
    limits = run["variants"][0]["launches"][0]["limits"]
    assert limits["streams"] == []
    assert limits["reason"].startswith("no limits, since its model lies in other processes")


def test_a_server_that_may_remember_is_timed_with_prompts_of_this_run_and_this_variant_alone(
    project: ForeignProject,
) -> None:
    asked: list[dict[str, list[tuple[int, ...]]]] = []
    with FakeOpenAI(replies=REPLIES, scripts=[Script(gap_s=0.002)]).running() as fake:
        served = {"url": fake.url, "n_ctx": 512, "prefix_cache": "trust"}
        variants = {name: options(**served, served_model=name) for name in ("one", "two")}
        project.write_matrix(variants, protocol={**QUICK, "warmup": 0, "retries": 0})
        for _ in range(2):
            fake.requests.clear()
            project.run()
            timed = [body for body in fake.bodies if body.get("ignore_eos")]
            asked.append(
                {name: [tuple(body["prompt"]) for body in timed if body["model"] == name] for name in variants}
            )
    first, second = asked
    prompts = [*first["one"], *first["two"], *second["one"], *second["two"]]
    assert {len(prompt) for prompt in prompts} == {24}
    assert len({prompt[:8] for prompt in prompts}) == len(prompts) >= 16
    assert [prompt[8:] for prompt in first["one"]] == [prompt[8:] for prompt in first["two"]]


def test_variants_that_remember_nothing_are_timed_with_the_same_prompts(project: ForeignProject) -> None:
    with FakeOpenAI(replies=REPLIES, scripts=[Script(gap_s=0.002)]).running() as fake:
        served = {"url": fake.url, "n_ctx": 512, "kind": "vllm"}
        variants = {name: options(**served, served_model=name) for name in ("one", "two")}
        variants["three"] = options(**served, served_model="three", prefix_cache="trust")
        project.write_matrix(variants, protocol={**QUICK, "warmup": 0, "retries": 0})
        project.run("--matrix-only=speed")
        asked = {name: [body["prompt"] for body in fake.bodies if body["model"] == name] for name in variants}
    assert asked["one"] == asked["two"]
    assert not {tuple(prompt[:8]) for prompt in asked["one"]} & {tuple(prompt[:8]) for prompt in asked["three"]}


def scored(prompt: list[int]) -> list[dict[str, Any] | None]:
    """Of each token of a prompt that it has nine tenths, and of two others."""
    shares = {ord("q"): 0.06, ord("z"): 0.03}
    return [
        None,
        *({str(t): {"logprob": math.log(p)} for t, p in {**shares, token: 0.9}.items()} for token in prompt[1:]),
    ]


def test_a_server_that_tells_of_prompts_is_held_against_the_reference(project: ForeignProject) -> None:
    with FakeOpenAI(replies=REPLIES).running() as fake:
        fake.scored = scored
        served = options(url=fake.url, prompt_logprobs=3)
        project.write_matrix({"fp": {"reference": True}, "served": served}, protocol=QUICK)
        project.run("--matrix-only=answers")
        run = project.read_run()
        project.run("--matrix-only=answers", "--matrix-update=new", "--matrix-reason=a test")
        project.run("--matrix-only=answers")
        again = project.read_run()
    for one in (run, again):  # nothing that is accepted, or measured again, gives it a decode path
        beyond = [
            f for f in one["findings"] if f["variant"] == "served" and f["metric"] in ("decode_kld", "path_distance")
        ]
        assert {(f["verdict"], f["next_step"]) for f in beyond} == {("NOT_MEASURED", "")}
    assert verdicts(again, "served")["mean_kld/all"] == "PASS"
    variants = {variant["name"]: variant for variant in run["variants"]}
    measured = variants["served"]["metrics"]
    assert measured["mean_kld"]["scopes"]["all"]["value"] > 0
    assert measured["same_top_1"]["scopes"]["all"]["value"] == 1
    assert measured["broken_logits"]["scopes"]["all"]["value"] == 0
    report = (project.root / ".quantdrift" / "latest" / "report.md").read_text()
    assert "of the reference's likeliest tokens its server does not tell" in report


def test_why_a_server_cannot_be_held_against_the_reference_is_said(project: ForeignProject) -> None:
    with FakeOpenAI(replies=REPLIES).running() as fake:
        served = options(url=fake.url, prompt_logprobs=256)
        project.write_matrix({"fp": {"reference": True}, "served": served}, protocol=QUICK)
        result = project.run("--matrix-only=answers")
        found = {(one["variant"], one["metric"]): one for one in project.read_run()["findings"]}
    assert result.ret == 0
    assert "which is greater than max allowed: 20" in found["served", "mean_kld"]["reason"]
