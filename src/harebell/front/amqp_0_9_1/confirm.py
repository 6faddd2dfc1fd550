"""confirm.select, and the confirms of one channel (RabbitMQ's extension, class 85).

Publishes are numbered from 1. A publish that is stored in a durable queue is confirmed when its
commit is on disk; every other one at the end of its turn. Confirms are sent in order, so a later
publish waits for an earlier one, and consecutive publishes are confirmed by one basic.ack with
`multiple`. A message that a queue rejected gets its own basic.nack.

    publishes    1 2 3 4 | 5 6 7 | 8 | 9 10 11
                 mark    | mark  |nack
    waits for    none    | 7     |   | 8          the newest: `_ticket`
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from harebell.base.c_types import C, Done, i32, i64, u64
from harebell.base.counters import Counters
from harebell.base.ports import Commit
from harebell.front.common.errors import soft
from harebell.model.queue.contract import REJECTED
from harebell.wire.v09 import methods

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.connection import Connection
    from harebell.front.amqp_0_9_1.open_channel import OpenChannel

_REJECTED: i32 = REJECTED
_AT_ONCE = 0


class Confirms:
    """Numbers publishes and confirms them.

    Args:
        connection: where confirms are written.
        number: the channel's number.
        counters: of the channel.

    Attributes:
        taken: the number of the last publish.
        sent: the number of the last publish that was confirmed.
    """

    def __init__(self, connection: Connection, number: i32, counters: Counters) -> None:
        self._connection = connection
        self._counters = counters
        self._commit: Commit = connection.commit
        self._number = number
        self.taken: u64 = 0
        self.sent: u64 = 0
        self._waiting = False
        self._ticket: i64 = _AT_ONCE
        # (ticket, last number, whether that one is refused), before those that wait for `_ticket`
        self._marks: deque[tuple[int, int, bool]] = deque()
        # The counters of the exchange of the newest publishes; (counters, last number) of the
        # publishes before; and up to where they are counted as confirmed.
        self._details: Counters | None = None
        self._sections: deque[tuple[Counters, int]] = deque()
        self._confirmed: u64 = 0

    def publishes_at(self, details: Counters) -> C[None]:
        """Count confirms of later publishes for another exchange.

        Args:
            details: the counters of the channel and exchange.
        """
        if details is self._details:
            return
        before = self._details
        if before is not None:
            self._sections.append((before, self.taken))
            self.count_details()
        self._details = details

    def count_details(self) -> C[None]:
        """Count for each exchange the publishes that were confirmed since the last call."""
        while self._sections:
            details, last = self._sections[0]
            until = min(last, self.sent)
            details.confirm += until - self._confirmed
            self._confirmed = until
            if until < last:
                return
            self._sections.popleft()
        if self._details is not None:
            self._details.confirm += self.sent - self._confirmed
            self._confirmed = self.sent

    def published(self, result: i32) -> Done:
        """Number a publish; `result` has the bits of its queues."""
        self.taken += 1
        if result:
            if result & _REJECTED:
                # Also if another queue took the message, as with RabbitMQ.
                return self._refuse()
            # Publishes of one commit share a mark: only the first of them makes one.
            if self._commit.ticket != self._ticket:
                self._wait()
        if not self._waiting:
            self._waiting = True
            self._connection.confirming.append(self)
        return 0

    def passed(self, count: i64) -> Done:
        """Number publishes whose messages were delivered at once."""
        self.taken += count
        if not self._waiting:
            self._waiting = True
            self._connection.confirming.append(self)
        return 0

    def flush(self) -> Done:
        """Write what is due."""
        self._waiting = False
        if self._marks:
            self._flush_marks(self._commit.done)
            if self._marks:
                # An earlier publish waits for the disk, and confirms keep their order.
                return 0
        if self.taken > self.sent and self._ticket <= self._commit.done:
            self._ack(self.taken)
        return 0

    def committed(self) -> None:
        """Write the confirms that waited for a commit that is on disk."""
        self.flush()
        if self.taken > self.sent:
            # Later publishes wait for a later commit; the registry has removed this object.
            self._connection.registry.waiting[self] = None

    def close(self) -> None:
        """Write the confirms behind an output barrier: the channel is closed."""
        self._connection.registry.waiting.pop(self, None)
        if self.taken > self.sent:
            # channel.close must not overtake them, so the whole output waits for their commit.
            self._connection.hold_until(self._ticket)
            self._flush_marks(self._ticket)
            if self.taken > self.sent:
                self._ack(self.taken)

    def _wait(self) -> Done:
        """Let the newest publish wait for the current commit."""
        self._mark(self.taken - 1)
        self._ticket = self._commit.ticket
        # A confirm alone is no change: without this the broker might see nothing to commit.
        self._commit.urgent = True
        self._connection.registry.waiting[self] = None
        return 0

    def _refuse(self) -> Done:
        """Refuse the newest publish."""
        self._mark(self.taken - 1)
        self._marks.append((_AT_ONCE, self.taken, True))
        return self.flush()

    def _mark(self, last: int) -> None:
        """Mark publishes up to `last` that have no mark yet as waiting for `_ticket`."""
        covered = self._marks[-1][1] if self._marks else self.sent
        if last > covered:
            self._marks.append((self._ticket, last, False))

    def _flush_marks(self, done: int) -> None:
        while self._marks and self._marks[0][0] <= done:
            _, last, refused = self._marks.popleft()
            if refused:
                # Before `sent` moves on: a refused publish is not counted as confirmed.
                self.count_details()
                self.sent = self._confirmed = last
                self._connection.send(self._number, methods.BasicNack(delivery_tag=last))
            else:
                self._ack(last)

    def _ack(self, last: u64) -> Done:
        multiple = last - self.sent > 1
        self._counters.confirm += last - self.sent
        self.sent = last
        self._connection.out.ack(self._number, last, multiple)
        self._connection.touch()
        return 0


def select(channel: OpenChannel, method: methods.ConfirmSelect) -> None:
    """confirm.select: confirm every later publish. A repetition changes nothing."""
    if channel.transaction is not None:
        raise soft(406, "cannot switch from tx to confirm mode", 85, 10)
    # A second confirm.select does not restart the numbers, as with RabbitMQ.
    if channel.confirms is None:
        channel.confirms = Confirms(channel.connection, channel.number, channel.counters)
        channel.confirms.publishes_at(channel.at_exchange)
    if not method.nowait:
        channel.connection.send(channel.number, methods.ConfirmSelectOk())


HANDLERS = {methods.ConfirmSelect: select}
