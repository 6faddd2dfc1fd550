"""Bulk reading: deliveries from the scanner straight into a sink, and bulk acknowledgement."""

from __future__ import annotations

import time

import pytest

from harebell.base.message import Properties
from harebell.client import blocking
from harebell.client.errors import ConnectionLost, ConsumerCancelled, NotFound
from harebell.client.message import Content
from harebell.wire.v09.frames import FrameSink
from tests.interop.client.apis import QUIET_SECONDS, unique
from tests.interop.client.brokers import Broker
from tests.patience import SECONDS

MESSAGES = 5000


class Sink(FrameSink):
    """A sink that keeps what it is given."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.keys: set[str] = set()
        self.types: set[str | None] = set()
        self.last_tag = 0

    def deliver(
        self,
        channel: int,
        consumer_tag: str,
        tag: int,
        redelivered: bool,
        exchange: str,
        routing_key: str,
        properties: Properties,
        body: bytes,
    ) -> int:
        self.bodies.append(body)
        self.keys.add(routing_key)
        self.types.add(Content(body, exchange, routing_key, properties).content_type)
        self.last_tag = tag
        return 0


def fill(channel: blocking.Channel, name: str, count: int = MESSAGES) -> list[bytes]:
    """A queue with messages of all sizes in it, some larger than a read, some than a frame."""
    channel.declare_queue(name, arguments={"x-expires": 600_000})
    sizes = (0, 1, 100, 1000, 70_000)
    bodies = [
        b"%d:" % number + bytes(sizes[number % 5] * (number % 7 == 0)) for number in range(count)
    ]
    bodies[count // 2] = bytes(400_000)
    channel.publish_many(bodies, routing_key=name, content_type="a/b")
    return bodies


def pump_until(connection: blocking.Connection, sink: Sink, count: int) -> None:
    """Serve the connection until the sink has so many messages, and a moment longer."""
    until = time.monotonic() + SECONDS
    while len(sink.bodies) < count and time.monotonic() < until:
        connection.pump(1.0)
    while connection.pump(QUIET_SECONDS):
        pass


def test_a_sink_gets_every_message_once_and_in_order(broker: Broker) -> None:
    with blocking.connect(broker.url) as connection:
        channel = connection.channel()
        name = unique()
        bodies = fill(channel, name)
        sink = Sink()
        subscription = channel.consume_into(sink, name, prefetch=0)
        acknowledged = 0
        while len(sink.bodies) < MESSAGES:
            assert connection.pump(SECONDS)
            # What came may have been a part of a message only.
            if sink.last_tag > acknowledged:
                acknowledged = sink.last_tag
                channel.ack(acknowledged, multiple=True)
        assert sink.bodies == bodies
        assert sink.keys == {name}
        assert sink.types == {"a/b"}
        assert channel.declare_queue(name, passive=True).message_count == 0
        subscription.cancel()
        assert subscription.ended
        subscription.check()


def test_prefetch_bounds_the_sink_until_it_acknowledges(broker: Broker) -> None:
    with blocking.connect(broker.url) as connection:
        channel = connection.channel()
        name = unique()
        bodies = fill(channel, name, 100)
        sink = Sink()
        channel.consume_into(sink, name, prefetch=30)
        pump_until(connection, sink, 30)
        assert sink.bodies == bodies[:30]
        channel.ack(sink.last_tag, multiple=True)
        pump_until(connection, sink, 60)
        assert sink.bodies == bodies[:60]


def test_unacknowledged_messages_of_a_sink_come_again(broker: Broker) -> None:
    name = unique()
    with blocking.connect(broker.url) as keeper:
        bodies = fill(keeper.channel(), name, 50)
        with blocking.connect(broker.url) as connection:
            sink = Sink()
            connection.channel().consume_into(sink, name, prefetch=0)
            pump_until(connection, sink, 50)
            assert sink.bodies == bodies
        consumer = keeper.channel().consume(name, prefetch=0, timeout=SECONDS)
        assert [next(consumer).body for _ in bodies] == bodies


def test_pump_waits_no_longer_than_it_is_told(broker: Broker) -> None:
    with blocking.connect(broker.url) as connection:
        channel = connection.channel()
        name = channel.declare_queue("", exclusive=True).name
        channel.consume_into(Sink(), name)
        assert connection.pump(0.05) is False
        assert connection.pump(0) is False


def test_other_channels_of_the_connection_are_served_as_usual(broker: Broker) -> None:
    with blocking.connect(broker.url) as connection:
        bulk, plain = connection.channel(), connection.channel()
        bulk_queue, plain_queue = unique(), unique()
        bodies = fill(bulk, bulk_queue, 200)
        plain.declare_queue(plain_queue, exclusive=True)
        plain.publish_many([b"plain"] * 50, routing_key=plain_queue)
        sink = Sink()
        bulk.consume_into(sink, bulk_queue, prefetch=0)
        consumer = plain.consume(plain_queue)
        for _ in range(50):
            message = next(consumer)
            assert message.body == b"plain"
            message.ack()
        while len(sink.bodies) < len(bodies):
            connection.pump(SECONDS)
        assert sink.bodies == bodies


def test_a_queue_that_is_deleted_under_the_sink_raises_from_pump(broker: Broker) -> None:
    with blocking.connect(broker.url) as connection:
        channel, other = connection.channel(), connection.channel()
        name = unique()
        channel.declare_queue(name)
        subscription = channel.consume_into(Sink(), name)
        other.delete_queue(name)
        # The broker may have said so with its answer, and then says nothing more.
        with pytest.raises(ConsumerCancelled):
            connection.pump(None)
        assert subscription.ended
        with pytest.raises(ConsumerCancelled):
            subscription.check()
        subscription.cancel()
        assert connection.pump(0.01) is False


def test_a_missing_queue_leaves_no_sink_behind(broker: Broker) -> None:
    with blocking.connect(broker.url) as connection:
        channel = connection.channel()
        with pytest.raises(NotFound):
            channel.consume_into(Sink(), unique())
        assert connection.pump(0.01) is False


def test_a_channel_has_one_sink(broker: Broker) -> None:
    with blocking.connect(broker.url) as connection:
        channel = connection.channel()
        name = channel.declare_queue("", exclusive=True).name
        first = channel.consume_into(Sink(), name)
        with pytest.raises(ValueError, match="another sink"):
            channel.consume_into(Sink(), name)
        first.cancel()
        channel.consume_into(Sink(), name).cancel()
        with channel.consume(name) as consumer:
            channel.publish(b"as usual", routing_key=name)
            assert next(consumer).body == b"as usual"


def _pump_into(sink: FrameSink, channel: blocking.Channel, queue: str) -> None:
    # The message may come with the answer to consume, or later.
    channel.consume_into(sink, queue)
    channel.connection.pump(SECONDS)


def test_a_sink_that_fails_fails_pump_and_the_connection(broker: Broker) -> None:
    class Broken(Sink):
        def deliver(self, *rest: object) -> int:  # type: ignore[override]
            raise ZeroDivisionError

    connection = blocking.connect(broker.url)
    channel = connection.channel()
    name = channel.declare_queue("", exclusive=True).name
    channel.publish(b"x", routing_key=name)
    with pytest.raises(ZeroDivisionError):
        _pump_into(Broken(), channel, name)
    with pytest.raises(ConnectionLost):
        channel.qos(1)
    connection.close()
