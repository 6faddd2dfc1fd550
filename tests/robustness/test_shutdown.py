"""SIGTERM: quiet clients are no reason to wait, and a deaf one costs no more than the grace."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Iterator

import pika
import pytest

from tests.patience import eventually
from tests.running import RunningBroker, running_broker
from tests.unit.front.amqp_0_9_1.world import publish
from tests.unit.server.listening import Talker, m, talk

GRACE_SECONDS = 100.0
"""Much longer than any stop may take that does not use it."""


@pytest.fixture(params=["asyncio", "uvloop"])
def broker(request: pytest.FixtureRequest) -> Iterator[RunningBroker]:
    wanted = ("--loop", request.param, "--shutdown-grace-seconds", str(GRACE_SECONDS))
    with running_broker(*wanted) as started:
        yield started


def ended(broker: RunningBroker) -> float:
    """Seconds that a stop takes."""
    began = time.monotonic()
    assert broker.stop(signal.SIGTERM) == 0, broker.log
    return time.monotonic() - began


def test_clients_that_do_not_answer_do_not_use_the_grace(broker: RunningBroker) -> None:
    parameters = pika.ConnectionParameters("127.0.0.1", broker.port)
    idle = [pika.BlockingConnection(parameters) for _ in range(3)]
    silent = talk(broker.port)
    early = socket.create_connection(("127.0.0.1", broker.port))
    assert ended(broker) < GRACE_SECONDS
    close = silent.next()
    assert isinstance(close, m.ConnectionClose)
    assert close.reply_code == 320
    assert len(idle) == 3
    early.close()


def deaf_consumer(port: int) -> Talker:
    """A consumer that reads nothing of the much that it is sent."""
    link = socket.socket()
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    link.connect(("127.0.0.1", port))
    deaf = Talker(link).log_in().open_channel()
    deaf.send(m.QueueDeclare("q"), 1)
    assert isinstance(deaf.next(), m.QueueDeclareOk)
    deaf.send(m.BasicConsume("q", "c", no_ack=True), 1)
    assert isinstance(deaf.next(), m.BasicConsumeOk)
    return deaf


def left(publisher: Talker) -> int:
    publisher.send(m.QueueDeclare("q", passive=True), 1)
    answer = publisher.next()
    assert isinstance(answer, m.QueueDeclareOk)
    return answer.message_count


@pytest.mark.parametrize("grace", [0.0, 1.0])
def test_a_client_that_does_not_read_costs_the_grace_and_no_more(grace: float) -> None:
    with running_broker("--shutdown-grace-seconds", str(grace)) as broker:
        deaf = deaf_consumer(broker.port)
        publisher = talk(broker.port).open_channel()
        for _ in range(200):
            publisher.sock.sendall(publish(b"x" * 100_000))
        assert eventually(lambda: left(publisher) > 0)
        took = ended(broker)
        assert took >= grace
        deaf.sock.close()
