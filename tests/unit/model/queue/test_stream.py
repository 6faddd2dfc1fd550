"""The stream: who reads what from where, what is kept, and what clients may not ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harebell.base.clock import Clock
from harebell.base.errors import ErrorKind, Refusal
from harebell.base.gauge import Gauge
from harebell.base.message import Message
from harebell.base.ports import Commit
from harebell.model.consumer import Consumer
from harebell.model.editor import Editor
from harebell.model.limits import (
    STREAM_RECENT_BODY_BYTES,
    STREAM_RECENT_MESSAGES,
    STREAM_SEGMENT_MIN_BYTES,
)
from harebell.model.queue import stream as stream_module
from harebell.model.queue.contract import ACCEPTED, PENDING, Queue
from harebell.model.queue.stream import StreamQueue
from harebell.model.queue.tracking import Tracking
from harebell.model.queue_context import QueueContext
from harebell.model.router import Router
from harebell.model.settings.queue_settings import settings_of
from harebell.store.log.memory import MemoryDefinitions, MemoryStore
from tests.unit.model.queue.logs import PreparedLog
from tests.unit.model.things import headers_of, message, with_headers

SHIFT = 16
NAME = "x-stream-filter-value"


class Reader(Consumer):
    """Takes as much as it has credit for, and writes offsets and bodies down."""

    def __init__(self, of: StreamQueue, start: Any = "first", **options: Any) -> None:
        arguments = {f"x-stream-{k.replace('_', '-')}": v for k, v in options.items() if k != "tag"}
        if start is not None:
            arguments["x-stream-offset"] = start
        super().__init__(of, options.get("tag", "c"), arguments=arguments)
        self.credit = 1000
        self.got: list[tuple[int, bytes]] = []
        self.positions: list[int] = []
        self.asked_again = 0
        self.told_of_the_end = False

    def ready(self) -> bool:
        return self.credit > 0

    def deliver(self, message: Message, position: int, redelivered: bool) -> int:
        self.credit -= 1
        assert not redelivered
        assert message.offset == position >> SHIFT
        self.got.append((message.offset, message.body))
        self.positions.append(position)
        return 0

    def again(self) -> int:
        self.asked_again += 1
        return 0

    def queue_deleted(self) -> None:
        self.told_of_the_end = True

    @property
    def offsets(self) -> list[int]:
        return [offset for offset, _ in self.got]


class Place:
    """A stream and all that it stands in."""

    def __init__(self, **arguments: Any) -> None:
        self.clock = Clock(1_000_000)
        self.log = PreparedLog(self.clock)
        self.commit = MemoryStore(Gauge()).commit
        self.definitions = MemoryDefinitions()
        self.awaiting: list[Queue] = []
        self.arguments = {name.replace("_", "-"): value for name, value in arguments.items()}
        self.stream = self.open()

    def open(self, **offsets: int) -> StreamQueue:
        tracking = Tracking("/", "s", self.definitions, self.commit, offsets)
        stream = StreamQueue(
            "s", "/", self.log, self.commit, tracking, 100, durable=True, arguments=self.arguments
        )
        editor = Editor(headers_of)
        stream.join(QueueContext(Router(headers_of), editor, self.clock, self.awaiting))
        stream.configure(settings_of({"x-queue-type": "stream"} | self.arguments, {}))
        return stream

    def publish(self, count: int = 1, body: bytes = b"") -> None:
        for _ in range(count):
            self.stream.publish(message(body or b"%d" % self.log.end()))

    def read(self, start: Any = "first", **options: Any) -> Reader:
        reader = Reader(self.stream, start, **options)
        self.stream.add_consumer(reader)
        return reader


def test_everybody_reads_everything_and_nothing_is_taken_out() -> None:
    place = Place()
    place.publish(3)
    one, two = place.read(), place.read("next")
    place.publish(2)
    three = place.read(3)
    assert one.got == [(n, b"%d" % n) for n in range(5)]
    assert two.offsets == three.offsets == [3, 4]
    assert (place.stream.ready_count(), place.stream.unacked) == (5, 9)


def test_a_message_that_other_queues_hold_too_is_not_told_its_offset() -> None:
    place = Place()
    shared = message(b"a")
    place.stream.publish(shared)
    assert place.read().offsets == [0]
    assert shared.offset == -1


def test_readers_that_follow_each_other_get_the_same_from_one_reading_of_the_log() -> None:
    place = Place()
    readers = [place.read() for _ in range(3)]
    reads: list[int] = []
    place.log.reading = reads.append
    for count in (10, 700, 3):
        place.publish(count)
    everything = [(n, b"%d" % n) for n in range(713)]
    assert all(reader.got[:] == everything for reader in readers)
    assert len(reads) == 713


def test_large_bodies_are_read_again_for_each_reader() -> None:
    place = Place()
    place.read(), place.read()
    reads: list[int] = []
    place.log.reading = reads.append
    place.publish(1, b"x" * STREAM_RECENT_BODY_BYTES)
    place.publish(1, b"x" * (STREAM_RECENT_BODY_BYTES + 1))
    assert reads == [0, 1, 1]


def test_readers_far_from_each_other_read_for_themselves() -> None:
    place = Place()
    place.publish(STREAM_RECENT_MESSAGES * 2 + 1)
    late, early = Reader(place.stream), Reader(place.stream)
    late.credit, early.credit = STREAM_RECENT_MESSAGES + 3, 2
    for reader in (late, early):
        place.stream.add_consumer(reader)
    late.credit = early.credit = 1000
    place.stream.drain()
    everything = [(n, b"%d" % n) for n in range(STREAM_RECENT_MESSAGES * 2 + 1)]
    assert late.got == early.got == everything


def test_messages_removed_by_retention_are_not_read_from_memory() -> None:
    place = Place(x_max_length_bytes=25)
    place.log.per_segment = 10
    quick, slow = Reader(place.stream), Reader(place.stream)
    slow.credit = 1
    for reader in (quick, slow):
        place.stream.add_consumer(reader)
    place.publish(45, body=b"x")
    place.stream.tick()
    first = place.log.first()
    assert first > 1
    slow.credit = 1
    place.stream.drain()
    assert slow.offsets == [0, first]


def test_credit_is_what_settling_gives_back_in_any_way() -> None:
    place = Place()
    place.publish(5)
    reader = Reader(place.stream)
    reader.credit = 2
    place.stream.add_consumer(reader)
    assert reader.offsets == [0, 1]
    for way in (place.stream.settle, place.stream.reject, place.stream.requeue):
        way(reader.positions[0])
        reader.credit += 1
        place.stream.drain()
    assert reader.offsets == [0, 1, 2, 3, 4]
    assert place.stream.unacked == 2


def test_records_that_are_not_on_disk_are_not_visible() -> None:
    place = Place()
    place.commit = Commit()
    place.stream = place.open()
    reader = place.read()
    assert place.stream.publish(message(b"a")) == PENDING
    assert place.awaiting == [place.stream]
    place.commit.ticket = 2
    place.publish(2)
    place.commit.ticket = 3
    place.publish()
    assert (reader.got, place.read("next").got) == ([], [])
    seen = []
    for done in (1, 2, 3):
        place.commit.done = done
        place.awaiting.clear()
        place.stream.committed()
        seen.append(len(reader.got))
        assert bool(place.awaiting) == (done < 3)
    assert seen == [1, 3, 4]
    place.commit.ticket = 4
    assert place.stream.publish(message(b"e")) == PENDING
    place.commit.done = 4
    place.stream.committed()
    assert len(reader.got) == 5


def test_where_nothing_is_written_everything_is_seen_at_once() -> None:
    place = Place()
    reader = place.read()
    assert place.stream.publish(message(b"a")) == ACCEPTED
    assert reader.offsets == [0]


def test_messages_that_were_there_before_are_visible() -> None:
    place = Place()
    place.publish(3)
    place.commit = Commit()
    place.stream = place.open()
    assert place.read().offsets == [0, 1, 2]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"filter": "a"}, [0, 3]),
        ({"filter": ["a", "b"]}, [0, 1, 3]),
        ({"filter": "a", "match_unfiltered": True}, [0, 2, 3, 4, 5]),
        ({"match_unfiltered": True}, [0, 1, 2, 3, 4, 5]),
        ({"filter": []}, []),
    ],
)
def test_filters_are_exact(options: dict[str, Any], expected: list[int]) -> None:
    place = Place()
    for headers in ({NAME: "a"}, {NAME: "b"}, {"other": "a"}, {NAME: "a"}, {NAME: 5}):
        place.stream.publish(with_headers(headers))
    place.publish()
    assert place.read(**options).offsets == expected


def test_a_filter_that_passes_over_much_asks_for_another_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = Place()
    place.publish(stream_module.STREAM_SCAN_MESSAGES + 5)
    place.stream.publish(with_headers({NAME: "a"}))
    reader = place.read(filter="a")
    assert (reader.got, reader.asked_again) == ([], 1)
    place.stream.drain()
    assert len(reader.got) == 1


@pytest.mark.parametrize(
    ("arguments", "first"), [({"x_max_length_bytes": 25}, 10), ({"x_max_age": "4s"}, 20)]
)
def test_whole_segments_go_when_they_are_too_much_or_too_old(
    arguments: dict[str, Any], first: int
) -> None:
    place = Place(**arguments)
    place.log.per_segment = 10
    slow = Reader(place.stream)
    slow.credit = 1
    place.stream.add_consumer(slow)
    for _ in range(25):
        place.publish(body=b"x")
        place.clock.ms += 200
    place.clock.ms += 3_000
    place.stream.tick()
    if "x_max_length_bytes" in arguments:
        assert place.log.first() == 0
        place.publish(5, body=b"x")
        place.stream.tick()
    assert place.log.first() == first
    assert place.stream.ready_count() == place.log.end() - first
    slow.credit = 1
    place.stream.drain()
    assert slow.offsets == [0, first]


def test_nothing_goes_that_the_tier_does_not_have() -> None:
    place = Place(x_max_length_bytes=25, x_tier="old")
    place.log.per_segment = 10
    place.publish(45, body=b"x")
    place.stream.tick()
    assert place.log.first() == 0
    tier = Reader(place.stream, tag="old", automatic_offset_tracking=True)
    place.stream.add_consumer(tier)
    place.stream.settle(tier.positions[24])
    place.stream.tick()
    assert place.log.first() == 20
    place.stream.configure({"max-length-bytes": 25})
    place.stream.tick()
    assert place.log.first() == 20
    place.publish(5, body=b"x")
    place.stream.tick()
    assert place.log.first() == 30


def test_a_segment_is_as_large_as_a_policy_says_while_there_is_one() -> None:
    place = Place()
    stream = place.stream
    policy = {"stream-max-segment-size-bytes": 50_000}
    for settings, size in ((policy, 50_000), ({}, 100), ({**policy, "x": 1}, 50_000)):
        stream.configure(settings)
        assert place.log.cuts[-1] == size
    stream.configure({"stream-max-segment-size-bytes": 1})
    assert place.log.cuts[-1] == STREAM_SEGMENT_MIN_BYTES
    stream.configure({"stream-max-segment-size-bytes": 1})
    assert len(place.log.cuts) == 4


def test_retention_is_looked_at_when_a_segment_may_be_full() -> None:
    place = Place(x_max_length_bytes=100)
    place.log.per_segment = 1
    place.publish(12, body=b"x" * 20)
    assert 5 <= place.stream.ready_count() < 10


def test_damaged_messages_are_passed_over() -> None:
    place = Place()
    place.publish(4)
    place.log.damaged = {0, 1, 3}
    reader = place.read()
    place.publish()
    assert reader.offsets == [2, 4]


TRACKED = {"automatic_offset_tracking": True, "tag": "mine"}


def test_a_tracked_consumer_goes_on_after_what_it_acknowledged() -> None:
    place = Place()
    place.publish(6)
    reader = place.read(None, **TRACKED)
    assert reader.offsets == [0, 1, 2, 3, 4, 5]
    for position in reader.positions[:3]:
        place.stream.settle(position)
    place.stream.requeue(reader.positions[4])
    place.stream.remove_consumer(reader)
    assert place.read(None, **TRACKED).offsets == [3, 4, 5]
    assert place.read("last", **TRACKED).offsets == [5]
    assert place.read("next", tag="other").got == []
    rows = dict(place.definitions.load("offset"))
    assert rows == {("/", "s", "mine"): {"position": 2}}


def test_offsets_are_written_on_a_tick_and_found_after_a_restart() -> None:
    place = Place()
    place.publish(4)
    reader = place.read(None, **TRACKED)
    place.stream.settle(reader.positions[1])
    assert not list(place.definitions.load("offset"))
    place.stream.tick()
    assert list(place.definitions.load("offset")) == [(("/", "s", "mine"), {"position": 1})]
    place.stream = place.open(mine=1)
    assert place.read(None, **TRACKED).offsets == [2, 3]
    place.stream.unstore()
    assert not list(place.definitions.load("offset"))


def test_nothing_is_kept_for_tags_that_the_broker_made_up() -> None:
    place = Place()
    place.publish(1)
    reader = place.read(automatic_offset_tracking=True, tag="amq.ctag-x")
    place.stream.settle(reader.positions[0])
    place.stream.tick()
    assert not list(place.definitions.load("offset"))


def test_deleting_tells_the_readers_and_late_answers_do_no_harm() -> None:
    place = Place()
    place.publish(2)
    reader = place.read()
    assert place.stream.delete() == 2
    assert reader.told_of_the_end
    place.stream.settle(reader.positions[0])
    place.stream.requeue(reader.positions[1])
    place.stream.committed()
    assert (place.stream.unacked, place.log.live(), place.stream.itself) == (0, 0, ())


def test_a_reader_that_left_gets_nothing_more() -> None:
    place = Place()
    reader, stranger = place.read(), Reader(place.stream)
    place.stream.remove_consumer(stranger)
    place.stream.remove_consumer(reader)
    place.publish()
    assert (reader.got, list(place.stream.consumers)) == ([], [])


def consume(**changed: Any) -> Callable[[StreamQueue], Any]:
    options = {"no_ack": False, "exclusive": False, "prefetch": 1, **changed}
    arguments = options.pop("arguments", {})
    return lambda stream: stream.check_consumer("c", arguments, **options)


IMPLEMENTED, FAILED = ErrorKind.NOT_IMPLEMENTED, ErrorKind.PRECONDITION_FAILED
THING = "queue 's' in vhost '/'"


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda s: s.get(), IMPLEMENTED, f"basic.get not supported by stream queues {THING}"),
        (lambda s: s.purge(), IMPLEMENTED, f"queue.purge not supported by stream queues {THING}"),
        (
            lambda s: s.check_prefetch_global(),
            IMPLEMENTED,
            f"{THING} does not support global qos",
        ),
        (
            consume(no_ack=True),
            IMPLEMENTED,
            f"automatic acknowledgement not supported by stream {THING}",
        ),
        (
            consume(prefetch=0),
            FAILED,
            f"consumer prefetch count is not set for stream {THING}",
        ),
        (
            consume(arguments={"x-stream-offset": "foo"}),
            FAILED,
            f"invalid arg 'x-stream-offset' for {THING}: "
            '{invalid_stream_offset_arg,{longstr,<<"foo">>}}',
        ),
    ],
)
def test_arguments_unknown_to_streams_are_refused(
    call: Callable[[StreamQueue], Any], kind: ErrorKind, text: str
) -> None:
    with pytest.raises(Refusal) as refused:
        call(Place().stream)
    assert (refused.value.kind, refused.value.text) == (kind, text)


def test_a_consumer_with_prefetch_is_welcome() -> None:
    tracked = {"x-stream-automatic-offset-tracking": True}
    assert consume(arguments=tracked)(Place().stream) is False
    assert Place().stream.sync_soon() == ACCEPTED
