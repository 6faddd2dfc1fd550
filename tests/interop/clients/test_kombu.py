"""kombu: entities, producers, consumers, simple queues, mailboxes, getting over a restart."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import kombu
import pytest
from kombu import pidbox, pools
from kombu.asynchronous import Hub
from kombu.common import eventloop
from kombu.mixins import ConsumerProducerMixin

from tests.interop.clients.brokers import own_broker
from tests.interop.clients.conftest import Names
from tests.ports import free_port
from tests.running import RunningBroker

pytestmark = pytest.mark.interop

_PATIENCE_SECONDS = 60.0


def _connection(port: int, **more: Any) -> kombu.Connection:
    more = {"connect_timeout": _PATIENCE_SECONDS, **more}
    return kombu.Connection(f"amqp://guest:guest@127.0.0.1:{port}//", **more)


@pytest.fixture
def connection(broker: RunningBroker) -> Iterator[kombu.Connection]:
    with _connection(broker.port) as opened:
        yield opened


def _drain(connection: kombu.Connection, until: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not until():
        assert time.monotonic() < deadline, "the broker did not send what was waited for"
        try:
            connection.drain_events(timeout=0.5)
        except TimeoutError:
            continue


def _queue(name: str, exchange: kombu.Exchange | str = "", **more: Any) -> kombu.Queue:
    return kombu.Queue(name, exchange, durable=False, auto_delete=True, **more)


def test_producer_declares_what_it_needs_and_consumer_decodes(
    connection: kombu.Connection, name: Names
) -> None:
    exchange = kombu.Exchange(name("orders"), "topic", durable=False, auto_delete=True)
    queue = _queue(name("orders"), exchange, routing_key="order.*")
    got: list[tuple[Any, kombu.Message]] = []
    body = {"id": 7, "items": ["a", "ü"], "price": 1.5, "none": None}
    with connection.Consumer(
        [queue], callbacks=[lambda data, message: got.append((data, message))]
    ):
        producer = connection.Producer(serializer="json")
        for key in ("order.created", "other.created"):
            producer.publish(
                body,
                exchange=exchange,
                routing_key=key,
                declare=[exchange, queue],
                headers={"tries": 2},
                priority=3,
                retry=True,
            )
        _drain(connection, lambda: len(got) == 1)
        ((data, message),) = got
        assert data == body
        assert message.content_type == "application/json"
        assert (message.headers, message.properties["priority"]) == ({"tries": 2}, 3)
        assert message.delivery_info["routing_key"] == "order.created"
        message.ack()
        assert message.acknowledged
        assert queue(connection.default_channel).queue_declare(passive=True).message_count == 0


def test_compressed_body_is_unpacked_on_the_other_side(
    connection: kombu.Connection, name: Names
) -> None:
    queue = _queue(name("packed"))(connection.default_channel)
    queue.declare()
    text = "again and again " * 10_000
    connection.Producer().publish(text, routing_key=queue.name, compression="zlib")
    channel = connection.default_channel
    raw = channel.basic_get(queue.name, no_ack=True)
    assert len(raw.body) < len(text) / 10
    message = channel.message_to_python(raw)
    assert message.headers["compression"] == "application/x-gzip"
    assert message.payload == text


@pytest.mark.parametrize("kind", ["direct", "fanout", "topic", "headers"])
def test_every_exchange_type_is_declared_and_deleted(
    connection: kombu.Connection, name: Names, kind: str
) -> None:
    channel = connection.default_channel
    exchange = kombu.Exchange(name(kind), kind, channel=channel)
    queue = _queue(name(kind), exchange, routing_key="k", binding_arguments={"h": "1"})(channel)
    queue.declare()
    queue.declare()
    exchange.publish(exchange.Message("hello", headers={"h": "1"}), routing_key="k")
    assert queue.get(no_ack=True).payload == "hello"
    queue.unbind_from(exchange, "k", arguments={"h": "1"})
    exchange.delete(if_unused=True)
    with pytest.raises(connection.channel_errors, match="NOT_FOUND - no exchange"):
        exchange.declare(passive=True)


def test_prefetch_of_a_consumer_holds_messages_back(
    connection: kombu.Connection, name: Names
) -> None:
    queue = _queue(name("work"))
    got: list[kombu.Message] = []
    with connection.Consumer([queue], on_message=got.append, prefetch_count=2):
        for number in range(5):
            connection.Producer().publish(number, routing_key=queue.name)
        _drain(connection, lambda: len(got) == 2)
        with pytest.raises(socket.timeout):
            connection.drain_events(timeout=0.2)
        for message in got[:2]:
            message.ack()
        _drain(connection, lambda: len(got) == 4)
        assert [message.payload for message in got] == [0, 1, 2, 3]


def test_simple_queue_puts_gets_and_counts(connection: kombu.Connection, name: Names) -> None:
    with connection.SimpleQueue(name("simple")) as simple:
        for number in range(3):
            simple.put({"n": number})
        assert simple.qsize() == 3
        for number in range(3):
            message = simple.get(timeout=_PATIENCE_SECONDS)
            assert message.payload == {"n": number}
            message.ack()
        with pytest.raises(simple.Empty):
            simple.get_nowait()
        simple.consumer.cancel()
        simple.queue.delete()


def test_mailbox_asks_all_nodes_and_gathers_their_answers(
    broker: RunningBroker, name: Names
) -> None:
    namespace = name("control")
    ready, stop = threading.Barrier(3), threading.Event()

    def serve(hostname: str) -> None:
        with _connection(broker.port) as own:
            node = pidbox.Mailbox(namespace, type="fanout")(own).Node(
                hostname, state={"name": hostname}, channel=own.channel()
            )
            node.handlers["greet"] = lambda state, word: f"{word}, {state['name']}"
            node.listen()
            ready.wait(_PATIENCE_SECONDS)
            while not stop.is_set():
                try:
                    own.drain_events(timeout=0.1)
                except TimeoutError:
                    continue

    threads = [threading.Thread(target=serve, args=(host,), daemon=True) for host in ("a", "b")]
    for thread in threads:
        thread.start()
    try:
        ready.wait(_PATIENCE_SECONDS)
        with _connection(broker.port) as asking:
            mailbox = pidbox.Mailbox(namespace, type="fanout")(asking)
            answers = mailbox.multi_call(
                "greet", {"word": "hello"}, timeout=_PATIENCE_SECONDS, limit=2
            )
            one = mailbox.call(["b"], "greet", {"word": "you"}, timeout=_PATIENCE_SECONDS)
        assert sorted(answers, key=str) == [{"a": "hello, a"}, {"b": "hello, b"}]
        assert one == [{"b": "you, b"}]
    finally:
        stop.set()
        for thread in threads:
            thread.join(_PATIENCE_SECONDS)


def test_eventloop_drains_what_comes(connection: kombu.Connection, name: Names) -> None:
    queue = _queue(name("loop"))
    got: list[Any] = []
    with connection.Consumer([queue], on_message=lambda m: got.append(m.payload), no_ack=True):
        for number in range(3):
            connection.Producer().publish(number, routing_key=queue.name)
        rounds = eventloop(connection, limit=300, timeout=0.2, ignore_timeouts=True)
        while len(got) < 3:
            next(rounds)
    assert got == [0, 1, 2]


def test_evented_hub_delivers(connection: kombu.Connection, name: Names) -> None:
    queue = _queue(name("hub"))
    hub = Hub()
    got: list[Any] = []
    connection.register_with_event_loop(hub)
    with connection.Consumer([queue], on_message=lambda m: got.append(m.payload), no_ack=True):
        connection.Producer().publish("evented", routing_key=queue.name)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not got and time.monotonic() < deadline:
            hub.run_once()
    hub.close()
    assert got == ["evented"]


def test_pools_share_connections_and_producers(broker: RunningBroker, name: Names) -> None:
    about = _connection(broker.port)
    queue = _queue(name("pooled"))
    with pools.connections[about].acquire(block=True) as pooled:
        bound = queue(pooled.default_channel)
        bound.declare()
        for number in range(4):
            with pools.producers[about].acquire(block=True) as producer:
                producer.publish(number, routing_key=queue.name)
        with pytest.raises(AssertionError), pools.producers[about].acquire() as producer:
            assert producer is None
        assert [bound.get(no_ack=True).payload for _ in range(4)] == [0, 1, 2, 3]
    pools.reset()


def test_publish_with_retry_gets_over_a_restart_of_the_broker(name: Names) -> None:
    port = free_port()
    queue = kombu.Queue(name("survivor"), durable=True)
    errors: list[BaseException] = []
    with _connection(port) as connection:
        producer = connection.Producer()
        with own_broker("--port", str(port)) as first:
            producer.publish("before", routing_key=queue.name, declare=[queue], retry=True)
            first.process.kill()
        with own_broker("--port", str(port)):
            producer.publish(
                "after",
                routing_key=queue.name,
                declare=[queue],
                retry=True,
                retry_policy={
                    "max_retries": 20,
                    "interval_start": 0.05,
                    "interval_step": 0.05,
                    "errback": lambda error, _interval: errors.append(error),
                },
            )
            assert queue(connection.default_channel).get(no_ack=True).payload == "after"
            assert errors, "the restart must have been noticed"
            connection.release()


class _Adder(ConsumerProducerMixin):
    """A worker that adds one and answers, and connects again when the broker is gone."""

    def __init__(self, connection: kombu.Connection, queue: kombu.Queue) -> None:
        self.connection = connection
        self.queue = queue
        self.revived = 0

    def get_consumers(self, consumer: Any, _channel: Any) -> list[kombu.Consumer]:
        return [consumer([self.queue], callbacks=[self.add], prefetch_count=1)]

    def on_connection_revived(self) -> None:
        self.revived += 1

    def add(self, body: int, message: kombu.Message) -> None:
        self.producer.publish(
            body + 1,
            routing_key=message.properties["reply_to"],
            correlation_id=message.properties["correlation_id"],
            retry=True,
        )
        message.ack()


def _ask(port: int, queue: kombu.Queue, number: int) -> int:
    """Send a number to the adder and wait for its answer."""
    got: list[kombu.Message] = []
    with _connection(port) as connection:
        # The consumer declares the queue: a name that the broker made cannot be declared again.
        answers = kombu.Queue(exclusive=True, durable=False)
        with connection.Consumer([answers], on_message=got.append, no_ack=True) as consumer:
            connection.Producer().publish(
                number,
                routing_key=queue.name,
                declare=[queue],
                reply_to=consumer.queues[0].name,
                correlation_id=str(number),
            )
            _drain(connection, lambda: bool(got))
    assert got[0].properties["correlation_id"] == str(number)
    return int(got[0].payload)


def test_consumer_mixin_serves_again_after_a_restart_of_the_broker(name: Names) -> None:
    port = free_port()
    queue = kombu.Queue(name("adder"), durable=True)
    adder = _Adder(_connection(port, heartbeat=4), queue)
    thread = threading.Thread(target=adder.run, daemon=True)
    with own_broker("--port", str(port)) as first:
        thread.start()
        assert _ask(port, queue, 1) == 2
        first.process.kill()
    try:
        with own_broker("--port", str(port)):
            assert _ask(port, queue, 41) == 42
            adder.should_stop = True
            thread.join(_PATIENCE_SECONDS)
            assert not thread.is_alive()
            adder.connection.release()
    finally:
        adder.should_stop = True
    # It may have lost its connection once more on a machine that left it no time to beat.
    assert adder.revived >= 2


def test_a_backlog_does_not_use_up_the_prefetch_that_queues_share(
    connection: kombu.Connection, name: Names
) -> None:
    bulk, urgent = _queue(name("bulk")), _queue(name("urgent"))
    order: list[str] = []
    producer = connection.Producer()
    for queue in (bulk, urgent):
        queue(connection.default_channel).declare()
    for number in range(1_000):
        producer.publish(str(number), routing_key=bulk.name)

    def handle(body: str, message: kombu.Message) -> None:
        order.append(body)
        message.ack()
        if len(order) == 100:
            producer.publish("urgent", routing_key=urgent.name)

    consumer = connection.Consumer([bulk, urgent], callbacks=[handle])
    consumer.qos(prefetch_count=10, apply_global=True)
    with consumer:
        _drain(connection, lambda: len(order) == 1_001)
    assert 100 <= order.index("urgent") <= 125
