"""The ready order: which messages of a log wait, and which of them is next.

    log      | settled ... | delivered . ready again . delivered | ready ready ready |
                                                                 ^ cursor            ^ end

Everything from the cursor to the end of the log is ready in order. What came back lies before the
cursor, in a heap, and goes out first, so a requeued message returns to its original place. Nothing
else is remembered per message. Of a log that was there before, what is settled already may lie
behind the cursor too; the log knows those positions and they are stepped over.
"""

from __future__ import annotations

from heapq import heappop, heappush

from harebell.base.message import Message
from harebell.base.ports import Log


class ReadyOrder:
    """The order in which the messages of one log go out.

    Args:
        log: where they are kept.
        marks: whether the log shall know what was handed out: when it outlives the process.

    Attributes:
        count: how many messages are ready.
        position: of the message that `take` returned last.
        again: whether that message may have been handed out before.
        damaged: ready messages that could not be read; they were passed over.
    """

    __slots__ = (
        "_cursor",
        "_held",
        "_marks",
        "_old",
        "_returned",
        "_seen",
        "again",
        "count",
        "damaged",
        "log",
        "position",
    )

    def __init__(self, log: Log, marks: bool) -> None:
        self.log = log
        self.count = log.live()
        self.position = -1
        self.again = False
        self.damaged = 0
        self._marks = marks
        self._cursor = log.first()
        self._old = log.end()
        self._seen = log.seen()
        self._returned: list[int] = []
        self._held: set[int] | None = None

    def keep(self, message: Message) -> int:
        """Add a message behind all others."""
        self.log.append(message)
        self.count += 1
        return 0

    def hand_over(self, message: Message) -> int:
        """Add a message that goes out at once, as none is ready; returns its position."""
        position = self.log.append(message)
        self._cursor = position + 1
        if self._marks:
            self.log.see(position + 1)
        return position

    def take(self) -> Message | None:
        """The next message, with `position` and `again`; None when there is none to be read."""
        while self.count > 0:
            self.count -= 1
            if self._returned:
                position = heappop(self._returned)
                again = True
            else:
                position = self._cursor
                if position < self._old:
                    position = self._next_old(position)
                self._cursor = position + 1
                again = position < self._seen
                if self._marks:
                    self.log.see(position + 1)
            message = self.log.read(position)
            if message is not None:
                self.position = position
                self.again = again
                return message
            self._pass_over(position)
        return None

    def peek(self) -> Message | None:
        """The next message, which stays where it is; None when there is none to be read."""
        while self.count > 0:
            if self._returned:
                position = self._returned[0]
            else:
                position = self._cursor
                if position < self._old:
                    position = self._next_old(position)
                    self._cursor = position
            message = self.log.read(position)
            if message is not None:
                return message
            self.count -= 1
            if self._returned:
                heappop(self._returned)
            else:
                self._cursor = position + 1
            self._pass_over(position)
        return None

    def _next_old(self, position: int) -> int:
        """The next message of those that were there before."""
        position = self.log.next(position)
        while self._held is not None and position in self._held:
            self._held.discard(position)
            position = self.log.next(position + 1)
        return position

    def hold(self, position: int) -> bool:
        """Leave a message out that was there before, until it is put back; False for others."""
        if not self._cursor <= position < self._old:
            return False
        if self._held is None:
            self._held = set()
        if position in self._held:
            return False
        self._held.add(position)
        self.count -= 1
        return True

    def _pass_over(self, position: int) -> int:
        """A ready message cannot be read: it stays where it is, for whoever mends the log."""
        self.damaged += 1
        end = self.log.end()
        if position >= end:
            # The log knows of more messages than there are.
            self.damaged -= 1
            self._cursor = end
            self.count = 0
        return 0

    def put_back(self, position: int) -> int:
        """A message that was taken returns to its place."""
        heappush(self._returned, position)
        self.count += 1
        return 0

    def body_octets(self) -> int:
        """The octets of the bodies of all that is ready; every message is read for it."""
        total = 0
        for position in self._returned:
            message = self.log.read(position)
            if message is not None:
                total += len(message.body)
        position = self._cursor
        end = self.log.end()
        while position < end:
            if position < self._old:
                position = self.log.next(position)
            if self._held is None or position not in self._held:
                message = self.log.read(position)
                if message is not None:
                    total += len(message.body)
            position += 1
        return total

    def purge(self) -> int:
        """Settle everything that is ready; returns how many messages that were."""
        count = self.count
        for position in self._returned:
            self.log.settle(position)
        self._returned.clear()
        end = self.log.end()
        begin = self._cursor
        for position in sorted(self._held or ()):
            # It is not ready, but out.
            if position >= begin:
                self.log.settle_range(begin, position)
                begin = position + 1
        if begin < end:
            self.log.settle_range(begin, end)
        self._cursor = end
        self._held = None
        self.count = 0
        return count

    def delete(self) -> int:
        """The queue is gone, and the log with it."""
        self.log.delete()
        self._returned.clear()
        self.count = 0
        return 0
