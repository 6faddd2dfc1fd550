"""The real file system: what the `Files` port promises, and which calls reach the disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from harebell.base import osfs
from harebell.base.limits import SYNC_TOGETHER_FILES
from harebell.base.osfs import OsFiles


@pytest.fixture
def files(tmp_path: Path) -> OsFiles:
    return OsFiles(str(tmp_path))


def test_octets_are_written_and_read_at_their_place(files: OsFiles) -> None:
    file = files.open("a", create=True)
    assert file.write_at(b"world", 6) == 5
    assert file.write_at(memoryview(b"hello "), 0) == 6
    assert file.read_at(100, 0) == b"hello world"
    assert file.read_at(3, 6) == b"wor"
    assert file.read_at(3, 100) == b""
    assert file.size() == 11
    file.truncate(5)
    assert file.read_at(100, 0) == b"hello"
    file.sync()
    file.close()
    file.close()
    assert files.open("a").read_at(9, 0) == b"hello"


def test_files_and_directories_belong_to_their_owner_alone(files: OsFiles, tmp_path: Path) -> None:
    files.make_directory("queues/abc")
    files.make_directory("queues/abc")
    files.open("queues/abc/1", create=True).close()
    assert (tmp_path / "queues/abc").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "queues").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "queues/abc/1").stat().st_mode & 0o777 == 0o600


def test_an_open_file_is_not_inherited_by_other_programs(files: OsFiles) -> None:
    file = files.open("a", create=True)
    assert not os.get_inheritable(file._handle)


def test_names_are_sorted_and_a_missing_directory_has_none(files: OsFiles) -> None:
    for name in "cab":
        files.open(name, create=True).close()
    assert files.names("") == ["a", "b", "c"]
    assert files.names("missing") == []


def test_files_are_renamed_and_removed(files: OsFiles) -> None:
    files.make_directory("f")
    files.open("f/a", create=True).write_at(b"new", 0)
    files.open("f/b", create=True).write_at(b"old", 0)
    files.rename("f/a", "f/b")
    files.sync_directory("f")
    assert files.names("f") == ["b"]
    assert files.open("f/b").read_at(9, 0) == b"new"
    files.remove("f/b")
    files.remove_directory("f")
    files.sync_directory("")
    assert files.names("") == []


def test_errors_name_the_file(files: OsFiles, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        files.open("missing")
    file = files.open("a", create=True)
    os.close(file._handle)
    for call in (
        lambda: file.write_at(b"x", 0),
        lambda: file.read_at(1, 0),
        lambda: file.truncate(1),
        file.sync,
    ):
        with pytest.raises(OSError) as caught:
            call()
        assert caught.value.errno == errno.EBADF
        assert caught.value.filename == str(tmp_path / "a")


def test_a_read_that_fails_names_the_octet_that_cannot_be_read(
    files: OsFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pread(_handle: int, _size: int, offset: int) -> bytes:
        if offset >= 4096:
            raise OSError(errno.EIO, "Input/output error")
        return bytes(4096 - offset)

    file = files.open("a", create=True)
    monkeypatch.setattr(osfs.os, "pread", pread)
    with pytest.raises(OSError, match="Input/output error at byte 4096") as caught:
        file.read_at(8192, 1024)
    assert caught.value.errno == errno.EIO


def test_space_is_counted_in_octets(files: OsFiles) -> None:
    assert 0 < files.free() <= files.total()


def test_syncs_that_were_put_off_are_done_when_it_is_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = osfs.sync_path
    monkeypatch.setattr(osfs, "sync_path", lambda path: (synced.append(path), real(path)))
    files = OsFiles(str(tmp_path), lag=50)
    for name in ("a", "b", "a"):
        files.open(name, create=True).sync()
    files.sync_directory("")
    assert synced == []
    assert files.owed() == [50]
    files.remove("b")
    files.sync_owed(50)
    assert synced == [str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path)]
    files.sync_owed(50)
    assert len(synced) == 3
    assert files.owed() == []


def test_a_directory_that_is_left_to_the_system_owes_nothing(tmp_path: Path) -> None:
    files = OsFiles(str(tmp_path), lag=-1)
    files.open("a", create=True).sync()
    files.sync_directory("")
    assert files.owed() == []


def test_a_directory_may_have_a_lag_of_its_own(tmp_path: Path) -> None:
    files = OsFiles(str(tmp_path))
    for directory in ("a", "b"):
        files.make_directory(directory)
    files.delay("a", 20)
    for directory in ("a", "b"):
        files.open(f"{directory}/1", create=True).sync()
        files.sync_directory(directory)
    assert files.owed() == [20]
    files.delay("b", -1)
    files.open("b/2", create=True).sync()
    assert files.owed() == [20]


def test_syncs_put_off_in_a_directory_are_owed_when_it_becomes_stricter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = osfs.sync_path
    monkeypatch.setattr(osfs, "sync_path", lambda path: (synced.append(path), real(path)))
    files = OsFiles(str(tmp_path))
    files.make_directory("a")
    files.delay("a", -1)
    files.open("a/1", create=True).sync()
    assert files.owed() == []
    files.delay("a", None)
    assert files.owed() == [0]
    files.sync_owed(0)
    assert synced == [str(tmp_path / "a" / "1"), str(tmp_path / "a"), str(tmp_path)]
    assert files.owed() == []
    files.delay("a", -1)
    files.delay("a", 0)
    files.remove("a/1")
    files.remove_directory("a")
    files.sync_owed(0)
    assert synced[3:] == [str(tmp_path / "a"), str(tmp_path)], "what is gone is passed over"


def _many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lag: int) -> tuple[OsFiles, list[str]]:
    """Files, and whatever is synced there."""
    synced: list[str] = []
    files = OsFiles(str(tmp_path), lag=lag, together=lambda: synced.append("everything"))
    monkeypatch.setattr(os, "fdatasync", lambda _handle: synced.append("file"))
    monkeypatch.setattr(os, "fsync", lambda _handle: synced.append("directory"))
    return files, synced


def test_many_files_are_synced_with_one_call_and_few_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, synced = _many(tmp_path, monkeypatch, 0)
    opened = [files.open(str(number), create=True) for number in range(SYNC_TOGETHER_FILES)]
    files.sync_all(opened[2:], [""])
    assert synced == ["file"] * (SYNC_TOGETHER_FILES - 2) + ["directory"]
    synced.clear()
    files.sync_all(opened[1:], [""])
    assert synced == ["everything"]


def test_files_of_which_the_syncs_are_put_off_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, synced = _many(tmp_path, monkeypatch, 50)
    opened = [files.open(str(number), create=True) for number in range(SYNC_TOGETHER_FILES)]
    files.sync_all(opened, [""])
    assert (synced, files.owed()) == ([], [50])


def test_without_such_a_call_they_are_all_synced_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fdatasync", lambda _handle: synced.append("file"))
    files = OsFiles(str(tmp_path))
    opened = [files.open(str(number), create=True) for number in range(SYNC_TOGETHER_FILES + 1)]
    files.sync_all(opened, [])
    assert synced == ["file"] * (SYNC_TOGETHER_FILES + 1)


def test_the_duration_of_a_sync_is_counted_when_there_is_a_clock(tmp_path: Path) -> None:
    moments = iter([10.0, 10.004, 20.0, 20.3])
    files = OsFiles(str(tmp_path), clock=lambda: next(moments))
    file = files.open("a", create=True)
    files.sync_all([file], [""])
    files.sync_all([file], [])
    assert files.syncs.count == 2
    assert files.syncs.total == pytest.approx(0.304)
    assert files.syncs.counts[files.syncs.bounds.index(0.005)] == 1
    assert files.syncs.counts[files.syncs.bounds.index(0.5)] == 1
