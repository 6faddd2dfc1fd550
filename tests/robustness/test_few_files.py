"""A process that may have few files open: it turns peers away, and goes on for those it has.

RabbitMQ and others stop accepting there, too; what must not happen is that sockets leave the store
nothing to open a segment with, or that a file which cannot be opened counts as a broken disk.
"""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path

from harebell.client.blocking import Channel, connect
from tests.patience import SECONDS, eventually
from tests.running import RunningBroker

FILES = 100
QUEUES = 150


def _publish(channel: Channel, body: bytes) -> None:
    for number in range(QUEUES):
        channel.publish(body, routing_key=f"q{number}", delivery_mode=2)


def _is_turned_away(port: int, stack: ExitStack) -> bool:
    peer = stack.enter_context(socket.create_connection(("127.0.0.1", port), SECONDS))
    peer.sendall(b"AMQP\0\0\x09\x01")
    try:
        return peer.recv(1) == b""
    except ConnectionResetError:
        return True


def test_the_broker_may_have_as_many_open_as_the_system_lets_it() -> None:
    broker = RunningBroker(prefix=("prlimit", "--nofile=200:400"))
    try:
        limits = Path(f"/proc/{broker.pid}/limits").read_text()
        (line,) = (each for each in limits.splitlines() if each.startswith("Max open files"))
        assert line.split()[3:5] == ["400", "400"]
    finally:
        broker.stop()
        broker.remove()


def test_more_queues_and_connections_than_files_that_may_be_open() -> None:
    # None of those who do not log in is cut, and so makes room, before the last one has come.
    flags = ("--segment-bytes", "65536", "--handshake-timeout-seconds", "600")
    broker = RunningBroker(*flags, prefix=("prlimit", f"--nofile={FILES}"))
    try:
        with connect(broker.address()) as connection, ExitStack() as stack:
            channel = connection.channel()
            for number in range(QUEUES):
                channel.declare_queue(f"q{number}", durable=True)
            _publish(channel, b"one by one")
            away = [_is_turned_away(broker.port, stack) for _ in range(FILES)]
            assert away[-1]
            assert not away[0]
            assert eventually(lambda: "connections are open and more are turned away" in broker.log)
            _publish(channel, b"nobody else is there")
            stack.close()
            assert eventually(lambda: not _is_turned_away(broker.port, stack))
            for number in range(QUEUES):
                taken = [channel.get(f"q{number}", no_ack=True) for _ in range(2)]
                assert [each.body for each in taken if each] == [
                    b"one by one",
                    b"nobody else is there",
                ]
        assert broker.stop() == 0
    finally:
        broker.stop()
        broker.remove()
