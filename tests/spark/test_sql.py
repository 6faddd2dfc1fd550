"""`harebell sql`: queues are asked and settled with SQL, on a real broker and a real session."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from harebell.cli.main import harebell
from harebell.client.url import URL
from harebell.pipeline.errors import PipelineError
from harebell.pipeline.sql.queries import Settled, select, settle
from harebell.pipeline.sql.selections import SelectStatement
from harebell.pipeline.sql.shown_rows import first_rows
from harebell.pipeline.sql.verbs import SettleStatement, understand
from tests.unit.pipeline.spec.test_statements import QUERIES

pytestmark = pytest.mark.timeout(1_200)


class Desk:
    """Runs statements against the broker of the tests.

    Args:
        spark: the session.
        url: the broker.
        channel: for looking at queues.
    """

    def __init__(self, spark: SparkSession, url: str, channel: Any) -> None:
        self.spark = spark
        self.url = url
        self.channel = channel

    def settle(self, sql: str) -> Settled:
        found = understand(sql)
        assert isinstance(found, SettleStatement)
        return settle(self.spark, found, URL.parse(self.url))

    def bodies(self, queue: str) -> list[bytes]:
        """What is in a queue, taken out of it."""
        return [body for _, body in self.messages(queue)]

    def messages(self, queue: str) -> list[tuple[Any, bytes]]:
        found = []
        while True:
            method, properties, body = self.channel.basic_get(queue, auto_ack=True)
            if method is None:
                return found
            found.append((properties, body))


@pytest.fixture
def desk(spark: SparkSession, broker_url: str, channel: Any) -> Desk:
    return Desk(spark, broker_url, channel)


@pytest.fixture
def abroad(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process is in another zone than the session."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def other(channel: Any, queue: str) -> Iterator[str]:
    """A second queue."""
    name = f"{queue}.other"
    channel.queue_declare(name, durable=True)
    yield name
    channel.connection.channel().queue_delete(name)


def publish(channel: Any, queue: str, count: int) -> None:
    for number in range(count):
        properties = pika.BasicProperties(
            headers={"n": number, "deep": {"list": [1]}}, delivery_mode=2, message_id=f"m{number}"
        )
        channel.basic_publish("", queue, b"%d" % number, properties)


def test_exactly_what_was_selected_is_deleted_and_the_rest_keeps_its_order(
    desk: Desk, channel: Any, queue: str
) -> None:
    publish(channel, queue, 10)
    done = desk.settle(f"DELETE FROM queue('{queue}') WHERE CAST(headers['n'] AS INT) % 3 = 0")
    assert done == Settled(10, 4)
    assert desk.bodies(queue) == [b"1", b"2", b"4", b"5", b"7", b"8"]
    assert desk.settle(f"DELETE FROM queue('{queue}') WHERE true") == Settled(0, 0)


def test_messages_are_moved_with_all_that_they_have_and_what_set_changes(
    desk: Desk, channel: Any, queue: str, other: str
) -> None:
    publish(channel, queue, 4)
    done = desk.settle(
        f"MOVE FROM queue('{queue}') TO queue('{other}') "
        "SET value = concat('x', CAST(value AS STRING)) WHERE offset >= 2"
    )
    assert done == Settled(4, 2)
    assert desk.bodies(queue) == [b"0", b"1"]
    moved = desk.messages(other)
    assert [body for _, body in moved] == [b"x2", b"x3"]
    assert moved[0][0].headers == {"n": 2, "deep": {"list": [1]}}
    assert (moved[0][0].message_id, moved[0][0].delivery_mode) == ("m2", 2)


def test_dead_letters_are_tried_again_where_they_died(
    desk: Desk, channel: Any, queue: str, other: str
) -> None:
    work = f"{queue}.work"
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": other}
    channel.queue_declare(work, arguments=arguments)
    publish(channel, work, 3)
    for _ in range(3):
        method, _, _ = channel.basic_get(work)
        channel.basic_nack(method.delivery_tag, requeue=False)
    done = desk.settle(
        f"RETRY FROM queue('{other}') WHERE headers['x-first-death-reason'] = 'rejected' "
        "AND CAST(value AS STRING) <> '1'"
    )
    assert done == Settled(3, 2)
    assert desk.bodies(other) == [b"1"]
    tried = desk.messages(work)
    assert [body for _, body in tried] == [b"0", b"2"]
    headers = tried[0][0].headers
    assert (headers["x-retries"], headers["x-retried-from"]) == (1, other)
    assert not any(name.startswith("x-death") for name in headers)
    channel.queue_delete(work)


def test_rows_without_a_target_stay_and_are_reported(desk: Desk, channel: Any, queue: str) -> None:
    publish(channel, queue, 2)
    with pytest.raises(PipelineError, match="2 of 2 messages reach no queue"):
        desk.settle(f"MOVE FROM queue('{queue}') TO exchange('amq.topic', 'no.where') WHERE true")
    with pytest.raises(PipelineError, match="no exchange 'none'"):
        desk.settle(f"MOVE FROM queue('{queue}') TO exchange('none') WHERE true")
    with pytest.raises(PipelineError, match="does not say which queue it died in"):
        desk.settle(f"RETRY FROM queue('{queue}') WHERE true")
    with pytest.raises(PipelineError, match="SET value gives null for message 0"):
        desk.settle(f"MOVE FROM queue('{queue}') TO queue('{queue}') SET value = null WHERE true")
    with pytest.raises(PipelineError, match="`nope`"):
        desk.settle(f"DELETE FROM queue('{queue}') WHERE nope = 1")
    assert desk.bodies(queue) == [b"0", b"1"]
    with pytest.raises(PipelineError, match="there is no queue 'none'"):
        desk.settle("DELETE FROM queue('none') WHERE true")


def test_spark_reads_the_queries_that_a_pipeline_takes(spark: SparkSession) -> None:
    parser = spark._jsparkSession.sessionState().sqlParser()
    for sql in QUERIES.read_text().splitlines():
        # An error of syntax names its place in the query.
        parser.parsePlan(sql)


def test_times_are_shown_in_the_zone_of_the_session_and_after_the_year_9999(
    spark: SparkSession, broker_url: str, channel: Any, queue: str, abroad: None
) -> None:
    # Milliseconds where AMQP has seconds: that is common.
    for seconds in (1_700_000_000, 1_700_000_000_000):
        channel.basic_publish("", queue, b"x", pika.BasicProperties(timestamp=seconds))
    sql = (
        "SELECT properties.timestamp AS t, struct(properties.timestamp AS u, 1 AS one) AS s, "
        "array(map(DATE'2026-01-31', properties.timestamp)) AS m, "
        f"CAST(null AS struct<t: timestamp>) AS n, 1 AS t FROM queue('{queue}') ORDER BY 1"
    )
    found = understand(sql)
    assert isinstance(found, SelectStatement)
    frame = select(spark, found, broker_url, Path())
    now, far = "2023-11-14T22:13:20", "+55840-11-08T22:13:20"
    assert [tuple(row) for row in first_rows(frame, 10, "T")] == [
        (when, (when, 1), [{"2026-01-31": when}], None, 1) for when in (now, far)
    ]
    assert first_rows(frame, 1)[0][0] == now.replace("T", " ")
    with pytest.raises(PipelineError, match="cannot be cast"):
        first_rows(frame.selectExpr("CAST('a' AS INT)"), 10)


def test_a_function_of_a_package_that_is_not_there_names_the_package(
    spark: SparkSession, broker_url: str, queue: str
) -> None:
    statement = understand(f"SELECT from_avro(value, '\"string\"', map()) FROM queue('{queue}')")
    assert isinstance(statement, SelectStatement)
    with pytest.raises(PipelineError, match=r"spark\.jars\.packages=.*:spark-avro_2\.13:"):
        select(spark, statement, broker_url, Path())


def test_a_wrong_catalog_is_answered_with_the_nearest_one(
    spark: SparkSession, broker_url: str
) -> None:
    statement = understand("SELECT * FROM harbell.default.orders")
    assert isinstance(statement, SelectStatement)
    with pytest.raises(PipelineError, match="there is no catalog harbell: did you mean harebell"):
        select(spark, statement, broker_url, Path())


def test_a_mistake_in_sql_is_one_sentence(spark: SparkSession, broker_url: str) -> None:
    words = ["sql", "--engine", "spark", "SELECT CAST('a' AS INT) FROM queue('none')"]
    done = CliRunner().invoke(harebell, words, env={"HAREBELL_URL": broker_url})
    assert (done.exit_code, done.output.count("\n")) == (1, 1)
    assert "Error: The value 'a' of the type \"STRING\" cannot be cast" in done.output
