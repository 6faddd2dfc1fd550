"""Ordering keys with pika: a key is worked on by one consumer at a time, and in order."""

from __future__ import annotations

import signal
import threading
import time
from collections import defaultdict

import pika
import pytest

from tests.interop.clients.brokers import own_broker
from tests.interop.clients.conftest import Names
from tests.interop.clients.pikas import (
    PATIENCE_SECONDS,
    bodies,
    connected,
    parameters,
)
from tests.running import RunningBroker

pytestmark = pytest.mark.interop
KEYS = 7
EACH = 30
_BACK = 3


def publish(broker: RunningBroker, queue: str) -> None:
    """Messages of all keys, one after the other."""
    with connected(broker) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        for number in range(EACH):
            for key in range(KEYS):
                headers = {"customer": f"c{key}"}
                properties = pika.BasicProperties(headers=headers, delivery_mode=2)
                channel.basic_publish("", queue, b"%d" % number, properties)


class Work:
    """What all consumers did, by key."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.busy: dict[str, int] = {}
        self.done: dict[str, list[int]] = defaultdict(list)
        self.by: dict[int, int] = defaultdict(int)
        self.back: set[str] = set()
        self.clashes = 0
        self.stop = threading.Event()

    def consume(self, broker: RunningBroker, queue: str, me: int, limit: int) -> None:
        """Work on up to so many messages; some are given back once, and what follows them too."""
        with connected(broker) as connection:
            channel = connection.channel()
            channel.basic_qos(prefetch_count=3)
            for method, properties, body in channel.consume(queue, inactivity_timeout=0.1):
                if self.stop.is_set() or (method is None and self.by[me] >= limit):
                    break
                if method is None:
                    continue
                key, number = properties.headers["customer"], int(body)
                if number % 10 == _BACK:
                    (self.back.discard if method.redelivered else self.back.add)(key)
                if key in self.back:
                    channel.basic_nack(method.delivery_tag, requeue=True)
                    continue
                with self.lock:
                    self.clashes += self.busy.setdefault(key, me) != me
                    self.busy[key] = me
                time.sleep(0.001)
                with self.lock:
                    self.done[key].append(number)
                    self.by[me] += 1
                    del self.busy[key]
                channel.basic_ack(method.delivery_tag)
                if self.by[me] >= limit:
                    break

    def is_done(self) -> bool:
        with self.lock:
            return sum(map(len, self.done.values())) >= KEYS * EACH


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_consumers_that_come_and_go_share_keys_and_keep_their_order(
    broker: RunningBroker, name: Names, kind: str
) -> None:
    queue = name("grouped")
    with connected(broker) as connection:
        channel = connection.channel()
        arguments = {"x-group-key": "customer", "x-queue-type": kind}
        channel.queue_declare(queue, durable=True, arguments=arguments)
    publish(broker, queue)
    work = Work()
    # One leaves with deliveries that it has not settled; the others go on with those.
    threads = [
        threading.Thread(target=work.consume, args=(broker, queue, me, limit), daemon=True)
        for me, limit in ((1, 20), (2, 10_000), (3, 10_000))
    ]
    for thread in threads:
        thread.start()
    until = time.monotonic() + 4 * PATIENCE_SECONDS
    while not work.is_done() and time.monotonic() < until:
        time.sleep(0.05)
    work.stop.set()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert work.is_done()
    assert work.clashes == 0
    assert sorted(work.done) == [f"c{key}" for key in range(KEYS)]
    for numbers in work.done.values():
        assert list(dict.fromkeys(numbers)) == sorted(set(numbers)) == list(range(EACH))


def test_a_queue_with_ordering_keys_is_there_after_a_kill() -> None:
    with own_broker() as first:
        channel = pika.BlockingConnection(parameters(first)).channel()
        channel.queue_declare("q", durable=True, arguments={"x-group-key": "customer"})
        publish(first, "q")
        assert channel.basic_get("q")[2] == b"0"
        first.stop(signal.SIGKILL)
        with (
            own_broker("--data-dir", str(first.data_dir)) as second,
            connected(second) as connection,
        ):
            channel = connection.channel()
            arguments = {"x-group-key": "customer"}
            assert channel.queue_declare(
                "q", durable=True, arguments=arguments
            ).method.message_count == (KEYS * EACH)
            assert len(bodies(channel, "q")) == KEYS * EACH
