"""Many messages that are settled, returned or dropped by one method."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import cycle

from bench.hostile.side import Line, Side, call, load, publish
from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties

_QUEUE = "hostile.full"
_MILLION = 1_000_000


def _unacked(side: Side) -> Line:
    """A connection that has a million messages and acknowledged none."""
    line = side.line()
    count = side.many(_MILLION)
    side.filled(line, _QUEUE, count)
    line.call(m.BasicConsume(_QUEUE, "all"), m.BasicConsumeOk)
    line.take(count)
    return line


@load()
def ack_multiple(side: Side) -> Iterator[None]:
    """One basic.ack of a million messages."""
    line = _unacked(side)
    yield
    line.send(m.BasicAck(0, True))
    side.idle([line])


@load()
def nack_multiple(side: Side) -> Iterator[None]:
    """One basic.nack of a million messages, which go back."""
    line = _unacked(side)
    yield
    line.send(m.BasicNack(0, True, True))
    side.idle([line])


@load()
def nack_dead_letters(side: Side) -> Iterator[None]:
    """One basic.nack of a million messages, which are dead-lettered."""
    line = side.line()
    line.call(m.QueueDeclare("hostile.dead"), m.QueueDeclareOk)
    given = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "hostile.dead"}
    line.call(m.QueueDeclare("hostile.dying", arguments=given), m.QueueDeclareOk)
    count = side.many(_MILLION)
    side.prepared(line, (publish("", "hostile.dying", b"x") * 500 for _ in range(count // 500)))
    line.call(m.BasicConsume("hostile.dying", "all"), m.BasicConsumeOk)
    line.take(count // 500 * 500)
    yield
    line.send(m.BasicNack(0, True, False))
    side.idle([line])


@load()
def recover(side: Side) -> Iterator[None]:
    """Basic.recover with a million messages out."""
    line = _unacked(side)
    yield
    line.send(m.BasicRecover(True))
    side.idle([line])


@load()
def close_unacked(side: Side) -> Iterator[None]:
    """A connection that is dropped with a million messages out."""
    line = _unacked(side)
    yield
    line.socket.close()


@load()
def purge(side: Side) -> Iterator[None]:
    """Queue.purge of a million messages."""
    line = side.line()
    side.filled(line, _QUEUE, side.many(_MILLION))
    yield
    line.send(m.QueuePurge(_QUEUE))


@load()
def delete(side: Side) -> Iterator[None]:
    """Queue.delete of a million messages."""
    line = side.line()
    side.filled(line, _QUEUE, side.many(_MILLION))
    yield
    line.send(m.QueueDelete(_QUEUE))


@load()
def expiry(side: Side) -> Iterator[None]:
    """A million messages that expire at once."""
    line = side.line()
    line.call(m.QueueDeclare(_QUEUE), m.QueueDeclareOk)
    # Messages expire at the head, and the first one does not.
    side.prepared(line, [publish("", _QUEUE)])
    block = publish("", _QUEUE, b"", BasicProperties(expiration="1")) * 500
    side.prepared(line, [block] * (side.many(_MILLION) // 500))
    yield
    line.socket.sendall(call(m.BasicGet(_QUEUE, True)))
    side.idle([line])


@load()
def expiry_dead_letters(side: Side) -> Iterator[None]:
    """A million messages in a queue with a time to live, dead-lettered when they expire at once."""
    line = side.line()
    given = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "hostile.dead"}
    line.call(m.QueueDeclare("hostile.dead"), m.QueueDeclareOk)
    line.call(m.QueueDeclare(_QUEUE, arguments=given), m.QueueDeclareOk)
    side.prepared(line, [publish("", _QUEUE)])
    block = publish("", _QUEUE, b"", BasicProperties(expiration="1")) * 500
    side.prepared(line, [block] * (side.many(_MILLION) // 500))
    yield
    line.socket.sendall(call(m.BasicGet(_QUEUE, True)))
    side.idle([line])


@load()
def requeue(side: Side) -> Iterator[None]:
    """Messages that a consumer returns at once, for ever."""
    line = side.line()
    side.filled(line, _QUEUE, side.many(100_000))
    line.call(m.BasicQos(0, 10_000), m.BasicQosOk)
    line.call(m.BasicConsume(_QUEUE, "again"), m.BasicConsumeOk)
    yield
    while not side.over:
        line.read()
        line.send(m.BasicNack(0, True, True))
        side.done += 1


@load()
def transactions(side: Side) -> Iterator[None]:
    """Transactions of 50,000 publishes, committed at once."""
    line = side.line()
    line.call(m.QueueDeclare(_QUEUE, arguments={"x-max-length": 100_000}), m.QueueDeclareOk)
    line.call(m.TxSelect(), m.TxSelectOk)
    block = publish("", _QUEUE, b"x" * 16) * 500
    yield
    side.pour(line, cycle([block] * (side.many(50_000) // 500) + [call(m.TxCommit())]))


@load()
def gets(side: Side) -> Iterator[None]:
    """Basic.get of one queue, 10,000 in one write, for ever."""
    line = side.line()
    side.filled(line, _QUEUE, side.many(_MILLION))
    yield
    side.pour(line, cycle([call(m.BasicGet(_QUEUE, True)) * 1_000]))


@load()
def channel_close(side: Side) -> Iterator[None]:
    """A channel that is closed with 100,000 messages out, again and again."""
    line = side.line()
    count = side.many(100_000)
    side.filled(line, _QUEUE, count)
    yield
    while not side.over:
        line.delivered = 0
        line.call(m.BasicConsume(_QUEUE, "all"), m.BasicConsumeOk)
        until = time.monotonic() + 30
        while line.delivered < count and not side.over and time.monotonic() < until:
            line.read()
        if side.over:
            break
        line.call(m.ChannelClose(200, "done"), m.ChannelCloseOk)
        line.call(m.ChannelOpen(), m.ChannelOpenOk)
        side.done += 1
