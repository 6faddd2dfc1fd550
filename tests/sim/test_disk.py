"""The simulated disk forgets what a real one may forget, and nothing else."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable

import pytest

from tests.sim.disk import CHANGES, SECTOR, PowerCut, SimDisk
from tests.sim.faults import FAULTS, SHORT, CutNth, FailNth

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


# --- reading what was written -----------------------------------------------------------------


def test_a_process_reads_what_it_wrote() -> None:
    disk = _disk(b"hello")
    file = disk.open("a/f")
    assert file.write_at(memoryview(b"J"), 0) == 1
    assert file.write_at(b"!", 7) == 1
    assert file.size() == 8
    assert file.read_at(100, 0) == b"Jello\0\0!"
    assert file.read_at(2, 1) == b"el"
    file.truncate(3)
    assert file.read_at(100, 0) == b"Jel"
    file.truncate(5)
    assert disk.content("a/f") == b"Jel\0\0"
    assert disk.names("a") == ["f"]
    assert disk.names("nowhere") == []


def test_names_behave_as_on_any_disk() -> None:
    disk = _disk(b"1")
    disk.open("a/g", create=True).write_at(b"2", 0)
    disk.rename("a/g", "a/f")
    assert (disk.names("a"), disk.content("a/f")) == (["f"], b"2")
    disk.make_directory("b/c")
    disk.rename("a/f", "b/c/f")
    assert disk.paths() == ["b/c/f"]
    disk.remove_directory("a")
    assert disk.names("") == ["b"]


@pytest.mark.parametrize(
    ("act", "number"),
    [
        (lambda disk: disk.open("a/none"), errno.ENOENT),
        (lambda disk: disk.open("none/f", create=True), errno.ENOENT),
        (lambda disk: disk.open("a"), errno.EISDIR),
        (lambda disk: disk.remove("a/none"), errno.ENOENT),
        (lambda disk: disk.remove("a"), errno.EISDIR),
        (lambda disk: disk.rename("a/none", "a/g"), errno.ENOENT),
        (lambda disk: disk.remove_directory("a"), errno.ENOTEMPTY),
        (lambda disk: disk.remove_directory("none"), errno.ENOENT),
        (lambda disk: disk.sync_directory("none"), errno.ENOENT),
        (lambda disk: disk.make_directory("a/f"), errno.EEXIST),
    ],
)
def test_wrong_calls_are_refused_as_a_system_would(
    act: Callable[[SimDisk], object], number: int
) -> None:
    with pytest.raises(OSError) as raised:
        act(_disk())
    assert raised.value.errno == number


def test_open_files_are_counted_and_closed_once() -> None:
    disk = _disk()
    file = disk.open("a/f")
    assert list(disk.handles.values()) == ["a/f"]
    file.close()
    assert not disk.handles
    for act in (file.close, file.size, file.sync):
        with pytest.raises(OSError, match="Bad file descriptor"):
            act()


# --- what a power loss leaves -----------------------------------------------------------------


def test_synced_writes_survive() -> None:
    disk = _disk(b"x" * 3000)
    assert _found(disk) == {b"x" * 3000}


def test_a_crash_leaves_the_disk_itself_alone() -> None:
    disk = _disk(b"old")
    disk.open("a/f").write_at(b"new", 0)
    disk.crash(random.Random(1)).replace("a/f", b"damaged")
    assert disk.content("a/f") == b"new"


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


def test_writes_of_one_file_survive_in_any_order_too() -> None:
    disk = _disk(b"o" * 2 * SECTOR)
    file = disk.open("a/f")
    file.write_at(b"1" * SECTOR, 0)
    file.write_at(b"2" * SECTOR, SECTOR)
    assert b"o" * SECTOR + b"2" * SECTOR in _found(disk)


def test_the_size_of_a_growing_file_may_lag_or_lead() -> None:
    disk = _disk(b"o")
    file = disk.open("a/f")
    file.write_at(b"1", 1)
    file.write_at(b"2", 2)
    found = _found(disk)
    assert {b"o", b"o1", b"o12", b"o\0\0", b"o\0" + b"2"} <= found
    assert all(content[:1] == b"o" and len(content) <= 3 for content in found)


def test_anything_may_be_where_a_file_was_growing() -> None:
    disk = _disk(b"o" * SECTOR)
    disk.open("a/g", create=True).write_at(b"secret" * 100, 0)
    disk.remove("a/g")
    disk.open("a/f").write_at(b"n" * SECTOR, SECTOR)
    tails = {content[SECTOR:] for content in _found(disk)}
    assert any(tail.startswith(b"secret") for tail in tails)
    assert all(content[:SECTOR] == b"o" * SECTOR for content in _found(disk))


def test_a_truncation_is_forgotten_unless_synced() -> None:
    disk = _disk(b"0123456789")
    file = disk.open("a/f")
    file.truncate(4)
    assert _found(disk) == {b"0123456789", b"0123"}
    file.sync()
    assert _found(disk) == {b"0123"}


def test_a_sync_is_of_one_file_only() -> None:
    disk = _disk(b"o")
    disk.open("a/f").write_at(b"n", 0)
    other = disk.open("a/g", create=True)
    other.sync()
    assert b"o" in _found(disk)


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


def test_after_one_failed_sync_of_many_no_later_sync_helps() -> None:
    found = set()
    for seed in range(40):
        disk = SimDisk(seed=seed)
        files = [disk.open(name, create=True) for name in "xyz"]
        for file in files:
            file.write_at(b"new", 0)
        disk.hook = FailNth(1, errno.EIO, ("sync_all",), forever=False)
        with pytest.raises(OSError, match="Input/output error"):
            disk.sync_all(files, [""])
        disk.sync_all(files, [""])
        image = disk.crash(random.Random(seed))
        found.add(tuple(image.content(name) if name in image.paths() else b"-" for name in "xyz"))
    assert len(found) > 10


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


def test_a_sync_brings_earlier_changes_of_the_same_name() -> None:
    disk = _disk(b"1")
    disk.make_directory("b")
    disk.sync_directory("")
    disk.rename("a/f", "b/f")
    disk.open("a/f", create=True)
    disk.sync_directory("a")
    assert _names(disk) == {("a/f", "b/f")}


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


def test_a_removed_directory_may_be_back_with_its_files() -> None:
    disk = _disk(b"1")
    disk.remove("a/f")
    disk.remove_directory("a")
    disk.sync_directory("")
    assert _names(disk) == {()}
    disk = _disk(b"1")
    disk.remove("a/f")
    disk.remove_directory("a")
    assert _names(disk) == {(), ("a/f",)}


# --- faults -----------------------------------------------------------------------------------


def test_every_operation_is_counted_and_reported_to_the_hook() -> None:
    disk = SimDisk()
    seen: list[tuple[int, str, str]] = []
    disk.hook = lambda *what: seen.append(what)
    disk.make_directory("a")
    file = disk.open("a/f", create=True)
    file.write_at(b"1", 0)
    file.read_at(1, 0)
    file.truncate(0)
    file.sync()
    file.close()
    disk.open("a/f").close()
    disk.rename("a/f", "a/g")
    disk.sync_directory("a")
    disk.remove("a/g")
    disk.names("a")
    disk.remove_directory("a")
    kinds = "make_directory create write read truncate sync open rename sync_directory remove names"
    assert [kind for _, kind, _ in seen] == [*kinds.split(), "remove_directory"]
    assert [number for number, _, _ in seen] == list(range(1, 13))
    assert disk.operations == 12


def test_the_hook_runs_after_each_operation_that_changes_a_crash() -> None:
    disk = _disk(b"12")
    states: list[tuple[str, ...]] = []
    disk.after = lambda: states.append(tuple(disk.paths()))
    file = disk.open("a/f")
    file.read_at(1, 0)
    disk.names("a")
    assert states == []
    file.write_at(b"1", 0)
    disk.remove("a/f")
    file.sync()
    disk.sync_directory("a")
    assert states == [("a/f",), (), (), ()]


@pytest.mark.parametrize("forever", [False, True])
@pytest.mark.parametrize("name", FAULTS)
def test_the_nth_call_fails_once_or_for_ever(name: str, forever: bool) -> None:
    number, kinds = FAULTS[name]
    disk = SimDisk()
    fault = FailNth(2, number, kinds, forever)
    raised: set[tuple[int | None, str]] = set()
    outcomes = []
    for count in range(4):
        try:
            outcomes.append(fault(count, kinds[0], "f") is None)
        except OSError as error:
            raised.add((error.errno, error.filename))
            outcomes.append(False)
    assert raised == (set() if number == SHORT else {(number, "f")})
    assert outcomes == [True, False, not forever, not forever]
    assert fault.failed == f"{kinds[0]} of f"
    assert fault.struck == (3 if forever else 1)
    assert fault(9, "size", "f") is None
    fault.mend()
    assert fault(9, kinds[0], "f") is None
    assert disk.operations == 0


def test_a_short_write_writes_less_and_says_so() -> None:
    disk = _disk()
    disk.hook = FailNth(1, SHORT, ("write",), forever=False)
    file = disk.open("a/f")
    wrote = file.write_at(b"0123456789", 0)
    assert 0 < wrote < 10
    assert disk.content("a/f") == b"0123456789"[:wrote]


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


def test_a_seed_gives_the_same_crash() -> None:
    disk = _disk(b"o" * 3000)
    disk.open("a/f").write_at(b"n" * 5000, 0)
    first, second = disk.crash(random.Random(5)), disk.crash(random.Random(5))
    assert first.content("a/f") == second.content("a/f")


def test_a_copy_has_the_same_files() -> None:
    disk = _disk(b"1")
    copy = disk.copy()
    copy.replace("a/f", b"2")
    assert (copy.paths(), disk.content("a/f")) == (["a/f"], b"1")
    assert _found(copy) == {b"2"}
