"""The simulated disk forgets what a real one may forget, and nothing else."""

from __future__ import annotations

import errno
import random

import pytest

from tests.sim.disk import CHANGES, SECTOR, PowerCut, SimDisk
from tests.sim.faults import CutNth, FailNth

TRIES = 300


def _disk(content: bytes = b"") -> SimDisk:
    """A disk with one directory and one file in it, both synced."""
    disk = SimDisk()
    disk.make_directory("a")
    disk.sync_directory("")
    file = disk.open("a/f", create=True)
    file.write_at(content, 0)
    file.sync()
    file.close()
    disk.sync_directory("a")
    return disk


def _found(disk: SimDisk, path: str = "a/f") -> set[bytes]:
    """Every content that many crashes find."""
    found = set()
    for seed in range(TRIES):
        image = disk.crash(random.Random(seed))
        found.add(image.content(path) if path in image.paths() else b"missing")
    return found


def _names(disk: SimDisk) -> set[tuple[str, ...]]:
    return {tuple(disk.crash(random.Random(seed)).paths()) for seed in range(TRIES)}


# --- what a power loss leaves -----------------------------------------------------------------


def test_synced_writes_survive() -> None:
    disk = _disk(b"x" * 3000)
    assert _found(disk) == {b"x" * 3000}


def test_an_unsynced_write_survives_or_not_or_is_zero() -> None:
    disk = _disk(b"old")
    disk.open("a/f").write_at(b"new", 0)
    assert _found(disk) == {b"old", b"new", b"\0\0\0"}


def test_a_write_is_torn_at_sectors_and_nowhere_else() -> None:
    disk = _disk(b"o" * 4 * SECTOR)
    disk.open("a/f").write_at(b"n" * 3 * SECTOR, SECTOR // 2)
    shapes = set()
    for content in _found(disk):
        assert content[: SECTOR // 2] == b"o" * (SECTOR // 2)
        assert content[-SECTOR // 2 :] == b"o" * (SECTOR // 2)
        covered = [content[SECTOR // 2 : SECTOR], content[SECTOR : 2 * SECTOR]]
        covered += [
            content[2 * SECTOR : 3 * SECTOR],
            content[3 * SECTOR : 3 * SECTOR + SECTOR // 2],
        ]
        assert all(len(set(each)) == 1 for each in covered)
        shapes.add(tuple(each[:1] for each in covered))
    assert (b"n", b"n", b"o", b"o") in shapes
    assert (b"o", b"n", b"o", b"n") in shapes
    assert (b"n", b"\0", b"n", b"\0") in shapes


def test_writes_survive_in_any_order_across_files() -> None:
    disk = _disk(b"o")
    disk.open("a/g", create=True).sync()
    disk.sync_directory("a")
    disk.open("a/f").write_at(b"1", 0)
    disk.open("a/g").write_at(b"2", 0)
    images = [disk.crash(random.Random(seed)) for seed in range(TRIES)]
    pairs = {(image.content("a/f"), image.content("a/g")) for image in images}
    assert {(b"o", b"2"), (b"1", b""), (b"1", b"2"), (b"o", b"")} <= pairs


def test_a_truncation_is_forgotten_unless_synced() -> None:
    disk = _disk(b"0123456789")
    file = disk.open("a/f")
    file.truncate(4)
    assert _found(disk) == {b"0123456789", b"0123"}
    file.sync()
    assert _found(disk) == {b"0123"}


def test_many_are_synced_by_one_operation_and_others_are_not() -> None:
    disk = _disk(b"a")
    files = [disk.open(f"a/{name}", create=True) for name in "xyz"]
    for file in files:
        file.write_at(b"new", 0)
    asked: list[str] = []
    disk.hook = lambda _number, kind, _path: asked.append(kind)
    disk.sync_all(files[:2], ["a"])
    assert asked == ["sync_all"]
    assert _found(disk, "a/x") == _found(disk, "a/y") == {b"new"}
    assert len(_found(disk, "a/z")) > 1
    disk.sync_all(files[2:], ["a"])
    assert asked == ["sync_all", "sync", "sync_directory"]
    assert _found(disk, "a/z") == {b"new"}


def test_after_a_failed_sync_no_later_sync_helps() -> None:
    lost = 0
    for seed in range(50):
        disk = SimDisk(seed=seed)
        file = disk.open("f", create=True)
        disk.sync_directory("")
        file.write_at(b"n", 0)
        disk.hook = FailNth(1, errno.EIO, ("sync",), forever=False)
        with pytest.raises(OSError, match="Input/output error"):
            file.sync()
        file.sync()
        assert file.read_at(1, 0) == b"n"
        lost += b"n" not in _found(disk, "f")
    assert 10 < lost < 50


# --- names and power loss ---------------------------------------------------------------------


def test_a_file_whose_name_was_not_synced_may_be_missing() -> None:
    disk = _disk()
    file = disk.open("a/g", create=True)
    file.write_at(b"1", 0)
    file.sync()
    assert _names(disk) == {("a/f",), ("a/f", "a/g")}
    assert _found(disk, "a/g") == {b"1", b"missing"}
    disk.sync_directory("a")
    assert _found(disk, "a/g") == {b"1"}


def test_a_name_does_not_bring_the_content() -> None:
    disk = _disk()
    disk.open("a/g", create=True).write_at(b"1", 0)
    disk.sync_directory("a")
    assert b"" in _found(disk, "a/g")


def test_a_removed_file_may_be_back_with_what_was_synced() -> None:
    disk = _disk(b"content")
    disk.remove("a/f")
    assert _found(disk) == {b"content", b"missing"}
    disk.sync_directory("a")
    assert _found(disk) == {b"missing"}


def test_a_renamed_file_is_at_one_of_both_places() -> None:
    disk = _disk(b"content")
    disk.make_directory("b")
    disk.sync_directory("")
    disk.rename("a/f", "b/g")
    assert _names(disk) == {("a/f",), ("b/g",)}
    disk.sync_directory("a")
    assert _names(disk) == {("a/f",), ("b/g",)}
    disk.sync_directory("b")
    assert _names(disk) == {("b/g",)}


def test_a_rename_replaces_at_once() -> None:
    disk = _disk(b"old")
    file = disk.open("a/new", create=True)
    file.write_at(b"new", 0)
    file.sync()
    disk.sync_directory("a")
    disk.rename("a/new", "a/f")
    assert _found(disk) == {b"old", b"new"}


def test_removals_survive_in_any_order() -> None:
    disk = _disk()
    disk.open("a/g", create=True)
    disk.sync_directory("a")
    disk.remove("a/f")
    disk.remove("a/g")
    assert _names(disk) == {(), ("a/f",), ("a/g",), ("a/f", "a/g")}


def test_a_directory_that_was_not_synced_takes_everything_with_it() -> None:
    disk = SimDisk()
    disk.make_directory("a/b")
    disk.open("a/b/f", create=True).sync()
    disk.sync_directory("a/b")
    assert () in _names(disk)
    disk.sync_directory("a")
    assert () in _names(disk)
    disk.sync_directory("")
    assert _names(disk) == {("a/b/f",)}


# --- faults -----------------------------------------------------------------------------------


def test_a_full_disk_takes_what_fits() -> None:
    disk = SimDisk(capacity=10)
    file = disk.open("f", create=True)
    assert file.write_at(b"01234567", 0) == 8
    assert disk.free() == 2
    assert file.write_at(b"abcd", 8) == 2
    for act in (lambda: file.write_at(b"x", 10), lambda: file.truncate(11)):
        with pytest.raises(OSError, match="No space left"):
            act()
    assert file.write_at(b"xx", 0) == 2
    disk.capacity = 20
    assert file.write_at(b"cd", 10) == 2
    file.truncate(0)
    assert disk.free() == 20


def test_nothing_works_after_the_power_is_cut() -> None:
    disk = _disk(b"1")
    file = disk.open("a/f")
    disk.hook = CutNth(disk, 2, CHANGES)
    file.write_at(b"2", 0)
    acts = (file.sync, file.close, file.size, lambda: disk.names(""), lambda: disk.open("a/f"))
    for act in acts:
        with pytest.raises(PowerCut):
            act()
    assert _found(disk) == {b"1", b"2", b"\0"}
