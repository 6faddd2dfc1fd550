"""azure-servicebus: Azure's client of AMQP 1.0, with the connection string of its emulator."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.exceptions import ServiceBusError

from harebell.client.blocking import connect
from tests.interop.clients.conftest import Names
from tests.running import RunningBroker

pytestmark = pytest.mark.interop

_SECONDS = 60.0


@pytest.fixture
def client(broker: RunningBroker) -> Iterator[ServiceBusClient]:
    # The emulator needs no TLS, and checks neither the name of the key nor the key.
    with ServiceBusClient.from_connection_string(
        f"Endpoint=sb://127.0.0.1:{broker.port};SharedAccessKeyName=any;SharedAccessKey=any;"
        "UseDevelopmentEmulator=true;",
        retry_total=0,
    ) as opened:
        yield opened


@pytest.fixture
def queue(broker: RunningBroker, name: Names) -> str:
    own = name("azure")
    with connect(broker.url) as declaring:
        declaring.channel().declare_queue(own, durable=True)
    return own


def test_messages_are_sent_and_completed(client: ServiceBusClient, queue: str) -> None:
    with client.get_queue_sender(queue) as sender:
        # Each of them waits until the broker has settled it, or fails.
        for number in range(3):
            sender.send_messages(
                ServiceBusMessage(f"body {number}", message_id=str(number)), timeout=_SECONDS
            )
    with client.get_queue_receiver(queue, max_wait_time=_SECONDS) as receiver:
        got = []
        for message in receiver:
            got.append((message.message_id, str(message)))
            receiver.complete_message(message)
            if len(got) == 3:
                break
    assert got == [(str(number), f"body {number}") for number in range(3)]


def test_a_batch_is_refused(client: ServiceBusClient, queue: str) -> None:
    # It is a message in a format of Azure's own (AMQP 1.0 2.7.5, message-format).
    with client.get_queue_sender(queue) as sender, pytest.raises(ServiceBusError):
        sender.send_messages([ServiceBusMessage("one")], timeout=_SECONDS)
    with client.get_queue_sender(queue) as sender:
        sender.send_messages(ServiceBusMessage("one"), timeout=_SECONDS)


def test_an_abandoned_message_comes_again_with_a_count(
    client: ServiceBusClient, queue: str
) -> None:
    with client.get_queue_sender(queue) as sender:
        sender.send_messages(ServiceBusMessage("again"), timeout=_SECONDS)
    with client.get_queue_receiver(queue, max_wait_time=_SECONDS) as receiver:
        first = next(iter(receiver))
        receiver.abandon_message(first)
        second = next(iter(receiver))
        receiver.complete_message(second)
    assert (first.delivery_count, second.delivery_count) == (0, 1)
