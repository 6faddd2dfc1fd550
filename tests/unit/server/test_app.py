"""The running broker: both event loops, a graceful end on both signals."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest

from harebell.wire.v09 import methods as m
from tests.ports import free_port
from tests.running import RunningBroker, running_broker
from tests.unit.server.listening import SECONDS, talk


@pytest.fixture(params=["asyncio", "uvloop"])
def broker(request: pytest.FixtureRequest) -> Iterator[RunningBroker]:
    with running_broker("--loop", request.param) as started:
        yield started


def test_a_broker_serves_on_either_loop(broker: RunningBroker) -> None:
    talker = talk(broker.port).open_channel()
    talker.send(m.QueueDeclare("q"), 1)
    assert talker.next() == m.QueueDeclareOk("q", 0, 0)
    talker.send(m.ConnectionClose(200, "bye"))
    assert talker.next() == m.ConnectionCloseOk()
    assert talker.next() is None


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_gracefully(loop: str, number: signal.Signals) -> None:
    # At a port that nobody else gets when the broker has gone.
    with running_broker("--loop", loop, "--port", str(free_port())) as broker:
        ends_gracefully(broker, number)


def ends_gracefully(broker: RunningBroker, number: signal.Signals) -> None:
    idle = socket.create_connection(("127.0.0.1", broker.port), timeout=SECONDS)
    talkers = [talk(broker.port) for _ in range(3)]
    broker.process.send_signal(number)
    for talker in talkers:
        close = talker.next()
        assert isinstance(close, m.ConnectionClose)
        assert close.reply_code == 320
        assert close.reply_text == (
            "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'"
        )
        # The broker waits for the answers for a few seconds; one that comes later meets a reset.
        with suppress(ConnectionError):
            talker.send(m.ConnectionCloseOk())
            assert talker.next() is None
    assert idle.recv(1) == b""
    assert broker.process.wait(SECONDS) == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", broker.port), timeout=SECONDS)


def test_a_client_that_does_not_answer_does_not_keep_the_broker() -> None:
    with running_broker() as broker:
        silent = talk(broker.port)
        broker.process.send_signal(signal.SIGTERM)
        assert isinstance(silent.next(), m.ConnectionClose)
        assert broker.process.wait(SECONDS) == 0


def test_messages_of_one_turn_reach_a_consumer_on_another_connection(
    broker: RunningBroker,
) -> None:
    consumer, publisher = (talk(broker.port).open_channel() for _ in range(2))
    consumer.send(m.QueueDeclare("q"), 1)
    consumer.next()
    consumer.send(m.BasicConsume("q", "c", no_ack=True), 1)
    assert consumer.next() == m.BasicConsumeOk("c")
    publish = m.BasicPublish(routing_key="q")
    for _ in range(50):
        publisher.send(publish, 1)
        publisher.sock.sendall(
            b"\x02\x00\x01\x00\x00\x00\x0e\x00\x3c\x00\x00" + bytes(8) + b"\0\0\xce"
        )
    tags = [consumer.next().delivery_tag for _ in range(50)]  # type: ignore[union-attr]
    assert tags == list(range(1, 51))
