"""The batch reader without a JVM: what is there is seen, and stays there."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import datasource as ds
from pyspark.sql.types import StructType

from harebell.client import blocking
from harebell.spark.reading.batch_source import FilteredBatchReader, QueueBatchReader
from harebell.spark.reading.errors import SourceError
from harebell.spark.schema import MESSAGE
from harebell.spark.source import QueueSource
from tests.spark.asking import BODIES, publish, waiting
from tests.spark.conftest import PATIENT

Readers = Callable[..., QueueBatchReader]


@pytest.fixture
def reader(broker_url: str, queue: str) -> Readers:
    """Makes batch readers of the queue."""

    def make(schema: StructType = BODIES, **options: str) -> QueueBatchReader:
        given = PATIENT | {"url": broker_url, "queue": queue} | options
        made = QueueSource(given).reader(schema)
        assert isinstance(made, QueueBatchReader)
        return made

    return make


def rows(of: QueueBatchReader) -> list[dict[str, Any]]:
    """What executors would read, through a pickled reader as they have it."""
    tasks = of.partitions()
    executor: QueueBatchReader = pickle.loads(pickle.dumps(of))
    return [row for task in tasks for batch in executor.read(task) for row in batch.to_pylist()]


def bodies(of: QueueBatchReader) -> list[int]:
    return [int(row["value"]) for row in rows(of)]


def test_existing_messages_are_read_and_stay_in_the_queue(
    reader: Readers, channel: Any, queue: str
) -> None:
    publish(channel, queue, 0, 10)
    assert bodies(reader()) == list(range(10))
    assert bodies(reader()) == list(range(10))
    assert waiting(channel, queue) == 10
    assert not channel.basic_get(queue)[0].redelivered


def test_an_empty_queue_has_no_rows(reader: Readers) -> None:
    assert bodies(reader()) == []


def test_both_ends_can_be_chosen(reader: Readers, channel: Any, queue: str) -> None:
    publish(channel, queue, 0, 10)
    first = rows(reader())[0]["offset"]
    assert bodies(reader(startingOffsets=str(first + 3))) == [3, 4, 5, 6, 7, 8, 9]
    assert bodies(reader(endingOffsets=str(first + 3))) == [0, 1, 2]
    both = {"startingOffsets": str(first + 2), "endingOffsets": f'{{"{queue}": {first + 5}}}'}
    assert bodies(reader(**both)) == [2, 3, 4]
    assert bodies(reader(endingTimestamp="2001-01-01T00:00:00Z")) == []
    assert bodies(reader(startingTimestamp="2001-01-01T00:00:00Z")) == list(range(10))


def test_a_large_queue_is_cut_for_the_tasks(reader: Readers, broker_url: str, queue: str) -> None:
    with blocking.connect(broker_url) as connection:
        many = (b"%d" % number for number in range(20_000))
        connection.channel().publish_many(many, routing_key=queue)
    one = reader(minPartitions="4")
    assert len(one.partitions()) == 4
    assert bodies(one) == list(range(20_000))
    assert len(reader(minPartitions="1", maxRecordsPerPartition="2500").partitions()) == 8


def test_a_small_queue_is_one_task_unless_more_are_asked_for(
    reader: Readers, channel: Any, queue: str
) -> None:
    publish(channel, queue, 0, 10)
    assert len(reader().partitions()) == 1
    one = reader(minPartitions="5")
    assert len(one.partitions()) == 5
    assert bodies(one) == list(range(10))


def test_all_columns_are_seen(reader: Readers, channel: Any, queue: str) -> None:
    publish(channel, queue, 7, 8)
    (row,) = rows(reader(MESSAGE))
    assert list(row) == MESSAGE.names
    assert (row["value"], row["routing_key"], row["queue"]) == (b"7", queue, queue)


def test_a_queue_that_is_not_there_is_named(reader: Readers) -> None:
    with pytest.raises(SourceError, match="there is no queue 'nowhere'"):
        reader(queue="nowhere").partitions()


def filtered(reader: Readers, *filters: ds.Filter, **options: str) -> list[int]:
    one = reader(MESSAGE, pushdown="true", **options)
    assert isinstance(one, FilteredBatchReader)
    # Spark applies them too: everything comes back.
    assert list(one.pushFilters(list(filters))) == list(filters)
    return bodies(one)


def test_filters_are_applied_by_the_broker(reader: Readers, channel: Any, queue: str) -> None:
    channel.queue_bind(queue, "amq.topic", "#")
    for number, key in enumerate(["eu.a", "eu.b", "us.a", "eu.a"]):
        channel.basic_publish("amq.topic", key, b"%d" % number)
    first = rows(reader())[0]["offset"]
    key, offset, time = ("routing_key",), ("offset",), ("timestamp",)
    assert filtered(reader) == [0, 1, 2, 3]
    assert filtered(reader, ds.EqualTo(key, "eu.a")) == [0, 3]
    assert filtered(reader, ds.StringStartsWith(key, "eu.")) == [0, 1, 3]
    assert filtered(reader, ds.IsNotNull(offset), ds.GreaterThan(offset, first + 1)) == [2, 3]
    both = (ds.GreaterThanOrEqual(offset, first + 1), ds.LessThan(offset, first + 3))
    assert filtered(reader, *both) == [1, 2]
    assert filtered(reader, ds.EqualTo(offset, first + 2)) == [2]
    assert filtered(reader, ds.EqualTo(("queue",), queue)) == [0, 1, 2, 3]
    assert filtered(reader, ds.EqualTo(("queue",), "another")) == []
    assert filtered(reader, ds.In(("queue",), (queue, "another"))) == [0, 1, 2, 3]
    now = datetime.now(UTC)
    assert filtered(reader, ds.LessThan(time, now - timedelta(hours=1))) == []
    assert filtered(reader, ds.GreaterThan(time, now - timedelta(hours=1))) == [0, 1, 2, 3]
    assert filtered(reader, ds.GreaterThan(time, now + timedelta(hours=1))) == []


def test_filters_that_say_nothing_to_the_broker_are_left_to_spark(
    reader: Readers, channel: Any, queue: str
) -> None:
    publish(channel, queue, 0, 3)
    assert filtered(
        reader,
        ds.Not(ds.EqualTo(("routing_key",), queue)),
        ds.IsNull(("headers",)),
        ds.EqualTo(("offset",), None),
        ds.In(("offset",), (1, 2)),
        ds.StringEndsWith(("routing_key",), "zzz"),
    ) == [0, 1, 2]


def test_spark_keeps_what_was_pushed_down_with_the_frame_that_was_loaded(
    spark: SparkSession, broker_url: str, channel: Any, queue: str
) -> None:
    """Why docs/guides/spark.md says that a frame with `pushdown` is for one question."""
    publish(channel, queue, 0, 10)
    options = {"url": broker_url, "queue": queue, "pushdown": "true"}
    frame = spark.read.format("harebell").options(**options).load()
    first = frame.selectExpr("min(offset)").collect()[0][0]
    assert frame.where(f"offset < {first + 3}").count() == 3
    kept = frame.count()
    assert spark.read.format("harebell").options(**options).load().count() == 10
    # When this fails, Spark has mended it, and the warning can go.
    assert kept == 3
