"""The option deadLettersOf: the dead letters of a queue, and why they died."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from harebell.spark.reading.errors import SourceError
from harebell.spark.schema import MESSAGE
from harebell.spark.source import QueueSource
from tests.spark.asking import waiting
from tests.spark.conftest import PATIENT


@pytest.fixture
def dying(channel: Any) -> Iterator[str]:
    """A queue with two queues for its dead letters, five rejected and three expired messages."""
    names = ["dying", "dead.rejected", "dead.all"]
    channel.exchange_declare("graves", "topic", durable=True)
    for name in names[1:]:
        channel.queue_declare(name, durable=True)
    channel.queue_bind("dead.rejected", "graves", "order.*")
    arguments = {"x-dead-letter-exchange": "graves"}
    channel.queue_declare("dying", durable=True, arguments=arguments)
    channel.queue_bind("dying", "amq.topic", "order.*")
    for number in range(5):
        channel.basic_publish("amq.topic", f"order.{number}", b"%d" % number)
        method, _, _ = channel.basic_get("dying")
        channel.basic_reject(method.delivery_tag, requeue=False)
    yield "dying"
    for name in names:
        channel.connection.channel().queue_delete(name)
    channel.connection.channel().exchange_delete("graves")


def test_rows_say_why_and_where_messages_died(
    spark: SparkSession, broker_url: str, channel: Any, dying: str, tmp_path: Path
) -> None:
    given = PATIENT | {"url": broker_url, "deadLettersOf": dying}
    batch = spark.read.format("harebell").options(**given).load()
    rows = batch.selectExpr(
        "CAST(value AS STRING) AS value",
        "queue",
        "death.reason",
        "death.queue AS died_in",
        "death.exchange",
        "death.routing_keys[0] AS key",
        "death.count",
        "death.time > current_timestamp() - INTERVAL 1 HOUR AS recent",
    ).orderBy("value")
    assert [tuple(row) for row in rows.collect()] == [
        (str(n), "dead.rejected", "rejected", dying, "amq.topic", f"order.{n}", 1, True)
        for n in range(5)
    ]
    assert waiting(channel, "dead.rejected") == 5

    def run() -> None:
        query = (
            spark.readStream.format("harebell")
            .options(**given, bodyFormat="text")
            .load()
            .select("value", "queue", "death.reason")
            .writeStream.format("parquet")
            .option("path", str(tmp_path / "rows"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    run()
    assert waiting(channel, "dead.rejected") == 0
    channel.queue_bind("dead.all", "graves", "#")
    channel.basic_publish("graves", "other", b"never died")
    run()
    found = spark.read.parquet(str(tmp_path / "rows")).orderBy("value").collect()
    assert [tuple(row) for row in found] == [
        *((str(n), "dead.rejected", "rejected") for n in range(5)),
        ("never died", "dead.all", None),
    ]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "the option deadLettersOf, 'lively': .*has no dead-letter exchange: declare it with"),
        ({"x-dead-letter-exchange": "nowhere"}, "the dead-letter exchange 'nowhere' of queue 'li"),
        ({"x-dead-letter-exchange": "amq.fanout"}, "no queue gets dead letters of queue 'lively'"),
    ],
)
def test_a_queue_without_dead_letters_is_told_why(
    broker_url: str, channel: Any, arguments: dict[str, str], text: str
) -> None:
    channel.queue_declare("lively", arguments=arguments)
    try:
        reader = QueueSource(PATIENT | {"url": broker_url, "deadLettersOf": "lively"})
        with pytest.raises(SourceError, match=text):
            reader.reader(MESSAGE).partitions()
        with pytest.raises(SourceError, match=text):
            reader.streamReader(MESSAGE).initialOffset()
    finally:
        channel.queue_delete("lively")


def test_a_queue_that_is_not_there_is_named(broker_url: str) -> None:
    source = QueueSource(PATIENT | {"url": broker_url, "deadLettersOf": "nobody"})
    with pytest.raises(SourceError, match="there is no queue 'nobody' in the virtual host '/'"):
        source.reader(MESSAGE).partitions()
