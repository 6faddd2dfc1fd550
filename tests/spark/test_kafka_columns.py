"""Code for Spark's Kafka source, with another format and other options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pika
from pyspark.sql import SparkSession

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
