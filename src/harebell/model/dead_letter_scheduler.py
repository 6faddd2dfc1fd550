"""Dead-letter scheduler: full queues that dead-letter to full queues, without recursion.

A message that a full queue drops may make the next queue drop one. Such a chain is as long as there
are queues, and has as many branches as there are paths through them: with ten queues that all drop
into each other one message becomes millions. So dead letters are sent in a loop, and only
CHAINED_PER_TURN of them per turn:

    a publish     q1 is full -> dead letter -> q2, q3 are full -> dead letters -> ...
                  after CHAINED_PER_TURN of them full queues keep what they got, and drop it in
                  the next turns
    reject-publish-dlx   such a queue cannot keep it: the rest is sent in the next turn

Dead letters that one of them causes are sent before those that wait already (depth first), so that
only one path through the queues is in memory, and not all of them.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from harebell.base.message import Message
from harebell.base.timers import Timers
from harebell.model.limits import CHAINED_PER_TURN, LETTERS_PER_TURN, REFUSED_PER_TURN

if TYPE_CHECKING:
    from harebell.model.dead_letter import DeadLetters

_AT_ONCE = 2
"""Messages that a queue drops per new one while it drops in turns: more than one, to catch up."""


class DeadLetterScheduler:
    """The dead letters of the full queues of a vhost, sent one after the other.

    Args:
        timers: the timers of the broker; they start the next turn.

    Attributes:
        work: the work budget of the broker; charged for each dead letter.
    """

    def __init__(self, timers: Timers) -> None:
        self._clock = timers.clock
        self._failures = timers.failures
        self.work = timers.work
        self._timer = timers.timer(self.go_on)
        self._waiting: deque[tuple[DeadLetters, Message, str]] = deque()
        self._followers: list[tuple[DeadLetters, Message, str]] = []
        self._sending = False
        self._sent = 0

    def send(self, letters: DeadLetters, message: Message, reason: str) -> None:
        """Send a dead letter now, or after the one that caused it."""
        if self._sending:
            self._followers.append((letters, message, reason))
            return
        self._waiting.append((letters, message, reason))
        if len(self._waiting) == 1:
            self.go_on()

    def room(self, *, in_turns: bool) -> int:
        """Return how many messages a full queue may drop now.

        Args:
            in_turns: whether it continues to drop messages in its next turn anyway.
        """
        if not self._sending:
            return _AT_ONCE if in_turns else LETTERS_PER_TURN
        if in_turns:
            return 0
        return max(CHAINED_PER_TURN - self._sent - len(self._followers) - len(self._waiting), 0)

    def go_on(self) -> None:
        """Send waiting dead letters, at most CHAINED_PER_TURN."""
        waiting = self._waiting
        followers = self._followers
        self._sent = 0
        self._sending = True
        try:
            while waiting:
                # At least one in each turn, however small the budget is: otherwise none would ever
                # be sent.
                if self._sent >= REFUSED_PER_TURN or (self.work.charge(1) and self._sent):
                    return
                letters, message, reason = waiting.popleft()
                self._sent += 1
                self._failures.guard(letters.send, message, reason)
                # In front of the others and in their order: depth first.
                waiting.extendleft(reversed(followers))
                followers.clear()
        finally:
            self._sending = False
            if waiting:
                self._timer.set_earlier(self._clock.steady)
