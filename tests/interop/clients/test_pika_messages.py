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
from pika.exceptions import ChannelClosedByBroker, UnroutableError

from tests.interop.clients.conftest import Names
from tests.interop.clients.pikas import bodies, channel_closes, connected, take
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


@pytest.mark.parametrize("field", sorted(ALL_PROPERTIES))
def test_one_property_comes_back_alone(channel: BlockingChannel, queue: str, field: str) -> None:
    sent = pika.BasicProperties(**{field: ALL_PROPERTIES[field]})
    channel.basic_publish("", queue, b"", sent)
    _, got, _ = channel.basic_get(queue, auto_ack=True)
    assert _fields(got) == {**dict.fromkeys(ALL_PROPERTIES), field: ALL_PROPERTIES[field]}


def test_message_without_properties_or_body_arrives(channel: BlockingChannel, queue: str) -> None:
    channel.basic_publish("", queue, b"")
    method, got, body = channel.basic_get(queue)
    assert (method.redelivered, method.exchange, method.routing_key) == (False, "", queue)
    assert (_fields(got), body) == (dict.fromkeys(ALL_PROPERTIES), b"")


def test_bodies_around_the_frame_size_arrive_whole(channel: BlockingChannel, queue: str) -> None:
    payload = 131_072 - 8
    sizes = [1, payload - 1, payload, payload + 1, 2 * payload, 2 * payload + 1]
    octets = random.Random(13).randbytes(max(sizes))
    for size in sizes:
        channel.basic_publish("", queue, octets[:size])
    assert bodies(channel, queue) == [octets[:size] for size in sizes]


def test_ten_megabytes_arrive_whole(channel: BlockingChannel, queue: str) -> None:
    octets = random.Random(7).randbytes(10_000_000)
    channel.confirm_delivery()
    channel.basic_publish("", queue, octets, mandatory=True)
    ((method, _, body),) = take(channel, queue, 1)
    assert hashlib.sha256(body).digest() == hashlib.sha256(octets).digest()
    channel.basic_ack(method.delivery_tag)


def test_smaller_frames_are_respected_in_both_directions(broker: RunningBroker) -> None:
    octets = random.Random(3).randbytes(100_000)
    with connected(broker, frame_max=4096) as connection:
        channel = connection.channel()
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.basic_publish("", queue, octets)
        assert bodies(channel, queue) == [octets]


def test_get_counts_what_is_left_and_says_when_empty(channel: BlockingChannel, queue: str) -> None:
    for number in range(3):
        channel.basic_publish("", queue, str(number).encode())
    got = [channel.basic_get(queue) for _ in range(4)]
    assert [(body, method.message_count) for method, _, body in got[:3]] == [
        (b"0", 2),
        (b"1", 1),
        (b"2", 0),
    ]
    assert [method.delivery_tag for method, _, _ in got[:3]] == [1, 2, 3]
    assert got[3] == (None, None, None)


def test_thousand_messages_keep_their_order(channel: BlockingChannel, queue: str) -> None:
    sent = [f"{number:04}".encode() for number in range(1000)]
    for body in sent:
        channel.basic_publish("", queue, body)
    got = take(channel, queue, len(sent), auto_ack=True)
    assert [body for _, _, body in got] == sent
    assert [method.delivery_tag for method, _, _ in got] == list(range(1, 1001))


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


def test_unroutable_message_that_is_not_mandatory_is_confirmed_and_dropped(
    channel: BlockingChannel, queue: str
) -> None:
    channel.confirm_delivery()
    channel.basic_publish("amq.direct", "nobody", b"gone")
    channel.basic_publish("", queue, b"kept")
    assert bodies(channel, queue) == [b"kept"]


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


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        (
            {"user_id": "mallory"},
            "user_id property set to 'mallory' but authenticated user was 'guest'",
        ),
        ({"expiration": "soon"}, "invalid expiration 'soon': no_integer"),
    ],
)
def test_properties_that_cannot_be_are_refused(
    channel: BlockingChannel, queue: str, properties: dict[str, str], text: str
) -> None:
    channel.confirm_delivery()
    with channel_closes(406, f"PRECONDITION_FAILED - {text}"):
        channel.basic_publish("", queue, b"x", pika.BasicProperties(**properties))


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


def test_transaction_holds_acknowledgements_until_commit(
    broker: RunningBroker, name: Names
) -> None:
    queue = name("ledger")
    with connected(broker) as connection:
        channel = connection.channel()
        channel.queue_declare(queue)
        for body in (b"1", b"2"):
            channel.basic_publish("", queue, body)
        channel.tx_select()
        first, second = (channel.basic_get(queue)[0].delivery_tag for _ in range(2))
        channel.basic_ack(first)
        channel.tx_commit()
        channel.basic_ack(second)
        channel.tx_rollback()
    with connected(broker) as connection:
        channel = connection.channel()
        method, _, body = channel.basic_get(queue)
        assert (body, method.redelivered, method.message_count) == (b"2", True, 0)
        channel.queue_delete(queue)


def test_confirms_and_transactions_exclude_each_other(broker: RunningBroker) -> None:
    with connected(broker) as connection:
        channel = connection.channel()
        channel.tx_select()
        with channel_closes(406, "PRECONDITION_FAILED - cannot switch from tx to confirm mode"):
            channel.confirm_delivery()
        channel = connection.channel()
        channel.confirm_delivery()
        with channel_closes(406, "PRECONDITION_FAILED - cannot switch from confirm to tx mode"):
            channel.tx_select()
        channel = connection.channel()
        with pytest.raises(ChannelClosedByBroker) as caught:
            channel.tx_commit()
        assert caught.value.reply_text == "PRECONDITION_FAILED - channel is not transactional"
