"""Calls over direct reply-to, as pika's and kombu's users write them."""

from __future__ import annotations

import time

import kombu
import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.interop.clients.conftest import Names
from tests.interop.clients.pikas import PATIENCE_SECONDS, bodies, channel_closes, connected
from tests.running import RunningBroker

pytestmark = pytest.mark.interop

REPLY_TO = "amq.rabbitmq.reply-to"


def _answer(channel: BlockingChannel, queue: str) -> None:
    """Answer one request with its body in capitals."""
    for method, properties, body in channel.consume(queue, inactivity_timeout=PATIENCE_SECONDS):
        assert method is not None, "no request came"
        assert properties.reply_to.startswith(REPLY_TO + ".")
        channel.basic_publish(
            "",
            properties.reply_to,
            body.upper(),
            pika.BasicProperties(correlation_id=properties.correlation_id),
        )
        channel.basic_ack(method.delivery_tag)
        break
    channel.cancel()


def test_pika_calls_and_is_answered(broker: RunningBroker, name: Names) -> None:
    queue = name("rpc")
    with connected(broker) as serving, connected(broker) as calling:
        server, caller = serving.channel(), calling.channel()
        server.queue_declare(queue, exclusive=True)
        answers: list[tuple[str | None, bytes]] = []
        caller.basic_consume(
            REPLY_TO,
            lambda _channel, _method, got, body: answers.append((got.correlation_id, body)),
            auto_ack=True,
        )
        for number in range(3):
            asking = pika.BasicProperties(reply_to=REPLY_TO, correlation_id=str(number))
            caller.basic_publish("", queue, b"what?", asking)
            _answer(server, queue)
            while len(answers) <= number:
                calling.process_data_events(time_limit=PATIENCE_SECONDS)
        assert answers == [(str(number), b"WHAT?") for number in range(3)]


def test_pika_is_told_when_it_asks_before_it_listens(broker: RunningBroker, name: Names) -> None:
    text = "PRECONDITION_FAILED - fast reply consumer does not exist"
    with connected(broker) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        with channel_closes(406, text):
            channel.basic_publish("", name("q"), b"", pika.BasicProperties(reply_to=REPLY_TO))


def test_kombu_calls_and_is_answered(broker: RunningBroker, name: Names) -> None:
    queue = name("rpc")
    address = f"amqp://guest:guest@127.0.0.1:{broker.port}//"
    answers: list[tuple[str, object]] = []
    with (
        kombu.Connection(address, connect_timeout=PATIENCE_SECONDS) as calling,
        connected(broker) as serving,
    ):
        server = serving.channel()
        server.queue_declare(queue, exclusive=True)
        channel = calling.channel()
        way_back = kombu.Queue(REPLY_TO, no_declare=True)
        consumer = kombu.Consumer(
            channel,
            [way_back],
            no_ack=True,
            callbacks=[
                lambda body, message: answers.append((message.properties["correlation_id"], body))
            ],
        )
        with consumer:
            kombu.Producer(channel).publish(
                "what?", routing_key=queue, reply_to=REPLY_TO, correlation_id="c"
            )
            _answer(server, queue)
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not answers:
                assert time.monotonic() < deadline
                calling.drain_events(timeout=PATIENCE_SECONDS)
    ((correlation, body),) = answers
    assert correlation == "c"
    assert body in ("WHAT?", b"WHAT?", '"WHAT?"', b'"WHAT?"')


def test_copies_reach_their_queues(broker: RunningBroker, name: Names) -> None:
    first, copy, blind = name("to"), name("cc"), name("bcc")
    with connected(broker) as connection:
        channel = connection.channel()
        for queue in (first, copy, blind):
            channel.queue_declare(queue, exclusive=True)
        headers = {"CC": [copy], "BCC": [blind]}
        channel.basic_publish("", first, b"1", pika.BasicProperties(headers=headers))
        _, properties, _ = channel.basic_get(first, auto_ack=True)
        assert properties.headers == {"CC": [copy]}
        assert [bodies(channel, queue) for queue in (copy, blind)] == [[b"1"], [b"1"]]
