"""A real RabbitMQ with its federation plugin takes Harebell as its upstream."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pika
import pytest

from harebell.client.blocking import connect
from tests.interop.rabbitmq import RabbitNode
from tests.patience import eventually
from tests.running import RunningBroker, running_broker


@pytest.fixture(scope="module")
def downstream() -> Iterator[RabbitNode]:
    node = RabbitNode(plugins=["rabbitmq_federation"])
    try:
        node.start()
        yield node
    finally:
        node.stop()


@pytest.fixture(scope="module")
def upstream(downstream: RabbitNode) -> Iterator[RunningBroker]:
    with running_broker() as broker:
        where = {"uri": f"amqp://guest:guest@127.0.0.1:{broker.port}/%2f"}
        downstream.ctl("set_parameter", "federation-upstream", "harebell", json.dumps(where))
        everything = json.dumps({"federation-upstream": "harebell"})
        downstream.ctl("set_policy", "federated", "^federated", everything, "--apply-to", "all")
        yield broker


def arrives(node: RabbitNode, queue: str, body: bytes) -> bool:
    """Whether a message is waiting downstream; it is taken."""
    with pika.BlockingConnection(pika.URLParameters(node.url)) as connection:
        _, _, found = connection.channel().basic_get(queue, auto_ack=True)
    return bool(found == body)


def test_what_is_published_here_reaches_a_federated_exchange(
    downstream: RabbitNode, upstream: RunningBroker
) -> None:
    with pika.BlockingConnection(pika.URLParameters(downstream.url)) as connection:
        channel = connection.channel()
        channel.exchange_declare("federated.x", "topic", durable=True)
        channel.queue_declare("news", durable=True)
        channel.queue_bind("news", "federated.x", "news.#")
    with connect(upstream.address()) as connection:
        channel = connection.channel()

        def published() -> bool:
            """Whether a message found its way: unroutable ones are refused until it is bound."""
            channel.declare_exchange("federated.x", "topic", durable=True)
            channel.publish(b"hello", exchange="federated.x", routing_key="news.local")
            return arrives(downstream, "news", b"hello")

        assert eventually(published), upstream.log


def test_what_waits_here_goes_to_the_consumers_of_a_federated_queue(
    downstream: RabbitNode, upstream: RunningBroker
) -> None:
    with connect(upstream.address()) as connection:
        channel = connection.channel()
        channel.declare_queue("federated.q", durable=True)
        channel.publish(b"work", routing_key="federated.q")
    received: list[bytes] = []
    with pika.BlockingConnection(pika.URLParameters(downstream.url)) as connection:
        channel = connection.channel()
        channel.queue_declare("federated.q", durable=True)
        channel.basic_consume(
            "federated.q", lambda *given: received.append(given[3]), auto_ack=True
        )

        def came() -> bool:
            connection.process_data_events(time_limit=0.1)
            return received == [b"work"]

        assert eventually(came), upstream.log
