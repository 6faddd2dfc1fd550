"""rabbitmq-amqp-python-client: RabbitMQ's own client of AMQP 1.0, with its management."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from rabbitmq_amqp_python_client import (
    AddressHelper,
    AMQPMessagingHandler,
    ClassicQueueSpecification,
    Connection,
    Converter,
    Environment,
    Event,
    ExchangeSpecification,
    ExchangeToExchangeBindingSpecification,
    ExchangeToQueueBindingSpecification,
    ExchangeType,
    Management,
    Message,
    OffsetSpecification,
    OutcomeState,
    QueueType,
    QuorumQueueSpecification,
    StreamConsumerOptions,
    StreamSpecification,
    ValidationCodeException,
)
from rabbitmq_amqp_python_client.qpid.proton._utils import SendException

from tests.interop.clients.conftest import Names
from tests.running import RunningBroker

pytestmark = pytest.mark.interop


@pytest.fixture
def connection(broker: RunningBroker) -> Iterator[Connection]:
    environment = Environment(uri=f"amqp://guest:guest@127.0.0.1:{broker.port}/")
    opened = environment.connection()
    opened.dial()
    yield opened
    environment.close()


@pytest.fixture
def management(connection: Connection) -> Iterator[Management]:
    opened = connection.management()
    yield opened
    opened.close()


class _Stopped(BaseException):
    """The consumer has what it waited for."""


class _Taking(AMQPMessagingHandler):
    """Accepts messages until there are enough."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count
        self.bodies: list[str] = []

    def on_amqp_message(self, event: Event) -> None:
        self.bodies.append(Converter.bytes_to_string(event.message.body))
        self.delivery_context.accept(event)
        if len(self.bodies) == self.count:
            raise _Stopped


def _consume(
    connection: Connection, queue: str, count: int, options: StreamConsumerOptions | None = None
) -> list[str]:
    handler = _Taking(count)
    address = AddressHelper.queue_address(queue)
    consumer = connection.consumer(address, message_handler=handler, consumer_options=options)
    with pytest.raises(_Stopped):
        consumer.run()
    consumer.close()
    return handler.bodies


def _publish(connection: Connection, address: str, count: int) -> None:
    publisher = connection.publisher(address)
    for number in range(count):
        message = Message(body=Converter.string_to_bytes(f"message {number}"))
        assert publisher.publish(message).remote_state == OutcomeState.ACCEPTED
    publisher.close()


def test_messages_come_through_a_binding(
    connection: Connection, management: Management, name: Names
) -> None:
    exchange, queue = name("exchange/ä"), name("queue")
    management.declare_exchange(
        ExchangeSpecification(name=exchange, exchange_type=ExchangeType.topic)
    )
    management.declare_queue(QuorumQueueSpecification(name=queue))
    binding = management.bind(
        ExchangeToQueueBindingSpecification(
            source_exchange=exchange, destination_queue=queue, binding_key="a.*"
        )
    )
    to_queue = AddressHelper.exchange_address(exchange, "a.b")
    _publish(connection, to_queue, 3)
    with pytest.raises(SendException):
        _publish(connection, AddressHelper.exchange_address(exchange, "c"), 1)
    info = management.queue_info(queue)
    assert (info.queue_type, info.message_count, info.is_durable) == (QueueType.quorum, 3, True)
    assert list(info.members) == [info.leader]
    expected = ["message 0", "message 1", "message 2"]
    assert _consume(connection, queue, 3) == expected
    assert management.queue_info(queue).message_count == 0
    management.unbind(binding)
    with pytest.raises(SendException):
        _publish(connection, to_queue, 1)
    management.delete_queue(queue)
    management.delete_exchange(exchange)


def test_exchanges_are_bound_to_exchanges(
    connection: Connection, management: Management, name: Names
) -> None:
    first, second, queue = name("exchange"), name("exchange"), name("queue")
    for exchange in (first, second):
        management.declare_exchange(
            ExchangeSpecification(name=exchange, exchange_type=ExchangeType.fanout)
        )
    management.declare_queue(ClassicQueueSpecification(name=queue))
    management.bind(
        ExchangeToExchangeBindingSpecification(source_exchange=first, destination_exchange=second)
    )
    management.bind(
        ExchangeToQueueBindingSpecification(source_exchange=second, destination_queue=queue)
    )
    _publish(connection, AddressHelper.exchange_address(first), 2)
    assert management.purge_queue(queue) == 2


def test_a_queue_that_is_different_is_refused(management: Management, name: Names) -> None:
    queue = name("queue")
    management.declare_queue(ClassicQueueSpecification(name=queue, max_len=10))
    with pytest.raises(ValidationCodeException, match="ErrPreconditionFailed"):
        management.declare_queue(ClassicQueueSpecification(name=queue, max_len=11))
    # The client says only which status it did not expect.
    with pytest.raises(ValidationCodeException, match="404"):
        management.queue_info(name("none"))


def test_a_stream_is_read_from_an_offset(
    connection: Connection, management: Management, name: Names
) -> None:
    stream = name("stream")
    management.declare_queue(StreamSpecification(name=stream))
    _publish(connection, AddressHelper.queue_address(stream), 10)
    for offset, first in ((OffsetSpecification.first, 0), (4, 4)):
        options = StreamConsumerOptions(offset_specification=offset)
        found = _consume(connection, stream, 10 - first, options)
        assert found == [f"message {number}" for number in range(first, 10)]
