"""pika: consumers, prefetch, acknowledging in every way, and what is told when a queue goes."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ConnectionClosedByBroker, StreamLostError

from tests.interop.clients.conftest import Names
from tests.interop.clients.pikas import PATIENCE_SECONDS, bodies, channel_closes, connected, take
from tests.running import RunningBroker

pytestmark = pytest.mark.interop


@pytest.fixture
def channel(broker: RunningBroker) -> Iterator[BlockingChannel]:
    with connected(broker) as connection:
        yield connection.channel()


def _filled(channel: BlockingChannel, count: int) -> str:
    """A queue with so many numbered messages."""
    queue: str = channel.queue_declare("", exclusive=True).method.queue
    for number in range(count):
        channel.basic_publish("", queue, str(number).encode())
    return queue


def _consume(channel: BlockingChannel, queue: str, **more: object) -> list[tuple[object, bytes]]:
    """Start a consumer that keeps what it gets and acknowledges nothing."""
    got: list[tuple[object, bytes]] = []
    channel.basic_consume(queue, lambda _c, method, _p, body: got.append((method, body)), **more)
    return got


def _settle(channel: BlockingChannel) -> None:
    """Wait for a reply that comes after everything the broker has to send now."""
    channel.basic_qos(prefetch_count=0)
    channel.connection.process_data_events(time_limit=0)


def _numbers(got: list[tuple[object, bytes]]) -> list[int]:
    return [int(body) for _, body in got]


def test_prefetch_limits_what_is_out(channel: BlockingChannel) -> None:
    queue = _filled(channel, 10)
    channel.basic_qos(prefetch_count=3)
    got = _consume(channel, queue)
    _settle(channel)
    assert _numbers(got) == [0, 1, 2]
    channel.basic_ack(got[1][0].delivery_tag)
    _settle(channel)
    assert _numbers(got) == [0, 1, 2, 3]
    channel.basic_ack(got[3][0].delivery_tag, multiple=True)
    _settle(channel)
    assert _numbers(got) == [0, 1, 2, 3, 4, 5, 6]


def test_prefetch_counts_each_consumer_alone(channel: BlockingChannel) -> None:
    queue = _filled(channel, 10)
    channel.basic_qos(prefetch_count=2)
    first = _consume(channel, queue)
    channel.basic_qos(prefetch_count=4)
    second = _consume(channel, queue)
    _settle(channel)
    assert (len(first), len(second)) == (2, 4)


def test_global_prefetch_is_shared_by_the_channel(channel: BlockingChannel) -> None:
    one, two = _filled(channel, 5), _filled(channel, 5)
    channel.basic_qos(prefetch_count=4, global_qos=True)
    got = _consume(channel, one)
    other = _consume(channel, two)
    _settle(channel)
    assert len(got) + len(other) == 4
    channel.basic_ack(0, multiple=True)
    _settle(channel)
    assert len(got) + len(other) == 8


def test_a_backlog_does_not_use_up_the_prefetch_that_queues_share(
    channel: BlockingChannel,
) -> None:
    bulk, urgent = _filled(channel, 1_000), _filled(channel, 0)
    order: list[bytes] = []

    def handle(_: object, method: object, __: object, body: bytes) -> None:
        order.append(body)
        channel.basic_ack(method.delivery_tag)
        if len(order) == 100:
            channel.basic_publish("", urgent, b"urgent")

    channel.basic_qos(prefetch_count=10, global_qos=True)
    channel.basic_consume(bulk, handle)
    channel.basic_consume(urgent, handle)
    while len(order) < 1_001:
        channel.connection.process_data_events(time_limit=PATIENCE_SECONDS)
    # What was out when it was published comes before it, and little more.
    assert 100 <= order.index(b"urgent") <= 125


def test_no_ack_consumers_are_not_limited(channel: BlockingChannel) -> None:
    queue = _filled(channel, 20)
    channel.basic_qos(prefetch_count=1)
    got = _consume(channel, queue, auto_ack=True)
    _settle(channel)
    assert _numbers(got) == list(range(20))


def test_consumers_of_a_queue_take_turns(channel: BlockingChannel) -> None:
    queue = _filled(channel, 0)
    consumers = [_consume(channel, queue, auto_ack=True) for _ in range(3)]
    for number in range(9):
        channel.basic_publish("", queue, str(number).encode())
    _settle(channel)
    assert [len(got) for got in consumers] == [3, 3, 3]
    assert sorted(number for got in consumers for number in _numbers(got)) == list(range(9))


def test_consumer_with_higher_priority_is_served_first(channel: BlockingChannel) -> None:
    queue = _filled(channel, 0)
    channel.basic_qos(prefetch_count=2)
    low = _consume(channel, queue)
    high = _consume(channel, queue, arguments={"x-priority": 10})
    for number in range(3):
        channel.basic_publish("", queue, str(number).encode())
    _settle(channel)
    assert (_numbers(high), _numbers(low)) == ([0, 1], [2])


def test_requeued_messages_return_to_their_place(channel: BlockingChannel) -> None:
    queue = _filled(channel, 4)
    tags = [channel.basic_get(queue)[0].delivery_tag for _ in range(3)]
    channel.basic_nack(tags[2], requeue=True)
    channel.basic_reject(tags[0], requeue=True)
    got = [channel.basic_get(queue) for _ in range(3)]
    assert [(body, method.redelivered) for method, _, body in got] == [
        (b"0", True),
        (b"2", True),
        (b"3", False),
    ]


def test_nack_of_several_requeues_them_in_order(channel: BlockingChannel) -> None:
    queue = _filled(channel, 4)
    tags = [channel.basic_get(queue)[0].delivery_tag for _ in range(4)]
    channel.basic_nack(tags[2], multiple=True, requeue=True)
    assert bodies(channel, queue) == [b"0", b"1", b"2"]
    channel.basic_nack(0, multiple=True, requeue=True)
    assert bodies(channel, queue) == [b"3"]


def test_rejected_without_requeue_is_gone(channel: BlockingChannel) -> None:
    queue = _filled(channel, 3)
    tags = [channel.basic_get(queue)[0].delivery_tag for _ in range(3)]
    channel.basic_reject(tags[0], requeue=False)
    channel.basic_nack(tags[2], multiple=True, requeue=False)
    channel.basic_recover(requeue=True)
    assert bodies(channel, queue) == []


def test_recover_redelivers_what_is_outstanding(channel: BlockingChannel) -> None:
    queue = _filled(channel, 2)
    got = _consume(channel, queue)
    _settle(channel)
    channel.basic_recover(requeue=True)
    _settle(channel)
    assert [(body, method.redelivered) for method, body in got] == [
        (b"0", False),
        (b"1", False),
        (b"0", True),
        (b"1", True),
    ]


def test_closing_a_channel_returns_what_it_held(broker: RunningBroker) -> None:
    with connected(broker) as connection:
        first, second = connection.channel(), connection.channel()
        queue = _filled(first, 3)
        take(first, queue, 3)
        first.close()
        got = take(second, queue, 3)
        assert [(body, method.redelivered) for method, _, body in got] == [
            (b"0", True),
            (b"1", True),
            (b"2", True),
        ]


def test_losing_a_connection_returns_what_it_held(broker: RunningBroker, name: Names) -> None:
    queue = name("held")
    with connected(broker) as keeper, connected(broker) as lost:
        channel = keeper.channel()
        channel.queue_declare(queue)
        channel.basic_publish("", queue, b"precious")
        assert lost.channel().basic_get(queue)[2] == b"precious"
        lost._impl._transport._sock.shutdown(socket.SHUT_RDWR)
        ((method, _, body),) = take(channel, queue, 1)
        assert (body, method.redelivered) == (b"precious", True)
        channel.queue_delete(queue)
        with pytest.raises(StreamLostError):
            lost.process_data_events(time_limit=PATIENCE_SECONDS)


def test_cancelled_consumer_gets_no_more_and_keeps_what_it_has(channel: BlockingChannel) -> None:
    queue = _filled(channel, 2)
    channel.basic_qos(prefetch_count=1)
    got: list[tuple[object, bytes]] = []
    tag = channel.basic_consume(queue, lambda _c, method, _p, body: got.append((method, body)))
    _settle(channel)
    channel.basic_cancel(tag)
    channel.basic_ack(got[0][0].delivery_tag)
    _settle(channel)
    assert _numbers(got) == [0]
    assert bodies(channel, queue) == [b"1"]


def test_consumer_is_told_when_its_queue_is_deleted(broker: RunningBroker, name: Names) -> None:
    queue = name("doomed")
    with connected(broker) as connection, connected(broker) as other:
        channel = connection.channel()
        channel.queue_declare(queue)
        cancelled: list[str] = []
        channel.add_on_cancel_callback(lambda frame: cancelled.append(frame.method.consumer_tag))
        tag = channel.basic_consume(queue, lambda *_: None)
        other.channel().queue_delete(queue)
        channel.start_consuming()
        assert cancelled == [tag]
        assert channel.is_open


def test_unknown_and_repeated_delivery_tags_close_the_channel(broker: RunningBroker) -> None:
    with connected(broker) as connection:
        for act in ("basic_ack", "basic_nack", "basic_reject"):
            channel = connection.channel()
            with channel_closes(406, "PRECONDITION_FAILED - unknown delivery tag 99"):
                getattr(channel, act)(99)
                channel.basic_qos(prefetch_count=0)
        channel = connection.channel()
        queue = _filled(channel, 1)
        channel.basic_get(queue)
        channel.basic_ack(1)
        with channel_closes(406, "PRECONDITION_FAILED - unknown delivery tag 1"):
            channel.basic_ack(1)
            channel.basic_qos(prefetch_count=0)


def test_exclusive_consumer_refuses_others(broker: RunningBroker) -> None:
    with connected(broker) as connection:
        channel = connection.channel()
        queue = _filled(channel, 0)
        channel.basic_consume(queue, lambda *_: None, exclusive=True)
        in_use = f"ACCESS_REFUSED - queue '{queue}' in vhost '/' in exclusive use"
        with channel_closes(403, in_use):
            connection.channel().basic_consume(queue, lambda *_: None)


def test_consumer_tag_used_twice_ends_the_connection(broker: RunningBroker) -> None:
    with connected(broker) as connection:
        channel = connection.channel()
        queue = _filled(channel, 0)
        channel.basic_consume(queue, lambda *_: None, consumer_tag="mine")
        # pika checks its own tags first; forgetting them lets the broker speak.
        channel._impl._consumers.clear()
        channel._consumer_infos.clear()
        with pytest.raises(ConnectionClosedByBroker) as caught:
            channel.basic_consume(queue, lambda *_: None, consumer_tag="mine")
        assert caught.value.reply_code == 530
        assert caught.value.reply_text == "NOT_ALLOWED - attempt to reuse consumer tag 'mine'"
