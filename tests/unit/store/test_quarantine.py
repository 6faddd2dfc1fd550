"""Quarantine: copies of damaged octets, each once."""

from __future__ import annotations

from harebell.store.quarantine import DIRECTORY, Quarantine
from tests.sim.disk import Random, SimDisk


def disk_with(path: str, data: bytes) -> SimDisk:
    """A disk with one synced file."""
    disk = SimDisk()
    disk.make_directory(path.rpartition("/")[0])
    file = disk.open(path, create=True)
    file.write_at(data, 0)
    file.sync()
    file.close()
    disk.sync_directory(path.rpartition("/")[0])
    return disk


def content(disk: SimDisk, path: str) -> bytes:
    """What is in a file."""
    file = disk.open(path)
    return file.read_at(file.size(), 0)


def test_a_copy_has_the_octets_and_survives_a_power_loss() -> None:
    disk = disk_with("queues/ab/1.seg", b"0123456789")
    disk.sync_directory("queues")
    disk.sync_directory("")
    file = disk.open("queues/ab/1.seg")
    name = Quarantine(disk, "ab").copy(file, "queues/ab/1.seg", 3, 7)
    assert name == f"{DIRECTORY}/ab-1-3.bin"
    for seed in range(20):
        assert content(disk.crash(Random(seed)), name) == b"3456"


def test_the_same_octets_are_copied_once() -> None:
    disk = disk_with("queues/ab/1.seg", b"0123456789")
    file = disk.open("queues/ab/1.seg")
    quarantine = Quarantine(disk, "ab")
    first = quarantine.copy(file, "queues/ab/1.seg", 3, 7)
    assert quarantine.copy(file, "queues/ab/1.seg", 3, 7) == first
    assert disk.names(DIRECTORY) == ["ab-1-3.bin"]


def test_other_octets_of_the_same_place_are_copied_beside_the_first() -> None:
    disk = disk_with("queues/ab/1.seg", b"0123456789")
    file = disk.open("queues/ab/1.seg")
    quarantine = Quarantine(disk, "ab")
    first = quarantine.copy(file, "queues/ab/1.seg", 3, 7)
    file.write_at(b"torn", 3)
    second = quarantine.copy(file, "queues/ab/1.seg", 3, 7)
    assert quarantine.copy(file, "queues/ab/1.seg", 3, 7) == second
    assert [content(disk, name) for name in (first, second)] == [b"3456", b"torn"]


def test_moved_segments_never_replace_each_other() -> None:
    disk = disk_with("queues/ab/1.seg", b"one")
    quarantine = Quarantine(disk, "ab")
    quarantine.move("queues/ab/1.seg")
    disk.open("queues/ab/1.seg", create=True).write_at(b"two", 0)
    quarantine.move("queues/ab/1.seg")
    assert [content(disk, f"{DIRECTORY}/{name}") for name in disk.names(DIRECTORY)] == [
        b"one",
        b"two",
    ]
    assert disk.names("queues/ab") == []
