"""Large bodies, and such as never end."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle

from bench.hostile.side import FRAME_MAX, Side, load, publish
from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties

_MIB = 1024 * 1024
_QUEUE = "hostile.large"


@load()
def large(side: Side) -> Iterator[None]:
    """Messages of 50 MiB, one after the other."""
    line = side.line()
    line.call(m.QueueDeclare(_QUEUE, arguments={"x-max-length": 2}), m.QueueDeclareOk)
    piece = publish("", _QUEUE, b"x" * (side.many(50 * _MIB)))
    yield
    side.pour(line, cycle([piece]))


@load()
def large_through(side: Side) -> Iterator[None]:
    """Messages of 50 MiB that are delivered and acknowledged."""
    line = side.line()
    line.call(m.QueueDeclare(_QUEUE, arguments={"x-max-length": 2}), m.QueueDeclareOk)
    line.call(m.BasicConsume(_QUEUE, "large", no_ack=True), m.BasicConsumeOk)
    piece = publish("", _QUEUE, b"x" * (side.many(50 * _MIB)))
    yield
    side.pour(line, cycle([piece]))


@load()
def large_durable(side: Side) -> Iterator[None]:
    """Persistent messages of 50 MiB in a durable queue, delivered and acknowledged."""
    line = side.line()
    declared = m.QueueDeclare("hostile.durable", durable=True, arguments={"x-max-length": 2})
    line.call(declared, m.QueueDeclareOk)
    line.call(m.BasicConsume("hostile.durable", "large", no_ack=True), m.BasicConsumeOk)
    lasting = BasicProperties(delivery_mode=2)
    piece = publish("", "hostile.durable", b"x" * (side.many(50 * _MIB)), lasting)
    yield
    side.pour(line, cycle([piece]))


@load()
def large_again(side: Side) -> Iterator[None]:
    """A backlog of ten messages of 50 MiB that are read and returned again and again."""
    line = side.line()
    line.call(m.QueueDeclare("hostile.again"), m.QueueDeclareOk)
    for _ in range(10):
        line.socket.sendall(publish("", "hostile.again", b"x" * (side.many(50 * _MIB))))
    line.sync()
    line.call(m.BasicQos(prefetch_count=2), m.BasicQosOk)
    yield
    line.call(m.BasicConsume("hostile.again", "large"), m.BasicConsumeOk)
    while not side.over:
        before = line.delivered
        line.take(before + 1)
        line.send(m.BasicNack(line.latest, False, True))
        side.done += 1


@load()
def large_fanout(side: Side) -> Iterator[None]:
    """One message of 10 MiB after the other to a fanout of 1,000 queues."""
    line = side.line()
    names = side.queues(line, "wide", side.many(1_000), {"x-max-length": 2})
    side.bound(line, "wide", "fanout", names)
    piece = publish("wide", "", b"x" * (10 * _MIB))
    yield
    side.pour(line, cycle([piece]))


@load()
def unfinished(side: Side) -> Iterator[None]:
    """14 messages of 26 MB that never end, begun again and again."""
    whole = publish("", _QUEUE, b"x" * (26 * 1_000_000))
    piece = memoryview(whole)[: len(whole) - FRAME_MAX // 2]
    lines = side.lines(14)
    yield
    while not side.over:
        for line in lines:
            line.socket.settimeout(5)
            line.socket.sendall(piece)
            side.done += 1
            if side.over:
                break
        for line in lines:
            line.socket.close()
        lines = side.lines(14)
