"""pika: logging in, heartbeats, many channels, back-pressure, TLS, asynchronous adapters."""

from __future__ import annotations

import asyncio
import ssl
import time
from pathlib import Path
from typing import Any

import pika
import pytest
from pika.adapters.asyncio_connection import AsyncioConnection
from pika.exceptions import (
    ConnectionClosedByBroker,
    ProbableAuthenticationError,
)

from tests.interop.clients.brokers import own_broker, tls_broker
from tests.interop.clients.conftest import Names
from tests.interop.clients.pikas import PATIENCE_SECONDS, bodies, connected, parameters
from tests.interop.idleness import BEAT_SECONDS, IDLE_SECONDS
from tests.running import RunningBroker, set_watermark

pytestmark = pytest.mark.interop

_CAPABILITIES = {
    "publisher_confirms",
    "exchange_exchange_bindings",
    "basic.nack",
    "consumer_cancel_notify",
    "connection.blocked",
    "authentication_failure_close",
    "per_consumer_qos",
    "consumer_priorities",
}


class AmqPlainCredentials:
    """The AMQPLAIN mechanism for pika, which has only PLAIN and EXTERNAL of its own."""

    TYPE = "AMQPLAIN"

    def __init__(self, user: str, password: str) -> None:
        self._login = {"LOGIN": user, "PASSWORD": password}

    def response_for(self, start: pika.spec.Connection.Start) -> tuple[str | None, bytes | None]:
        if b"AMQPLAIN" not in start.mechanisms.split():
            return None, None
        pieces: list[bytes] = []
        pika.data.encode_table(pieces, self._login)
        return self.TYPE, b"".join(pieces)[4:]

    def erase_credentials(self) -> None:
        self._login = {}


def test_server_announces_what_it_can(broker: RunningBroker) -> None:
    with connected(broker) as connection:
        about = connection._impl.server_properties
        able = {name for name, on in about["capabilities"].items() if on}
        assert able >= _CAPABILITIES
        assert {"product", "version", "platform", "cluster_name"} <= about.keys()
        assert connection.basic_nack_supported
        assert connection.consumer_cancel_notify_supported
        assert connection.exchange_exchange_bindings_supported
        assert connection.publisher_confirms_supported


@pytest.mark.parametrize("mechanism", ["PLAIN", "AMQPLAIN"])
def test_login_works_with_each_mechanism(
    broker: RunningBroker, monkeypatch: pytest.MonkeyPatch, mechanism: str
) -> None:
    credentials: Any = pika.PlainCredentials("guest", "guest")
    if mechanism == "AMQPLAIN":
        credentials = AmqPlainCredentials("guest", "guest")
        known = [*pika.credentials.VALID_TYPES, AmqPlainCredentials]
        monkeypatch.setattr(pika.credentials, "VALID_TYPES", known)
    with connected(broker, credentials=credentials) as connection:
        assert connection.channel().queue_declare("", exclusive=True).method.queue


@pytest.mark.parametrize(("user", "password"), [("guest", "wrong"), ("nobody", "guest")])
def test_wrong_login_is_told(broker: RunningBroker, user: str, password: str) -> None:
    with (
        pytest.raises(ProbableAuthenticationError) as caught,
        connected(broker, credentials=pika.PlainCredentials(user, password)),
    ):
        pass
    assert "Login was refused using authentication mechanism PLAIN" in str(caught.value)


def test_idle_connection_stays_open_with_heartbeats(broker: RunningBroker, name: Names) -> None:
    with connected(broker, heartbeat=BEAT_SECONDS) as connection:
        channel = connection.channel()
        queue = channel.queue_declare(name("idle"), exclusive=True).method.queue
        connection.sleep(IDLE_SECONDS)
        channel.basic_publish("", queue, b"still here")
        assert bodies(channel, queue) == [b"still here"]


def test_publisher_is_blocked_above_the_watermark_and_released_below_it() -> None:
    heard: list[str] = []
    with own_broker() as own, connected(own) as publisher, connected(own) as consumer:
        publisher.add_on_connection_blocked_callback(
            lambda _, frame: heard.append(frame.method.reason)
        )
        publisher.add_on_connection_unblocked_callback(lambda *_: heard.append("unblocked"))
        sending, taking = publisher.channel(), consumer.channel()
        queue = taking.queue_declare("backlog").method.queue
        sending.basic_publish("", queue, b"before")
        sending.queue_declare(queue, passive=True)
        set_watermark(own, 0)
        sending.basic_publish("", queue, b"the last")
        _await(publisher, heard, 1)
        assert heard == ["low on memory"]
        # A connection that only consumes is not held back. The broker blocks the publisher with
        # the first frame of "the last", which waits, too, if its other frames came later.
        sending.basic_publish("", queue, b"waits")
        taken = bodies(taking, queue)
        assert taken in ([b"before"], [b"before", b"the last"])
        set_watermark(own, 0.9)
        _await(publisher, heard, 2)
        assert heard == ["low on memory", "unblocked"]
        sending.queue_declare(queue, passive=True)
        assert taken + bodies(taking, queue) == [b"before", b"the last", b"waits"]


def _await(connection: pika.BlockingConnection, heard: list[str], count: int) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while len(heard) < count and time.monotonic() < until:
        connection.process_data_events(time_limit=0.1)


def test_tls_connection_carries_messages(tmp_path: Path) -> None:
    octets = bytes(range(256)) * 4000
    with tls_broker(tmp_path) as (own, authority, port):
        context = ssl.create_default_context(cafile=str(authority))
        about = pika.ConnectionParameters(
            host="127.0.0.1", port=port, ssl_options=pika.SSLOptions(context, "localhost")
        )
        with pika.BlockingConnection(about) as connection:
            channel = connection.channel()
            queue = channel.queue_declare("", exclusive=True).method.queue
            channel.basic_publish("", queue, octets)
            assert bodies(channel, queue) == [octets]
        with connected(own) as plain:
            assert plain.is_open, "the plain port goes on serving"


def test_broker_tells_its_clients_when_it_stops() -> None:
    with own_broker() as own, connected(own) as connection:
        connection.channel()
        own.process.terminate()
        with pytest.raises(ConnectionClosedByBroker) as caught:
            connection.process_data_events(time_limit=PATIENCE_SECONDS)
        assert caught.value.reply_code == 320
        assert caught.value.reply_text.startswith("CONNECTION_FORCED")
        assert own.process.wait(PATIENCE_SECONDS) == 0


class _Echo:
    """Publishes so many messages with confirms and consumes them again, all by callbacks.

    Args:
        count: how many.
        done: called when every message was consumed and confirmed, or the connection has ended.
    """

    def __init__(self, count: int, done: Any) -> None:
        self._count = count
        self._done = done
        self.got: list[bytes] = []
        self.confirmed = 0
        self.closed: BaseException | None = None
        self.channel: Any = None

    def opened(self, connection: Any) -> None:
        connection.channel(on_open_callback=self._channel_open)

    def ended(self, _connection: Any, reason: BaseException) -> None:
        self.closed = reason
        self._done()

    def _channel_open(self, channel: Any) -> None:
        self.channel = channel
        channel.confirm_delivery(self._confirm, callback=self._declare)

    def _declare(self, _frame: Any) -> None:
        self.channel.queue_declare("", exclusive=True, callback=self._publish)

    def _publish(self, frame: Any) -> None:
        queue = frame.method.queue
        self.channel.basic_qos(prefetch_count=10)
        self.channel.basic_consume(queue, self._deliver)
        for number in range(self._count):
            self.channel.basic_publish("", queue, str(number).encode())

    def _confirm(self, frame: Any) -> None:
        assert isinstance(frame.method, pika.spec.Basic.Ack)
        # Tags are confirmed in order, so the highest one is how many.
        self.confirmed = max(self.confirmed, frame.method.delivery_tag)
        self._check()

    def _deliver(self, channel: Any, method: Any, _properties: Any, body: bytes) -> None:
        self.got.append(body)
        channel.basic_ack(method.delivery_tag)
        self._check()

    def _check(self) -> None:
        if len(self.got) == self._count == self.confirmed:
            self._done()

    def verify(self) -> None:
        assert self.got == [str(number).encode() for number in range(self._count)]
        assert self.confirmed == self._count


def test_select_connection_publishes_and_consumes_by_callbacks(broker: RunningBroker) -> None:
    connection: pika.SelectConnection

    def stop() -> None:
        if connection.is_open:
            connection.close()
        elif connection.is_closed:
            connection.ioloop.stop()

    echo = _Echo(500, stop)
    connection = pika.SelectConnection(
        parameters(broker),
        on_open_callback=echo.opened,
        on_open_error_callback=echo.ended,
        on_close_callback=echo.ended,
    )
    connection.ioloop.call_later(PATIENCE_SECONDS, connection.ioloop.stop)
    connection.ioloop.start()
    echo.verify()
    assert isinstance(echo.closed, pika.exceptions.ConnectionClosedByClient)


def test_asyncio_connection_publishes_and_consumes_by_callbacks(broker: RunningBroker) -> None:
    async def scenario() -> _Echo:
        finished, closed = asyncio.Event(), asyncio.Event()
        echo = _Echo(500, finished.set)
        connection = AsyncioConnection(
            parameters(broker),
            on_open_callback=echo.opened,
            on_open_error_callback=echo.ended,
            on_close_callback=lambda *_: closed.set(),
        )
        await asyncio.wait_for(finished.wait(), PATIENCE_SECONDS)
        connection.close()
        await asyncio.wait_for(closed.wait(), PATIENCE_SECONDS)
        return echo

    asyncio.run(scenario()).verify()
