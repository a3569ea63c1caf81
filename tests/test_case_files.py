"""Case files become cases; whatever is wrong in any of them is told at once, with its place."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from suite.cases import load_cases
from suite.errors import CaseFileError, Unavailable
from suite.records import Case
from suite.scorers import check_case

GOOD = """
[[case]]
id = "apples"
version = 2
prompt = "How many?"
target = "18"
scorer = "number"
max_new_tokens = 32
tags = ["long"]
"""
ROWS = [
    {"question": "What is 2 + 2?", "answer": "2 + 2 = 4\n#### 4", "meta": {"level": "easy"}, "tests": ["assert True"]},
    {"question": "What is 3 + 3?", "answer": "3 + 3 = 6\n#### 6", "meta": {"level": "hard"}, "tests": ["assert 1"]},
]
DATASET = """
[[dataset]]
source = "rows.jsonl"
prefix = "sums"
version = 1
scorer = "number"
max_new_tokens = 64
fields = {{ {fields} }}
{more}
"""


@pytest.fixture(autouse=True)
def own_cache_of_data_sets(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Leave the cache of whoever runs the tests alone."""
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path_factory.mktemp("datasets"))


def write(directory: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        file = directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return directory


def load(directory: Path) -> tuple[Case, ...]:
    return load_cases(directory, check=check_case)


def faults_of(directory: Path) -> list[str]:
    with pytest.raises(CaseFileError) as refused:
        load(directory)
    return str(refused.value).splitlines()


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


def dataset(fields: str = 'prompt = "{question}", target = "{answer}"', more: str = "") -> str:
    return DATASET.format(fields=fields, more=more)


def write_rows(directory: Path, text: str, rows: list[dict[str, Any]] = ROWS) -> Path:
    lines = "\n".join(json.dumps(row) for row in rows)
    return write(directory, {"math/a.toml": text, "math/rows.jsonl": lines})


def test_a_case_file_becomes_cases_sorted_by_id_with_the_folder_as_domain(tmp_path: Path) -> None:
    write(tmp_path, {"math/b.toml": GOOD, "code/a.toml": GOOD.replace("apples", "pears")})
    first, second = load(tmp_path)
    assert (first.id, first.domain, second.id, second.domain) == ("code/pears", "code", "math/apples", "math")
    assert (second.version, second.target, second.scorer.name, second.tags) == (2, "18", "number", ("long",))
    assert second.language == "en"


def test_a_scorer_table_carries_options(tmp_path: Path) -> None:
    write(tmp_path, {"math/a.toml": changed('scorer = "number"', 'scorer = { name = "number", tolerance = 0.5 }')})
    (case,) = load(tmp_path)
    assert (case.scorer.name, dict(case.scorer.options)) == ("number", {"tolerance": 0.5})


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (changed("prompt =", "promt ="), "unknown key 'promt'; did you mean 'prompt'?"),
        (changed("version = 2", ""), "key 'version' is missing"),
        (changed("[[case]]", "[[cases]]"), "unknown key 'cases'; did you mean 'case'?"),
        (changed("[[case]]", "[case]"), "write [[case]], not [case]"),
        (changed('"How many?"', '"  "'), "key 'prompt' is empty"),
        (changed("32", "0"), "key 'max_new_tokens' must be at least 1 (got 0)"),
        (changed('"apples"', '"Two Apples"'), "key 'id': use lower-case letters"),
        (changed('"number"', '"nubmer"'), "unknown scorer 'nubmer'; did you mean 'number'?"),
        (changed('"number"', "{ tolerance = 1 }"), "a table needs 'name'"),
        (
            changed('"number"', '{ name = "number", tolerence = 1 }'),
            "unknown key 'tolerence'; did you mean 'tolerance'?",
        ),
        (changed('"18"', '"eighteen"'), "target 'eighteen' holds no number"),
        (changed('"18"', "18"), "key 'target': input should be a valid string (got 18)"),
        (changed('["long"]', '"long"'), "key 'tags'"),
        (GOOD + 'asserts = ["assert ("]', "key 'asserts': not Python"),
        (GOOD + 'solution = "def f(:"', "key 'solution': not Python"),
        ("[[case]\n", "not valid TOML"),
    ],
)
def test_a_fault_names_file_and_key(tmp_path: Path, text: str, fault: str) -> None:
    lines = faults_of(write(tmp_path, {"math/a.toml": text}))
    assert any(fault in line for line in lines), lines
    assert all(line.startswith(str(tmp_path / "math/a.toml")) for line in lines)


def test_all_faults_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    broken = changed("prompt =", "promt =").replace("apples", "pears") + changed('"18"', '"many"')
    write(tmp_path, {"math/a.toml": broken, "code/b.toml": changed('"number"', '"nubmer"'), "code/c.toml": "x = 1"})
    text = "\n".join(faults_of(tmp_path))
    for fault in ("promt", "'prompt' is missing", "holds no number", "nubmer", "unknown key 'x'"):
        assert fault in text


def test_ids_are_unique_across_the_files_of_a_domain(tmp_path: Path) -> None:
    lines = faults_of(write(tmp_path, {"math/a.toml": GOOD, "math/b.toml": GOOD, "code/c.toml": GOOD}))
    assert len(lines) == 2
    assert all("id 'math/apples' is used 2 times" in line for line in lines)


@pytest.mark.parametrize("name", ["a.toml", "math/deep/a.toml", "Math/a.toml"])
def test_a_file_in_the_wrong_place_is_refused(tmp_path: Path, name: str) -> None:
    assert "<domain>" in faults_of(write(tmp_path, {name: GOOD}))[0]


def test_no_directory_and_no_cases_are_faults(tmp_path: Path) -> None:
    assert "no such directory" in faults_of(tmp_path / "missing")[0]
    assert "holds no cases" in faults_of(tmp_path)[0]


# ------------------------------------------------------------------------------------------------ data sets


def test_the_datasets_package_is_not_imported_without_a_data_set(tmp_path: Path) -> None:
    write(tmp_path, {"math/a.toml": GOOD})
    program = (
        "import sys; from pathlib import Path; "
        "from suite.cases import load_cases; from suite.scorers import check_case; "
        f"load_cases(Path({str(tmp_path)!r}), check=check_case); "
        "sys.exit(any(name in sys.modules for name in ('datasets', 'torch', 'rapidfuzz')))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_rows_of_a_local_file_become_cases(tmp_path: Path) -> None:
    fields = 'prompt = "Q ({meta[level]}): {question}", target = "{answer}", asserts = "{tests}"'
    first, second = load(write_rows(tmp_path, dataset(fields)))
    assert (first.id, second.id) == ("math/sums-0000", "math/sums-0001")
    assert first.prompt == "Q (easy): What is 2 + 2?"
    assert first.target.endswith("#### 4")
    assert second.asserts == ("assert 1",)
    assert second.source.endswith("row 1")


def test_parquet_is_read_and_rows_selects(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    pyarrow = pytest.importorskip("pyarrow")
    write(tmp_path, {"math/a.toml": dataset(more="rows = [1, 2]").replace("rows.jsonl", "rows.parquet")})
    parquet.write_table(pyarrow.Table.from_pylist(ROWS), tmp_path / "math/rows.parquet")
    (case,) = load(tmp_path)
    assert (case.id, case.prompt) == ("math/sums-0001", "What is 3 + 3?")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (dataset('prompt = "{qestion}", target = "{answer}"'), "unknown column 'qestion'; did you mean 'question'?"),
        (dataset('prompt = "{question}"'), "does not say how to make 'target'"),
        (dataset('promt = "{question}", target = "{answer}"'), "unknown field 'promt'"),
        (dataset('prompt = "{question", target = "{answer}"'), "is broken"),
        (dataset('prompt = "{question.__class__}", target = "{answer}"'), "names no column"),
        (dataset('prompt = "{meta[colour]}", target = "{answer}"'), "does not fit"),
        (dataset('prompt = "{question}", target = "{question[0]}"'), "holds no number"),
        (dataset(more="rows = [1, 9]"), "does not lie within its 2 rows"),
        (dataset(more="rows = [0, 9, 9]"), "key 'rows'"),
        (dataset().replace("rows.jsonl", "missing.jsonl"), "no such file"),
        (dataset().replace("rows.jsonl", "openai/gsm8k"), "needs a pinned revision"),
        (dataset().replace("rows.jsonl", "openai/gsm8k@main"), "needs a pinned revision"),
        (dataset().replace("rows.jsonl", "rows.csv"), "key 'source'"),
    ],
)
def test_a_fault_in_a_data_set_names_file_and_source(tmp_path: Path, text: str, fault: str) -> None:
    lines = faults_of(write_rows(tmp_path, text))
    assert any(fault in line for line in lines), lines
    assert all(line.startswith(f"{tmp_path / 'math/a.toml'}: dataset") for line in lines)


def test_an_empty_cell_is_no_prompt(tmp_path: Path) -> None:
    (line,) = faults_of(write_rows(tmp_path, dataset(), rows=[*ROWS, {**ROWS[0], "question": None}]))
    assert "row 2: column 'question' is empty" in line


def test_a_file_that_is_not_what_its_name_says_is_a_fault(tmp_path: Path) -> None:
    write(tmp_path, {"math/a.toml": dataset(), "math/rows.jsonl": "not json\n"})
    (line,) = faults_of(tmp_path)
    assert "cannot be read as json" in line


def test_a_hub_that_cannot_be_reached_is_unavailable_and_not_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    source = "nobody/nothing@0123456789abcdef"
    write(tmp_path, {"math/a.toml": dataset().replace("rows.jsonl", source), "math/b.toml": GOOD})
    with pytest.raises(Unavailable, match="nobody/nothing@0123456789abcdef") as reason:
        load(tmp_path)
    assert "a.toml" in str(reason.value)
    write(tmp_path, {"math/b.toml": changed('"18"', '"many"')})
    assert "holds no number" in faults_of(tmp_path)[0]
