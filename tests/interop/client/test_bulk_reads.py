"""The client reads queues as Arrow, from a real broker; and says so when a peer cannot."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pyarrow as pa
import pytest

from harebell.client import aio, blocking
from harebell.client.bulk import ALL_COLUMNS, ArrowBatch, schema_of
from harebell.client.errors import ExtensionMissing, GenerationChanged, PreconditionFailed
from harebell.wire.arrow.encode import END_OF_STREAM
from tests.interop.client.brokers import Broker
from tests.running import RunningBroker, running_broker

KINDS = {"classic": {}, "stream": {"x-queue-type": "stream"}, "priority": {"x-max-priority": 2}}


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBroker]:
    with running_broker() as broker:
        yield broker


@pytest.fixture
def channel(running: RunningBroker) -> Iterator[blocking.Channel]:
    with blocking.connect(running.address()) as connection:
        yield connection.channel()


def values(batches: list[ArrowBatch]) -> list[bytes]:
    stream = schema_of(["value"]) + b"".join(batch.data for batch in batches) + END_OF_STREAM
    found: list[bytes] = pa.ipc.open_stream(io.BytesIO(stream)).read_all()["value"].to_pylist()
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_queue_is_read_in_its_order_with_reads_under_way(
    channel: blocking.Channel, kind: str
) -> None:
    channel.declare_queue(kind, durable=True, arguments=KINDS[kind])
    bodies = [b"%d" % number for number in range(5_000)]
    channel.publish_many(bodies, routing_key=kind, delivery_mode=2)
    span = channel.span(kind)
    assert (span.kind, span.messages) == (kind, 5_000)
    batches = list(channel.arrow_batches(kind, span.first, span.end, columns=["value"], rows=300))
    assert values(batches) == bodies
    assert max(batch.rows for batch in batches) == 300
    beyond = channel.arrow_batches(kind, span.first, span.end * 4, columns=["value"])
    assert values(list(beyond)) == bodies
    assert list(channel.arrow_batches(kind, span.end, span.end + 9)) == []
    some = channel.arrow_batches(kind, 0, span.end, columns=["value"], rows=7, routing_key="x")
    assert list(some) == []


def test_a_place_is_found_by_time_and_messages_by_key(channel: blocking.Channel) -> None:
    queue = channel.declare_queue("timed", durable=True, arguments=KINDS["stream"]).name
    channel.publish(b"early", routing_key=queue)
    batch = channel.read_arrow(queue, 0, 1, columns=["timestamp"])
    schema = pa.ipc.read_schema(pa.py_buffer(schema_of(["timestamp"])))
    [row] = pa.ipc.read_record_batch(pa.py_buffer(batch.data), schema).to_pylist()
    came = int(row["timestamp"].timestamp() * 1000)
    assert channel.span(queue, time=came).position == 0
    assert channel.span(queue, time=came + 10**9).position == 1
    assert channel.read_arrow(queue, 0, 1, until=came, columns=["value"]).rows == 0
    assert channel.read_arrow(queue, 0, 1, since=came, columns=["value"]).rows == 1
    assert channel.read_arrow(queue, 0, 1, routing_key_prefix="ti", columns=["value"]).rows == 1


def test_large_messages_cross_in_many_frames(channel: blocking.Channel) -> None:
    channel.declare_queue("large")
    bodies = [bytes([number]) * 1_500_000 for number in range(4)]
    channel.publish_many(bodies, routing_key="large")
    batches = list(channel.arrow_batches("large", 0, 4, columns=["value"]))
    assert values(batches) == bodies
    assert len(batches) > 1
    compressed = list(channel.arrow_batches("large", 0, 4, columns=["value"], compression="lz4"))
    assert values(compressed) == bodies
    assert sum(len(batch.data) for batch in compressed) < 100_000


def test_a_refused_read_raises_its_error(running: RunningBroker) -> None:
    with blocking.connect(running.address()) as connection:
        channel = connection.channel()
        queue = channel.declare_queue("again").name
        with pytest.raises(GenerationChanged, match="was deleted and declared again"):
            channel.read_arrow(queue, 0, 9, generation="0" * 32)
        assert not channel.is_open


@pytest.mark.asyncio
async def test_the_asyncio_client_reads_too(running: RunningBroker) -> None:
    async with aio.connect(running.address()) as connection:
        channel = await connection.channel()
        await channel.declare_queue("async")
        await channel.publish(b"body", routing_key="async", headers={"a": 1})
        span = await channel.span("async")
        batch = await channel.read_arrow("async", span.first, span.end)
        schema = pa.ipc.read_schema(pa.py_buffer(schema_of(ALL_COLUMNS)))
        [row] = pa.ipc.read_record_batch(pa.py_buffer(batch.data), schema).to_pylist()
        assert (row["value"], row["headers_json"]) == (b"body", '{"a":1}')


@pytest.mark.parametrize("name", ["rabbitmq"])
def test_a_broker_that_cannot_is_named(start_broker, name: str) -> None:  # type: ignore[no-untyped-def]
    broker: Broker = start_broker(name)
    with blocking.connect(broker.url) as connection:
        channel = connection.channel()
        with pytest.raises(ExtensionMissing, match=r"RabbitMQ.* needs Harebell's extension 'bulk'"):
            channel.span("q")
        assert channel.is_open


@pytest.mark.parametrize("kind", KINDS)
def test_a_condition_selects_messages_in_the_broker(channel: blocking.Channel, kind: str) -> None:
    queue = channel.declare_queue(f"where-{kind}", durable=True, arguments=KINDS[kind]).name
    for number in range(600):
        channel.publish(
            b'{"number": %d}' % number,
            routing_key=queue,
            priority=number % 2,
            headers={"third": number // 3},
            delivery_mode=2,
        )
    span = channel.span(queue)

    def selected(where: str) -> list[bytes]:
        found = channel.arrow_batches(queue, 0, span.end, columns=["value"], where=where)
        return values(list(found))

    assert sorted(selected("body.number >= 598")) == [b'{"number": 598}', b'{"number": 599}']
    assert len(selected("headers.third = 7")) == 3
    assert len(selected("priority = 1 AND headers['third'] BETWEEN 0 AND 9")) == 15
    assert selected("redelivered OR delivery_count > 0") == []
    assert len(selected(f"routing_key = '{queue}' AND exchange = ''")) == 600


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        ("body.total >", "ends where a column or a value is missing"),
        ("colour = 'red'", "there is no column 'colour'"),
        ("age > 10", "column 'age' changes while a message waits"),
        ("state = 'ready'", "column 'state' changes while a message waits"),
    ],
)
def test_a_wrong_condition_is_named(
    running: RunningBroker, channel: blocking.Channel, where: str, sentence: str
) -> None:
    queue = channel.declare_queue("wrong-condition", durable=True).name
    with blocking.connect(running.address()) as connection:
        with pytest.raises(
            PreconditionFailed, match=f"the filter 'where' is invalid: .*{sentence}"
        ):
            connection.channel().read_arrow(queue, 0, 1, where=where)
        assert connection.channel().span(queue).messages == 0
