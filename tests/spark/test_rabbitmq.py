"""The stream reader against RabbitMQ: the promise holds for brokers that are not ours."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pyarrow as pa
import pytest

from harebell.client import blocking
from harebell.client.url import URL
from harebell.pipeline.errors import PipelineError
from harebell.pipeline.spec.description import Route
from harebell.pipeline.sql.queue_snapshot import Change, take_snapshot
from harebell.spark.reading.errors import SourceError
from harebell.spark.reading.stream_source import QueueStreamReader
from harebell.spark.schema import message_schema
from harebell.spark.source import QueueSource
from harebell.wire.v09.fields import decode_table
from tests.relay import relay
from tests.spark.conftest import PATIENT
from tests.spark.tasks import Query

# They start no Spark, but on a busy machine a run ends before a quorum queue has told of its last
# messages: they have the machine to themselves like those that do.
pytestmark = [pytest.mark.spark, pytest.mark.timeout(1_200)]

MANY = 70_100
PATIENCE_S = 60.0


def reader(url: str, queue: str, directory: Path, **options: str) -> QueueStreamReader:
    given = {"url": url, "queue": queue, "spoolDir": str(directory)}
    source = QueueSource(PATIENT | given | options)
    return source.streamReader(message_schema())


def rows(of: QueueStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[Any]:
    of.commit(start)
    return [
        row
        for partition in of.partitions(start, end)
        for batch in of.read(partition)
        for row in batch.select(["value", "redelivered", "delivery_count"]).to_pylist()
    ]


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_a_queue_of_rabbitmq_is_drained_in_order_and_acknowledged(
    rabbit: str, tmp_path: Path, kind: str
) -> None:
    queue = f"spark.{kind}"
    with blocking.connect(rabbit) as connection:
        channel = connection.channel()
        channel.declare_queue(queue, durable=True, arguments={"x-queue-type": kind})
        many = (b"%d" % number for number in range(MANY))
        channel.publish_many(many, routing_key=queue, delivery_mode=2)
    # Larger than a prefetch-count can say, so that it takes two consumers.
    one = reader(rabbit, queue, tmp_path, maxOffsetsPerTrigger="70000")
    one.prepareForTriggerAvailableNow()
    start = one.initialOffset()
    taken: list[int] = []
    while (end := one.latestOffset(start, one.getDefaultReadLimit())) != start:
        batch = rows(one, start, end)
        assert not any(row["redelivered"] for row in batch)
        taken += [int(row["value"]) for row in batch]
        start = end
    assert taken == list(range(MANY))
    assert left_at_last(rabbit, queue) == (0, 0)


def test_uncommitted_messages_come_again_from_rabbitmq(rabbit: str, tmp_path: Path) -> None:
    queue = "spark.again"
    with blocking.connect(rabbit) as connection:
        channel = connection.channel()
        channel.declare_queue(queue, durable=True, arguments={"x-queue-type": "quorum"})
        channel.publish_many((b"%d" % number for number in range(10)), routing_key=queue)
    dead = reader(rabbit, queue, tmp_path)
    dead.prepareForTriggerAvailableNow()
    planned = dead.latestOffset(dead.initialOffset(), dead.getDefaultReadLimit())
    dead.stop()
    assert left_at_last(rabbit, queue) == (10, 0)
    alive = reader(rabbit, queue, tmp_path)
    assert len(rows(alive, alive.initialOffset(), planned)) == 10
    alive.prepareForTriggerAvailableNow()
    end = alive.latestOffset(planned, alive.getDefaultReadLimit())
    found = rows(alive, planned, end)
    assert [int(row["value"]) for row in found] == list(range(10))
    assert all(row["redelivered"] and row["delivery_count"] == 1 for row in found)
    assert alive.latestOffset(end, alive.getDefaultReadLimit()) is end
    assert left_at_last(rabbit, queue) == (0, 0)


def left_at_last(url: str, queue: str) -> tuple[int, int]:
    """What is left once RabbitMQ has seen that the consumers are gone: a quorum queue learns it
    from its log, some time after the connection's close-ok."""
    end = time.monotonic() + PATIENCE_S
    while (found := left(url, queue))[1] and time.monotonic() < end:
        time.sleep(0.05)
    return found


def left(url: str, queue: str) -> tuple[int, int]:
    """Messages and consumers of the queue, as pika sees them."""
    connection = pika.BlockingConnection(pika.URLParameters(url))
    try:
        declared = connection.channel().queue_declare(queue, passive=True).method
        return declared.message_count, declared.consumer_count
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            {"delivery": "exactly-once"},
            r"\(RabbitMQ\) cannot do delivery=exactly-once, .*",
        ),
        ({"delivery": "peek"}, r"cannot do delivery=peek, which needs Harebell's leases"),
        ({"startingOffsets": "latest"}, r"has no positions over AMQP: leave the option starting"),
    ],
)
def test_options_that_rabbitmq_lacks_are_refused_at_once(
    rabbit: str, tmp_path: Path, options: dict[str, str], told: str
) -> None:
    with pytest.raises(SourceError, match=told):
        reader(rabbit, "any", tmp_path, **options).initialOffset()


def test_rabbitmq_is_not_looked_at(rabbit: str) -> None:
    looking = QueueSource({"url": rabbit, "queue": "any"}).reader(message_schema())
    with pytest.raises(SourceError, match=r"cannot be read with spark\.read, which needs Harebell"):
        looking.partitions()
    everything = QueueSource({"url": rabbit, "queuePattern": ".*"})
    with pytest.raises(SourceError, match="name them with the option queues instead"):
        everything.streamReader(message_schema()).initialOffset()


def test_a_query_without_the_option_delivery_says_what_is_promised(
    rabbit: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "harebell.spark"):
        start = reader(rabbit, "any", tmp_path, startingOffsets="earliest").initialOffset()
    assert start == {"position": 0, "spool": ""}
    assert "has no leases: queue any is read at least once" in caplog.text


def test_messages_that_rabbitmq_moves_to_no_queue_are_at_the_end_of_their_own_again(
    rabbit: str,
) -> None:
    with blocking.connect(rabbit) as connection:
        channel = connection.channel()
        for queue in ("move.from", "move.to"):
            channel.declare_queue(queue, durable=True)
        channel.publish_many([b"0", b"1", b"2"], routing_key="move.from")
    changes = [Change(row) for row in range(3)]
    with (
        pytest.raises(PipelineError, match="1 of the messages had no queue to go to"),
        take_snapshot(URL.parse(rabbit), "move.from") as taken,
    ):
        taken.settle(changes, lambda m: Route("", "move.to" if m.body != b"0" else "no.such"))
    assert left_at_last(rabbit, "move.from") == (1, 0)
    assert left_at_last(rabbit, "move.to") == (2, 0)


def test_messages_read_from_rabbitmq_are_written_to_it_over_a_connection_that_breaks(
    rabbit: str, tmp_path: Path
) -> None:
    parameters = pika.URLParameters(rabbit)
    connection = pika.BlockingConnection(parameters)
    channel = connection.channel()
    channel.confirm_delivery()
    for queue in ("spark.from", "spark.to"):
        channel.queue_declare(queue, durable=True)
    for number in range(1_000):
        properties = pika.BasicProperties(
            headers={"n": str(number)}, priority=number % 9, type="order", delivery_mode=2
        )
        channel.basic_publish("", "spark.from", b"%d" % number, properties)
    of = reader(rabbit, "spark.from", tmp_path, rowsPerBatch="100")
    of.prepareForTriggerAvailableNow()
    start = of.initialOffset()
    end = of.latestOffset(start, of.getDefaultReadLimit())
    columns = ["value", "properties", "headers"]
    read = [
        batch.select(columns)
        for partition in of.partitions(start, end)
        for batch in of.read(partition)
    ]

    with relay(parameters.port) as broken:
        address = f"amqp://guest:guest@127.0.0.1:{broken.port}/%2F"
        given = {"url": address, "queue": "spark.to", "reconnectTimeout": "300s"}

        def rows_to_write() -> Iterator[pa.RecordBatch]:
            for number, batch in enumerate(read):
                yield batch
                if number == len(read) // 2:
                    broken.cut()

        (done,) = Query(given, read[0].schema).run(1, rows_to_write())
        assert broken.made >= 2
    assert (done.mode, done.rows, done.unroutable) == ("at-least-once", 1_000, 0)
    found: dict[int, Any] = {}
    while (got := channel.basic_get("spark.to", auto_ack=True))[0] is not None:
        found[int(got[2])] = got[1]
    assert sorted(found) == list(range(1_000))
    for number, carried in found.items():
        assert carried.headers == {"n": str(number)}
        assert (carried.priority, carried.type, carried.delivery_mode) == (number % 9, "order", 2)
    assert of.latestOffset(end, of.getDefaultReadLimit()) is end
    assert left_at_last(rabbit, "spark.from") == (0, 0)
    connection.close()


def test_the_header_table_of_rabbitmq_can_be_had_as_it_was_sent(
    rabbit: str, tmp_path: Path
) -> None:
    connection = pika.BlockingConnection(pika.URLParameters(rabbit))
    channel = connection.channel()
    channel.queue_declare("spark.raw", durable=True)
    sent = {"number": 42, "truth": True, "nothing": None, "list": [1, "two"], "table": {"a": 2**40}}
    channel.basic_publish("", "spark.raw", b"typed", pika.BasicProperties(headers=sent))
    channel.basic_publish("", "spark.raw", b"bare")
    connection.close()
    given = PATIENT | {"url": rabbit, "queue": "spark.raw", "spoolDir": str(tmp_path)}
    one = QueueSource(given).streamReader(message_schema(headers=False, raw=True))
    one.prepareForTriggerAvailableNow()
    start = one.initialOffset()
    end = one.latestOffset(start, one.getDefaultReadLimit())
    tables = [
        table
        for partition in one.partitions(start, end)
        for batch in one.read(partition)
        for table in batch.column("headers_raw").to_pylist()
    ]
    one.stop()
    assert tables[1] is None
    assert decode_table(len(tables[0]).to_bytes(4) + tables[0])[0] == sent
