"""`harebell.testing.StreamCalls`: Spark's calls to a source, this one's and anybody's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from harebell.client import blocking
from harebell.management.control.client import ask_command
from harebell.spark.reading.errors import SourceError
from harebell.spark.source import QueueSource
from harebell.testing import StreamCalls
from tests.patience import eventually
from tests.running import RunningBroker, running_broker
from tests.spark.asking import BODIES, publish, waiting


class Range(InputPartition):
    def __init__(self, first: int, end: int) -> None:
        super().__init__((first, end))


class Numbers(DataSourceStreamReader):
    """Three numbers in each micro-batch, ten in all; it records what it is asked."""

    def __init__(self, asked: list[Any]) -> None:
        self._asked = asked

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        self._asked.append("initial")
        return {"at": 0}

    def latestOffset(  # noqa: N802
        self, start: dict[str, int], limit: Any
    ) -> dict[str, int]:
        self._asked.append(("latest", start["at"]))
        return {"at": min(start["at"] + 3, 10)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[Range]:
        self._asked.append(("partitions", start["at"], end["at"]))
        return [Range(start["at"], end["at"])]

    def commit(self, end: dict[str, int]) -> None:
        self._asked.append(("commit", end["at"]))

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        first, end = partition.value
        yield from ((number,) for number in range(first, end))


def test_a_source_is_asked_in_the_order_of_spark_and_after_a_kill_what_did_not_end_again() -> None:
    asked: list[Any] = []
    calls = StreamCalls(lambda: Numbers(asked))
    assert calls.batch() == [(0,), (1,), (2,)]
    assert calls.plan()
    assert calls.read() == calls.read() == [(3,), (4,), (5,)]
    calls.restart()
    assert calls.batch() == [(3,), (4,), (5,)]
    assert calls.drain() == [[(6,), (7,), (8,)], [(9,)]]
    assert asked == [
        "initial",
        ("latest", 0),
        ("partitions", 0, 3),
        ("latest", 3),
        ("commit", 3),
        ("partitions", 3, 6),
        ("partitions", 3, 6),
        ("latest", 6),
        ("commit", 6),
        ("partitions", 6, 9),
        ("latest", 9),
        ("commit", 9),
        ("partitions", 9, 10),
        ("latest", 10),
    ]


def test_with_asynchronous_progress_a_run_begins_where_the_log_is_and_commits_come_late() -> None:
    asked: list[Any] = []
    calls = StreamCalls(lambda: Numbers(asked), log_every=3)
    assert [calls.batch() for _ in range(3)] == [
        [(0,), (1,), (2,)],
        [(3,), (4,), (5,)],
        [(6,), (7,), (8,)],
    ]
    assert not [each for each in asked if each[0] == "commit"]
    calls.restart()
    assert calls.batch() == [(3,), (4,), (5,)]
    assert calls.batch() == [(6,), (7,), (8,)]
    assert asked[-3:] == [("latest", 6), ("commit", 3), ("partitions", 6, 9)]


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_a_query_that_logs_later_is_told_so_before_its_second_micro_batch_is_read(
    broker_url: str, channel: Any, queue: str, delivery: str
) -> None:
    publish(channel, queue, 0, 10)
    made: list[DataSourceStreamReader] = []

    def make() -> DataSourceStreamReader:
        options = {"queue": queue, "url": broker_url, "delivery": delivery}
        limits = {"maxOffsetsPerTrigger": "4", "longPollMs": "2000"}
        made.append(QueueSource(options | limits).streamReader(BODIES))
        return made[-1]

    calls = StreamCalls(make, log_every=5)
    first = calls.batch()
    assert first is not None
    with pytest.raises(SourceError, match="asyncProgressTrackingEnabled"):
        calls.batch()
    made[-1].stop()
    assert waiting(channel, queue) <= 10 - len(first)


def claimed(broker: RunningBroker, calls: StreamCalls) -> list[int]:
    """The claims of a query that are not acknowledged."""
    (group,) = {offset["orders"]["group"] for offset in calls.checkpoint.offsets.values()}
    shown = ask_command(broker.data_dir, "leases.show", {"queue": "orders", "group": group})
    return [claim["number"] for claim in shown["open"]]


def test_claims_are_acknowledged_when_spark_is_known_to_have_logged_them() -> None:
    with running_broker() as broker, blocking.connect(broker.url) as connection:
        orders = connection.channel(confirms=True)
        orders.declare_queue("orders", durable=True)
        for number in range(10):
            orders.publish(b"%d" % number, routing_key="orders")
        options = {"queue": "orders", "url": broker.url, "maxOffsetsPerTrigger": "4"}

        def make() -> DataSourceStreamReader:
            return QueueSource(options | {"longPollMs": "200"}).streamReader(BODIES)

        # Spark asks for the second micro-batch, and its log may have nothing of the first one: a
        # disk that is full fails the query later.
        later = StreamCalls(make, log_every=5)
        rows = later.batch()
        assert rows is not None
        assert [row["value"] for row in rows] == [b"0", b"1", b"2", b"3"]
        start = later.checkpoint.offsets[0]
        limit = later.reader.getDefaultReadLimit()
        assert later.reader.latestOffset(start, limit) != start
        assert claimed(broker, later) == [1, 2]
        later.stop()
        # Whose log is known to be written first is believed: when it says so, and from then on.
        calls = StreamCalls(make)
        assert calls.plan()
        calls.read()
        calls.finish()
        for number in (10, 11):
            orders.publish(b"%d" % number, routing_key="orders")
        assert calls.plan()
        assert claimed(broker, calls) == [2]
        calls.finish()
        # It is idle: its last micro-batch is acknowledged too.
        assert not calls.plan()
        assert claimed(broker, calls) == []
        calls.stop()


def test_an_idle_query_acknowledges_its_only_micro_batch_after_a_while() -> None:
    with running_broker() as broker, blocking.connect(broker.url) as connection:
        orders = connection.channel(confirms=True)
        orders.declare_queue("orders", durable=True)
        orders.publish(b"1", routing_key="orders")
        options = {"queue": "orders", "url": broker.url, "longPollMs": "100"}
        calls = StreamCalls(lambda: QueueSource(dict(options)).streamReader(BODIES))
        assert calls.batch()
        assert not calls.plan()
        assert claimed(broker, calls) == [1]
        assert eventually(lambda: calls.plan() or claimed(broker, calls) == [])
        calls.stop()
