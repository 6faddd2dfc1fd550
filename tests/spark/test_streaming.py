"""Queues through Spark Structured Streaming, end to end: a real broker, a real session."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pika
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from harebell.spark.schema import MESSAGE
from tests.patience import eventually
from tests.spark.asking import publish, waiting
from tests.spark.conftest import PATIENT
from tests.spark.parquet_lake import Lake

pytestmark = pytest.mark.timeout(1_200)


@pytest.fixture
def lake(spark: SparkSession, broker_url: str, queue: str, tmp_path: Path) -> Lake:
    options = PATIENT | {
        "url": broker_url,
        "queue": queue,
        "spoolDir": str(tmp_path / "spool"),
        "delivery": "at-least-once",
    }
    return Lake(spark, options, tmp_path)


def test_a_queue_becomes_rows_and_is_empty_afterwards(lake: Lake, channel: Any, queue: str) -> None:
    properties = pika.BasicProperties(
        content_type="text/plain", headers={"n": 7, "void": None}, message_id="m", priority=4
    )
    channel.basic_publish("amq.topic", "nowhere", b"unrouted")
    channel.queue_bind(queue, "amq.topic", "a.*")
    channel.basic_publish("amq.topic", "a.b", b"one", properties)
    channel.basic_publish("", queue, b"two")
    lake.run()
    assert lake.stream().schema == MESSAGE
    assert lake.stored().schema == MESSAGE
    one, two = lake.stored().orderBy("offset").collect()
    assert bytes(one["value"]) == b"one"
    assert (one["exchange"], one["routing_key"], one["queue"]) == ("amq.topic", "a.b", queue)
    assert one["headers"] == {"n": "7", "void": None}
    assert one["properties"]["message_id"] == "m"
    assert one["properties"]["priority"] == 4
    assert one["properties"]["delivery_mode"] is None
    assert (one["offset"], one["redelivered"], one["delivery_count"]) == (0, False, 0)
    assert (bytes(two["value"]), two["offset"], two["headers"]) == (b"two", 1, None)
    assert waiting(channel, queue) == 0


def test_a_second_run_takes_only_what_came_since(lake: Lake, channel: Any, queue: str) -> None:
    publish(channel, queue, 0, 100)
    lake.options["maxOffsetsPerTrigger"] = "40"
    first = lake.run()
    assert [batch["numInputRows"] for batch in first.recentProgress] == [40, 40, 20]
    publish(channel, queue, 100, 130)
    second = lake.run()
    assert sum(batch["numInputRows"] for batch in second.recentProgress) == 30
    lake.run()
    assert lake.ids() == list(range(130))
    assert waiting(channel, queue) == 0
    assert list((lake.directory / "spool").iterdir()) == []


def test_only_the_columns_of_the_users_schema_cross(
    lake: Lake, channel: Any, queue: str, broker_url: str
) -> None:
    channel.basic_publish("", queue, b"body", pika.BasicProperties(message_id="m"))
    lake.schema = "offset BIGINT, properties STRUCT<message_id: STRING>"
    lake.run()
    assert lake.stored().schema.names == ["offset", "properties"]
    assert [row.asDict(True) for row in lake.stored().collect()] == [
        {"offset": 0, "properties": {"message_id": "m"}}
    ]


def test_the_wrong_option_is_named_by_spark(lake: Lake) -> None:
    lake.options["maxOffsetPerTriger"] = "5"
    with pytest.raises(
        PySparkException, match="unknown option 'maxoffsetpertriger': did you mean maxOffsetsPerT"
    ):
        lake.stream()


def test_the_wrong_column_is_named_by_spark(lake: Lake) -> None:
    lake.schema = "value STRING"
    with pytest.raises(PySparkException, match="cast it in the query"):
        lake.run()


def test_the_password_is_not_in_the_plan(lake: Lake, capfd: pytest.CaptureFixture[str]) -> None:
    lake.options["url"] = "amqp://alice:hunter2@127.0.0.1:1"
    stream = lake.stream()
    stream.explain(True)
    shown = capfd.readouterr().out
    assert "harebell" in shown
    assert "hunter2" not in shown
    with pytest.raises(PySparkException) as caught:
        lake.run()
    assert "127.0.0.1:1" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_batch_that_fails_is_processed_again_and_nothing_is_lost(
    lake: Lake, channel: Any, queue: str
) -> None:
    publish(channel, queue, 0, 100)
    lake.options["maxOffsetsPerTrigger"] = "40"
    seen: list[tuple[int, list[int]]] = []

    def take(rows: DataFrame, batch: int) -> None:
        if batch == 1 and not any(number == 1 for number, _ in seen):
            seen.append((batch, []))
            raise RuntimeError("the sink is down")
        seen.append((batch, sorted(int(row["value"]) for row in rows.select("value").collect())))

    with pytest.raises(PySparkException, match="the sink is down"):
        lake.writer().foreachBatch(take).start().awaitTermination(300)
    # The first batch was committed, but only the next question would have acknowledged it: it
    # was asked before the second batch failed.
    assert eventually(lambda: waiting(channel, queue) == 60)
    assert lake.writer().foreachBatch(take).start().awaitTermination(300)
    assert seen[:3] == [(0, list(range(40))), (1, []), (1, list(range(40, 80)))]
    found = {number for _, numbers in seen for number in numbers}
    assert found == set(range(100))
    assert waiting(channel, queue) == 0


def test_a_planned_batch_without_its_spool_is_empty_and_its_messages_come_again(
    lake: Lake, channel: Any, queue: str
) -> None:
    publish(channel, queue, 0, 50)

    def fail(rows: DataFrame, batch: int) -> None:
        raise RuntimeError("the sink is down")

    with pytest.raises(PySparkException, match="the sink is down"):
        lake.writer().foreachBatch(fail).start().awaitTermination(300)
    shutil.rmtree(lake.directory / "spool")
    seen: list[tuple[int, list[int]]] = []

    def take(rows: DataFrame, batch: int) -> None:
        seen.append((batch, sorted(int(row["value"]) for row in rows.select("value").collect())))

    assert lake.writer().foreachBatch(take).start().awaitTermination(300)
    assert seen == [(0, []), (1, list(range(50)))]
    assert waiting(channel, queue) == 0


def test_a_query_that_goes_on_reads_what_comes_and_stops_when_told(
    lake: Lake, channel: Any, queue: str
) -> None:
    writer = lake.stream().writeStream.format("memory").queryName("live")
    query = writer.option("checkpointLocation", str(lake.directory / "live")).start()
    shown = "SELECT value, redelivered FROM live"
    try:
        for first in (0, 10, 20):
            publish(channel, queue, first, first + 10)
            # What is published is on its way to the query, which asks for it only so long.
            while lake.spark.sql(shown).count() < first + 10:
                query.processAllAvailable()
        rows = lake.spark.sql(shown).collect()
    finally:
        query.stop()
    assert sorted(int(row["value"]) for row in rows) == list(range(30))
    assert not any(row["redelivered"] for row in rows)
