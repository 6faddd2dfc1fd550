"""The sink against real brokers, called as Spark calls it: rows become messages, or errors."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import pika
import pyarrow as pa
import pytest

from harebell.client.blocking.rows import RowPublisher
from harebell.client.errors import NotFound
from harebell.spark.options.sink_options import parse_sink
from harebell.spark.options.values import OptionError
from harebell.spark.schema import message_schema
from harebell.spark.source import QueueSource
from harebell.spark.writing.bad_rows import BadRows
from harebell.spark.writing.sink_schema import message_columns
from harebell.spark.writing.write_target import SinkError, WriteTarget
from tests.patience import eventually
from tests.spark.asking import taken, waiting
from tests.spark.tasks import TEXTS, Query, spark_type

pytestmark = pytest.mark.timeout(1_200)

MANY = 30_000


def texts(queue: str, first: int, end: int, step: int = 8_000) -> Iterator[pa.RecordBatch]:
    """Batches of numbered bodies for one queue."""
    for at in range(first, end, step):
        numbers = range(at, min(at + step, end))
        values = pa.array([b"%d" % number for number in numbers])
        keys = pa.array([queue] * len(numbers))
        yield pa.RecordBatch.from_arrays([values, keys], schema=TEXTS)


def options(url: str, **more: str) -> dict[str, str]:
    return {"url": url, "exchange": "", "delivery": "at-least-once", **more}


def test_a_row_becomes_the_message_that_its_columns_say(
    broker_url: str, channel: Any, queue: str
) -> None:
    channel.queue_bind(queue, "amq.topic", "a.*")
    moment = datetime.datetime(2020, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([b"one", b"two"]),
            pa.array(["a.b", queue]),
            pa.array(["amq.topic", None]),
            pa.array(
                [{"type": "t", "priority": 3, "timestamp": moment, "delivery_mode": 1}, None],
                pa.struct(
                    [
                        ("type", pa.string()),
                        ("priority", pa.int32()),
                        ("timestamp", pa.timestamp("us", tz="UTC")),
                        ("delivery_mode", pa.int32()),
                    ]
                ),
            ),
            pa.array([[("n", "7"), ("void", None)], None], pa.map_(pa.string(), pa.string())),
            pa.array([5, 6]),
        ],
        ["value", "routing_key", "exchange", "properties", "headers", "offset"],
    )
    given = {"url": broker_url, "delivery": "at-least-once"}
    (done,) = Query(given, batch.schema).run(0, [batch])
    assert (done.rows, done.unroutable, done.mode) == (2, 0, "at-least-once")
    (first, one, body), (second, two, other) = taken(channel, queue)
    assert (first.exchange, first.routing_key, body) == ("amq.topic", "a.b", b"one")
    assert (one.type, one.priority, one.delivery_mode) == ("t", 3, 1)
    assert one.timestamp == int(moment.timestamp())
    assert one.headers == {"n": "7", "void": None}
    assert (second.exchange, second.routing_key, other) == ("", queue, b"two")
    assert (two.delivery_mode, two.headers, two.type) == (2, None, None)


@pytest.mark.parametrize(
    "way", [{"queue": "Q"}, {"exchange": "amq.direct"}, {"exchange": "", "routingKey": "Q"}]
)
@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_an_option_counts_for_all_rows_also_of_a_queue_written_as_it_was_read(
    broker_url: str, channel: Any, queue: str, way: dict[str, str], delivery: str
) -> None:
    channel.queue_declare("sink.read", durable=True)
    channel.basic_publish("", "sink.read", b"0")
    channel.queue_bind(queue, "amq.direct", "sink.read")
    source = QueueSource({"url": broker_url, "queue": "sink.read"})
    reader = source.reader(message_schema())
    (partition,) = reader.partitions()
    batches = list(reader.read(partition))
    given = {name: value.replace("Q", queue) for name, value in way.items()}
    given |= {"url": broker_url, "delivery": delivery}
    Query(given, batches[0].schema, f"q-{queue}").run(0, batches)
    assert [body for _, _, body in taken(channel, queue)] == [b"0"]
    assert waiting(channel, "sink.read") == 1
    channel.queue_delete("sink.read")


@pytest.mark.parametrize("peer", ["harebell", "rabbitmq"])
def test_every_row_is_confirmed_and_there_in_its_order(
    peer: str, broker_url: str, request: pytest.FixtureRequest
) -> None:
    url = broker_url if peer == "harebell" else request.getfixturevalue("rabbit")
    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    channel.queue_declare("sink.many", durable=True)
    given = options(url, maxInFlight="3000")
    done = Query(given, TEXTS).run(0, texts("sink.many", 0, MANY), texts("sink.many", MANY, MANY))
    assert [one.rows for one in done] == [MANY, 0]
    assert waiting(channel, "sink.many") == MANY
    bodies = [int(body) for _, _, body in taken(channel, "sink.many")]
    assert bodies == list(range(MANY))
    channel.queue_delete("sink.many")
    connection.close()


@pytest.mark.parametrize("peer", ["harebell", "rabbitmq"])
def test_rows_that_no_queue_wants_fail_the_batch_with_their_number(
    peer: str, broker_url: str, request: pytest.FixtureRequest
) -> None:
    url = broker_url if peer == "harebell" else request.getfixturevalue("rabbit")
    given = options(url, exchange="amq.direct")
    with pytest.raises(
        SinkError,
        match=r"^2500 of 2500 rows reached no queue, the first with routing key 'nowhere' at "
        r"exchange 'amq.direct'. Bind a queue, or set deadLetter, or mandatory=false$",
    ):
        Query(given, TEXTS).run(0, texts("nowhere", 0, 2_500, 1_000))
    done = Query(given | {"mandatory": "false"}, TEXTS).run(0, texts("nowhere", 0, 10))
    assert (done[0].rows, done[0].unroutable) == (10, 0)


@pytest.mark.parametrize("peer", ["harebell", "rabbitmq"])
def test_rows_that_no_queue_wants_go_to_the_dead_letter_exchange_as_they_are(
    peer: str, broker_url: str, request: pytest.FixtureRequest
) -> None:
    url = broker_url if peer == "harebell" else request.getfixturevalue("rabbit")
    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    channel.exchange_declare("sink.dead", "fanout")
    channel.queue_declare("sink.letters")
    channel.queue_bind("sink.letters", "sink.dead")
    channel.queue_declare("sink.wanted")
    batches = [*texts("nowhere", 0, 4_000), *texts("sink.wanted", 4_000, 4_010)]
    given = options(url, deadLetter="sink.dead", maxInFlight="500")
    (done,) = Query(given, TEXTS).run(0, batches)
    assert (done.rows, done.unroutable, done.dead_lettered) == (4_010, 4_000, 4_000)
    assert waiting(channel, "sink.wanted") == 10
    letters = taken(channel, "sink.letters")
    assert [int(body) for _, _, body in letters] == list(range(4_000))
    assert {(way.exchange, way.routing_key) for way, _, _ in letters} == {("sink.dead", "nowhere")}
    assert all(properties.delivery_mode == 2 for _, properties, _ in letters)
    channel.queue_delete("sink.letters")
    channel.queue_delete("sink.wanted")
    channel.exchange_delete("sink.dead")
    connection.close()


def test_a_dead_letter_exchange_that_is_not_there_is_named(broker_url: str) -> None:
    given = options(broker_url, deadLetter="no.such")
    with pytest.raises(SinkError, match=r"3 rows that no queue wanted .* 'no.such' either: .*404"):
        Query(given, TEXTS).run(0, texts("nowhere", 0, 3))


def test_an_exchange_that_is_not_there_is_named(broker_url: str) -> None:
    with pytest.raises(
        SinkError, match=r"rows could not be written to 127.* no exchange 'no.such'"
    ):
        Query(options(broker_url, exchange="no.such"), TEXTS).run(0, texts("k", 0, 3))


@pytest.mark.timeout(600)
def test_a_refusal_that_came_before_anybody_waited_for_confirms_is_told_at_once(
    broker_url: str,
) -> None:
    # Nothing comes but what is waited for, and that for longer than a test may take.
    given = parse_sink(options(f"{broker_url}?heartbeat=0", exchange="no.such"))
    schema = spark_type(pa.struct(list(TEXTS)))
    columns = message_columns(
        schema, ignore_unknown=False, has_routing_key=False, has_exchange=True
    )
    target = WriteTarget(given, columns)
    (piece,) = target.pieces(texts("k", 0, 1), BadRows(target.options))
    with target.connect("test") as connection:
        publisher = RowPublisher(connection, window=10, mandatory=True, patience=86_400)
        rows = target.rows()
        target.load(rows, piece)
        assert publisher.publish(rows, len(piece), 0, 1) == 1

        def refused() -> bool:
            connection.pump(0.0)
            return not any(one.is_open for one in connection.channels.values())

        assert eventually(refused)
        with pytest.raises(NotFound, match=r"no exchange 'no.such'"):
            publisher.settle()


def test_rows_that_a_full_queue_refuses_fail_the_batch(broker_url: str, channel: Any) -> None:
    arguments = {"x-max-length": 100, "x-overflow": "reject-publish"}
    channel.queue_declare("sink.full", arguments=arguments)
    with pytest.raises(SinkError, match=r"^\d+ of 500 rows were refused by 127.* \(basic.nack\)"):
        Query(options(broker_url), TEXTS).run(0, texts("sink.full", 0, 500))
    assert waiting(channel, "sink.full") == 100
    channel.queue_delete("sink.full")


def test_a_row_without_a_body_is_named(broker_url: str, queue: str) -> None:
    batch = pa.RecordBatch.from_arrays(
        [pa.array([b"a", None]), pa.array([queue] * 2)], schema=TEXTS
    )
    with pytest.raises(SinkError, match="row 1: value is null, and a message needs a body"):
        Query(options(broker_url), TEXTS).run(0, [batch])


def test_a_broker_that_is_not_there_is_named_without_the_password() -> None:
    given = options("amqp://alice:hunter2@127.0.0.1:1")
    with pytest.raises(SinkError, match=r"rows could not be written to 127\.0\.0\.1:1: ") as caught:
        Query(given, TEXTS).run(0, texts("k", 0, 3))
    assert "hunter2" not in str(caught.value)


def test_exactly_once_is_refused_where_the_broker_cannot_do_it(rabbit: str) -> None:
    for requested in ("exactly-once", "publishing-id"):
        given = {"url": rabbit, "queue": "q", "delivery": requested}
        with pytest.raises(
            SinkError, match=f"delivery={requested} needs a Harebell .* is RabbitMQ"
        ):
            Query(given, TEXTS).run(0, texts("k", 0, 3))


def test_without_an_option_rabbitmq_gets_rows_at_least_once(
    rabbit: str, caplog: pytest.LogCaptureFixture
) -> None:
    given = {"url": rabbit, "exchange": "amq.fanout", "mandatory": "false"}
    (done,) = Query(given, TEXTS).run(0, texts("k", 0, 3))
    assert done.mode == "at-least-once"
    assert "is not Harebell: rows are published at least once" in caplog.text


def test_published_rows_are_not_overwritten(broker_url: str) -> None:
    schema = spark_type(pa.struct(list(TEXTS)))
    with pytest.raises(OptionError, match=r'cannot be overwritten: write with \.mode\("append"\)'):
        QueueSource(options(broker_url)).writer(schema, True)


def test_a_streaming_query_has_its_own_identity(broker_url: str) -> None:
    schema = spark_type(pa.struct(list(TEXTS)))
    given = options(broker_url, txnAppId="a", txnVersion="1")
    with pytest.raises(OptionError, match="txnAppId and txnVersion belong to batch writes"):
        QueueSource(given).streamWriter(schema, False)
