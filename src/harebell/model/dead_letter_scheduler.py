"""Chains of dead letters: a full queue drops a message into another, which is full too, and so on.

A chain is as long as there are queues, and where dead-letter exchanges send to many queues it has
as many branches as there are ways through them: with ten queues that all drop into each other one
message ends as millions. So nothing here nests, and a turn sends only so much of it:

    a publish     q1 is full -> letter -> q2, q3 are full -> letters -> ...
                  CHAINED_PER_TURN letters later: full queues keep what they got, and drop it in
                  their own next turns
    reject-publish-dlx   such a queue cannot keep it: what is left goes on in the next turn

Each letter's followers go before those that waited already, so that only one way through the queues
waits in memory, and not all of them.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from harebell.base.limits import CHAINED_PER_TURN, LETTERS_PER_TURN, REFUSED_PER_TURN
from harebell.base.message import Message
from harebell.base.timers import Timers

if TYPE_CHECKING:
    from harebell.model.dead_letter import DeadLetters

_AT_ONCE = 2
"""Messages that a queue drops for one that comes while others go in turns: more than come."""


class DeadLetterScheduler:
    """The dead letters of a vhost's full queues, sent one after the other.

    Args:
        timers: of the broker; the next turn is told by them.

    Attributes:
        work: of the broker; counts what is sent.
    """

    def __init__(self, timers: Timers) -> None:
        self._clock = timers.clock
        self.work = timers.work
        self._timer = timers.timer(self.go_on)
        self._waiting: deque[tuple[DeadLetters, Message, str]] = deque()
        self._followers: list[tuple[DeadLetters, Message, str]] = []
        self._sending = False
        self._sent = 0

    def send(self, letters: DeadLetters, message: Message, reason: str) -> None:
        """Send a dead letter now, or after the one that it follows from."""
        if self._sending:
            self._followers.append((letters, message, reason))
            return
        self._waiting.append((letters, message, reason))
        if len(self._waiting) == 1:
            self.go_on()

    def room(self, *, in_turns: bool) -> int:
        """Messages that a full queue may drop now.

        Args:
            in_turns: whether it drops others in its next turn anyway.
        """
        if not self._sending:
            return _AT_ONCE if in_turns else LETTERS_PER_TURN
        if in_turns:
            return 0
        return max(CHAINED_PER_TURN - self._sent - len(self._followers) - len(self._waiting), 0)

    def go_on(self) -> None:
        """Send what waits, as much as one turn has time for."""
        waiting = self._waiting
        followers = self._followers
        self._sent = 0
        self._sending = True
        try:
            while waiting:
                if self._sent >= REFUSED_PER_TURN or (self.work.charge(1) and self._sent):
                    self._timer.set_earlier(self._clock.steady)
                    return
                letters, message, reason = waiting.popleft()
                self._sent += 1
                letters.send(message, reason)
                waiting.extendleft(reversed(followers))
                followers.clear()
        except BaseException:
            waiting.clear()
            followers.clear()
            raise
        finally:
            self._sending = False
