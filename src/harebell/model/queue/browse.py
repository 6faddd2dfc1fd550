"""Browsing a queue: the start, the messages shown, and the position to continue from.

A cursor sees the messages that were in the queue when it began, each at most once; what is removed
before it comes there is left out. It changes nothing: neither order, nor counts, nor what is marked
as delivered. Every queue type makes its own cursor (`Queue.browse`), see `browse_cursor`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from harebell.base.message import Message

READY = "ready"
UNACKNOWLEDGED = "unacknowledged"


class Start(NamedTuple):
    """Where to begin.

    Args:
        offset: the first position; -1 if there is another condition.
        moment: the first message that was received then or later, in milliseconds since 1970; 0 if
            there is another condition.
        last: so many messages before the end; 0 if there is another condition.
    """

    offset: int = 0
    moment: int = 0
    last: int = 0


class Browsed(NamedTuple):
    """A message that a cursor came to.

    Args:
        position: its position in the queue.
        message: the message, which stays in the queue.
        state: READY or UNACKNOWLEDGED.
        redelivered: whether it may have been delivered before.
        deliveries: its failed deliveries, as far as its queue counts them.
    """

    position: int
    message: Message
    state: str
    redelivered: bool
    deliveries: int


class BrowseCursor:
    """Goes through the messages of a queue.

    Attributes:
        cursors: for each level of the queue, the position to go on from.
        ends: for each level, the position to stop at.
    """

    cursors: list[int]
    ends: dict[int, int]

    def go_to(self, cursors: list[int], ends: Mapping[int, int]) -> None:
        """Go on where another cursor of the same queue was."""
        for level, end in self.ends.items():
            self.ends[level] = min(end, ends.get(level, 0))
        for level, position in enumerate(cursors[: len(self.cursors)]):
            self.cursors[level] = position

    def next(self) -> int:
        """Move to the next message and return its position; -1 at the end."""
        raise NotImplementedError

    def load_spilled(self, done: Callable[[], object]) -> bool:
        """True if the message is so large that it is read in slices now; `done` is called then."""
        return False

    def read(self) -> Browsed | None:
        """Return the message that `next` moved to; None if it cannot be read."""
        raise NotImplementedError
