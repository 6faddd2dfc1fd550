"""Data frames into exchanges through Spark itself: batch writes, queries, replays, errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from harebell.client import blocking
from tests.cli.conftest import done as harebell
from tests.running import running_broker
from tests.spark.test_writer import taken, waiting

pytestmark = pytest.mark.timeout(1_200)


def numbered(spark: SparkSession, queue: str, end: int) -> DataFrame:
    return spark.range(0, end, 1, 2).selectExpr(
        "CAST(id AS STRING) AS value",
        f"'{queue}' AS routing_key",
        "map('n', CAST(id AS STRING)) AS headers",
        "named_struct('type', 'number', 'priority', 3) AS properties",
    )


def write(frame: DataFrame, url: str, **options: str) -> None:
    given = {"url": url, "exchange": ""} | options
    frame.write.format("harebell").options(**given).mode("append").save()


def test_a_data_frame_becomes_messages(
    spark: SparkSession, broker_url: str, channel: Any, queue: str
) -> None:
    write(numbered(spark, queue, 1_000), broker_url)
    messages = taken(channel, queue)
    assert sorted(int(body) for _, _, body in messages) == list(range(1_000))
    for _, properties, body in messages[:10]:
        assert properties.headers == {"n": body.decode()}
        assert (properties.type, properties.priority, properties.delivery_mode) == ("number", 3, 2)


def test_a_fault_of_a_write_has_its_sentence(
    spark: SparkSession, broker_url: str, queue: str
) -> None:
    frame = numbered(spark, queue, 10)
    with pytest.raises(PySparkException, match="unknown option 'exchnage': did you mean exchange"):
        write(frame, broker_url, exchnage="x")
    with pytest.raises(PySparkException, match="column value must be string or binary, not bigint"):
        write(spark.range(3).selectExpr("id AS value"), broker_url, routingKey=queue)
    with pytest.raises(PySparkException, match="batch 0 was not published, for not every row rea"):
        write(numbered(spark, "nowhere", 10), broker_url)


def test_a_query_that_repeats_a_batch_as_another_user_fails_until_it_is_handed_over(
    spark: SparkSession, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint"
    stream = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", 50)
        .option("numPartitions", 2)
        .load()
        .selectExpr("CAST(value AS STRING) AS value", "'rows' AS routing_key")
    )
    with running_broker() as broker, blocking.connect(broker.url) as connection:
        counting = connection.channel()
        counting.declare_queue("rows", durable=True)

        def run(user: str) -> int:
            """Publish what an earlier run has left undone, and a batch of 50 rows."""
            query = (
                stream.writeStream.format("harebell")
                .options(url=f"amqp://127.0.0.1:{broker.port}/%2F", exchange="")
                .options(username=user, password="secret")
                .option("checkpointLocation", str(checkpoint))
                .trigger(availableNow=True)
                .start()
            )
            try:
                assert query.awaitTermination(300), "the query should have ended by itself"
            finally:
                query.stop()
            return counting.declare_queue("rows", passive=True).message_count

        for user in ("old", "new"):
            harebell(broker, "users", "add", user, "secret")
            harebell(broker, "permissions", "set", user, ".*", ".*", ".*")
        assert run("old") == 50
        # The driver died before Spark's commit log had it.
        commits = checkpoint / "commits"
        for each in commits.iterdir():
            each.unlink()
        with pytest.raises(PySparkException, match="harebell publishers hand-over spark/"):
            run("new")
        assert counting.declare_queue("rows", passive=True).message_count == 50
        query_id = json.loads((checkpoint / "metadata").read_text())["id"]
        harebell(broker, "publishers", "hand-over", f"spark/{query_id}", "--to", "new")
        assert run("new") == 100


def test_a_query_publishes_once_although_its_last_commit_was_lost(
    spark: SparkSession,
    broker_url: str,
    channel: Any,
    queue: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    stream = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", 50)
        .option("numPartitions", 2)
        .load()
        .selectExpr("CAST(value AS STRING) AS value", f"'{queue}' AS routing_key")
    )

    def run() -> None:
        """Publish one batch of 50 rows, after the one that an earlier run has left undone."""
        query = (
            stream.writeStream.format("harebell")
            .options(url=broker_url, exchange="", username="guest", password="guest")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        try:
            assert query.awaitTermination(300), "the query should have ended by itself"
            query.explain(True)
        finally:
            query.stop()

    for _ in range(3):
        run()
    shown = capfd.readouterr().out
    assert "harebell" in shown
    assert "password=guest" not in shown.replace(" ", "").replace("->", "=")
    commits = tmp_path / "checkpoint" / "commits"
    assert waiting(channel, queue) == 150
    # As if the driver had died after the broker's commit and before Spark's own.
    (commits / "2").unlink()
    (commits / ".2.crc").unlink(missing_ok=True)
    run()
    bodies = [int(body) for _, _, body in taken(channel, queue)]
    assert sorted(bodies) == list(range(200))
