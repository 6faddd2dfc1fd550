"""How much may wait in a queue: what is done with a message that is too much.

The limits themselves are `overflow`'s.
"""

from __future__ import annotations

from typing import Any

from harebell.base.limits import TRIMMED_PER_TURN
from harebell.base.message import Message
from harebell.model.dead_letter import MAXLEN, DeadLetters
from harebell.model.queue.kept import Kept
from harebell.model.queue.overflow import Overflow

_MAXLEN = MAXLEN
_TRIMMED = TRIMMED_PER_TURN


class BoundedQueue(Kept):
    """A queue whose ready messages may be too many, or too large together.

    Args:
        name: its name.
        vhost: the name of its vhost.
        **options: as for `Queue`.

    Attributes:
        dead_letters: where refused messages go; None when nobody wants them.
    """

    def __init__(self, name: str, vhost: str, **options: Any) -> None:
        super().__init__(name, vhost, **options)
        self.dead_letters: DeadLetters | None = None
        self._overflow: Overflow | None = None

    def _refuses(self, overflow: Overflow, message: Message) -> bool:
        """Whether a message is too much: asked before it is known whether it would wait at all."""
        if overflow.drops or not overflow.full(self._ready, len(message.body)):
            return False
        if overflow.letters and self.dead_letters is not None:
            self.dead_letters.send_later(message, _MAXLEN)
        return True

    def _victim(self) -> Message | None:
        """The next message to go when there is too much; None when none may."""
        return self._take()

    def _may_skip(self) -> bool:
        """Whether the next message to go is the next one ready, whatever it is."""
        return True

    def _grown(self) -> int:
        """There may be too much."""
        overflow = self._overflow
        if overflow is not None and overflow.drops and overflow.over(self._ready):
            self._trim()
        return 0

    def _trim(self) -> int:
        """The oldest messages go until what is left may stay; in turns if they are many."""
        overflow = self._overflow
        most = _TRIMMED
        in_turns = self._goes_on_later()
        if self.dead_letters is not None:
            most = self.dead_letters.room(in_turns=in_turns)
        gone = 0
        # Neither what is in a message nor its size matters.
        unread = self.dead_letters is None and overflow is not None and not overflow.counts
        while overflow is not None and overflow.over(self._ready):
            if gone >= most and self._go_on_later():
                break
            if unread and self._is_far() and self._may_skip():
                gone += 1
                self._skip()
                self._drop(self._position)
                continue
            message = self._victim() if self._ready > 0 else None
            if message is None:
                overflow.octets = overflow.octets if self._ready > 0 else 0
                return 0
            gone += 1
            self._left(overflow, message)
            position = self._position
            if self.dead_letters is not None:
                self.dead_letters.send_later(message, _MAXLEN)
                if not in_turns and self._goes_on_later():
                    # It came round, and was enough for one turn.
                    most = gone
            self._drop(position)
        self._trimmed()
        return 0

    def _go_on_later(self) -> bool:
        """Have more of the oldest messages go in the next turn; False when there is none."""
        return False

    def _goes_on_later(self) -> bool:
        """Whether something is to be done in the next turn."""
        return False

    def _trimmed(self) -> int:
        """Another message may be at the head now."""
        return 0

    def _left(self, overflow: Overflow, message: Message) -> int:
        """The message that was just taken, from `_position`, is ready no longer."""
        if overflow.counting is None or self._counts_at(self._position):
            overflow.octets -= len(message.body)
        if self.ready_count() == 0:
            # What could not be read has left nobody knows when.
            overflow.octets = 0
            overflow.counting = None
        if overflow.refusing and overflow.low(self._ready):
            overflow.refusing = False
        return 0

    def _came_back(self, overflow: Overflow, position: int) -> int:
        """A message is ready again."""
        if overflow.counts and (overflow.counting is None or self._counts_at(position)):
            message = self._read(position)
            if message is not None:
                overflow.octets += len(message.body)
        return 0
