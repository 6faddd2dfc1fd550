"""Messages that expire, wait and come back, as applications with pika and kombu meet them."""

from __future__ import annotations

import time
from typing import Any

import kombu
import pika
import pytest
from kombu.transport import native_delayed_delivery as native
from pika.adapters.blocking_connection import BlockingChannel

from tests.interop.clients.conftest import Names
from tests.interop.clients.pikas import channel_closes, take
from tests.patience import SECONDS, eventually
from tests.running import RunningBroker

pytestmark = pytest.mark.interop
QUORUM = {"x-queue-type": "quorum"}


def test_retries_by_a_queue_that_lets_messages_expire_go_round_and_count(
    channel: BlockingChannel, name: Names
) -> None:
    work, wait = name("work"), name("wait")
    back = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": work, "x-message-ttl": 20}
    out = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": wait}
    channel.queue_declare(wait, arguments=back)
    channel.queue_declare(work, arguments=out)
    channel.basic_publish("", work, b"m")
    for tries in range(4):
        ((method, properties, _),) = take(channel, work, 1)
        deaths = {
            (death["queue"], death["reason"]): death["count"]
            for death in (properties.headers or {}).get("x-death", ())
        }
        expected = {(wait, "expired"): tries, (work, "rejected"): tries} if tries else {}
        assert deaths == expected
        # The consumer goes first: it would get the message again, and give it back.
        channel.cancel()
        channel.basic_reject(method.delivery_tag, requeue=False)


def test_an_unused_queue_goes(channel: BlockingChannel, name: Names, broker: RunningBroker) -> None:
    queue = name("unused")
    channel.queue_declare(queue, arguments={"x-expires": 100})

    def gone() -> bool:
        # To publish is no use of a queue; to ask for it would be.
        time.sleep(0.05)
        try:
            channel.basic_publish("", queue, b"m", mandatory=True)
        except pika.exceptions.UnroutableError:
            return True
        return False

    assert eventually(gone)
    with channel_closes(404, f"NOT_FOUND - no queue '{queue}' in vhost '/'"):
        channel.queue_declare(queue, passive=True)


def test_a_delayed_message_comes_when_it_is_time(channel: BlockingChannel, name: Names) -> None:
    exchange, queue = name("later"), name("q")
    channel.exchange_declare(
        exchange, "x-delayed-message", durable=True, arguments={"x-delayed-type": "topic"}
    )
    channel.queue_declare(queue)
    channel.queue_bind(queue, exchange, "job.*")
    begun = time.monotonic()
    for body, delay in ((b"second", 3_000), (b"first", 300)):
        properties = pika.BasicProperties(headers={"x-delay": delay}, delivery_mode=2)
        channel.basic_publish(exchange, "job.x", body, properties, mandatory=True)
    # The last is confirmed: was it taken so soon that it is due before the other?
    in_time = time.monotonic() - begun < 2.5
    channel.basic_publish(exchange, "job.x", b"at once")
    got = take(channel, queue, 3, auto_ack=True)
    # A machine that is busy may take longer to publish the third than the first has to wait.
    came = [body for _, _, body in got if body != b"at once"]
    assert came == [b"first", b"second"] or not in_time
    assert sorted(came) == [b"first", b"second"]
    assert time.monotonic() - begun >= 2.9
    delays = {body: (found.headers or {}).get("x-delay") for _, found, body in got}
    assert delays == {b"at once": None, b"first": -300, b"second": -3_000}


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_celerys_delayed_delivery_takes_its_way_through_the_levels(
    broker: RunningBroker, name: Names, kind: str
) -> None:
    prefix, target = name("levels"), name("tasks")
    url = f"amqp://guest:guest@127.0.0.1:{broker.port}//"
    with kombu.Connection(url, connect_timeout=SECONDS) as connection:
        native.declare_native_delayed_delivery_exchanges_and_queues(connection, kind, prefix)
        exchange = kombu.Exchange(target, type="topic")
        queue = kombu.Queue(target, exchange, routing_key=target, queue_arguments=QUORUM)
        queue(connection.default_channel).declare()
        native.bind_queue_to_native_delayed_delivery_exchange(connection, queue, prefix)
        got: list[float] = []
        begun = time.monotonic()
        with kombu.Producer(connection) as producer:
            key = native.calculate_routing_key(1, target)
            first = native.level_name(native.MAX_LEVEL, prefix)
            producer.publish("late", exchange=first, routing_key=key, delivery_mode=2)

        def arrived(body: Any, message: Any) -> None:
            got.append(time.monotonic() - begun)
            message.ack()

        with kombu.Consumer(connection, [queue], callbacks=[arrived]):
            while not got:
                connection.drain_events(timeout=60)
        assert got[0] >= 0.99
        channel = connection.default_channel
        for level in range(native.MAX_LEVEL + 1):
            channel.queue_delete(native.level_name(level, prefix))
