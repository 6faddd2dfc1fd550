"""Interfaces that one layer defines and another fills: the message log and the store that opens it.

The model appends to a `Log` and keeps positions; where the records live (memory, segments on disk)
is the store's business.
"""

from __future__ import annotations

from harebell.base.message import Message


class Log:
    """The records of one queue, by position. Positions grow by one and are never reused.

    Attributes are methods here because stores count in different ways.
    """

    __slots__ = ()

    def append(self, message: Message) -> int:
        """Add a record at the end; returns its position."""
        raise NotImplementedError

    def read(self, position: int) -> Message | None:
        """The record at a position; None when it was settled."""
        raise NotImplementedError

    def settle(self, position: int) -> int:
        """The record will not be needed again. Settling twice is harmless."""
        raise NotImplementedError

    def first(self) -> int:
        """The smallest position that is not settled; `end()` when there is none."""
        raise NotImplementedError

    def end(self) -> int:
        """The position that the next record will get."""
        raise NotImplementedError

    def delete(self) -> int:
        """The queue is gone: let every record go."""
        raise NotImplementedError


class Store:
    """Opens logs."""

    __slots__ = ()

    def open_log(self, vhost: str, queue: str, durable: bool) -> Log:
        """The log of a queue, empty when the queue is new."""
        raise NotImplementedError
