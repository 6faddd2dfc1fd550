"""Publishers that are not read from because memory, disk or file handles are short.

    a publish       gauge.over or short     check     blocked: not read, connection.blocked
    a turn begins   nothing is short        relieve   read again, connection.unblocked
    a turn begins   only unfinished         relieve   one of the blocked is read (`finishing`)
                    messages fill memory              until its message or transaction is complete
    FINISH_MS later, and again              relieve   the user with most messages in part loses
                                                      them, if connections can say so (AMQP 1.0)

Only connections that publish are blocked: consumers go on, because they free memory and disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from harebell.base.c_types import Done, i64
from harebell.base.gauge import Gauge
from harebell.front.common.turns import Turns
from harebell.front.limits import FINISH_MS
from harebell.wire.v09.states import ConnectionState

if TYPE_CHECKING:
    from harebell.auth.users import User
    from harebell.model.broker import Broker

MEMORY = "memory"
"""The process uses more memory than the watermark."""
DISK = "disk"
"""The data directory is full, or nearly."""
FILES = "file handles"
"""No more files can be opened."""


class Alarm(NamedTuple):
    """A short resource.

    Args:
        since_ms: when the shortage was noticed, in milliseconds since 1970.
        about: how much there was of the resource then, and the limit.
    """

    since_ms: int
    about: str


class Publisher(Protocol):
    """A connection that publishes: see `BaseConnection`."""

    broker: Broker
    state: ConnectionState
    closing: bool
    blocked: bool
    paused: bool
    blocked_since: int
    blocked_ms: int
    user: User

    def has_begun(self) -> bool:
        """True if a message is received in part, or publishes wait for their commit."""

    def send_blocked(self, blocked: bool) -> None:
        """Send connection.blocked or unblocked to a client that supports them."""

    def let_finish(self, allowed: bool) -> None:
        """Take what completes a message or transaction while blocked, or take it no more."""

    def unread_bytes(self) -> int:
        """Return the bytes that `give_up` would drop."""

    def give_up(self, text: str) -> None:
        """Drop messages that are received in part, and tell the client."""

    def touch(self) -> int:
        """Have the server look at the connection."""


class BlockedPublishers:
    """What is short in one broker, and the connections that are blocked because of it.

    Args:
        gauge: the memory that messages and the process use.
        turns: its `failures` count connections that raise when they are unblocked.

    Attributes:
        connections: the blocked ones, in the order in which they were blocked.
        blocked_ms: how long connections were blocked, all together, in milliseconds; without the
            blocks that go on.
        shortages: the short resources besides memory: DISK, FILES.
        short: whether there are such shortages.
        alarms: what is short, memory included, and since when; the shell notes it.
        finishing: the connection that may finish its message or transaction although memory is
            short; None for none.
        unfinished: connections that may have messages in part which they can give up.
    """

    def __init__(self, gauge: Gauge, turns: Turns) -> None:
        self._gauge = gauge
        self._turns = turns
        self.connections: list[Publisher] = []
        self.blocked_ms: i64 = 0
        self.shortages: set[str] = set()
        self.short = False
        self.alarms: dict[str, Alarm] = {}
        self.finishing: Publisher | None = None
        self.unfinished: dict[Publisher, None] = {}
        # How long publishers may take to end the shortage; 0 if others can.
        self._until: i64 = 0

    # --- what is short --------------------------------------------------------------------------

    def set_short(self, what: str, short: bool) -> bool:
        """Set or clear a shortage besides memory; True if that is a change."""
        if short == (what in self.shortages):
            return False
        if short:
            self.shortages.add(what)
        else:
            self.shortages.discard(what)
        self.short = bool(self.shortages)
        return True

    def short_of(self) -> set[str]:
        """Return the short resources, memory included."""
        return self.shortages | ({MEMORY} if self._gauge.over else set())

    def reason(self) -> str:
        """Return the reason for connection.blocked."""
        memory = [MEMORY] if self._gauge.over else []
        return "low on " + " & ".join(memory + sorted(self.shortages))

    # --- one connection -------------------------------------------------------------------------

    def check(self, connection: Publisher) -> Done:
        """Block a connection that has published in this turn, if memory or disk is short."""
        self._gauge.crossed()
        if self.finishing is connection:
            self.check_finished(connection)
        if self._gauge.over or self.short:
            self._block(connection)
        return 0

    def _block(self, connection: Publisher) -> None:
        if connection.blocked or connection.closing:
            return
        # As in RabbitMQ nothing of the connection is read: its acknowledgements wait, too.
        connection.blocked = connection.paused = True
        connection.blocked_since = connection.broker.clock.steady
        self.connections.append(connection)
        connection.send_blocked(True)
        connection.touch()

    def _unblock(self, connection: Publisher) -> None:
        """Read from a connection again: no resource is short."""
        self.finished(connection)
        self._count_block(connection)
        connection.paused = False
        # A peer that closes or is closed discards all but close and close-ok.
        if connection.state is ConnectionState.OPEN:
            connection.send_blocked(False)
        connection.touch()

    def _count_block(self, connection: Publisher) -> None:
        """End the block of a connection and count its time."""
        if connection.blocked:
            connection.blocked = False
            passed = connection.broker.clock.steady - connection.blocked_since
            connection.blocked_ms += passed
            self.blocked_ms += passed

    def forget(self, connection: Publisher) -> None:
        """Remove a connection that ends."""
        if connection.blocked:
            self._count_block(connection)
            # `relieve` takes the list before it unblocks: then the connection is not in it.
            if connection in self.connections:
                self.connections.remove(connection)
        if self.finishing is connection:
            self.finishing = None
        self.unfinished.pop(connection, None)

    def check_finished(self, connection: Publisher) -> None:
        """Block a connection again when the message or transaction it may finish is complete."""
        if self.finishing is connection and not connection.has_begun():
            self.finished(connection)

    def finished(self, connection: Publisher) -> Done:
        """End the exception for a connection that was read although memory is short."""
        if self.finishing is connection:
            self.finishing = None
            connection.let_finish(False)
        return 0

    # --- all of them ----------------------------------------------------------------------------

    def relieve(self) -> None:
        """Unblock publishers if no resource is short any more."""
        gauge = self._gauge
        gauge.crossed()
        if not self.connections or self.short:
            return
        if not gauge.over:
            released, self.connections = self.connections, []
            for connection in released:
                # An error of one connection must not leave the others blocked for ever.
                self._turns.failures.guard(self._unblock, connection)
        elif gauge.used - gauge.unread - gauge.uncommitted < gauge.low:
            # Consumers free only what is in queues. Little is: half-received and uncommitted
            # messages fill the memory, and only their publishers can end the shortage.
            now = self.connections[0].broker.clock.steady
            if not self._until:
                self._until = now + FINISH_MS
            elif now >= self._until:
                self._until = now + FINISH_MS
                self._give_up()
            if self.finishing is None:
                self._let_one_finish()
            return
        self._until = 0

    def _let_one_finish(self) -> None:
        """Read from the first blocked publisher that has begun a message or a transaction.

        One at a time: all of them together would take more memory before they free any.
        """
        for connection in self.connections:
            if connection.has_begun():
                self.finishing = connection
                connection.let_finish(True)
                connection.touch()
                return

    def _give_up(self) -> None:
        """Drop what the user has begun who has begun most: others would wait for ever.

        All of it goes, as it may be spread over many connections.
        """
        byte_counts: dict[str, int] = {}
        for each in self.unfinished:
            name = each.user.name
            byte_counts[name] = byte_counts.get(name, 0) + each.unread_bytes()
        if not byte_counts:
            return
        largest = max(byte_counts, key=byte_counts.__getitem__)
        text = f"memory is short, and messages did not come to their end in {FINISH_MS // 1_000} s"
        for each in [each for each in self.unfinished if each.user.name == largest]:
            self._turns.failures.guard(each.give_up, text)
            self.unfinished.pop(each, None)
            self.check_finished(each)

    # --- how long -------------------------------------------------------------------------------

    def ms_of(self, connection: Publisher) -> int:
        """Return how long a connection has been blocked, in milliseconds, all times together."""
        if not connection.blocked:
            return connection.blocked_ms
        return connection.blocked_ms + connection.broker.clock.steady - connection.blocked_since

    def total_ms(self) -> int:
        """Return how long connections have been blocked, in milliseconds, all together."""
        going_on = [self.ms_of(each) - each.blocked_ms for each in self.connections]
        return self.blocked_ms + sum(going_on)
