"""Publishes that are encoded once; only a number and a time are written into each."""

from __future__ import annotations

import struct

from bench.peer import FRAME_MAX
from bench.scenarios import STAMP_BYTES
from harebell.base.message import PERSISTENT, Message, Properties
from harebell.wire.v09.content import BasicProperties, encode_properties
from harebell.wire.v09.frames import OutBuffer

_SMALL_BATCH_BYTES = 262_144


class Frames:
    """So many publishes side by side.

    Args:
        exchange: where to.
        routing_key: with which key.
        size: bytes of every body, at least STAMP_BYTES.
        persistent: whether they are persistent.
        batch: no more than so many.

    Attributes:
        batch: how many there are.
    """

    def __init__(
        self, exchange: str, routing_key: str, size: int, *, persistent: bool, batch: int
    ) -> None:
        body = b"\xab" * STAMP_BYTES + b"x" * (size - STAMP_BYTES)
        one = self.encoded(exchange, routing_key, body, persistent)
        self._step = len(one)
        self._stamp_at = one.index(b"\xab" * STAMP_BYTES)
        self.batch = max(1, min(batch, _SMALL_BATCH_BYTES // self._step))
        self._encoded = bytearray(one * self.batch)

    def encoded(self, exchange: str, routing_key: str, body: bytes, persistent: bool) -> bytes:
        """One publish."""
        raw = encode_properties(BasicProperties(delivery_mode=PERSISTENT if persistent else None))
        out = OutBuffer()
        out.publish(1, 0, Message(exchange, routing_key, Properties(raw), body), FRAME_MAX)
        return bytes(out.take())

    def numbered(self, number: int, stamp: int, count: int) -> memoryview:
        """The bytes of messages from a number on.

        Args:
            number: of the first.
            stamp: goes into each of them, behind the number.
            count: how many, at most `batch`.
        """
        encoded, at = self._encoded, self._stamp_at
        for offset in range(count):
            struct.pack_into(">QQ", encoded, at, number + offset, stamp)
            at += self._step
        return memoryview(encoded)[: count * self._step]
