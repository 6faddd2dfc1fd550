"""Handles: few files are open at a time, and one that is needed is opened again."""

from __future__ import annotations

import errno

import pytest

from harebell.store.log.handles import Handles
from harebell.store.log.segment import Segment
from tests.sim.disk import SimDisk


def segments(disk: SimDisk, count: int) -> list[Segment]:
    """Segments whose files exist."""
    disk.make_directory("queues/a")
    found = [Segment("queues/a", number, 1) for number in range(count)]
    for segment in found:
        disk.open(segment.path, create=True).close()
    return found


def test_the_reader_opened_first_is_closed_first() -> None:
    disk = SimDisk()
    handles = Handles(disk, limit=2)
    one, two, three = segments(disk, 3)
    for segment in (one, two, three):
        handles.reader(segment)
    assert one.reader is None
    assert len(disk.handles) == 2
    assert handles.reader(three) is three.reader
    handles.reader(one)
    assert two.reader is None
    handles.close_all()
    assert not disk.handles


def test_a_writer_stays_open_only_while_more_will_be_written() -> None:
    disk = SimDisk()
    handles = Handles(disk, limit=1)
    one, two = segments(disk, 2)
    for segment in (one, two):
        segment.writer = disk.open(segment.path)
        handles.wrote(segment, True)
    assert one.writer is None
    assert two.writer is not None
    handles.wrote(two, False)
    assert two.writer is None
    assert not disk.handles


def test_too_many_open_files_make_others_close() -> None:
    disk = SimDisk()
    handles = Handles(disk)
    one, two = segments(disk, 2)
    handles.reader(one)
    failed = []

    def hook(_number: int, kind: str, path: str) -> None:
        if kind == "open" and path == two.path and not failed:
            failed.append(path)
            raise OSError(errno.EMFILE, "too many open files", path)

    disk.hook = hook
    assert handles.reader(two) is two.reader
    assert one.reader is None
    assert failed


def test_a_file_that_cannot_be_opened_raises() -> None:
    handles = Handles(SimDisk())
    with pytest.raises(FileNotFoundError):
        handles.reader(Segment("queues/none", 0, 1))
