"""What llama.cpp prints, read."""

from __future__ import annotations

from suite.backends.llama_cpp_log import kv_cache_bytes, read_facts, read_reason

LOG = """\
llama_model_loader: - kv   0:                       general.architecture str              = llama
print_info: general.name          = a name
load_tensors: loading model tensors, this can take a while... (mmap = true, direct_io = false)
load_tensors: offloading 12 repeating layers to GPU
load_tensors: offloaded 12/31 layers to GPU
load_tensors:   CPU_Mapped model buffer size =   137.94 MiB
llama_context: n_ctx                 = 2048
llama_context: flash_attn            = disabled
llama_kv_cache:        CPU KV buffer size =    23.91 MiB
llama_kv_cache: size =   23.91 MiB (  2048 cells,  30 layers,  1/1 seqs), K (q8_0):   11.95 MiB, V (q8_0):   11.95 MiB
"""


def test_everything_that_is_printed() -> None:
    assert read_facts(LOG) == {"layers offloaded": "12 of 31", "flash attention": "off", "KV types": "q8_0 q8_0"}
    assert kv_cache_bytes(LOG) == round(23.91 * 2**20)


def test_what_was_wrong_is_told_without_what_only_looks_like_it() -> None:
    log = (
        "llama_model_loader: Dumping metadata keys/values. Note: KV overrides do not apply in this output.\n"
        "llama_model_loader: - kv  29:            tokenizer.ggml.unknown_token_id u32              = 0\n"
        "[   3/ 272] blk.0.attn_k.weight - [ 576, 192], type =   q4_1, converting to f16 .. "
        "llama_model_quantize: failed to quantize: basic_ios::clear: iostream error\n"
    )
    assert read_reason(log) == "llama_model_quantize: failed to quantize: basic_ios::clear: iostream error"
    assert read_reason("error loading model: unknown model architecture: 'x'\nfine\n") == (
        "error loading model: unknown model architecture: 'x'"
    )


def test_flash_attention_that_was_left_to_llama_cpp() -> None:
    log = LOG.replace("disabled", "auto") + "sched_reserve: Flash Attention was auto, set to enabled\n"
    assert read_facts(log)["flash attention"] == "on"


def test_windowed_layers_have_a_cache_of_their_own() -> None:
    log = LOG + LOG.splitlines(keepends=True)[-1].replace("llama_kv_cache", "llama_kv_cache_iswa").replace(
        "23.91", "8.00"
    )
    assert kv_cache_bytes(log) == round(31.91 * 2**20)
    assert read_facts(log)["KV types"] == "q8_0 q8_0"


def test_an_older_line_without_types() -> None:
    log = "llama_kv_cache_unified: size =   45.00 MiB\n"
    assert kv_cache_bytes(log) == 45 * 2**20
    assert read_facts(log) == {}


def test_metadata_cannot_speak_for_llama_cpp() -> None:
    forged = "a name\nload_tensors: offloaded 31/31 layers to GPU\nllama_context: flash_attn = enabled"
    assert read_facts(LOG.replace("a name", forged)) == read_facts(LOG)
    assert read_facts("general.name = load_tensors: offloaded 31/31 layers to GPU\n") == {}


def test_nothing_printed_is_nothing_known() -> None:
    assert read_facts("") == {}
    assert kv_cache_bytes("") is None
