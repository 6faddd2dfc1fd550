"""A consumer with a selector on a queue of messages that it mostly does not want."""

from __future__ import annotations

import time

from bench.brokers import Broker
from bench.measure import Result
from bench.peer import FRAME_MAX, BenchError, Peer
from bench.process import cpu_seconds
from bench.scenarios import SELECTING
from harebell.base.message import Message, Properties
from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties, encode_properties
from harebell.wire.v09.frames import OutBuffer

_QUEUE = "bench.selecting"
_SELECTOR = "region = 'eu' AND level >= 5 AND kind = 'order'"
_WANTED_OF = 100
_BYTES = 128
_BATCHES = 10
_LOOK_SECONDS = 0.02
_SETTLE_SECONDS = 0.5
_PATIENCE_SECONDS = 120.0


def selecting(broker: Broker, count: int) -> Result:
    """Publish so many messages, of which a selector on three headers selects one of a hundred.

    The figure is the CPU time from the begin of the consumer to its last delivery, for each message
    of the queue: the deliveries are in it, publishing is not.

    Raises:
        BenchError: something was lost, out of order, or took too long.
    """
    count -= count % (_WANTED_OF * _BATCHES)
    numbers: list[int] = []
    peer = Peer(broker.port, lambda _lane, _tag, body: numbers.append(int.from_bytes(body[:8])))
    peer.call(m.QueueDelete(_QUEUE), m.QueueDeleteOk)
    peer.call(m.QueueDeclare(_QUEUE), m.QueueDeclareOk)
    for first in range(0, count, _WANTED_OF * _BATCHES):
        peer.socket.sendall(_publishes(first, _WANTED_OF * _BATCHES))
    until = time.monotonic() + _PATIENCE_SECONDS
    while peer.call(m.QueueDeclare(_QUEUE, passive=True), m.QueueDeclareOk).message_count < count:
        if time.monotonic() > until:
            raise BenchError(f"{broker.name} {SELECTING}: the queue does not fill")
        time.sleep(_LOOK_SECONDS)
    time.sleep(_SETTLE_SECONDS)
    before, begin = cpu_seconds(broker.pid), time.monotonic()
    arguments = {"x-filter-jms-selector": _SELECTOR}
    peer.call(m.BasicConsume(_QUEUE, "", no_ack=True, arguments=arguments), m.BasicConsumeOk)
    while len(numbers) < count // _WANTED_OF:
        peer.read()
    seconds = time.monotonic() - begin
    time.sleep(_SETTLE_SECONDS)
    used = cpu_seconds(broker.pid) - before
    if numbers != list(range(0, count, _WANTED_OF)):
        raise BenchError(f"{broker.name} {SELECTING}: other messages were delivered")
    peer.call(m.QueueDelete(_QUEUE), m.QueueDeleteOk)
    peer.close()
    return Result(
        broker=broker.name,
        scenario=SELECTING,
        messages=count,
        us_per_message=used * 1e6 / count,
        messages_per_second=count / seconds,
    )


def _publishes(first: int, count: int) -> bytes:
    """Return the frames of so many publishes: every hundredth is wanted, the others differ."""
    out = OutBuffer()
    for number in range(first, first + count):
        wanted = number % _WANTED_OF == 0
        headers = {
            "region": "eu" if wanted or number % 3 else "us",
            "level": number % 10 if not wanted else 9,
            "kind": "order" if wanted or number % 3 == 0 else "offer",
        }
        raw = encode_properties(BasicProperties(headers=headers))
        body = number.to_bytes(8).ljust(_BYTES, b"x")
        properties = Properties(raw, has_headers=True)
        out.publish(1, 0, Message("", _QUEUE, properties, body), FRAME_MAX)
    return bytes(out.take())
