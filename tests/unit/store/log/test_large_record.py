"""Large messages of a durable log: objects until they are on disk, and read back in slices."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.base.work import Step
from harebell.kernels.limits import LARGE_RECORD_BYTES
from harebell.kernels.records import RecordBuffer
from harebell.store.limits import READ_HELD_BYTES, TRANSIENT_SLICE_BYTES
from harebell.store.log.large_record import LargeRecord, read_large
from tests.unit.store.stores import DIRECTORY, IDENTITY, NOW, Bench, message

LARGE = b"0123456789abcdef" * (LARGE_RECORD_BYTES // 16) + b"odd"


def rewritten(bench: Bench, name: str, at: int, octets: bytes) -> None:
    path = f"{DIRECTORY}/{name}"
    content = bytearray(bench.disk.content(path))
    content[at : at + len(octets)] = octets
    bench.disk.replace(path, content)


def test_its_record_is_that_of_any_message() -> None:
    letter = message(LARGE)
    letter.due = NOW + 5
    buffer = RecordBuffer(0, 99)
    buffer.message(7, NOW, letter, 1)
    large = LargeRecord(b"", 64, 99, 7, NOW, letter, 1)
    assert b"".join(octets for _, octets in large.pieces()) == buffer.take()
    assert large.pieces()[0][0] == 64
    assert large.end == 64 + sum(len(octets) for _, octets in large.pieces())


def test_its_body_is_never_copied_on_its_way_to_disk() -> None:
    letter = message(LARGE)
    large = LargeRecord(b"before", 64, 99, 0, NOW, letter, 1)
    assert any(octets is letter.body for _, octets in large.pieces())
    assert large.pieces()[0] == (64 - len(b"before"), b"before")
    assert large.read().body is letter.body
    assert large.read() is not letter


def test_a_large_record_can_be_read_before_within_and_after_its_commit_and_after_a_restart() -> (
    None
):
    bench = Bench()
    log = bench.log()
    log.append(message(b"first"))
    log.append(message(LARGE, key="large"))
    log.append(message(b"last"))
    expected = [b"first", LARGE, b"last"]
    assert [log.read(at).body for at in range(3)] == expected
    batch = bench.store.commit.gather()
    assert batch is not None
    assert [log.read(at).body for at in range(3)] == expected
    batch.perform()
    assert (batch.failed, batch.stalled) == (None, None)
    bench.store.commit.finish(batch)
    assert [log.read(at).body for at in range(3)] == expected
    again = bench.again().log()
    assert [again.read(at).body for at in range(3)] == expected
    assert (again.read(1).routing_key, again.read(1).timestamp) == ("large", NOW)


def test_a_large_message_has_a_segment_of_its_own_that_goes_with_it() -> None:
    bench = Bench(segment_bytes=10 * LARGE_RECORD_BYTES)
    log = bench.log()
    log.append(message(b"first"))
    log.append(message(LARGE))
    log.append(message(b"last"))
    bench.commit()
    assert len(bench.files()) == 3
    log.settle(1)
    bench.commit()
    assert len(bench.files()) == 2
    assert [log.read(at).body for at in (0, 2)] == [b"first", b"last"]


def test_the_memory_gauge_counts_a_body_of_many_logs_once_and_only_until_it_is_written() -> None:
    bench = Bench()
    logs: list[Any] = [
        bench.store.open_log(f"{number:032x}", durable=True) for number in range(1, 9)
    ]
    letter = message(LARGE)
    for log in logs:
        log.append(letter)
    assert LARGE_RECORD_BYTES < bench.gauge.used < 1.1 * LARGE_RECORD_BYTES
    logs[0].settle(0)
    assert bench.gauge.used > LARGE_RECORD_BYTES
    bench.commit()
    assert bench.gauge.used < 1_000


@pytest.mark.parametrize("deleted", ["before its commit", "in its commit", "when it was read"])
def test_the_memory_gauge_counts_nothing_of_a_log_that_is_deleted(deleted: str) -> None:
    bench = Bench()
    log = bench.log()
    log.append(message(LARGE))
    log.append(message(LARGE))
    batch = None
    if deleted == "in its commit":
        batch = bench.store.commit.gather()
        batch.perform()
    elif deleted == "when it was read":
        bench.commit()
        log.load_spilled(0, lambda: None)
    log.delete()
    if batch is not None:
        bench.store.commit.finish(batch)
    bench.commit()
    assert bench.gauge.used == 0
    assert bench.store.handles.blocks.byte_count == 0


def test_messages_are_appended_behind_a_large_one_after_a_restart() -> None:
    bench = Bench()
    bench.log().append(message(LARGE))
    bench.commit()
    bench = bench.again()
    log = bench.log()
    log.append(message(b"small"))
    bench.commit()
    assert log.read(0).body == LARGE
    assert [bench.again().log().read(at).body for at in range(2)] == [LARGE, b"small"]


@pytest.mark.parametrize("at", [70, 5_000, LARGE_RECORD_BYTES])
def test_one_flipped_octet_is_damage(at: int) -> None:
    bench = Bench()
    log = bench.log()
    log.append(message(LARGE))
    bench.commit()
    log.append(message(b"next"))
    bench.commit()
    rewritten(bench, bench.files()[0], at, b"\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8")
    assert log.read(0) is None
    assert "kept back" in bench.reports[-1][1]
    assert log.read(1).body == b"next"
    assert bench.again().log().read(1).body == b"next"


def test_a_size_beyond_the_end_of_the_file_is_damage() -> None:
    bench = Bench()
    log = bench.log()
    log.append(message(LARGE))
    bench.commit()
    rewritten(bench, bench.files()[0], 64, (2**31).to_bytes(4, "little"))
    assert log.read(0) is None


def test_a_record_that_is_cut_off_is_not_read() -> None:
    bench = Bench()
    bench.log().append(message(LARGE))
    bench.commit()
    path = f"{DIRECTORY}/{bench.files()[0]}"
    size = int.from_bytes(bench.disk.content(path)[64:68], "little")
    assert read_large(bench.disk.open(path), 64, size, bench.log().seed) is not None
    for length in (66, 80, 5_000, LARGE_RECORD_BYTES):
        bench.disk.replace(path, bench.disk.content(path)[:length])
        assert read_large(bench.disk.open(path), 64, size, bench.log().seed) is None


class Turns:
    """A store with large messages on disk, whose long operations go on when the test says so."""

    def __init__(self, count: int = 1) -> None:
        self.bench = Bench()
        self.steps: list[Step] = []
        self.bench.store.work.later = self.steps.append
        self.log: Any = self.bench.log()
        for _ in range(count):
            self.log.append(message(LARGE))
        self.bench.commit()
        self.done: list[str] = []
        self.bench.store.work.begin(1)

    def go_on(self) -> bool:
        """One slice; whether there are more."""
        step = self.steps.pop(0)
        if not step():
            self.steps.append(step)
        return bool(self.steps)


def test_a_large_message_on_disk_is_far_until_it_is_fetched_slice_by_slice() -> None:
    turns = Turns()
    assert turns.log.is_spilled(0)
    turns.log.load_spilled(0, lambda: turns.done.append("read"))
    slices = 1
    while turns.go_on():
        assert turns.log.is_spilled(0)
        assert turns.done == []
        slices += 1
    assert slices >= len(LARGE) // TRANSIENT_SLICE_BYTES
    assert turns.done == ["read"]
    assert not turns.log.is_spilled(0)
    assert turns.log.read(0).body == LARGE
    turns.log.settle(0)
    assert turns.bench.store.handles.blocks.byte_count < LARGE_RECORD_BYTES


def test_several_who_want_the_same_message_share_one_reading() -> None:
    turns = Turns()
    wanted = [lambda: turns.done.append("one"), lambda: turns.done.append("two")]
    for done in wanted:
        turns.log.load_spilled(0, done)
    turns.log.load_spilled(0, wanted[0])
    assert len(turns.steps) == 1
    while turns.go_on():
        pass
    assert turns.done == ["one", "two"]


def test_a_message_that_is_settled_or_gone_while_it_is_read_ends_the_reading() -> None:
    for end in (lambda log: log.settle(0), lambda log: log.delete()):
        turns = Turns()
        turns.log.load_spilled(0, lambda turns=turns: turns.done.append("over"))
        end(turns.log)
        turns.bench.commit()
        while turns.steps:
            turns.go_on()
        assert turns.done == ["over"]
        assert turns.log.read(0) is None


def test_a_damaged_message_is_fetched_once_and_then_reported_by_read() -> None:
    turns = Turns()
    rewritten(turns.bench, turns.bench.files()[0], 9_000, b"\0\0")
    turns.log.load_spilled(0, lambda: turns.done.append("over"))
    while turns.steps:
        turns.go_on()
    assert turns.done == ["over"]
    assert not turns.log.is_spilled(0)
    assert turns.log.read(0) is None
    assert "damaged" in turns.bench.reports[-1][1]


def test_fetched_messages_that_nobody_takes_are_let_go() -> None:
    count = READ_HELD_BYTES // len(LARGE) + 3
    turns = Turns(count)
    for position in range(count):
        turns.log.load_spilled(position, lambda: None)
        while turns.steps:
            turns.go_on()
    assert turns.log.is_spilled(0)
    assert not turns.log.is_spilled(count - 1)
    assert turns.bench.store.handles.blocks.byte_count <= READ_HELD_BYTES
    assert turns.log.read(0).body == LARGE


def test_a_small_message_and_one_in_memory_are_not_far() -> None:
    turns = Turns()
    turns.log.append(message(b"small"))
    turns.log.append(message(LARGE))
    assert [turns.log.is_spilled(at) for at in range(3)] == [True, False, False]
    assert not turns.log.is_spilled(99)
    assert IDENTITY in turns.log.directory


def test_a_name_that_no_record_holds_leaves_the_log_as_it_was() -> None:
    bench = Bench()
    log = bench.log()
    with pytest.raises(ValueError, match="at most 255"):
        log.append(message(LARGE, key="k" * 256))
    log.append(message(LARGE))
    log.append(message(b"next"))
    bench.commit()
    assert [bench.again().log().read(at).body for at in range(2)] == [LARGE, b"next"]
