"""A query over several queues: what is shared out, and in which order things are asked."""

from __future__ import annotations

from typing import Any

from pyspark.sql.datasource import InputPartition

from harebell.spark.reading.offsets import LogOffset, QueueOffset
from harebell.spark.reading.planning import OffsetRange
from harebell.spark.reading.query import SourceQuery
from harebell.spark.reading.trigger_delay import TriggerDelay


class Numbers:
    """A queue of numbers that stays as it is."""

    def __init__(self, queue: str, count: int) -> None:
        self.queue = queue
        self.count = count
        self.finished = 0
        self.stopped = False

    def begin(self) -> QueueOffset:
        return LogOffset("g", 0)

    def join(self) -> QueueOffset:
        return LogOffset("g", 0)

    def before(self, end: QueueOffset) -> QueueOffset:
        return LogOffset("g", 0)

    def prepare(self) -> None:
        pass

    def available(self, start: QueueOffset) -> int:
        assert isinstance(start, LogOffset)
        return self.count - start.position

    def advance(self, start: QueueOffset, max_messages: int, octets: int | None) -> QueueOffset:
        assert isinstance(start, LogOffset)
        room = max_messages if octets is None else min(max_messages, octets // 10)
        return LogOffset("g", min(self.count, start.position + room))

    def extend(
        self, start: QueueOffset, end: QueueOffset, max_messages: int, octets: int | None
    ) -> QueueOffset:
        return self.advance(end, max_messages, octets)

    def plan(self, start: QueueOffset, end: QueueOffset) -> list[OffsetRange]:
        assert isinstance(start, LogOffset)
        assert isinstance(end, LogOffset)
        count = end.position - start.position
        return [OffsetRange(self.queue, "g", start.position, end.position, count)]

    def report(self) -> dict[str, Any] | None:
        return {"position": self.count} if self.count else None

    def finish(self, start: QueueOffset) -> None:
        self.finished += 1

    def stop(self) -> None:
        self.stopped = True


def whole(ranges: list[OffsetRange]) -> list[InputPartition]:
    return [InputPartition(ranges)]


def query(**counts: int) -> SourceQuery:
    return SourceQuery({name: Numbers(name, count) for name, count in counts.items()}, 0.0, whole)


def at(**positions: int) -> dict[str, QueueOffset]:
    return {queue: LogOffset("g", position) for queue, position in positions.items()}


def test_a_new_query_begins_where_its_parts_do() -> None:
    assert query(a=3, b=0).begin() == at(a=0, b=0)


def test_busy_queues_share_a_micro_batch() -> None:
    assert query(a=100, b=100).advance(at(a=0, b=0), 20, None) == at(a=10, b=10)


def test_the_share_of_an_idle_queue_goes_to_the_others() -> None:
    assert query(a=100, b=0).advance(at(a=0, b=0), 20, None) == at(a=20, b=0)
    assert query(a=100, b=0, c=100, d=0).advance(at(a=0, b=0, c=0, d=0), 20, None) == (
        at(a=10, b=0, c=10, d=0)
    )


def test_no_queue_waits_for_ever_when_there_are_more_queues_than_messages_wanted() -> None:
    one = query(a=100, b=100, c=100)
    points = one.begin()
    for _ in range(9):
        points = one.advance(points, 1, None)
    assert sum(point.position for point in points.values() if isinstance(point, LogOffset)) == 9
    assert all(point != LogOffset("g", 0) for point in points.values())


def test_every_queue_is_asked_although_there_are_more_than_messages_wanted() -> None:
    for busy in "abcdefg":
        one = query(**{queue: 5 if queue == busy else 0 for queue in "abcdefg"})
        start = one.begin()
        one.prepare()
        ends = one.advance(start, 2, None)
        assert ends == start | at(**{busy: 2})
        ends = one.advance(one.advance(ends, 2, None), 2, None)
        assert ends == start | at(**{busy: 5})
        assert one.advance(ends, 2, None) == ends
        assert [reader.finished for reader in one.readers.values()] == [1] * 7


def test_octets_are_shared_too() -> None:
    assert query(a=100, b=100).advance(at(a=0, b=0), 1000, 100) == at(a=5, b=5)


def test_nothing_new_is_the_same_point() -> None:
    one = query(a=5)
    assert one.advance(at(a=5), 20, None) == at(a=5)
    assert one.readers["a"].finished == 0


def test_a_query_that_drains_finishes_its_parts_at_the_end() -> None:
    one = query(a=5, b=5)
    one.prepare()
    assert one.advance(at(a=0, b=0), 20, None) == at(a=5, b=5)
    assert [reader.finished for reader in one.readers.values()] == [0, 0]
    assert one.advance(at(a=5, b=5), 20, None) == at(a=5, b=5)
    assert [reader.finished for reader in one.readers.values()] == [1, 1]


def test_only_what_moved_is_planned() -> None:
    (planned,) = query(a=9, b=9).plan(at(a=2, b=4), at(a=5, b=4))
    assert planned.value == [OffsetRange("a", "g", 2, 5, 3)]
    assert query(a=9).plan(at(a=2), at(a=2)) == []


def test_a_queue_that_a_running_query_found_begins_before_everything() -> None:
    (planned,) = query(a=9, new=9).plan(at(a=2), at(a=2, new=7))
    assert planned.value == [OffsetRange("new", "g", 0, 7, 7)]


def test_queues_that_match_join_a_running_query() -> None:
    one = SourceQuery(
        {"a": Numbers("a", 5)},
        0.0,
        whole,
        lambda known: {} if "new" in known else {"new": Numbers("new", 3)},
    )
    assert one.advance(at(a=5), 20, None) == at(a=5, new=3)
    assert one.advance(at(a=5, new=3), 20, None) == at(a=5, new=3)


def test_the_end_is_told_when_every_part_knows_it() -> None:
    assert query(a=5, b=7).report() == {"a": {"position": 5}, "b": {"position": 7}}
    assert query(a=5, b=0).report() is None


def held(clock: list[float], **counts: int) -> SourceQuery:
    delay = TriggerDelay(10, 60.0, lambda: clock[0])
    readers = {name: Numbers(name, count) for name, count in counts.items()}
    return SourceQuery(readers, 0.0, whole, delay=delay)


def test_a_micro_batch_waits_for_messages_of_all_queues_together() -> None:
    assert held([0.0], a=4, b=5).advance(at(a=0, b=0), 20, None) == at(a=0, b=0)
    assert held([0.0], a=4, b=6).advance(at(a=0, b=0), 20, None) == at(a=4, b=6)


def test_a_micro_batch_waits_no_longer_than_the_delay_since_the_last_one() -> None:
    clock = [0.0]
    one = held(clock, a=5)
    clock[0] = 59.0
    assert one.advance(at(a=0), 20, None) == at(a=0)
    clock[0] = 60.0
    assert one.advance(at(a=0), 20, None) == at(a=5)
    one.readers["a"] = Numbers("a", 7)
    clock[0] = 119.0
    assert one.advance(at(a=5), 20, None) == at(a=5)
    clock[0] = 120.0
    assert one.advance(at(a=5), 20, None) == at(a=7)


def test_a_delay_that_is_over_waits_for_the_first_message() -> None:
    clock = [0.0]
    one = held(clock, a=0)
    clock[0] = 100.0
    assert one.advance(at(a=0), 20, None) == at(a=0)
    one.readers["a"] = Numbers("a", 1)
    assert one.advance(at(a=0), 20, None) == at(a=1)


def test_a_query_that_drains_does_not_wait_for_messages() -> None:
    one = held([0.0], a=3)
    one.prepare()
    assert one.advance(at(a=0), 20, None) == at(a=3)


def test_all_parts_are_left() -> None:
    one = query(a=5, b=5)
    one.stop()
    assert all(reader.stopped for reader in one.readers.values())
