"""py-amqp: the library below kombu and Celery, through its own Connection, Channel and Message."""

from __future__ import annotations

import datetime
import decimal
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import amqp
import pytest
from amqp import exceptions, sasl

from tests.interop.clients.brokers import own_broker, tls_broker
from tests.interop.clients.conftest import Names
from tests.interop.idleness import BEAT_SECONDS, IDLE_SECONDS
from tests.running import RunningBroker, set_watermark

pytestmark = pytest.mark.interop

_PATIENCE_SECONDS = 60.0


@contextmanager
def _connected(broker: RunningBroker, **more: Any) -> Iterator[amqp.Connection]:
    connection = amqp.Connection(
        f"127.0.0.1:{broker.port}", connect_timeout=_PATIENCE_SECONDS, **more
    )
    connection.connect()
    try:
        yield connection
    finally:
        if connection.connected:
            connection.close()


@pytest.fixture
def connection(broker: RunningBroker) -> Iterator[amqp.Connection]:
    with _connected(broker) as opened:
        yield opened


@pytest.fixture
def channel(connection: amqp.Connection) -> amqp.Channel:
    return connection.channel()


def _queue(channel: amqp.Channel) -> str:
    return str(channel.queue_declare("", exclusive=True, auto_delete=False).queue)


def _drain(connection: amqp.Connection, until: Callable[[], bool]) -> None:
    """Handle what the broker sends until something is true."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not until():
        assert time.monotonic() < deadline, "the broker did not send what was waited for"
        try:
            connection.drain_events(timeout=0.5)
        except TimeoutError:
            continue


@contextmanager
def _channel_error(kind: type[exceptions.AMQPError], text: str) -> Iterator[None]:
    with pytest.raises(kind) as caught:
        yield
    assert caught.value.code == kind.code
    assert caught.value.reply_text == text


def test_every_header_type_comes_back_equal(channel: amqp.Channel) -> None:
    headers = {
        "bool": False,
        "int": -(2**31) + 1,
        "long": 2**62,
        "double": 3.25,
        "tiny": 5e-324,
        "decimal": decimal.Decimal("19.99"),
        "text": "Ünïcödé",
        "time": datetime.datetime(2013, 1, 1, 5, 17),  # py-amqp reads it without a zone
        "none": None,
        "list": [1.5, "x", {"y": [None, True]}],
        "table": {"nested": {"deeper": {"deepest": 1}}},
    }
    queue = _queue(channel)
    channel.basic_publish(amqp.Message("body", application_headers=headers), "", queue)
    got = channel.basic_get(queue, no_ack=True)
    assert got.headers == headers
    assert [type(got.headers[key]) for key in headers] == [type(v) for v in headers.values()]


def test_properties_and_delivery_info_come_back_equal(channel: amqp.Channel) -> None:
    properties = {
        "content_type": "text/plain",
        "content_encoding": "utf-8",
        "delivery_mode": 2,
        "priority": 4,
        "correlation_id": "c",
        "reply_to": "r",
        "expiration": "60000",
        "message_id": "m",
        "timestamp": 1_370_089_815,
        "type": "t",
        "user_id": "guest",
        "app_id": "a",
        "cluster_id": "k",
    }
    queue = _queue(channel)
    channel.basic_publish(amqp.Message("body", **properties), "", queue)
    got = channel.basic_get(queue)
    assert got.properties == properties
    assert got.delivery_info == {
        "delivery_tag": 1,
        "redelivered": False,
        "exchange": "",
        "routing_key": queue,
        "message_count": 0,
    }


def test_consumer_gets_messages_and_acknowledges(
    connection: amqp.Connection, channel: amqp.Channel
) -> None:
    queue = _queue(channel)
    got: list[amqp.Message] = []
    channel.basic_qos(0, 5, False)
    tag = channel.basic_consume(queue, callback=got.append)
    for number in range(12):
        channel.basic_publish(amqp.Message(str(number)), "", queue)
    _drain(connection, lambda: len(got) == 5)
    for message in got[:5]:
        channel.basic_ack(message.delivery_tag)
    _drain(connection, lambda: len(got) == 10)
    channel.basic_ack(got[-1].delivery_tag, multiple=True)
    _drain(connection, lambda: len(got) == 12)
    assert [int(message.body) for message in got] == list(range(12))
    channel.basic_cancel(tag)
    channel.basic_recover(requeue=True)
    back = [channel.basic_get(queue) for _ in range(2)]
    assert [(m.body, m.delivery_info["redelivered"]) for m in back] == [("10", True), ("11", True)]


def test_publisher_confirms_are_waited_for(broker: RunningBroker) -> None:
    with _connected(broker, confirm_publish=True) as connection:
        channel = connection.channel()
        acked: list[tuple[int, bool]] = []
        channel.events["basic_ack"].add(lambda tag, multiple: acked.append((tag, multiple)))
        queue = _queue(channel)
        for number in range(5):
            channel.basic_publish(amqp.Message(str(number)), "", queue)
            assert acked[-1][0] == number + 1
        assert channel.queue_declare(queue, passive=True).message_count == 5


def test_unroutable_mandatory_message_is_returned(
    connection: amqp.Connection, channel: amqp.Channel
) -> None:
    returned: list[tuple[Any, ...]] = []
    channel.events["basic_return"].add(lambda *parts: returned.append(parts))
    channel.basic_publish(amqp.Message("lost"), "amq.topic", "no.body", mandatory=True)
    _drain(connection, lambda: bool(returned))
    error, exchange, key, message = returned[0]
    assert (error.reply_code, exchange, key, message.body) == (312, "amq.topic", "no.body", "lost")


def test_errors_are_raised_as_the_exceptions_of_their_codes(
    connection: amqp.Connection, broker: RunningBroker, name: Names
) -> None:
    missing, mine = name("missing"), name("mine")
    with _channel_error(exceptions.NotFound, f"NOT_FOUND - no queue '{missing}' in vhost '/'"):
        connection.channel().queue_declare(missing, passive=True)
    connection.channel().queue_declare(mine, exclusive=True)
    with pytest.raises(exceptions.PreconditionFailed, match="inequivalent arg 'auto_delete'"):
        connection.channel().queue_declare(mine, exclusive=True, auto_delete=False)
    with pytest.raises(exceptions.AccessRefused, match="reserved prefix"):
        connection.channel().queue_declare("amq.mine")
    with _connected(broker) as other, pytest.raises(exceptions.ResourceLocked, match=mine):
        other.channel().queue_declare(mine, passive=True)
    assert connection.connected


def test_deleted_queue_cancels_its_consumer(
    connection: amqp.Connection, channel: amqp.Channel, name: Names
) -> None:
    queue = name("doomed")
    channel.queue_declare(queue)
    told: list[str] = []
    tag = channel.basic_consume(queue, callback=lambda _: None, on_cancel=told.append)
    connection.channel().queue_delete(queue)
    _drain(connection, lambda: bool(told))
    assert told == [tag]


def test_consumer_of_the_deleting_channel_hears_of_it_after_the_reply(
    connection: amqp.Connection, channel: amqp.Channel, name: Names
) -> None:
    queue, heard = name("doomed"), []
    channel.queue_declare(queue)
    channel.basic_consume(queue, callback=lambda _: None, on_cancel=heard.append)
    channel.queue_delete(queue)
    assert heard == []
    _drain(connection, lambda: len(heard) == 1)


@pytest.mark.parametrize("mechanism", [sasl.PLAIN, sasl.AMQPLAIN])
def test_login_works_with_each_mechanism(
    broker: RunningBroker, mechanism: Callable[[str, str], sasl.SASL]
) -> None:
    with _connected(broker, authentication=mechanism("guest", "guest")) as connection:
        assert _queue(connection.channel())


def test_heartbeats_keep_an_idle_connection_open(broker: RunningBroker) -> None:
    with _connected(broker, heartbeat=BEAT_SECONDS) as connection:
        until = time.monotonic() + IDLE_SECONDS
        while time.monotonic() < until:
            connection.heartbeat_tick()
            try:
                connection.drain_events(timeout=0.3)
            except TimeoutError:
                continue
        assert _queue(connection.channel())


def test_connection_cut_by_the_network_raises_a_connection_error(broker: RunningBroker) -> None:
    with _connected(broker) as connection:
        connection.sock.shutdown(socket.SHUT_RDWR)
        with pytest.raises(connection.connection_errors):
            connection.channel()
        connection.collect()


def test_blocked_and_unblocked_are_called() -> None:
    heard: list[str] = []
    callbacks = {
        "on_blocked": lambda reason: heard.append(reason),
        "on_unblocked": lambda: heard.append("unblocked"),
    }
    with own_broker() as own, _connected(own) as other, _connected(own, **callbacks) as blocked:
        queue = other.channel().queue_declare("backlog", auto_delete=False).queue
        sending = blocked.channel()
        set_watermark(own, 0)
        sending.basic_publish(amqp.Message("one more"), "", queue)
        _drain(blocked, lambda: len(heard) == 1)
        # The broker blocks the publisher with the first frame of the message, so that it waits if
        # its other frames came later.
        purged = other.channel().queue_purge(queue)
        set_watermark(own, 0.9)
        _drain(blocked, lambda: len(heard) == 2)
        sending.queue_declare(queue, passive=True)
        assert purged + sending.queue_purge(queue) == 1
        # py-amqp does not pass the reason on.
        assert heard == ["connection blocked, see broker logs", "unblocked"]


def test_tls_connection_carries_messages(tmp_path: Path) -> None:
    with tls_broker(tmp_path) as (_, authority, port):
        connection = amqp.Connection(
            f"127.0.0.1:{port}",
            connect_timeout=_PATIENCE_SECONDS,
            ssl={
                "ca_certs": str(authority),
                "cert_reqs": ssl.CERT_REQUIRED,
                "server_hostname": "localhost",
            },
        )
        connection.connect()
        with connection:
            channel = connection.channel()
            queue = _queue(channel)
            channel.basic_publish(amqp.Message("secret"), "", queue)
            assert channel.basic_get(queue).body == "secret"
