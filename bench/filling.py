"""Backlogs of messages of 200 B, published as fast as the broker takes them."""

from __future__ import annotations

import time

from bench.brokers import Harebell
from bench.frames import Frames
from bench.peer import BenchError, Peer
from harebell.wire.v09 import methods as m

BODY_BYTES = 200
STREAM, CLASSIC = "stream", "classic"
ARGUMENTS = {STREAM: {"x-queue-type": "stream"}, CLASSIC: {}}
_BATCH = 200
_LOOK_SECONDS = 0.05
_PATIENCE_SECONDS = 300.0


def declare(broker: Harebell, queue: str, kind: str) -> None:
    """A durable queue of a kind, without messages."""
    peer = Peer(broker.port, lambda *_: None)
    peer.call(m.QueueDelete(queue), m.QueueDeleteOk)
    peer.call(m.QueueDeclare(queue, durable=True, arguments=ARGUMENTS[kind]), m.QueueDeclareOk)
    peer.close()


def depth(broker: Harebell, queue: str) -> int:
    """How many messages are in a queue."""
    peer = Peer(broker.port, lambda *_: None)
    try:
        found = peer.call(m.QueueDeclare(queue, passive=True), m.QueueDeclareOk)
        return int(found.message_count)
    finally:
        peer.close()


def fill(broker: Harebell, queue: str, kind: str, count: int) -> None:
    """A queue with so many persistent messages, and no others.

    Raises:
        BenchError: that took too long.
    """
    declare(broker, queue, kind)
    peer = Peer(broker.port, lambda *_: None)
    frames = Frames("", queue, BODY_BYTES, persistent=True, batch=_BATCH)
    for number in range(0, count, frames.batch):
        peer.socket.sendall(frames.numbered(number, 0, min(frames.batch, count - number)))
    until = time.monotonic() + _PATIENCE_SECONDS
    while (found := depth(broker, queue)) != count:
        if time.monotonic() > until:
            raise BenchError(f"{found} of {count} messages are in {queue}")
        time.sleep(_LOOK_SECONDS)
    peer.close()
