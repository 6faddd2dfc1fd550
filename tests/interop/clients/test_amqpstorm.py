"""AMQPStorm: its threaded connection, message objects, confirms, transactions and errors."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import amqpstorm
import pytest
from amqpstorm import AMQPChannelError, AMQPMessageError, Message

from tests.interop.clients.brokers import own_broker, tls_broker
from tests.interop.clients.conftest import Names
from tests.interop.idleness import BEAT_SECONDS, IDLE_SECONDS
from tests.patience import eventually
from tests.running import RunningBroker, set_watermark

pytestmark = pytest.mark.interop

_PATIENCE_SECONDS = 60


def _connect(broker: RunningBroker, password: str = "guest", **more: Any) -> amqpstorm.Connection:
    about = {"port": broker.port, "timeout": _PATIENCE_SECONDS, **more}
    return amqpstorm.Connection("127.0.0.1", "guest", password, **about)


@pytest.fixture
def connection(broker: RunningBroker) -> Iterator[amqpstorm.Connection]:
    with _connect(broker) as opened:
        yield opened


@pytest.fixture
def channel(connection: amqpstorm.Connection) -> amqpstorm.Channel:
    return connection.channel(rpc_timeout=_PATIENCE_SECONDS)


def _queue(channel: amqpstorm.Channel) -> str:
    return str(channel.queue.declare(exclusive=True)["queue"])


@contextmanager
def _channel_error(code: int, text: str) -> Iterator[None]:
    with pytest.raises(AMQPChannelError) as caught:
        yield
    assert caught.value.error_code == code
    assert text in str(caught.value)


def test_message_with_properties_comes_back_equal(channel: amqpstorm.Channel) -> None:
    properties = {
        "content_type": "text/plain",
        "content_encoding": "utf-8",
        "headers": {"a": 1, "b": "ü", "c": [True, {"d": None}], "e": 2.5},
        "delivery_mode": 2,
        "priority": 7,
        "correlation_id": "c",
        "reply_to": "r",
        "expiration": "60000",
        "message_id": "m",
        "message_type": "t",
        "user_id": "guest",
        "app_id": "a",
    }
    queue = _queue(channel)
    Message.create(channel, "Grüße", properties).publish(queue)
    got = channel.basic.get(queue)
    assert got is not None
    got.ack()
    assert got.body == "Grüße"
    assert {name: got.properties[name] for name in properties} == properties
    assert (got.method["exchange"], got.method["routing_key"]) in (("", queue), (b"", queue))
    assert channel.basic.get(queue) is None


def test_consumer_receives_in_order_and_acknowledges(channel: amqpstorm.Channel) -> None:
    queue, got = _queue(channel), []
    channel.basic.qos(3)
    channel.basic.consume(queue=queue)
    for number in range(50):
        channel.basic.publish(str(number), queue)
    for message in channel.build_inbound_messages(break_on_empty=False):
        got.append(int(message.body))
        message.ack()
        if len(got) == 50:
            break
    assert got == list(range(50))
    channel.basic.recover(requeue=True)
    assert channel.queue.declare(queue, passive=True)["message_count"] == 0


def test_start_consuming_runs_until_stopped_from_another_thread(
    connection: amqpstorm.Connection,
) -> None:
    channel, publishing = connection.channel(), connection.channel()
    queue, got = _queue(channel), []

    def take(message: Message) -> None:
        got.append(message.body)
        message.ack()

    channel.basic.consume(take, queue)
    thread = threading.Thread(target=channel.start_consuming, daemon=True)
    thread.start()
    for number in range(5):
        publishing.basic.publish(str(number), queue)
    assert eventually(lambda: len(got) == 5)
    channel.stop_consuming()
    thread.join(_PATIENCE_SECONDS)
    assert not thread.is_alive()
    assert got == ["0", "1", "2", "3", "4"]


def test_confirmed_publish_says_yes_and_unroutable_raises(channel: amqpstorm.Channel) -> None:
    queue = _queue(channel)
    channel.confirm_deliveries()
    for _ in range(20):
        assert channel.basic.publish("x", queue, mandatory=True) is True
    assert channel.queue.declare(queue, passive=True)["message_count"] == 20
    with pytest.raises(AMQPMessageError, match="NO_ROUTE") as caught:
        channel.basic.publish("x", "nobody-has-this-queue", mandatory=True)
    assert caught.value.error_code == 312
    assert channel.queue.purge(queue)["message_count"] == 20


def test_errors_carry_code_and_text(
    broker: RunningBroker, connection: amqpstorm.Connection, name: Names
) -> None:
    missing = name("missing")
    with _channel_error(404, f"NOT_FOUND - no queue '{missing}' in vhost '/'"):
        connection.channel().queue.declare(missing, passive=True)
    with _channel_error(403, "reserved prefix 'amq.*'"):
        connection.channel().queue.declare("amq.mine")
    with _channel_error(406, "unknown exchange type 'nonsense'"):
        connection.channel().exchange.declare(name("x"), "nonsense")
    mine = _queue(connection.channel())
    with _connect(broker) as other, _channel_error(405, "cannot obtain exclusive access"):
        other.channel().queue.purge(mine)
    assert connection.is_open


def test_deleted_queue_cancels_the_consumer(connection: amqpstorm.Connection, name: Names) -> None:
    queue = name("doomed")
    channel = connection.channel()
    channel.queue.declare(queue)
    tag = channel.basic.consume(lambda _: None, queue)
    assert channel.consumer_tags == [tag]
    connection.channel().queue.delete(queue)
    assert eventually(lambda: channel.consumer_tags == [])
    assert channel.is_open


def test_heartbeats_keep_an_idle_connection_open(broker: RunningBroker) -> None:
    with _connect(broker, heartbeat=BEAT_SECONDS) as connection:
        time.sleep(IDLE_SECONDS)
        connection.check_for_errors()
        assert _queue(connection.channel())


def test_connection_knows_that_it_is_blocked() -> None:
    with own_broker() as own, _connect(own) as other, _connect(own) as publisher:
        taking = other.channel()
        taking.queue.declare("backlog")
        set_watermark(own, 0)
        sending = publisher.channel()
        sending.basic.publish(b"one more", "backlog")
        assert eventually(lambda: publisher.is_blocked)
        assert not other.is_blocked
        # The broker blocks the publisher with the first frame of the message, so that it waits if
        # its other frames came later.
        purged = taking.queue.purge("backlog")["message_count"]
        set_watermark(own, 0.9)
        assert eventually(lambda: not publisher.is_blocked)
        assert purged + sending.queue.declare("backlog", passive=True)["message_count"] == 1


def test_tls_connection_carries_messages(tmp_path: Path) -> None:
    with tls_broker(tmp_path) as (own, authority, port):
        context = ssl.create_default_context(cafile=str(authority))
        options = {"context": context, "server_hostname": "localhost"}
        with _connect(own, port=port, ssl=True, ssl_options=options) as connection:
            channel = connection.channel()
            queue = _queue(channel)
            channel.basic.publish("secret", queue)
            message = channel.basic.get(queue, no_ack=True)
            assert message is not None
            assert message.body == "secret"
