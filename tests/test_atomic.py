"""A file is replaced whole or not at all."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from suite.atomic import write_text
from suite.errors import StoreError
from suite.store.layout import journal_file, journal_files, link_latest, quality_file, run_directory, speed_file


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here (needs root)")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@contextmanager
def file_limit(limit: int) -> Iterator[None]:
    """The system refuses to write files of more than this many bytes: pytest's own log too, so keep it short."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def names(directory: Path) -> list[str]:
    return [entry.name for entry in directory.iterdir()]


def test_text_is_written_as_it_is_and_directories_are_made(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b.json"
    write_text(file, "한국어\r\n\n")
    assert file.read_bytes() == "한국어\r\n\n".encode()
    assert names(file.parent) == ["b.json"]


def test_a_full_disk_leaves_the_old_file_whole(small_disk: Path) -> None:
    file = small_disk / "baseline.json"
    write_text(file, "old")
    with pytest.raises(StoreError, match=r"baseline\.json: could not be written: No space left on device"):
        write_text(file, "x" * 200_000)
    assert file.read_text() == "old"
    assert names(small_disk) == ["baseline.json"]


def test_a_write_that_the_system_refuses_leaves_the_old_file_whole(tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    write_text(file, "old")
    with pytest.raises(StoreError, match="the old file is untouched"), file_limit(4096):
        write_text(file, "x" * 8192)
    assert file.read_text() == "old"
    assert names(tmp_path) == ["baseline.json"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    target.write_text("old")
    link.symlink_to(target)
    write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_where_things_lie(tmp_path: Path) -> None:
    assert quality_file(tmp_path, "m", "q4") == tmp_path / "m/quality/q4.json"
    assert speed_file(tmp_path, "m", "epyc-2c", "q4") == tmp_path / "m/speed/epyc-2c/q4.json"
    assert journal_file(tmp_path, "gw0") == tmp_path / "journal-gw0.jsonl"


def test_journals_are_listed_with_the_unnamed_one_first(tmp_path: Path) -> None:
    for name in ("journal-gw1.jsonl", "journal.jsonl", "journal-gw0.jsonl", "other.jsonl"):
        (tmp_path / name).touch()
    assert [file.name for file in journal_files(tmp_path)] == [
        "journal.jsonl",
        "journal-gw0.jsonl",
        "journal-gw1.jsonl",
    ]


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "a b", "a\0"])
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(StoreError, match="variant name"):
        quality_file(tmp_path, "m", name)


def test_latest_follows_the_newest_run(tmp_path: Path) -> None:
    for run in ("one", "two"):
        directory = run_directory(tmp_path, run)
        directory.mkdir(parents=True)
        link_latest(tmp_path, directory)
    assert (tmp_path / "latest").resolve() == (tmp_path / "runs/two").resolve()
    assert not (tmp_path / "latest").readlink().is_absolute()


def test_who_reads_the_old_file_while_it_is_replaced_sees_it_whole(tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    write_text(file, "old")
    with file.open() as reader:
        write_text(file, "new")
        assert reader.read() == "old"
    assert file.read_text() == "new"
