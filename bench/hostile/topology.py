"""Declarations, bindings and connections without end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import count, cycle

from bench.hostile.side import Side, call, load
from harebell.base.limits import CHANNEL_MAX
from harebell.wire.v09 import methods as m

_SINK = "hostile.sink"


@load()
def binds(side: Side) -> Iterator[None]:
    """100,000 queue.bind in one write."""
    line = side.line()
    line.call(m.QueueDeclare(_SINK), m.QueueDeclareOk)
    line.call(m.ExchangeDeclare("bound", "topic"), m.ExchangeDeclareOk)
    pieces = [
        call(m.QueueBind(_SINK, "bound", f"k.{number}.#", True))
        for number in range(side.many(100_000))
    ]
    yield
    side.pour(line, pieces)
    side.idle([line])


@load()
def declares(side: Side) -> Iterator[None]:
    """50,000 queue.declare in one write."""
    line = side.line()
    pieces = [
        call(m.QueueDeclare(f"made.{number}", nowait=True)) for number in range(side.many(50_000))
    ]
    yield
    side.pour(line, pieces)
    side.idle([line])


@load()
def durable_declares(side: Side) -> Iterator[None]:
    """5,000 queue.declare of durable queues in one write."""
    line = side.line()
    pieces = [
        call(m.QueueDeclare(f"made.{number}", durable=True, nowait=True))
        for number in range(side.many(5_000))
    ]
    yield
    side.pour(line, pieces)
    side.idle([line])


@load()
def deletes(side: Side) -> Iterator[None]:
    """20,000 queue.delete in one write, of queues bound to one exchange."""
    line = side.line()
    names = side.queues(line, "gone", side.many(20_000))
    side.bound(line, "gone", "topic", names)
    yield
    side.pour(line, [call(m.QueueDelete(name, nowait=True)) for name in names])
    side.idle([line])


@load()
def exchange_delete(side: Side) -> Iterator[None]:
    """One exchange.delete with 100,000 bindings, again and again."""
    line = side.line()
    line.call(m.QueueDeclare(_SINK), m.QueueDeclareOk)
    pieces = [
        call(m.QueueBind(_SINK, "brief", f"k.{number}", True))
        for number in range(side.many(100_000))
    ]
    line.call(m.ExchangeDeclare("brief", "direct"), m.ExchangeDeclareOk)
    side.prepared(line, pieces)
    yield
    line.call(m.ExchangeDelete("brief"), m.ExchangeDeleteOk)
    while not side.over:
        line.call(m.ExchangeDeclare("brief", "direct"), m.ExchangeDeclareOk)
        side.pour(line, [*pieces, call(m.ExchangeDelete("brief", nowait=True))])
        line.socket.settimeout(30)


@load()
def queue_churn(side: Side) -> Iterator[None]:
    """Queues that are declared, bound and deleted without end."""
    line = side.line()
    yield
    side.pour(
        line,
        (
            call(m.QueueDeclare(f"brief.{number}", exclusive=True))
            + call(m.QueueBind(f"brief.{number}", "amq.topic", "#"))
            + call(m.QueueDelete(f"brief.{number}"))
            for number in count()
        ),
    )


@load()
def channel_churn(side: Side) -> Iterator[None]:
    """Channels that are opened and closed without end."""
    line = side.line()
    piece = b"".join(
        call(m.ChannelOpen(), number) + call(m.ChannelClose(200, "done"), number)
        for number in range(2, 200)
    )
    yield
    side.pour(line, cycle([piece]))


@load()
def consumer_churn(side: Side) -> Iterator[None]:
    """Consumers that come and go without end."""
    line = side.line()
    line.call(m.QueueDeclare(_SINK), m.QueueDeclareOk)
    piece = b"".join(
        call(m.BasicConsume(_SINK, f"c{number}")) + call(m.BasicCancel(f"c{number}"))
        for number in range(200)
    )
    yield
    side.pour(line, cycle([piece]))


@load()
def connection_churn(side: Side) -> Iterator[None]:
    """Connections that are opened and dropped without end."""
    yield
    while not side.over:
        with contextlib.suppress(ConnectionError):
            side.line().socket.close()
        side.done += 1


@load()
def exclusive_end(side: Side) -> Iterator[None]:
    """A connection with 2,000 channels and 20,000 exclusive queues that ends, again and again."""

    def full() -> Iterator[bytes]:
        yield from (call(m.ChannelOpen(), number) for number in range(2, side.many(2_000)))
        for number in range(side.many(20_000)):
            yield call(m.QueueDeclare(f"mine.{number}", exclusive=True, nowait=True))

    line = side.line()
    side.pour(line, full())
    line.socket.setblocking(True)
    yield
    while not side.over:
        line.socket.close()
        line = side.line()
        side.pour(line, full())


@load()
def channels(side: Side) -> Iterator[None]:
    """100 connections that open 2,000 channels each, and do nothing."""
    lines = side.lines(side.many(100))
    for line in lines:
        for channel in range(2, CHANNEL_MAX + 1):
            line.call(m.ChannelOpen(), m.ChannelOpenOk, channel)
    yield
    side.idle(lines)


@load()
def quorum_queues(side: Side) -> Iterator[None]:
    """5,000 quorum queues, which have periodic work, and nothing in them."""
    line = side.line()
    side.queues(line, "quorum", side.many(5_000), {"x-queue-type": "quorum"}, durable=True)
    yield
    side.idle([line])
