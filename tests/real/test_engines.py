"""Each backend on the embedded model: what is counted is what happened."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.real import ENGINES, GGUF, QUESTION, Launch

from suite.errors import LoadError, VariantError


@pytest.mark.parametrize("engine", ENGINES)
def test_each_engine_renders_evaluates_times_and_answers(launch: Launch, engine: dict[str, Any]) -> None:
    with launch(**engine) as live:
        prompt = live.render_one(QUESTION)
        assert len(prompt) == 37  # the template's own system prompt is part of it
        first, witness = live.generate(prompt, 24, stop_at_end=True)
        again, _ = live.generate(prompt, 24, stop_at_end=True)
        assert "Paris" in first.text
        assert first.token_ids == again.token_ids
        for answer in (first, again):  # the second time, nothing may come out of a cache
            assert answer.evaluated_tokens == answer.prompt_tokens == 37
            assert 0 < answer.prefill_s <= (answer.ttft_s or 0)
            assert len(answer.token_times_s) == len(answer.token_ids)
            assert all(gap > 0 for gap in answer.itl_s)
        assert 0 < witness.cpu_s <= witness.wall_s * 64
        fixed, _ = live.generate(prompt, 40, stop_at_end=False)
        assert len(fixed.token_ids) == 40
        assert fixed.finish_reason == "length"
        memory = live.memory()
        assert 100e6 < (memory.peak_rss_bytes or 0) < 4e9
        computed = live.kv_cache_bytes(memory.kv_cache_tokens or 0)
        assert memory.kv_cache_bytes == computed


@pytest.mark.parametrize("length", [2, 511, 512, 513, 514, 1025])
def test_llama_cpp_counts_every_prompt_token_across_batches(launch: Launch, length: int) -> None:
    with launch(**GGUF) as live:
        prompt = (live.encode("The tide gauge arrives with salt in its bearings. ") * 200)[:length]
        answer, _ = live.generate(prompt, 2, stop_at_end=False)
        assert answer.evaluated_tokens == length


def test_a_prompt_that_does_not_fit_is_refused_and_never_cut(launch: Launch) -> None:
    with launch("llama_cpp", {"n_ctx": 256}, make="Q8_0") as live:
        prompt = (live.encode("salt and water ") * 100)[:250]
        with pytest.raises(VariantError, match=r"250 prompt tokens \+ 16 new tokens do not fit a context of 256"):
            live.generate(prompt, 16, stop_at_end=True)
        assert live.generate(prompt, 4, stop_at_end=True)[0].evaluated_tokens == 250  # the worker lives on


def test_nf4_loads_and_answers(launch: Launch) -> None:
    with launch("bitsandbytes", {"quantization": "nf4", "double_quant": True}) as live:
        assert live.loaded.facts["footprint_bytes"].isdigit()
        assert live.generate(live.render_one(QUESTION), 8, stop_at_end=True)[0].token_ids


def test_a_quantized_kv_cache_takes_the_bytes_that_are_computed(launch: Launch) -> None:
    options = {"n_ctx": 512, "type_k": "q8_0", "type_v": "q4_0", "flash_attn": True}
    with launch("llama_cpp", options, make="Q8_0") as live:
        memory = live.memory()
        assert memory.kv_cache_tokens == 512
        assert memory.kv_cache_bytes == pytest.approx(live.kv_cache_bytes(512), abs=2**16)


def test_a_truncated_gguf_tells_what_llama_cpp_said(
    launch: Launch, weights: Callable[[str], Path], tmp_path: Path
) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(weights("Q8_0").read_bytes()[:30_000_000])
    said = r"broken\.gguf: .*(out of bounds|not within the file bounds|corrupt)"
    with pytest.raises(LoadError, match=said), launch("llama_cpp", source=str(broken)):
        pass


def test_raw_prompts_go_without_a_template(launch: Launch) -> None:
    with launch(**GGUF, prompt_format="raw") as live:
        assert len(live.render_one("2 + 2 =")) < 8
