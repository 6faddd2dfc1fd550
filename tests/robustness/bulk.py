"""Many equal messages in, and out again in order, as fast as one Python process can.

Bodies are those of `swift.body_of`, numbered from 0. The frames of a block of messages are put
together once; only numbers and checksums are written into them after that.
"""

from __future__ import annotations

import struct
import time
import zlib
from collections.abc import Callable

from harebell.wire.v09 import methods as m
from tests.robustness.swift import Delivery, Envelope, Link, acknowledgement, body_of, number_in

_BLOCK = 500
_WINDOW = 20_000
_PREFETCH = 2_000
_ACKNOWLEDGE_EVERY = 500
_STAMP = struct.Struct(">QI")


class Block:
    """The frames of so many publishes, to be numbered.

    Args:
        queue: where to.
        size: octets of a body.
    """

    def __init__(self, queue: str, size: int) -> None:
        self._padding = b"." * (size - _STAMP.size)
        one = Envelope(queue).around(body_of(0, self._padding))
        self._step = len(one)
        self._at = one.index(_STAMP.pack(*_STAMP.unpack_from(body_of(0, self._padding))))
        self._octets = bytearray(one * _BLOCK)

    def numbered(self, first: int, count: int) -> memoryview:
        """The frames of messages from a number on."""
        at, crc, pack, padding = self._at, zlib.crc32, _STAMP.pack_into, self._padding
        octets, step = self._octets, self._step
        for number in range(first, first + count):
            pack(octets, at, number, crc(padding, crc(number.to_bytes(8))))
            at += step
        return memoryview(octets)[: count * step]


class Filler:
    """Publishes with confirms, with a bounded number of them missing.

    Args:
        port: where the broker listens.
        queue: where to; it exists.
        size: octets of a body.

    Attributes:
        sent: how many were published.
        confirmed: how many of them were confirmed.
    """

    def __init__(self, port: int, queue: str, size: int) -> None:
        self.sent = 0
        self.confirmed = 0
        self.link = Link(port)
        self.link.on_ack = self._acknowledged
        self.link.ask(m.ConfirmSelect(), m.ConfirmSelectOk)
        self._block = Block(queue, size)

    def _acknowledged(self, _channel: int, tag: int, multiple: bool, refused: bool) -> None:
        assert not refused, f"message {tag - 1} was refused"
        assert tag > self.confirmed if multiple else tag == self.confirmed + 1, f"confirm of {tag}"
        self.confirmed = tag

    def send_block(self) -> None:
        """Publish a block."""
        self.link.send(self._block.numbered(self.sent, _BLOCK))
        self.sent += _BLOCK

    def step(self) -> None:
        """Publish a block, and wait until there is room for the next."""
        self.send_block()
        self.link.read_if_any()
        while self.link.alive and self.sent - self.confirmed > _WINDOW:
            self.link.read()

    def fill(
        self, count: int, chunks: int, clock: Callable[[], float] = time.monotonic
    ) -> list[float]:
        """Publish so many and wait for the confirms; messages per second, chunk by chunk.

        Args:
            count: how many messages.
            chunks: in how many chunks.
            clock: what counts the seconds.
        """
        rates = []
        each = count // chunks
        assert each % _BLOCK == 0
        begin = clock()
        for _ in range(chunks):
            until = self.sent + each
            while self.sent < until:
                self.step()
            # What is still in a buffer has cost the broker nothing yet.
            self.wait()
            now = clock()
            rates.append(each / max(now - begin, 0.001))
            begin = now
        return rates

    def wait(self) -> None:
        """Until everything is confirmed."""
        while self.confirmed < self.sent:
            assert self.link.alive, "the broker went"
            self.link.read()


class Order:
    """Checks that numbers come one after the other.

    Args:
        size: octets of a body.
    """

    def __init__(self, size: int) -> None:
        self.next = 0
        self._size = size

    def check(self, delivery: Delivery) -> None:
        """The next message, whole and not delivered before."""
        number = number_in(delivery.body)
        assert number == self.next, f"expected message {self.next}, got {number}"
        assert len(delivery.body) == self._size
        self.next += 1


def drain(port: int, queue: str, count: int, check: Callable[[Delivery], None]) -> None:
    """Take exactly so many messages, acknowledge them, and see that nothing is left."""
    link = Link(port)
    taken = latest = 0

    def delivered(delivery: Delivery) -> None:
        nonlocal taken, latest
        check(delivery)
        taken += 1
        latest = delivery.tag

    link.on_delivery = delivered
    link.ask(m.BasicQos(prefetch_count=_PREFETCH), m.BasicQosOk)
    link.ask(m.BasicConsume(queue=queue), m.BasicConsumeOk)
    settled = 0
    while taken < count:
        link.read()
        assert link.alive, f"the broker went after {taken} messages"
        if taken - settled >= _ACKNOWLEDGE_EVERY or taken >= count:
            link.send(acknowledgement(latest, multiple=True))
            settled = taken
    assert depth(link, queue) == 0
    link.goodbye()


def declare(port: int, queue: str) -> None:
    """Declare a durable queue."""
    link = Link(port)
    link.ask(m.QueueDeclare(queue=queue, durable=True), m.QueueDeclareOk)
    link.goodbye()


def depth(link: Link, queue: str) -> int:
    """How many messages are ready."""
    found = link.ask(m.QueueDeclare(queue=queue, passive=True), m.QueueDeclareOk)
    assert isinstance(found, m.QueueDeclareOk)
    return found.message_count
