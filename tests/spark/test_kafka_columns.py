"""Code for Spark's Kafka source, with another format and other options."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pytest
from pyspark.sql import SparkSession

from harebell.spark.reading.errors import SourceError
from harebell.spark.schema import MESSAGE
from harebell.spark.source import QueueSource
from tests.spark.conftest import PATIENT


def test_rows_have_the_columns_of_kafka(
    spark: SparkSession, broker_url: str, channel: Any, queue: str, tmp_path: Path
) -> None:
    channel.queue_bind(queue, "amq.topic", "#")
    for number in range(6):
        channel.basic_publish(
            "amq.topic",
            f"key-{number % 2}",
            b"%d" % number,
            pika.BasicProperties(headers={"source": "shop", "number": number} if number else None),
        )
    given = PATIENT | {"url": broker_url, "queue": queue, "columns": "kafka"}
    batch = spark.read.format("harebell").options(**given, includeHeaders="true").load()
    assert batch.columns == [
        *("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"),
    ]
    rows = batch.selectExpr(
        "CAST(key AS STRING) AS key",
        "CAST(value AS STRING) AS value",
        "topic",
        "partition",
        "timestampType",
        "CAST(headers[0].value AS STRING) AS first",
        "size(headers) AS headers",
    ).orderBy("value")
    found = [tuple(row) for row in rows.collect()]
    assert found[0][:5] == ("key-0", "0", queue, 0, 1)
    assert [row[:2] for row in found] == [(f"key-{n % 2}", str(n)) for n in range(6)]
    assert all(row[5:] == ("shop", 2) for row in found[1:])

    stream = spark.readStream.format("harebell").options(**given).load()
    query = (
        stream.selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)")
        .writeStream.format("memory")
        .queryName("kafka_columns")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    counts = spark.sql("SELECT key, count(*) FROM kafka_columns GROUP BY key ORDER BY key")
    assert [tuple(row) for row in counts.collect()] == [("key-0", 3), ("key-1", 3)]
    assert channel.queue_declare(queue, passive=True).method.message_count == 0


@pytest.fixture
def super_stream(channel: Any) -> Iterator[str]:
    """A super stream of three partitions, and a stream of a similar name."""
    names = ["many-0", "many-1", "many-2", "many-more"]
    for name in names:
        channel.queue_declare(name, durable=True, arguments={"x-queue-type": "stream"})
    for number in range(30):
        channel.basic_publish("", f"many-{number % 3}", b"%d" % number)
    channel.basic_publish("", "many-more", b"another")
    yield "many"
    for name in names:
        channel.queue_delete(name)


def test_the_partitions_of_a_super_stream_are_read_as_one(
    spark: SparkSession, broker_url: str, super_stream: str, tmp_path: Path
) -> None:
    given = PATIENT | {"url": broker_url, "superStream": super_stream}
    batch = spark.read.format("harebell").options(**given, columns="kafka").load()
    assert batch.rdd.getNumPartitions() == 3
    rows = batch.selectExpr(
        "topic", "partition", "offset", "CAST(CAST(value AS STRING) AS INT) AS value"
    )
    assert [tuple(row) for row in rows.orderBy("value").collect()] == [
        ("many", number % 3, number // 3, number) for number in range(30)
    ]
    assert batch.select("partition").distinct().count() == 3
    query = (
        spark.readStream.format("harebell")
        .options(**given, startingOffsets="earliest")
        .load()
        .selectExpr("queue", "CAST(CAST(value AS STRING) AS INT) AS value")
        .writeStream.format("memory")
        .queryName("super_stream")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    sums = spark.sql("SELECT queue, sum(value) FROM super_stream GROUP BY queue ORDER BY queue")
    assert [tuple(row) for row in sums.collect()] == [
        ("many-0", 135),
        ("many-1", 145),
        ("many-2", 155),
    ]


def test_an_exchange_that_is_no_super_stream_is_named(broker_url: str, channel: Any) -> None:
    given = PATIENT | {"url": broker_url, "superStream": "few"}
    reader = QueueSource(given).reader(MESSAGE)
    with pytest.raises(SourceError, match=r"'few', is no super stream .* no queue 'few-0'"):
        reader.partitions()
    channel.queue_declare("few-0", durable=True)
    try:
        with pytest.raises(SourceError, match="has a partition 'few-0' that is a classic queue"):
            reader.partitions()
    finally:
        channel.queue_delete("few-0")
