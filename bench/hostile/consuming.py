"""Consumers in great numbers, and such as do not read."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle

from bench.hostile.side import Side, call, load, publish
from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties

_QUEUE = "hostile.shared"


@load()
def consumes(side: Side) -> Iterator[None]:
    """100,000 basic.consume on one queue, in one write."""
    line = side.line()
    line.call(m.QueueDeclare(_QUEUE), m.QueueDeclareOk)
    pieces = [
        call(m.BasicConsume(_QUEUE, f"c{number}", no_ack=True, nowait=True))
        for number in range(side.many(100_000))
    ]
    yield
    side.pour(line, pieces)
    side.pour(line, cycle([publish("", _QUEUE) * 100]))


@load()
def flood(side: Side) -> Iterator[None]:
    """1,500 queues, each with a consumer, and 16 publishers that flood them all."""
    reader = side.line()
    names = side.queues(reader, "flood", side.many(1_500), {"x-max-length": 1_000})
    pieces = (call(m.BasicConsume(name, name, no_ack=True, nowait=True)) for name in names)
    side.prepared(reader, pieces)
    writers = side.lines(16)
    block = b"".join(publish("", name, b"x" * 16) for name in names)
    yield
    side.pour_all([*writers, reader], block)


@load()
def slow_readers(side: Side) -> Iterator[None]:
    """50 consumers that do not read, of queues that are written to all the time."""
    writer = side.line()
    count = side.many(50)
    names = side.queues(writer, "slow", count, {"x-max-length": 1_000})
    side.bound(writer, "slow", "fanout", names)
    for name, line in zip(names, side.lines(count), strict=True):
        line.call(m.BasicConsume(name, name, no_ack=True), m.BasicConsumeOk)
    yield
    side.pour(writer, cycle([publish("slow", "", b"x" * 1_000) * 20]))


@load()
def competing(side: Side) -> Iterator[None]:
    """A flood through one queue to 100 connections that take turns."""
    writer = side.line()
    writer.call(m.QueueDeclare(_QUEUE, arguments={"x-max-length": 10_000}), m.QueueDeclareOk)
    readers = side.lines(side.many(100))
    for line in readers:
        line.call(m.BasicConsume(_QUEUE, "one", no_ack=True), m.BasicConsumeOk)
    yield
    side.pour_all([writer, *readers[:1]], publish("", _QUEUE, b"x" * 16) * 200)


@load()
def stream_readers(side: Side) -> Iterator[None]:
    """10,000 consumers of one stream, all from its first message."""
    line = side.line()
    given = {"x-queue-type": "stream"}
    line.call(m.QueueDeclare("hostile.stream", durable=True, arguments=given), m.QueueDeclareOk)
    block = publish("", "hostile.stream", b"x" * 100, BasicProperties(delivery_mode=2)) * 500
    side.prepared(line, [block] * (side.many(50_000) // 500))
    channels, each = 10, max(1, side.many(10_000) // 50)
    readers = side.lines(5)
    pieces = []
    for channel in range(2, channels + 2):
        pieces += [call(m.ChannelOpen(), channel), call(m.BasicQos(0, 1_000), channel)]
        pieces += [
            call(
                m.BasicConsume(
                    "hostile.stream",
                    f"r{channel}.{number}",
                    nowait=True,
                    arguments={"x-stream-offset": "first"},
                ),
                channel,
            )
            for number in range(each)
        ]
    yield
    for line in readers:
        line.socket.sendall(b"".join(pieces))
    side.idle(readers)
