"""Reading a log: from the buffer, from what is being written, and in blocks from the disk."""

from __future__ import annotations

from harebell.store.limits import READ_MAX_BYTES
from tests.unit.store.stores import Bench, message


def bodies(log, first: int, end: int) -> list[bytes]:  # type: ignore[no-untyped-def]
    """The bodies of messages from one position to another."""
    return [log.read(position).body for position in range(first, end)]


def test_a_message_is_read_wherever_it_is_at_the_moment() -> None:
    bench = Bench()
    log = bench.log()
    log.append(message(b"buffered"))
    assert bodies(log, 0, 1) == [b"buffered"]
    batch = bench.store.commit.gather()
    assert batch is not None
    log.append(message(b"next"))
    assert bodies(log, 0, 2) == [b"buffered", b"next"]
    batch.perform()
    assert bodies(log, 0, 2) == [b"buffered", b"next"]
    bench.store.commit.finish(batch)
    assert bodies(log, 0, 2) == [b"buffered", b"next"]


def test_reading_in_order_takes_few_reads() -> None:
    bench = Bench(segment_bytes=1 << 30)
    log = bench.log()
    for number in range(20_000):
        log.append(message(b"%06d" % number + bytes(100)))
    bench.commit()
    reads = []
    bench.disk.hook = lambda _number, kind, _path: reads.append(kind)
    for number in range(20_000):
        assert log.read(number).body.startswith(b"%06d" % number)
    octets = log.byte_count()
    assert reads.count("read") <= octets // READ_MAX_BYTES + 6


def test_reading_in_any_order_is_right() -> None:
    bench = Bench(segment_bytes=8192)
    log = bench.log()
    for number in range(500):
        log.append(message(b"%d" % number + b"." * (number % 90)))
    bench.commit()
    for number in (499, 0, 250, 251, 252, 3, 2, 1, 498, 100, 499):
        assert log.read(number).body == b"%d" % number + b"." * (number % 90)


def test_a_message_larger_than_a_block_is_read_whole() -> None:
    bench = Bench(segment_bytes=1 << 30)
    log = bench.log()
    large = bytes(range(256)) * (READ_MAX_BYTES // 100)
    for body in (b"small", large, b"after"):
        log.append(message(body))
    bench.commit()
    assert bodies(log, 0, 3) == [b"small", large, b"after"]
    assert bodies(log, 1, 2) == [large]


def test_several_who_read_in_order_at_different_places_do_not_disturb_each_other() -> None:
    bench = Bench(segment_bytes=1 << 20)
    log = bench.log()
    for number in range(20_000):
        log.append(message(b"%06d" % number + bytes(100)))
    bench.commit()
    reads = []
    bench.disk.hook = lambda _number, kind, _path: reads.append(kind)
    places = [0, 5_000, 11_000]
    for step in range(5_000):
        for place in places:
            assert log.read(place + step).body.startswith(b"%06d" % (place + step))
    octets = log.byte_count() * 3 // 4
    assert reads.count("read") <= octets // READ_MAX_BYTES + 30


def test_more_readers_than_places_still_read_what_is_right() -> None:
    bench = Bench(segment_bytes=8192)
    log = bench.log()
    for number in range(600):
        log.append(message(b"%03d" % number + bytes(60)))
    bench.commit()
    for step in range(40):
        for place in range(0, 560, 40):
            assert log.read(place + step).body.startswith(b"%03d" % (place + step))
