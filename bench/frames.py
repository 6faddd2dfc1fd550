"""Publishes that are encoded once; only a number and a time are written into each."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import cycle, islice
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.peer import FRAME_MAX
from bench.scenarios import STAMP_BYTES
from harebell.base.message import PERSISTENT, Message, Properties
from harebell.wire.v09.content import BasicProperties, encode_properties
from harebell.wire.v09.frames import OutBuffer

_SMALL_BATCH_BYTES = 262_144
_DIFFERENT_BYTES = 262_144
"""Bodies that differ repeat after so many bytes: LZ4 finds repetitions in the last 65,536."""
_STAMP = b"\xab" * STAMP_BYTES


def _orders(size: int) -> bytes:
    """JSON as of orders: half of it is the same in all of them."""
    rng = Random()
    order = f'{{"order":{rng.randrange(10**8)},"placed":"2026-11-26T{rng.random():.6f}Z","items":['
    found = order.encode()
    while len(found) < size:
        article, price = rng.randrange(10**5), rng.randrange(10**5) / 100
        found += (
            f'{{"article":"A-{article:05}","count":{rng.randrange(9)},"price":{price}}},'.encode()
        )
    return found[:size]


CONTENTS: dict[str, Callable[[int], bytes]] = {
    "same": lambda size: b"x" * size,
    "json": _orders,
    "random": os.urandom,
}
"""What bodies may have behind their stamps, by name: a function of the number of bytes."""


class Frames:
    """So many publishes side by side.

    Args:
        exchange: where to.
        routing_key: with which key.
        size: bytes of every body, at least STAMP_BYTES.
        persistent: whether they are persistent.
        batch: no more than so many.
        contents: what is in their bodies; see `CONTENTS`.
        headers: how many headers each has.

    Attributes:
        batch: how many there are.
    """

    def __init__(
        self,
        exchange: str,
        routing_key: str,
        size: int,
        *,
        persistent: bool,
        batch: int,
        contents: str = "same",
        headers: int = 0,
    ) -> None:
        self._headers = {f"property-{each}": f"value {each}" for each in range(headers)}
        rest = size - STAMP_BYTES
        one = self.encoded(exchange, routing_key, _STAMP + b"x" * rest, persistent)
        self._step = len(one)
        self._stamp_at = one.index(_STAMP)
        self.batch = max(1, min(batch, _SMALL_BATCH_BYTES // self._step))
        size_of_batch = self._step * self.batch
        batches = 1 if contents == "same" else -(-_DIFFERENT_BYTES // size_of_batch)
        self._batches = cycle([bytearray(one * self.batch) for _ in range(batches)])
        if contents == "same":
            # As encoded above, also where a body has several frames.
            return
        end = self._stamp_at + STAMP_BYTES
        for encoded in islice(self._batches, batches):
            for at in range(end, size_of_batch, self._step):
                encoded[at : at + rest] = CONTENTS[contents](rest)

    def encoded(self, exchange: str, routing_key: str, body: bytes, persistent: bool) -> bytes:
        """One publish."""
        mode = PERSISTENT if persistent else None
        raw = encode_properties(BasicProperties(delivery_mode=mode, headers=self._headers or None))
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
        encoded, at = next(self._batches), self._stamp_at
        self.put(encoded, at, ">u8", number + np.arange(count, dtype="u8"))
        self.put(encoded, at + 8, ">u8", np.full(count, stamp))
        return memoryview(encoded)[: count * self._step]

    def put(
        self, encoded: bytearray | memoryview, at: int, kind: str, numbers: NDArray[Any]
    ) -> None:
        """Write a number into each publish.

        Args:
            encoded: the publishes.
            at: the place of the number in the first of them.
            kind: its size and byte order, as numpy has them.
            numbers: as many as there are publishes.
        """
        np.ndarray(numbers.shape, kind, encoded, at, (self._step,))[:] = numbers
