"""Leases, positions and batch reads through Spark itself: every message once in the lake."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from harebell.client import blocking
from tests.patience import eventually
from tests.spark.conftest import PATIENT
from tests.spark.parquet_lake import Lake
from tests.spark.test_streaming import publish, waiting

pytestmark = pytest.mark.timeout(1_200)


@pytest.fixture
def lake(spark: SparkSession, broker_url: str, queue: str, tmp_path: Path) -> Lake:
    options = PATIENT | {"url": broker_url, "queue": queue, "maxOffsetsPerTrigger": "40"}
    return Lake(spark, options, tmp_path)


@pytest.mark.parametrize("kind", ["classic", "stream", "keys"])
def test_every_message_is_stored_once_over_many_runs(
    lake: Lake, channel: Any, queue: str, kind: str
) -> None:
    if kind == "stream":
        channel.queue_delete(queue)
        channel.queue_declare(queue, durable=True, arguments={"x-queue-type": "stream"})
        lake.options["startingOffsets"] = "earliest"
    if kind == "keys":
        # They all have the same one.
        channel.queue_delete(queue)
        channel.queue_declare(queue, durable=True, arguments={"x-group-key": "routing_key"})
    publish(channel, queue, 0, 100)
    first = lake.run()
    assert [batch["numInputRows"] for batch in first.recentProgress] == [40, 40, 20]
    lake.forget_last_commit()
    publish(channel, queue, 100, 130)
    lake.run()
    lake.run()
    assert lake.ids() == list(range(130))
    assert waiting(channel, queue) == (130 if kind == "stream" else 0)


def test_micro_batches_wait_for_the_smallest_number_of_messages(
    spark: SparkSession, broker_url: str, channel: Any, queue: str, tmp_path: Path
) -> None:
    options = PATIENT | {"url": broker_url, "queue": queue, "minOffsetsPerTrigger": "30"}
    publish(channel, queue, 0, 20)
    query = (
        spark.readStream.format("harebell")
        .options(**options)
        .load()
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )

    def sizes() -> list[int]:
        counts = [progress["numInputRows"] for progress in query.recentProgress]
        return [count for count in counts if count]

    try:
        assert eventually(lambda: query.status["message"] == "Waiting for data to arrive")
        assert waiting(channel, queue) == 20
        publish(channel, queue, 20, 30)
        assert eventually(lambda: sum(sizes()) == 30)
        assert sizes() == [30]
    finally:
        query.stop()


def test_a_batch_that_fails_is_the_same_when_it_is_repeated(
    lake: Lake, channel: Any, queue: str
) -> None:
    publish(channel, queue, 0, 100)
    seen: list[tuple[int, list[int]]] = []

    def take(rows: DataFrame, batch: int) -> None:
        numbers = sorted(int(row["value"]) for row in rows.select("value").collect())
        seen.append((batch, numbers))
        if batch == 1 and len(seen) == 2:
            raise RuntimeError("the sink is down")

    with pytest.raises(PySparkException, match="the sink is down"):
        lake.writer().foreachBatch(take).start().awaitTermination(300)
    assert lake.writer().foreachBatch(take).start().awaitTermination(300)
    assert seen == [
        (0, list(range(40))),
        (1, list(range(40, 80))),
        (1, list(range(40, 80))),
        (2, list(range(80, 100))),
    ]
    assert eventually(lambda: waiting(channel, queue) == 0)


def test_a_query_whose_messages_are_gone_says_which_and_goes_on_when_told(
    lake: Lake, channel: Any, queue: str
) -> None:
    publish(channel, queue, 0, 20)
    lake.run()
    channel.queue_delete(queue)
    channel.queue_declare(queue, durable=True)
    publish(channel, queue, 20, 40)
    with pytest.raises(PySparkException, match="deleted and declared again since the checkpoint"):
        lake.run()
    assert waiting(channel, queue) == 20
    lake.options["failOnDataLoss"] = "false"
    lake.run()
    assert lake.ids() == list(range(40))


def test_a_query_whose_stream_has_let_messages_go_says_which_and_goes_on_when_told(
    lake: Lake, channel: Any, queue: str
) -> None:
    kept = {"x-max-length-bytes": 50_000, "x-stream-max-segment-size-bytes": 10_000}
    channel.queue_delete(queue)
    channel.queue_declare(queue, durable=True, arguments={"x-queue-type": "stream"} | kept)
    lake.options["startingOffsets"] = "earliest"
    publish(channel, queue, 0, 20)
    lake.run()
    with blocking.connect(lake.options["url"]) as connection:
        bodies = (b"%01000d" % number for number in range(20, 220))
        connection.channel().publish_many(bodies, routing_key=queue, delivery_mode=2)
    with pytest.raises(PySparkException, match=r"positions 20 to \d+ of stream"):
        lake.run()
    lake.options["failOnDataLoss"] = "false"
    lake.run()
    found = lake.ids()
    assert found[:20] == list(range(20))
    assert found[20:] == list(range(found[20], 220)), "those that are left, each once"
    assert found[20] > 20


def test_a_query_that_goes_on_reads_what_comes_and_stops_when_told(
    lake: Lake, channel: Any, queue: str
) -> None:
    stream = lake.spark.readStream.format("harebell").options(**lake.options).load()
    writer = stream.writeStream.format("memory").queryName("leased")
    query = writer.option("checkpointLocation", str(lake.directory / "live")).start()
    try:
        for first in (0, 10, 20):
            publish(channel, queue, first, first + 10)
            query.processAllAvailable()
        rows = lake.spark.sql("SELECT value, redelivered FROM leased").collect()
    finally:
        query.stop()
    assert sorted(int(row["value"]) for row in rows) == list(range(30))
    assert not any(row["redelivered"] for row in rows)


def test_of_two_queries_on_one_checkpoint_the_first_ends_and_says_why(
    lake: Lake, channel: Any, queue: str
) -> None:
    stream = lake.spark.readStream.format("harebell").options(**lake.options).load()
    seen: list[tuple[str, int]] = []

    def taking(who: str) -> Callable[[DataFrame, int], None]:
        def take(rows: DataFrame, batch: int) -> None:
            seen.extend((who, int(row["value"])) for row in rows.select("value").collect())

        return take

    def started(who: str, checkpoint: Path) -> StreamingQuery:
        writer = stream.writeStream.foreachBatch(taking(who))
        return writer.option("checkpointLocation", str(checkpoint)).start()

    ours, theirs = lake.directory / "ours", lake.directory / "theirs"
    publish(channel, queue, 0, 10)
    first = started("first", ours)
    try:
        first.processAllAvailable()
        shutil.copytree(ours, theirs)
        # To this Spark it is another query: two of one name never run in one JVM.
        (theirs / ".metadata.crc").unlink()
        (theirs / "metadata").write_text(json.dumps({"id": str(uuid.uuid4())}))
        second = started("second", theirs)
        try:
            with pytest.raises(PySparkException, match="must not share a checkpoint") as caught:
                first.awaitTermination(300)
            assert "another query has taken over the lease of group" in str(caught.value)
            publish(channel, queue, 10, 20)
            second.processAllAvailable()
        finally:
            second.stop()
    finally:
        first.stop()
    assert sorted(seen) == [
        *(("first", number) for number in range(10)),
        *(("second", number) for number in range(10, 20)),
    ]


def test_a_batch_read_shows_what_is_there(lake: Lake, channel: Any, queue: str) -> None:
    publish(channel, queue, 0, 10)
    channel.basic_publish("", queue, b'{"id": 7, "name": "x"}')
    reader = lake.spark.read.format("harebell").options(**lake.options)
    frame = reader.option("bodyFormat", "json").option("schema", "id BIGINT, name STRING").load()
    rows = frame.select("value.*", "_corrupt_record", "queue").orderBy("offset").collect()
    assert [row["_corrupt_record"] for row in rows[:10]] == [str(n) for n in range(10)]
    assert (rows[10]["id"], rows[10]["name"], rows[10]["queue"]) == (7, "x", queue)
    assert waiting(channel, queue) == 11
    lake.spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW looked USING harebell OPTIONS "
        f"(url '{lake.options['url']}', queue '{queue}', bodyFormat 'text')"
    )
    found = lake.spark.sql("SELECT count(*) AS n, max(value) AS last FROM looked").collect()[0]
    assert (found["n"], found["last"]) == (11, '{"id": 7, "name": "x"}')


def test_filters_are_pushed_down_when_asked(lake: Lake, channel: Any, queue: str) -> None:
    publish(channel, queue, 0, 10)
    reader = lake.spark.read.format("harebell").options(**lake.options)
    setting = "spark.sql.python.filterPushdown.enabled"
    before = lake.spark.conf.get(setting)
    lake.spark.conf.set(setting, "true")
    try:
        frame = reader.option("pushdown", "true").load()
        first = frame.agg({"offset": "min"}).collect()[0][0]
        some = frame.where(f"offset >= {first + 4} AND routing_key = '{queue}'")
        assert [int(row["value"]) for row in some.orderBy("offset").collect()] == [4, 5, 6, 7, 8, 9]
        assert frame.where("routing_key = 'another'").count() == 0
    finally:
        lake.spark.conf.set(setting, before)


def test_credentials_are_not_in_the_plan(lake: Lake, capfd: pytest.CaptureFixture[str]) -> None:
    lake.options |= {"url": "amqp://127.0.0.1:1", "username": "alice", "password": "hunter2"}
    frame = lake.spark.read.format("harebell").options(**lake.options).load()
    frame.explain(True)
    shown = capfd.readouterr().out
    assert "harebell" in shown
    assert "hunter2" not in shown
    with pytest.raises(PySparkException) as caught:
        frame.collect()
    assert "127.0.0.1:1" in str(caught.value)
    assert "hunter2" not in str(caught.value)
