"""Queues that count the octets of what was there before a limit for them was.

A policy may limit a queue at any time, and a restart brings back what was in it. What is ready then
is counted so many messages in a turn (`counting`), and so is what goes because it is too much.
"""

from __future__ import annotations

from typing import Any

from harebell.base.limits import COUNTED_PER_TURN
from harebell.base.timers import NEVER, Timer
from harebell.model.queue.counting import Counting
from harebell.model.queue.leased import LeasedQueue

_COUNTED = COUNTED_PER_TURN


class WeighedQueue(LeasedQueue):
    """A queue that counts in turns.

    Args:
        name: its name.
        vhost: the name of its vhost.
        **options: as for `Queue`.
    """

    def __init__(self, name: str, vhost: str, **options: Any) -> None:
        super().__init__(name, vhost, **options)
        self._next_turns: Timer | None = None

    def begin_count(self) -> int:
        """The octets of the bodies are limited now: count what is ready, if need be in turns."""
        overflow = self._overflow
        if overflow is not None:
            ends = {level: order.end() for level, order in self._levels()}
            overflow.octets = 0
            overflow.counting = Counting(1 << self.BITS, ends)
            self._count_on()
        return 0

    def _count_on(self) -> int:
        """Count as many bodies as one turn has time for."""
        overflow = self._overflow
        counting = None if overflow is None else overflow.counting
        if overflow is None or counting is None:
            return 0
        cursors = counting.cursors
        count = 0
        position = self._look(cursors)
        while position >= 0:
            log, place = self._place(position)
            if counting.has(log, place):
                counting.finish(log)
            elif count >= _COUNTED and self._go_on_later():
                return 0
            else:
                message = self._read(position)
                if message is not None:
                    overflow.octets += len(message.body)
                self._pass(cursors, position)
                count += 1
            position = self._look(cursors)
        overflow.counting = None
        for _, order in self._levels():
            order.relax()
        return 0

    def _counts_at(self, position: int) -> bool:
        overflow = self._overflow
        log, place = self._place(position)
        return overflow is None or overflow.counting is None or overflow.counting.has(log, place)

    def _go_on_later(self) -> bool:
        if self._surroundings is None:
            return False
        if self._next_turns is None:
            self._next_turns = self._surroundings.timers.timer(self.go_on)
        self._next_turns.set_earlier(self._clock.steady)
        return True

    def _goes_on_later(self) -> bool:
        return self._next_turns is not None and self._next_turns.due != NEVER

    def go_on(self) -> None:
        """The next turn of what was too much for one."""
        if not self.deleted:
            self._count_on()
            self._grown()

    def _handed_on(self) -> set[int]:
        """The positions whose messages other queues have, and that are only not settled yet."""
        return set()

    def _send_on_all(self) -> int:
        handed_on = self._handed_on()
        for level, order in self._levels():
            log = order.log
            position = log.first()
            while position < log.end():
                # Without levels, BITS is 0 and the level too.
                place = position << self.BITS | level
                if place not in handed_on and not order.has_row(position):
                    message = log.read(position)
                    if message is not None:
                        self._send_on(message)
                position = log.next(position + 1)
        return 0
