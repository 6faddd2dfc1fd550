"""A directory seen through stays as it is, whatever is done to it."""

from __future__ import annotations

import sys

import pytest

from harebell.store.dry_run_files import Shadow, Watched
from tests.sim.disk import SimDisk


def _disk() -> SimDisk:
    disk = SimDisk()
    disk.make_directory("queues/a")
    file = disk.open("queues/a/1.seg", create=True)
    file.write_at(b"octets", 0)
    file.close()
    return disk


def _content(disk: SimDisk) -> bytes:
    file = disk.open("queues/a/1.seg")
    found = file.read_at(100, 0)
    file.close()
    return found


def test_existing_files_can_be_read() -> None:
    shadow = Shadow(_disk(), "queues")
    file = shadow.open("queues/a/1.seg")
    assert (file.read_at(3, 1), file.size()) == (b"cte", 6)
    file.close()
    assert shadow.names("queues/a") == ["1.seg"]
    assert shadow.free() > 0


def test_nothing_is_written_cut_renamed_made_or_removed() -> None:
    disk = _disk()
    shadow = Shadow(disk, "queues")
    file = shadow.open("queues/a/1.seg", create=True)
    assert file.write_at(b"other", 0) == 5
    file.truncate(1)
    file.sync()
    file.close()
    shadow.rename("queues/a/1.seg", "queues/a/2.seg")
    shadow.remove("queues/a/1.seg")
    shadow.make_directory("quarantine")
    shadow.sync_directory("quarantine")
    shadow.remove_directory("queues/a")
    assert _content(disk) == b"octets"
    assert disk.names("queues/a") == ["1.seg"]
    assert disk.names("") == ["queues"]


def _calls(count: int) -> int:
    """How many functions are called to look at one of so many files that were opened."""
    disk = SimDisk()
    shadow = Shadow(disk, "queues")
    for number in range(count):
        disk.make_directory(f"queues/{number}")
        disk.open(f"queues/{number}/1.seg", create=True).close()
        shadow.open(f"queues/{number}/1.seg").close()
    disk.names = lambda directory: ["1.seg"]  # type: ignore[method-assign]  # as the system: at once
    calls = 0

    def count_them(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count_them)
    try:
        assert shadow.names("queues/0") == ["1.seg"]
    finally:
        sys.setprofile(None)
    return calls


def test_to_look_at_a_directory_is_no_more_work_when_many_files_are_open() -> None:
    # Something else may run in between, such as the collector.
    assert _calls(1_000) < _calls(2) + 500


def test_a_new_file_is_pretended_and_empty() -> None:
    disk = _disk()
    shadow = Shadow(disk, "queues")
    file = shadow.open("quarantine/3.bin", create=True)
    assert file.write_at(b"octets", 0) == 6
    file.sync()
    assert (file.size(), file.read_at(6, 0)) == (0, b"")
    file.close()
    assert disk.names("") == ["queues"]
    with pytest.raises(FileNotFoundError):
        shadow.open("quarantine/3.bin")


def test_octets_written_to_a_segment_can_be_read_again() -> None:
    disk = _disk()
    shadow = Shadow(disk, "queues")
    for path, octets, offset in (
        ("queues/a/1.seg", b"TET", 2),
        ("queues/a/1.seg", b"more", 8),
        ("queues/a/3.seg", b"new", 0),
        ("queues/b/4.seg", b"newer", 0),
    ):
        file = shadow.open(path, create=True)
        assert file.write_at(octets, offset) == len(octets)
        file.close()
    file = shadow.open("queues/a/1.seg")
    assert (file.size(), file.read_at(100, 0)) == (12, b"ocTETs\0\0more")
    assert [file.read_at(2, at) for at in (1, 3, 5, 9, 12)] == [b"cT", b"ET", b"s\0", b"or", b""]
    file.close()
    file = shadow.open("queues/a/3.seg")
    assert (file.size(), file.read_at(9, 1)) == (3, b"ew")
    file.close()
    assert shadow.names("queues/a") == ["1.seg", "3.seg"]
    assert shadow.names("queues") == ["a", "b"]
    assert disk.names("queues") == ["a"]
    assert _content(disk) == b"octets"


def test_everything_goes_through_a_watched_directory_and_renames_are_noted() -> None:
    disk = _disk()
    watched = Watched(disk)
    watched.make_directory("quarantine")
    watched.rename("queues/a/1.seg", "quarantine/x.bin")
    watched.sync_directory("quarantine")
    assert watched.arrived == ["quarantine/x.bin"]
    assert disk.names("quarantine") == watched.names("quarantine") == ["x.bin"]
    file = watched.open("quarantine/x.bin")
    assert file.read_at(6, 0) == b"octets"
    file.close()
    watched.remove("quarantine/x.bin")
    watched.remove_directory("queues/a")
    assert disk.names("quarantine") == disk.names("queues") == []
    assert watched.free() == disk.free()
