"""pika: what a message carries arrives as it was sent, and the broker says what became of it."""

from __future__ import annotations

import datetime
import decimal
import hashlib
import random
from collections.abc import Iterator

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import UnroutableError

from tests.interop.clients.conftest import Names
from tests.interop.clients.pikas import bodies, connected, take
from tests.running import RunningBroker

pytestmark = pytest.mark.interop

NOON = datetime.datetime(2013, 6, 1, 12, 30, 15, tzinfo=datetime.UTC)
HEADERS = {
    "bool": True,
    "small": -7,
    "large": 2**40,
    "largest": 2**63 - 1,
    "minimum": -(2**63),
    "text": "Grüße 🌼",
    "empty": "",
    "octets": b"\x00\xff\xfe",
    "decimal": decimal.Decimal("-3.14"),
    "time": NOON,
    "none": None,
    "list": [1, "two", None, [True, {"deep": [b"x"]}]],
    "table": {"a": {"b": {"c": [1, 2, 3]}}, "": "empty name"},
}
ALL_PROPERTIES = {
    "content_type": "application/json",
    "content_encoding": "utf-8",
    "headers": HEADERS,
    "delivery_mode": 2,
    "priority": 9,
    "correlation_id": "corr-1",
    "reply_to": "answers",
    "expiration": "3600000",
    "message_id": "id-1",
    "timestamp": 1370089815,
    "type": "order.created",
    "user_id": "guest",
    "app_id": "shop",
    "cluster_id": "old",
}


@pytest.fixture
def channel(broker: RunningBroker) -> Iterator[BlockingChannel]:
    with connected(broker) as connection:
        yield connection.channel()


@pytest.fixture
def queue(channel: BlockingChannel) -> str:
    name: str = channel.queue_declare("", exclusive=True).method.queue
    return name


def _fields(properties: pika.BasicProperties) -> dict[str, object]:
    return {field: getattr(properties, field) for field in ALL_PROPERTIES}


def test_all_fourteen_properties_come_back_equal(channel: BlockingChannel, queue: str) -> None:
    assert len(ALL_PROPERTIES) == 14
    channel.basic_publish("", queue, b"{}", pika.BasicProperties(**ALL_PROPERTIES))
    channel.basic_publish("", queue, b"{}", pika.BasicProperties(**ALL_PROPERTIES))
    _, got, body = channel.basic_get(queue, auto_ack=True)
    assert (_fields(got), body) == (ALL_PROPERTIES, b"{}")
    ((_, delivered, _),) = take(channel, queue, 1)
    assert _fields(delivered) == ALL_PROPERTIES


def test_ten_megabytes_arrive_whole(channel: BlockingChannel, queue: str) -> None:
    octets = random.Random(7).randbytes(10_000_000)
    channel.confirm_delivery()
    channel.basic_publish("", queue, octets, mandatory=True)
    ((method, _, body),) = take(channel, queue, 1)
    assert hashlib.sha256(body).digest() == hashlib.sha256(octets).digest()
    channel.basic_ack(method.delivery_tag)


def test_confirmed_publish_is_in_the_queue(channel: BlockingChannel, queue: str) -> None:
    channel.confirm_delivery()
    for number in range(50):
        channel.basic_publish("", queue, str(number).encode(), mandatory=True)
    assert channel.queue_declare(queue, passive=True).method.message_count == 50


def test_unroutable_mandatory_message_comes_back_whole(channel: BlockingChannel) -> None:
    channel.confirm_delivery()
    about = pika.BasicProperties(**ALL_PROPERTIES)
    with pytest.raises(UnroutableError) as caught:
        channel.basic_publish("amq.direct", "nobody", b"come back", about, mandatory=True)
    (returned,) = caught.value.messages
    assert (returned.method.reply_code, returned.method.reply_text) == (312, "NO_ROUTE")
    assert (returned.method.exchange, returned.method.routing_key) == ("amq.direct", "nobody")
    assert (_fields(returned.properties), returned.body) == (ALL_PROPERTIES, b"come back")


def test_return_without_confirms_reaches_the_callback(channel: BlockingChannel, queue: str) -> None:
    returned = []
    channel.add_on_return_callback(lambda *parts: returned.append(parts))
    channel.basic_publish("", "nobody", b"one", mandatory=True)
    channel.basic_publish("", queue, b"two", mandatory=True)
    # The reply to this comes after the return.
    assert channel.queue_declare(queue, passive=True).method.message_count == 1
    channel.connection.process_data_events(time_limit=0)
    ((_, method, _, body),) = returned
    assert (method.reply_code, method.routing_key, body) == (312, "nobody", b"one")


def test_transaction_takes_effect_at_commit_and_not_before(
    broker: RunningBroker, channel: BlockingChannel, name: Names
) -> None:
    queue = name("ledger")
    channel.queue_declare(queue, auto_delete=False)
    channel.tx_select()
    with connected(broker) as connection:
        watcher = connection.channel()
        for body in (b"1", b"2"):
            channel.basic_publish("", queue, body)
        channel.queue_declare(queue, passive=True)
        assert bodies(watcher, queue) == []
        channel.tx_commit()
        assert bodies(watcher, queue) == [b"1", b"2"]
        channel.basic_publish("", queue, b"3")
        channel.tx_rollback()
        channel.tx_commit()
        assert bodies(watcher, queue) == []
    channel.queue_delete(queue)
