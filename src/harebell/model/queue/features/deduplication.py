"""Deduplication in a queue: the argument `x-message-deduplication`.

Messages with equal headers `x-deduplication-header` are duplicates. While one of them is in the
queue, ready or unacknowledged, others are dropped, and confirmed as if they were taken. When it has
left the queue, another one is accepted. Messages without the header are never duplicates. A message
that the queue refuses, or delivers without keeping it, is not in the queue and is never noted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from harebell.base.message import Message
from harebell.model.dedup_cache import HEADER, digest
from harebell.model.editor import Editor

_IN_BYTES = HEADER.encode()
_FORGET_FROM = 1_024


class Positions(Protocol):
    """The part of the message order that is used here."""

    def next_position(self, message: Message) -> int:
        """Return the position that the next message gets."""

    def holds(self, position: int) -> bool:
        """True if the message at a position is not settled."""


class QueueDeduplication:
    """Header values of the messages in one queue.

    Removed messages are not reported, so a known value is checked by its position.

    Args:
        editor: reads messages.
        order: the message order of the queue.
        ready: positions and messages that are in the queue already.
    """

    def __init__(
        self,
        editor: Editor,
        order: Positions,
        ready: Iterable[tuple[int, Message]],
    ) -> None:
        self._editor = editor
        self._order = order
        self._positions: dict[bytes, int] = {}
        self._values: dict[int, bytes] = {}
        self._forget_from = _FORGET_FROM
        for position, message in ready:
            value = self._value_of(message)
            if value is not None:
                self._note(value, position)

    def holds(self, message: Message) -> bool:
        """Return whether a message is a duplicate."""
        value = self._value_of(message)
        before = None if value is None else self._positions.get(value)
        # The noted message may be settled: positions are never reused, so the order knows.
        return before is not None and self._order.holds(before)

    def keeps(self, message: Message) -> int:
        """Note a message that the order appends next; one that it does not get is never noted."""
        value = self._value_of(message)
        if value is None:
            return 0
        before = self._positions.get(value)
        if before is not None:
            self._forget(before)
        if len(self._values) >= self._forget_from:
            self._forget_settled()
        self._note(value, self._order.next_position(message))
        return 0

    def _value_of(self, message: Message) -> bytes | None:
        # Decoding headers is slow: the encoded bytes tell that most messages have no such header.
        if not message.has_headers or _IN_BYTES not in message.raw:
            return None
        headers = self._editor.headers_of(message)
        return digest(headers[HEADER]) if HEADER in headers else None

    def _note(self, value: bytes, position: int) -> None:
        self._positions[value] = position
        self._values[position] = value

    def _forget(self, position: int) -> None:
        value = self._values.pop(position, None)
        if value is not None and self._positions.get(value) == position:
            del self._positions[value]

    def _forget_settled(self) -> None:
        """Forget settled messages, so that memory stays in proportion to the queue."""
        for position in [each for each in self._values if not self._order.holds(each)]:
            self._forget(position)
        # By doubling, checking all of them costs each new message a constant time on average.
        self._forget_from = max(_FORGET_FROM, 2 * len(self._values))
