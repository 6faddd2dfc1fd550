"""Deduplication in a queue: the argument `x-message-deduplication`.

Messages with equal headers `x-deduplication-header` are duplicates. While one of them is in the
queue, ready or unacknowledged, others are dropped, and confirmed as if they were taken. When it has
left the queue, another one is accepted. Messages without the header are never duplicates.
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
        found: positions and messages that are in the queue already.
    """

    def __init__(
        self,
        editor: Editor,
        order: Positions,
        found: Iterable[tuple[int, Message]],
    ) -> None:
        self._editor = editor
        self._order = order
        self._positions: dict[bytes, int] = {}
        self._values: dict[int, bytes] = {}
        self._forget_from = _FORGET_FROM
        for position, message in found:
            value = self._value_of(message)
            if value is not None:
                self._note(value, position)

    def known(self, message: Message) -> bool:
        """Return whether a message is a duplicate; if not, note it for the next position."""
        value = self._value_of(message)
        position = self._order.next_position(message)
        # The message noted for this position was delivered at once and did not use it.
        self._forget(position)
        if value is None:
            return False
        before = self._positions.get(value)
        if before is not None:
            if self._order.holds(before):
                return True
            self._forget(before)
        if len(self._values) >= self._forget_from:
            self._forget_settled()
        self._note(value, position)
        return False

    def holds(self, message: Message) -> bool:
        """Return whether a message is a duplicate; it is not noted."""
        value = self._value_of(message)
        before = None if value is None else self._positions.get(value)
        return before is not None and self._order.holds(before)

    def _value_of(self, message: Message) -> bytes | None:
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
        self._forget_from = max(_FORGET_FROM, 2 * len(self._values))
