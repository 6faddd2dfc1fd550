"""A real RabbitMQ that federates from Harebell: exchanges and queues."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing

import pika
import pytest

from tests.interop.rabbitmq import RabbitNode
from tests.patience import eventually
from tests.running import RunningBroker, running_broker


@pytest.fixture(scope="module")
def upstream() -> Iterator[RunningBroker]:
    with running_broker() as running:
        yield running


@pytest.fixture(scope="module")
def downstream(upstream: RunningBroker) -> Iterator[RabbitNode]:
    """RabbitMQ, which has what is called `federated.*` from Harebell, too."""
    node = RabbitNode(plugins=["rabbitmq_federation"])
    try:
        node.start()
        where = {"uri": f"amqp://guest:guest@127.0.0.1:{upstream.port}", "max-hops": 1}
        node.ctl("set_parameter", "federation-upstream", "harebell", json.dumps(where))
        settings = json.dumps({"federation-upstream-set": "all"})
        node.ctl("set_policy", "federate", "^federated[.]", settings)
        yield node
    finally:
        node.stop()


def opened(url: str) -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.URLParameters(url))


@pytest.mark.parametrize("kind", ["topic", "direct", "fanout"])
def test_rabbitmq_gets_what_is_published_to_an_exchange_here(
    upstream: RunningBroker, downstream: RabbitNode, kind: str
) -> None:
    exchange, queue = f"federated.{kind}", f"got.{kind}"
    with closing(opened(downstream.url)) as there, closing(opened(upstream.address())) as here:
        far, near = there.channel(), here.channel()
        far.exchange_declare(exchange, kind, durable=True)
        far.queue_declare(queue)
        far.queue_bind(queue, exchange, "news")
        near.exchange_declare(exchange, kind, durable=True)
        near.confirm_delivery()
        published = 0

        def arrived() -> bool:
            nonlocal published
            try:
                near.basic_publish(exchange, "news", b"%d" % published, mandatory=True)
                published += 1
            except pika.exceptions.UnroutableError:
                return False
            return True

        assert eventually(arrived), "RabbitMQ binds its queue here"
        for number in range(1, 4):
            near.basic_publish(exchange, "news", b"%d" % number, mandatory=True)
        bodies: list[bytes] = []

        def got() -> bool:
            _, properties, body = far.basic_get(queue, auto_ack=True)
            if body is not None:
                bodies.append(body)
                (passed,) = properties.headers["x-received-from"]
                assert passed["exchange"] == exchange
            return len(bodies) == 4

        assert eventually(got)
        assert bodies == [b"0", b"1", b"2", b"3"]
        if kind != "fanout":
            with pytest.raises(pika.exceptions.UnroutableError):
                near.basic_publish(exchange, "else", b"", mandatory=True)


def test_rabbitmq_gets_what_is_in_a_queue_here(
    upstream: RunningBroker, downstream: RabbitNode
) -> None:
    name = "federated.queue"
    with closing(opened(downstream.url)) as there, closing(opened(upstream.address())) as here:
        far, near = there.channel(), here.channel()
        near.queue_declare(name, durable=True)
        near.basic_publish("", name, b"from here")
        far.queue_declare(name, durable=True)
        bodies: list[bytes] = []
        far.basic_consume(name, lambda *found: bodies.append(found[3]), auto_ack=True)

        def got() -> bool:
            there.process_data_events(0.1)
            return bool(bodies)

        assert eventually(got)
        assert bodies == [b"from here"]
