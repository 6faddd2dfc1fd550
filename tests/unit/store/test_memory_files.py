"""Files in memory behave as files on disk do."""

from __future__ import annotations

from pathlib import Path

import pytest

from harebell.base.osfs import OsFiles
from harebell.base.ports import Files
from harebell.store.memory_files import MemoryFiles


@pytest.fixture(params=["memory", "disk"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    return MemoryFiles() if request.param == "memory" else OsFiles(str(tmp_path))


def test_a_file_keeps_what_was_written(files: Files):
    files.make_directory("a/b")
    file = files.open("a/b/c", create=True)
    assert file.write_at(b"xyz", 2) == 3
    assert file.write_at(memoryview(b"12"), 0) == 2
    file.sync()
    file.close()
    files.sync_directory("a/b")
    again = files.open("a/b/c")
    assert again.read_at(10, 0) == b"12xyz"
    assert again.read_at(10, 4) == b"z"
    assert again.size() == 5


def test_a_hole_is_zeros_and_a_cut_is_a_cut(files: Files):
    file = files.open("f", create=True)
    file.write_at(b"x", 3)
    assert file.read_at(10, 0) == b"\0\0\0x"
    file.truncate(2)
    file.truncate(3)
    assert file.read_at(10, 0) == b"\0\0\0"


def test_names_are_those_of_the_directory_sorted(files: Files):
    files.make_directory("a")
    for name in ("a/z", "a/b", "c"):
        files.open(name, create=True).close()
    assert files.names("a") == ["b", "z"]
    assert files.names("") == ["a", "c"]
    assert files.names("missing") == []


def test_a_renamed_file_replaces_what_had_its_name(files: Files):
    for name in ("one", "two"):
        files.open(name, create=True).write_at(name.encode(), 0)
    files.rename("one", "two")
    assert files.names("") == ["two"]
    assert files.open("two").read_at(10, 0) == b"one"


def test_a_missing_file_is_an_error_that_names_it(files: Files):
    for call in (lambda: files.open("gone"), lambda: files.remove("gone")):
        with pytest.raises(FileNotFoundError, match="gone"):
            call()
    with pytest.raises(FileNotFoundError):
        files.rename("gone", "here")


def test_an_empty_directory_can_be_removed(files: Files):
    files.make_directory("a")
    files.open("a/b", create=True).close()
    files.remove("a/b")
    files.remove_directory("a")
    assert files.names("") == []
    assert files.free() > 0
