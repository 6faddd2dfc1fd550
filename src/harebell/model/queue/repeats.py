"""Queues that hold every message once: the argument `x-message-deduplication`.

Which messages are the same their header `x-deduplication-header` says. One that is there already,
waiting or delivered and not acknowledged, makes another one superfluous, which counts as taken.
Once it is gone the same may come again. Messages without the header are always different.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from harebell.base.message import Message
from harebell.model.duplicates import HEADER, digest
from harebell.model.editor import Editor

_IN_OCTETS = HEADER.encode()
_LOOK_FROM = 1_024


class Holding(Protocol):
    """What a queue is asked."""

    def next_position(self, message: Message) -> int:
        """The position that a message would get."""

    def holds(self, position: int) -> bool:
        """Whether the message at a position is still there."""


class Repeats:
    """What stands in a queue, by the values of the header.

    Nobody tells when a message goes, so a value that was seen is looked up at its position.

    Args:
        editor: looks into messages.
        queue: whose messages they are.
        found: positions and messages that were there before.
    """

    def __init__(
        self,
        editor: Editor,
        queue: Holding,
        found: Iterable[tuple[int, Message]],
    ) -> None:
        self._editor = editor
        self._queue = queue
        self._positions: dict[bytes, int] = {}
        self._values: dict[int, bytes] = {}
        self._look_from = _LOOK_FROM
        for position, message in found:
            value = self._value_of(message)
            if value is not None:
                self._note(value, position)

    def known(self, message: Message) -> bool:
        """Whether a message is in the queue already; if not, it is about to be."""
        value = self._value_of(message)
        position = self._queue.next_position(message)
        # What was noted for this position never came to the queue: a consumer got it at once.
        self._forget(position)
        if value is None:
            return False
        before = self._positions.get(value)
        if before is not None:
            if self._queue.holds(before):
                return True
            self._forget(before)
        if len(self._values) >= self._look_from:
            self._look_through()
        self._note(value, position)
        return False

    def _value_of(self, message: Message) -> bytes | None:
        if not message.has_headers or _IN_OCTETS not in message.raw:
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

    def _look_through(self) -> None:
        """Forget what is gone, so that what is remembered stays in proportion to what is there."""
        for position in [each for each in self._values if not self._queue.holds(each)]:
            self._forget(position)
        self._look_from = max(_LOOK_FROM, 2 * len(self._values))
