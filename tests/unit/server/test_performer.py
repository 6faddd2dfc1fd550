"""The performer: all is written and synced, or what failed is told, and nothing comes after it."""

from __future__ import annotations

import errno
import os
import select
from collections.abc import Iterator
from pathlib import Path

import pytest

from harebell.base.limits import PERFORM_MOST
from harebell.server.performer import Performer
from tests.patience import SECONDS


@pytest.fixture
def performer() -> Iterator[Performer]:
    found = Performer()
    yield found
    found.stop()


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    found = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    yield found
    os.close(found)


def ended(performer: Performer) -> tuple[int, int, bool] | None:
    readable, _, _ = select.select([performer.fileno()], [], [], SECONDS)
    assert readable, "the performer did not end"
    return performer.end()


def test_octets_are_written_where_they_belong(performer: Performer, file: int) -> None:
    performer.begin([(file, b"world", 6), (file, b"hello ", 0)], [file])
    assert ended(performer) is None
    assert os.pread(file, 100, 0) == b"hello world"


def test_one_piece_of_work_follows_another(performer: Performer, file: int) -> None:
    for number in range(300):
        performer.begin([(file, number.to_bytes(4, "big"), number * 4)], [file])
        assert ended(performer) is None
    assert os.pread(file, 4, 299 * 4) == (299).to_bytes(4, "big")
    assert os.fstat(file).st_size == 1200


def test_it_says_nothing_before_it_is_done(performer: Performer, file: int) -> None:
    assert select.select([performer.fileno()], [], [], 0)[0] == []
    performer.begin([], [])
    assert ended(performer) is None
    assert select.select([performer.fileno()], [], [], 0)[0] == []


def test_a_write_that_fails_is_told_and_nothing_after_it_is_done(
    performer: Performer, file: int, tmp_path: Path
) -> None:
    closed = os.open(tmp_path / "other", os.O_RDONLY | os.O_CREAT)
    try:
        performer.begin([(file, b"a", 0), (closed, b"b", 0), (file, b"c", 1)], [file])
        assert ended(performer) == (errno.EBADF, 1, False)
    finally:
        os.close(closed)
    assert os.pread(file, 10, 0) == b"a"


def test_a_full_disk_is_told_by_its_name(performer: Performer) -> None:
    full = os.open("/dev/full", os.O_RDWR)
    try:
        performer.begin([(full, b"a", 0)], [])
        assert ended(performer) == (errno.ENOSPC, 0, False)
    finally:
        os.close(full)


def test_a_sync_that_fails_is_told_as_one(performer: Performer, file: int) -> None:
    reading, writing = os.pipe()
    try:
        performer.begin([(file, b"a", 0)], [file, writing])
        assert ended(performer) == (errno.EINVAL, 1, True)
    finally:
        os.close(reading)
        os.close(writing)
    performer.begin([(file, b"b", 1)], [file])
    assert ended(performer) is None, "a failure is told once"
    assert os.pread(file, 10, 0) == b"ab"


def test_more_than_it_takes_is_refused(performer: Performer, file: int) -> None:
    with pytest.raises(ValueError, match=f"more than {PERFORM_MOST} writes or syncs at once"):
        performer.begin([(file, b"a", 0)] * (PERFORM_MOST + 1), [])
    with pytest.raises(ValueError, match="writes or syncs at once"):
        performer.begin([], [file] * (PERFORM_MOST + 1))
    performer.begin([(file, b"a", place) for place in range(PERFORM_MOST)], [file] * PERFORM_MOST)
    assert ended(performer) is None
    assert os.fstat(file).st_size == PERFORM_MOST


def test_it_can_be_stopped_twice_and_before_it_did_anything() -> None:
    performer = Performer()
    performer.stop()
    performer.stop()
