"""The log of a transient queue: objects in memory, records on disk, the same either way."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from harebell.base.bcc import BccMessage
from harebell.base.limits import HELD_AGAIN_BYTES
from harebell.base.message import FAMILY_010, Message, Properties, copy_message
from harebell.kernels.batches import BatchBuilder
from harebell.store.limits import (
    SHARED_BY_QUEUES,
    TRANSIENT_FIRST_BYTES,
    TRANSIENT_MEMORY_BYTES,
    TRANSIENT_SEGMENT_BYTES,
)
from tests.sim.disk import SimDisk
from tests.unit.store.stores import IDENTITY, NOW, Bench, message

LARGE = 300_000
PLENTY = 10**9
SPILLED = TRANSIENT_MEMORY_BYTES // LARGE + 20
"""Large messages of which some are on disk."""


def opened(bench: Bench, identity: str = IDENTITY) -> Any:
    return bench.store.open_log(identity, durable=False)


def files(bench: Bench) -> list[str]:
    return bench.disk.names(f"transient/{IDENTITY}")


def in_memory(log: Any) -> int:
    """What messages count that are objects, and records that are not on disk."""
    kept = [each for segment in log.segments for each in segment.messages or () if each is not None]
    records = sum(segment.buffer.size for segment in log.segments)
    return records + sum(each.footprint() for each in kept)


def said(found: Message) -> tuple[object, ...]:
    """What is the same of a message wherever it is."""
    return (
        *(found.exchange, found.routing_key, found.raw, found.body, found.delivery_mode),
        *(found.priority, found.has_headers, found.family, found.due, found.offset),
        *(found.origin, found.deliveries),
    )


def several(number: int, size: int = LARGE) -> Message:
    """A message that is different in every way from the one before."""
    properties = Properties(
        bytes(number % 7), number % 3, number % 11 - 1, number % 2 == 0, family=9 + number % 3
    )
    made = Message(f"e{number}", "\xe9" * (number % 9), properties, b"%d" % number + bytes(size))
    made.due = number % 5
    made.deliveries = number % 4
    return made


def test_messages_stay_in_memory_until_there_are_many() -> None:
    bench = Bench()
    log = opened(bench)
    body = bytes(10_000)
    while log.byte_count() < TRANSIENT_MEMORY_BYTES - TRANSIENT_SEGMENT_BYTES:
        log.append(message(bytes(bytearray(body))))
    assert bench.store.commit.gather() is None
    assert files(bench) == []
    for _ in range(3 * TRANSIENT_SEGMENT_BYTES // len(body)):
        log.append(message(bytes(bytearray(body))))
    assert files(bench)
    assert bench.gauge.used == in_memory(log)
    assert bench.gauge.used < TRANSIENT_MEMORY_BYTES + 2 * TRANSIENT_SEGMENT_BYTES
    assert {log.read(position).body for position in range(log.end())} == {body}
    log.settle_range(0, log.end())
    assert files(bench) == []
    assert (log.live(), bench.gauge.used) == (0, 0)


def test_a_queue_that_is_empty_takes_next_to_no_memory() -> None:
    bench = Bench()
    log = opened(bench)
    for _ in range(1000):
        log.settle(log.append(message(bytes(100))))
        assert bench.gauge.used == 0
        assert log.byte_count() < TRANSIENT_FIRST_BYTES
    for _ in range(1000):
        log.settle(log.append(message(bytes(100))) - 3)
    assert bench.gauge.used == 3 * message(bytes(100)).footprint()
    assert log.byte_count() < 4 * TRANSIENT_FIRST_BYTES


def test_logs_share_a_message_and_leave_it_as_it_is() -> None:
    bench = Bench()
    first, second = opened(bench), opened(bench, "f" * 32)
    sent = message(b"one for both")
    assert [first.append(sent), second.append(sent)] == [0, 0]
    assert first.read(0) is second.read(0) is sent
    assert bench.gauge.used == sent.footprint() + HELD_AGAIN_BYTES
    second.set_count(0, 3)
    assert [log.count(0) for log in (first, second)] == [0, 3]
    assert first.read(0) is second.read(0)
    second.settle(0)
    assert second.read(0) is None
    assert first.read(0) is sent
    assert (sent.deliveries, sent.timestamp) == (0, 0)
    assert bench.gauge.used == sent.footprint()


def test_records_of_another_delivery_are_not_kept() -> None:
    log = opened(Bench())
    for name, value in (("origin", 7), ("offset", 9), ("timestamp", NOW)):
        sent = message(b"from elsewhere")
        setattr(sent, name, value)
        found = log.read(log.append(sent))
        assert said(found) == said(message(b"from elsewhere"))
        assert found.timestamp == 0
        assert getattr(sent, name) == value
    whole = Properties(b"whole")
    blind = BccMessage(Message("e", "k", whole, b"body"), Properties(b"seen"), whole)
    found = log.read(log.append(blind))
    assert type(found) is Message
    assert (found.raw, found.body) == (b"seen", b"body")


def test_on_disk_messages_are_what_they_were_in_memory() -> None:
    bench = Bench()
    log = opened(bench)
    sent, settled = [], set()
    reached = {}
    for number in range(2 * SPILLED):
        if number % 3:
            bench.clock.advance(1)
        sent.append((several(number), bench.clock.ms))
        assert log.append(sent[-1][0]) == number
        reached[number] = log.reach(number, number + 1, 1, -1)
        if number % 4 == 1:
            log.settle(number)
            settled.add(number)
    assert files(bench)
    assert {segment.messages is None for segment in log.segments} == {True, False}
    for number, (given, moment) in enumerate(sent):
        found = log.read(number)
        if number in settled:
            assert found is None
            assert log.time_of(number) == 0
            continue
        assert said(found) == said(given)
        assert log.time_of(number) == moment
        assert log.reach(number, number + 1, 1, -1) == reached[number]
    assert log.live() == len(sent) - len(settled)
    for moment in (NOW, sent[SPILLED][1], sent[-1][1]):
        later = [number for number, (_, at) in enumerate(sent) if at >= moment]
        first = next((number for number in later if number not in settled), log.end())
        assert log.at_time(moment) == first


def test_rows_say_when_a_message_came_wherever_it_is() -> None:
    bench = Bench()
    log = opened(bench)
    times = []
    for number in range(SPILLED):
        bench.clock.advance(number % 3)
        times.append(bench.clock.ms)
        log.append(message(b"%d" % number + bytes(LARGE)))
    log.settle(5)
    log.set_count(7, 1)
    builder = BatchBuilder(("offset", "timestamp", "redelivered"), (), "q", *[None] * 4)
    builder.limit(PLENTY, PLENTY, PLENTY)
    assert log.append_to(0, log.end(), builder) == log.end()
    _, _, (_, positions, _, moments, _, again) = builder.finish()
    expected = [number for number in range(SPILLED) if number != 5]
    assert memoryview(positions).cast("q").tolist() == expected
    millis = [micros // 1000 for micros in memoryview(moments).cast("q").tolist()]
    assert millis == [times[number] for number in expected]
    assert [row for row in range(len(expected)) if again[row >> 3] >> (row & 7) & 1] == [6]


def test_a_message_of_another_family_is_converted_with_its_time() -> None:
    log = opened(Bench())
    log.append(Message("e", "k", Properties(b"", family=FAMILY_010), b"body"))
    seen = []

    def convert(given: Message) -> Message:
        seen.append((given.family, given.timestamp))
        return message(given.body)

    builder = BatchBuilder(("value",), (), "q", None, None, None, convert)
    builder.limit(PLENTY, PLENTY, PLENTY)
    log.append_to(0, 1, builder)
    assert (builder.rows, seen) == (1, [(FAMILY_010, NOW)])


def test_without_room_on_disk_messages_stay_in_memory_and_that_is_said() -> None:
    disk = SimDisk(capacity=8192)
    bench = Bench(disk)
    log = opened(bench)
    for number in range(SPILLED):
        log.append(several(number))
    assert not any(segment.made for segment in log.segments)
    assert bench.reports
    assert all("stays in memory" in text for _, text in bench.reports)
    assert bench.gauge.used == in_memory(log) > TRANSIENT_MEMORY_BYTES
    assert [said(log.read(number)) for number in range(SPILLED)] == [
        said(several(number)) for number in range(SPILLED)
    ]
    log.settle_range(0, SPILLED)
    assert bench.gauge.used == 0


def test_a_log_that_is_deleted_leaves_nothing_behind() -> None:
    bench = Bench()
    log = opened(bench)
    for number in range(SPILLED):
        log.append(several(number))
    assert files(bench)
    log.settle(1)
    log.delete()
    assert files(bench) == []
    assert (log.live(), bench.gauge.used) == (0, 0)
    log.settle(0)
    log.settle_range(0, SPILLED)
    assert (log.read(0), log.live(), bench.gauge.used, bench.reports) == (None, 0, 0, [])


def test_old_segments_are_let_go_whole() -> None:
    bench = Bench()
    log = opened(bench)
    for number in range(SPILLED):
        bench.clock.advance(1)
        log.append(several(number))
    segments = len(log.segments)
    first = log.retain(0, NOW + 6)
    assert 0 < first <= 6
    assert len(log.segments) < segments
    assert log.live() == SPILLED - first
    log.retain(1, 0)
    assert (len(log.segments), bench.gauge.used) == (1, in_memory(log))
    assert files(bench) == []


def test_a_name_that_fits_in_no_record_is_refused_at_once() -> None:
    log = opened(Bench())
    with pytest.raises(ValueError, match="255"):
        log.append(message(key="\xe9" * 128))
    assert (log.end(), log.live()) == (0, 0)


@pytest.mark.parametrize("seed", range(6))
def test_the_gauge_counts_what_is_in_memory_whatever_happens(seed: int) -> None:
    rng = Random(seed)
    bench = Bench()
    log = opened(bench)
    expected: dict[int, bytes] = {}
    for _ in range(250):
        what = rng.randrange(8)
        end = log.end()
        at = rng.randrange(end + 1)
        if what < 5:
            given = several(rng.randrange(99), rng.choice((100, 60_000, LARGE)))
            expected[log.append(given)] = given.body
        elif what == 5:
            log.settle(at)
            expected.pop(at, None)
        elif what == 6:
            until = at + rng.randrange(6)
            log.settle_range(at, until)
            for position in range(at, until):
                expected.pop(position, None)
        else:
            log.set_count(at, 2)
        assert bench.gauge.used == in_memory(log)
    assert log.live() == len(expected)
    assert {at: log.read(at).body for at in expected} == expected
    assert all(log.read(at) is None for at in range(log.end()) if at not in expected)
    assert all(at in expected for at in log.counted())


def fan(bench: Bench, queues: int) -> list[Any]:
    return [opened(bench, f"{number:032x}") for number in range(1, queues + 1)]


def test_a_message_in_many_logs_is_in_memory_once() -> None:
    bench = Bench()
    logs = fan(bench, 1000)
    published = message(bytes(LARGE))
    for log in logs:
        log.append(published)
    entries = (len(logs) - 1) * HELD_AGAIN_BYTES
    assert bench.gauge.used == published.footprint() + entries
    for log in logs[:-1]:
        log.settle(0)
    assert bench.gauge.used == published.footprint()
    logs[-1].settle(0)
    assert bench.gauge.used == 0


def test_a_body_is_counted_once_where_logs_have_copies_of_its_message() -> None:
    bench = Bench()
    logs = fan(bench, 100)
    published = message(bytes(LARGE))
    for log in logs:
        copy = copy_message(published, published.exchange, published.routing_key)
        log.append(copy)
    assert bench.gauge.used < 2 * LARGE
    for log in logs[1:]:
        log.delete()
    assert bench.gauge.used == published.footprint()
    logs[0].settle_range(0, 1)
    assert bench.gauge.used == 0


def test_settlements_of_many_logs_together_are_not_written_once_for_each() -> None:
    bench = Bench()
    logs = fan(bench, 50)
    count = 2 * SPILLED
    for _ in range(count):
        published = message(bytes(LARGE))
        for log in logs:
            log.append(published)
    assert all(bench.disk.names(log.directory) == [] for log in logs)
    assert bench.gauge.used < count * (LARGE + 10_000)
    for log in logs:
        log.delete()
    assert bench.gauge.used == 0


def test_a_log_whose_messages_nobody_else_holds_any_more_writes_again() -> None:
    bench = Bench()
    logs = fan(bench, 50)
    for _ in range(2 * SPILLED):
        published = message(bytes(LARGE))
        for log in logs:
            log.append(published)
    for log in logs[1:]:
        log.delete()
    for _ in range(20):
        logs[0].append(message(bytes(LARGE)))
    assert bench.disk.names(logs[0].directory)
    assert bench.gauge.used == in_memory(logs[0])


def test_a_segment_that_is_retained_away_lets_go_of_its_messages() -> None:
    bench = Bench()
    one, other = fan(bench, 2)
    for _ in range(20):
        published = message(bytes(LARGE))
        one.append(published)
        other.append(published)
    one.retain(1, 0)
    other.delete()
    assert bench.gauge.used == in_memory(one)
    one.delete()
    assert bench.gauge.used == 0


def test_when_memory_is_short_every_message_goes_to_disk_and_stays_what_it_is() -> None:
    bench = Bench()
    log, small = opened(bench), opened(bench, "f" * 32)
    sent, settled = [], set()
    for number in range(60):
        if number % 3:
            bench.clock.advance(1)
        size = TRANSIENT_SEGMENT_BYTES if number == 30 else 10_000
        sent.append((several(number, size), bench.clock.ms))
        assert log.append(sent[-1][0]) == number
        if number % 4 == 1 or number in (0, 59):
            log.settle(number)
            settled.add(number)
    small.append(message(b"little"))
    reached = {at: log.reach(at, at + 1, 1, -1) for at in range(60)}
    log.set_count(2, 5)
    assert files(bench) == []
    bench.store.press(True)
    assert files(bench)
    assert bench.gauge.used == in_memory(log) + small.read(0).footprint()
    assert in_memory(log) == 0
    assert bench.disk.names(f"transient/{'f' * 32}") == [], "it is not worth a file"
    for at, (expected, when) in enumerate(sent):
        if at in settled:
            assert log.read(at) is None
            continue
        found = log.read(at)
        assert log.count(at) == (5 if at == 2 else 0)
        assert said(found) == said(expected)
        assert log.time_of(at) == when
        assert log.reach(at, at + 1, 1, -1) == reached[at]
    # While memory is short, more messages go there as well.
    for number in range(300):
        log.append(several(number, 10_000))
    assert in_memory(log) < 2 * TRANSIENT_SEGMENT_BYTES
    bench.store.press(False)
    log.settle_range(0, log.end())
    assert files(bench) == []
    assert bench.gauge.used == small.read(0).footprint()
    small.settle(0)
    assert bench.gauge.used == 0


def test_messages_shared_by_many_queues_stay_in_memory_under_pressure() -> None:
    bench = Bench()
    logs = [opened(bench, f"{number:032x}") for number in range(SHARED_BY_QUEUES)]
    shared = message(bytes(2 * TRANSIENT_SEGMENT_BYTES))
    for log in logs:
        log.append(shared)
    bench.store.press(True)
    assert all(log.read(0) is shared for log in logs)
    logs[0].settle(0)
    bench.store.press(True)
    assert [log.read(0) is shared for log in logs[1:]] == [False] * (SHARED_BY_QUEUES - 1)
    assert all(log.read(0).body == shared.body for log in logs[1:])
    assert bench.gauge.used == 0


def test_a_disk_that_takes_nothing_leaves_messages_in_memory() -> None:
    bench = Bench(SimDisk(capacity=50_000))
    log = opened(bench)
    sent = [several(number, 10_000) for number in range(20)]
    for each in sent:
        log.append(each)
    for _ in range(2):
        bench.store.press(True)
        assert [said(log.read(at)) for at in range(20)] == [said(each) for each in sent]
        assert bench.gauge.used == in_memory(log) > 200_000
    assert "stays in memory" in bench.reports[-1][1]
    log.delete()
    assert bench.gauge.used == 0
