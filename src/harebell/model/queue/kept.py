"""Where the messages of a queue are kept and which one is next: what a kind of queue fills.

The methods are called once per message, so they are typed, and most are never called from Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harebell.base.message import Message
from harebell.model.queue.kind import Queue

NO_POSITION = -1


class Kept(Queue):
    """A queue whose messages have positions in a log.

    Args:
        name: its name.
        vhost: the name of its vhost.
        **options: as for `Queue`.
    """

    def __init__(self, name: str, vhost: str, **options: Any) -> None:
        super().__init__(name, vhost, **options)
        self._ready = 0
        self._position = NO_POSITION
        self._again = False

    def _keep(self, message: Message) -> int:
        """Put a message behind those that are ready."""
        raise NotImplementedError

    def _hand_over(self, message: Message) -> int:
        """Keep a message that goes out at once, as none is ready; returns its position."""
        raise NotImplementedError

    def _take(self) -> Message | None:
        """The next ready message, counted in `_ready` no longer.

        Sets `_position`, and `_again` when it may have been delivered before.
        """
        raise NotImplementedError

    def _is_far(self) -> bool:
        """Whether the next ready message is far; `_fetch` has it read."""
        return False

    def _fetch(self, done: Callable[[], object]) -> int:
        """Read the next ready message, which is far, in slices."""
        raise NotImplementedError

    def _skip(self) -> int:
        """Take the next ready message, which is far, without reading it; sets `_position`."""
        raise NotImplementedError

    def _peek(self) -> Message | None:
        """The next ready message, which stays ready."""
        raise NotImplementedError

    def head(self) -> Message | None:
        """The next ready message, which stays ready."""
        return self._peek() if self._ready > 0 else None

    def _read(self, position: int) -> Message | None:
        """A message that was delivered."""
        raise NotImplementedError

    def delivered(self, position: int) -> Message | None:
        """A message that was delivered and is not settled."""
        return None if self.deleted else self._read(position)

    def _drop(self, position: int) -> int:
        """A message is done with."""
        raise NotImplementedError

    def _put_back(self, position: int) -> int:
        """A delivered message is ready again, and counted in `_ready`."""
        raise NotImplementedError

    def next_position(self, message: Message) -> int:
        """The position that a message gets if it is kept now."""
        raise NotImplementedError

    def failures(self, position: int) -> int:
        """The count of a message in its log; see `retry`."""
        raise NotImplementedError

    def set_failures(self, position: int, count: int) -> int:
        """Remember the count of a message in its log."""
        raise NotImplementedError

    def failed_ones(self) -> list[int]:
        """The positions of messages with failed deliveries."""
        raise NotImplementedError

    def hold(self, position: int) -> bool:
        """Leave a message out that was there before a restart; False for others."""
        raise NotImplementedError

    def _drop_ready(self) -> int:
        """Every ready message is done with; `_ready` is set by the caller."""
        raise NotImplementedError

    def _drop_all(self) -> int:
        """The queue is gone, and its logs with it."""
        raise NotImplementedError

    def begin_count(self) -> int:
        """The octets of the bodies are limited now: count what is ready, if need be in turns."""
        raise NotImplementedError

    def _counts_at(self, position: int) -> bool:
        """Whether the body at a position is counted, while not all are."""
        raise NotImplementedError
