"""Many connections: a hundred that publish into one queue, thousands that send heartbeats only."""

from __future__ import annotations

import resource
import select
import time
from collections import Counter

from bench.brokers import Broker
from bench.frames import Frames
from bench.measure import Result
from bench.peer import BenchError, Peer
from bench.process import cpu_seconds, resident_bytes
from bench.scenarios import FAN_IN, HEARTBEATS
from harebell.wire.v09 import methods as m
from harebell.wire.v09.frames import HEARTBEAT, OutBuffer

PRODUCERS = 100
WINDOW = 20
_QUEUE = "bench.fan-in"
_BYTES = 128
_PREFETCH, _ACK_EVERY = 200, 50
_GRACE_SECONDS = 60.0
_HEARTBEAT_SECONDS = 10
_OTHER_FILES = 200
_KIB = 1024


class _FanIn:
    """Producers with a window each, and the consumer of their queue, in turns of one thread.

    The number of a body counts the messages of its producer, whose index is in place of the time.
    """

    def __init__(self, broker: Broker) -> None:
        self.consumer = Peer(broker.port, self._delivered)
        self.consumer.call(m.QueueDelete(_QUEUE), m.QueueDeleteOk)
        self.consumer.call(m.QueueDeclare(_QUEUE, durable=True), m.QueueDeclareOk)
        self.consumer.call(m.BasicQos(0, _PREFETCH), m.BasicQosOk)
        self.consumer.call(m.BasicConsume(_QUEUE, ""), m.BasicConsumeOk)
        self.producers = [Peer(broker.port, _nothing) for _ in range(PRODUCERS)]
        for each in self.producers:
            each.call(m.ConfirmSelect(), m.ConfirmSelectOk)
        self._sent = [0] * PRODUCERS
        self._expected: Counter[int] = Counter()
        self._latest = self._acked = 0
        self._frames = Frames("", _QUEUE, _BYTES, persistent=True, batch=WINDOW)
        self._poll = select.epoll()
        self._peers = {each.socket.fileno(): each for each in (self.consumer, *self.producers)}
        for number in self._peers:
            self._poll.register(number, select.EPOLLIN)

    def _delivered(self, _lane: str, tag: int, body: bytes) -> None:
        number, producer = int.from_bytes(body[:8]), int.from_bytes(body[8:16])
        if number != self._expected[producer]:
            raise BenchError(
                f"{_QUEUE}: expected message {self._expected[producer]} of producer {producer}, "
                f"got {number}"
            )
        self._expected[producer] += 1
        self._latest = tag

    def play(self, seconds: float) -> int:
        """Send for a time and receive all of it; how many messages there were."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._send()
            self._receive()
        while self._latest < sum(self._sent) or self._unconfirmed():
            if time.monotonic() > until + _GRACE_SECONDS:
                raise BenchError(f"{_QUEUE}: {self._latest} of {sum(self._sent)} were delivered")
            self._receive()
        return self._latest

    def _unconfirmed(self) -> int:
        return sum(self._sent) - sum(each.confirmed for each in self.producers)

    def _send(self) -> None:
        for index, producer in enumerate(self.producers):
            room = WINDOW - (self._sent[index] - producer.confirmed)
            if room > 0:
                producer.socket.sendall(self._frames.numbered(self._sent[index], index, room))
                self._sent[index] += room

    def _receive(self) -> None:
        for number, _ in self._poll.poll(0.1):
            self._peers[number].read()
        if self._latest - self._acked >= _ACK_EVERY:
            self._acknowledge()

    def _acknowledge(self) -> None:
        if self._latest > self._acked:
            self._acked = self._latest
            self.consumer.send(m.BasicAck(self._latest, True))

    def close(self) -> None:
        """Delete the queue and close all connections."""
        self._acknowledge()
        self.consumer.call(m.QueueDelete(_QUEUE), m.QueueDeleteOk)
        self._poll.close()
        for each in (self.consumer, *self.producers):
            each.close()


def fan_in(broker: Broker, seconds: float) -> Result:
    """Publish persistent messages with confirms from many connections into one queue.

    Raises:
        BenchError: a message was lost, doubled, out of order, or took too long.
    """
    load = _FanIn(broker)
    before, begin = cpu_seconds(broker.pid), time.monotonic()
    count = load.play(seconds)
    used, took = cpu_seconds(broker.pid) - before, time.monotonic() - begin
    load.close()
    return Result(
        broker=broker.name,
        scenario=FAN_IN,
        messages=count,
        us_per_message=used * 1e6 / count,
        messages_per_second=count / took,
    )


class _Idle:
    """Connections that send heartbeats when they are due, and read those of the broker."""

    def __init__(self, broker: Broker) -> None:
        self._port = broker.port
        self._peers: dict[int, Peer] = {}
        self._poll = select.epoll()
        self._due = time.monotonic()
        out = OutBuffer()
        out.frame(HEARTBEAT, 0, b"")
        self._beat = bytes(out.take())

    def open(self) -> None:
        """Open one more, while the others go on."""
        peer = Peer(self._port, _nothing, heartbeat=_HEARTBEAT_SECONDS)
        self._peers[peer.socket.fileno()] = peer
        self._poll.register(peer.socket.fileno(), select.EPOLLIN)
        self.beat()

    def beat(self) -> None:
        """Send all heartbeats twice in the time that was agreed, and read what has come."""
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + _HEARTBEAT_SECONDS / 2
        for peer in self._peers.values():
            peer.socket.sendall(self._beat)
        for number, _ in self._poll.poll(0):
            self._peers[number].read()

    def close(self) -> None:
        """Close all connections."""
        self._poll.close()
        for peer in self._peers.values():
            peer.close()


def heartbeats(broker: Broker, connections: int, seconds: float) -> Result:
    """Open many connections and let them rest.

    Args:
        broker: which.
        connections: how many, or as many as this process may have files.
        seconds: how long they rest.

    Raises:
        BenchError: the broker closed one of them.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    connections = min(connections, most - _OTHER_FILES)
    idle = _Idle(broker)
    at_start = resident_bytes(broker.pid)
    for _ in range(connections):
        idle.open()
    grown = resident_bytes(broker.pid) - at_start
    before, begin = cpu_seconds(broker.pid), time.monotonic()
    while time.monotonic() < begin + seconds:
        idle.beat()
        time.sleep(0.05)
    used, took = cpu_seconds(broker.pid) - before, time.monotonic() - begin
    idle.close()
    return Result(
        broker=broker.name,
        scenario=HEARTBEATS,
        messages=connections,
        cpu_share=used / took,
        kib_per_connection=grown / _KIB / connections,
    )


def _nothing(_consumer: str, _tag: int, _body: bytes) -> None:
    """Nothing is consumed."""
