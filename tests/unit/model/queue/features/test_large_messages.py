"""Large messages on disk: a queue has them read in slices, and drops them unread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harebell.base.gauge import Gauge
from harebell.base.message import Message, Properties
from harebell.model.queue.factory import classic_queue, keyed_queue, priority_queue, quorum_queue
from harebell.model.queue.queue import MessageQueue
from harebell.store.log.memory import MemoryStore
from tests.unit.model.queue.logs import PreparedLog
from tests.unit.model.things import Taker, message, rest


class SpilledLog(PreparedLog):
    """A log of which some messages are spilled, until the test says that they were read."""

    def __init__(self, *spilled: int) -> None:
        super().__init__()
        self.has_large = True
        self.spilled = set(spilled)
        self.fetching: dict[int, list[Callable[[], object]]] = {}

    def is_spilled(self, position: int) -> bool:
        return position in self.spilled

    def load_spilled(self, position: int, done: Callable[[], object]) -> None:
        assert position in self.spilled
        self.fetching.setdefault(position, []).append(done)

    def read(self, position: int) -> Message | None:
        assert position not in self.spilled, f"{position} is read at once"
        return super().read(position)

    def fetched(self, position: int) -> None:
        self.spilled.discard(position)
        for done in self.fetching.pop(position):
            done()


def filled(log: SpilledLog, count: int = 3, **options: Any) -> MessageQueue:
    queue = classic_queue("q", "/", log, **options)
    for number in range(count):
        queue.publish(message(b"%d" % number))
    return queue


def test_a_far_message_is_read_before_it_is_delivered_and_those_behind_it_wait() -> None:
    log = SpilledLog(1)
    queue = filled(log)
    taker = Taker(queue)
    queue.add_consumer(taker)
    assert taker.bodies == [b"0"]
    assert list(log.fetching) == [1]
    queue.publish(message(b"3"))
    queue.drain()
    assert taker.bodies == [b"0"]
    log.fetched(1)
    assert taker.bodies == [b"0", b"1", b"2", b"3"]


def test_nothing_is_read_for_consumers_that_are_not_ready() -> None:
    log = SpilledLog(0)
    queue = filled(log)
    taker = Taker(queue, credit=0)
    queue.add_consumer(taker)
    queue.drain()
    assert log.fetching == {}
    taker.credit = 1
    queue.drain()
    log.fetched(0)
    assert taker.bodies == [b"0"]


def test_a_consumer_that_leaves_meanwhile_gets_nothing_and_the_next_one_all() -> None:
    log = SpilledLog(0)
    queue = filled(log)
    first, second = Taker(queue, "first"), Taker(queue, "second")
    queue.add_consumer(first)
    queue.remove_consumer(first)
    log.fetched(0)
    assert first.bodies == []
    queue.add_consumer(second)
    assert second.bodies == [b"0", b"1", b"2"]


def test_a_queue_that_is_purged_or_deleted_meanwhile_goes_on() -> None:
    log = SpilledLog(0)
    queue = filled(log)
    taker = Taker(queue)
    queue.add_consumer(taker)
    queue.purge()
    queue.publish(message(b"new"))
    log.fetched(0)
    assert taker.bodies == [b"new"]
    log.spilled.add(4)
    taker.credit = 0
    queue.publish(message(b"spilled"))
    taker.credit = 1
    queue.drain()
    queue.delete()
    log.fetched(4)
    assert taker.bodies == [b"new"]


def test_a_message_dropped_for_its_number_is_not_read() -> None:
    log = SpilledLog(0, 1)
    queue = filled(log)
    queue.configure({"max-length": 1})
    assert queue.ready_count() == 1
    assert rest(queue) == [b"2"]
    assert log.live() == 0


def test_the_head_of_the_most_urgent_level_of_a_priority_queue_is_read_in_slices() -> None:
    logs: dict[int, SpilledLog] = {}

    def log_of(level: int) -> SpilledLog:
        logs[level] = SpilledLog(0) if level else SpilledLog()
        return logs[level]

    queue = priority_queue("q", "/", log_of, 5)
    queue.publish(message(b"plain"))
    queue.publish(Message("", "", Properties(b"\x08\x00\x04", priority=4), b"urgent"))
    taker = Taker(queue)
    queue.add_consumer(taker)
    assert taker.bodies == []
    (level,) = [level for level, log in logs.items() if log.fetching]
    logs[level].fetched(0)
    assert taker.bodies == [b"urgent", b"plain"]


def test_a_quorum_queue_drops_what_came_back_first_and_unread() -> None:
    log = SpilledLog()
    queue = quorum_queue("q", "/", log, MemoryStore(Gauge()).commit, durable=True)
    for number in range(3):
        queue.publish(message(b"%d" % number))
    assert queue.get() is not None
    queue.requeue(0)
    log.spilled.add(0)
    queue.configure({"max-length": 2})
    assert rest(queue) == [b"1", b"2"]
    assert log.live() == 0


def test_a_queue_with_ordering_keys_counts_what_waits_when_it_drops_unread() -> None:
    log = SpilledLog(0)
    arguments = {"x-group-key": "key"}
    queue = keyed_queue("q", "/", log, arguments=arguments)
    for number in range(3):
        queue.publish(message(b"%d" % number))
    queue.configure({"max-length": 2})
    assert queue.ready_count() == 2
    assert log.live() == 2
