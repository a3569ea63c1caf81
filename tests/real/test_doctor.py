"""What backends really tell, looked at by the doctor: healthy, and with faults that were really planted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import psutil
import pytest
from support import sample_health as health
from support.asking import ask
from support.real import ENGINES, FP16, QUESTION, Launch

from suite.doctor import examine
from suite.engine.environment import capture_environment
from suite.engine.launching import LiveVariant
from suite.records import Health, Run

TOLD_BY_BACKENDS = {"modes", "cache-switches", "attention", "dtypes", "kv-types", "offload", "threads", "isa"}


def look_at(live: LiveVariant) -> Run:
    """A run that holds this one launch, on this machine."""
    live.generate(live.render_one(QUESTION), 8, stop_at_end=False)
    memory = live.memory()
    launch = health.launch_of("q8_0", 0, facts=live.loaded.facts, seen=memory.seen)
    result = health.result_of("q8_0", launches=(launch,), suspects=live.loaded.facts, variant=live.variant)
    return replace(health.run(), variants=(result,), environment=capture_environment(), trials=(), speed_samples=())


@pytest.mark.parametrize("engine", ENGINES)
def test_a_healthy_engine(launch: Launch, engine: dict[str, Any]) -> None:
    with launch(**engine) as live:
        run = look_at(live)
    items = {item.rule: item for item in examine(run) if item.variant == "v" and item.rule in TOLD_BY_BACKENDS}
    assert not [item for item in items.values() if item.status is Health.FINDING]
    told = {rule for rule, item in items.items() if item.status is Health.PASS}
    own = {"kv-types"} if engine["backend"] == "llama_cpp" else {"modes", "cache-switches", "dtypes"}
    assert told >= {"attention", "threads", "isa"} | own
    assert ("inference mode" in run.variants[0].launches[0].seen) is (engine["backend"] != "llama_cpp")


def test_what_transformers_tells(launch: Launch) -> None:
    with launch(**FP16) as live:
        facts = live.loaded.facts
    assert facts["parameters by dtype"] == "float16=134515008"
    assert facts["parameters by device"] == "cpu=134515008"
    assert (facts["eval mode"], facts["use_cache"], facts["gradient checkpointing"]) == ("yes", "yes", "no")


@pytest.mark.parametrize("asked", [True, False])
def test_flash_attention_and_types_as_llama_cpp_prints_them(launch: Launch, asked: bool) -> None:
    with launch("llama_cpp", {"n_ctx": 256, "flash_attn": asked, "type_k": "q8_0"}, make="Q8_0") as live:
        facts = live.loaded.facts
    assert facts["flash attention"] == ("on" if asked else "off")
    assert facts["KV types"] == "q8_0 f16"


def test_too_many_threads(launch: Launch) -> None:
    many = 2 * (psutil.cpu_count() or 1)
    with launch("llama_cpp", {"n_threads": many}, make="Q8_0") as live:
        run = look_at(live)
    assert ask("threads", run, "v").status is Health.FINDING


def test_layers_for_a_gpu_that_the_build_cannot_use(launch: Launch) -> None:
    with launch("llama_cpp", {"n_gpu_layers": -1}, make="Q8_0") as live:
        if live.loaded.facts["gpu_offload"] == "True":
            pytest.skip("this build of llama.cpp can use a GPU")
        run = look_at(live)
    assert ask("offload", run, "v").status is Health.FINDING


def test_eager_attention_that_was_asked_for(launch: Launch) -> None:
    with launch("transformers", {"dtype": "float16", "attention": "eager"}) as live:
        run = look_at(live)
    assert ask("attention", run, "v").evidence == "eager is in force, as asked"
