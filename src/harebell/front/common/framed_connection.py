"""A connection whose input is scanned for frames; versions derive from it.

receive     bytes to the scanner, which calls the methods of the version
go_on       continues in another turn: long operations, then input
perform     a long operation in slices; later input waits for its end
_write_collected       writes what was collected in the turn: confirms, completions
relieved    the output has space again: channels continue
"""

from __future__ import annotations

from collections import deque
from typing import Protocol, cast

from harebell.auth.users import User, Users
from harebell.base import limits
from harebell.base.work import Step
from harebell.front.common.base_connection import BaseConnection
from harebell.front.common.connection_log import LOST, log_closing
from harebell.front.common.connection_registry import ConnectionRegistry
from harebell.front.common.event_exchange import connection_closed
from harebell.front.common.peer import Peer
from harebell.front.common.settings import Settings
from harebell.model.broker import Broker
from harebell.model.queue.contract import Queue
from harebell.wire.v09.states import ConnectionState

_OUTPUT_STOP = limits.OUTPUT_STOP_BYTES


class Scanner(Protocol):
    """Splits the input of a connection; see `FrameScanner` and `SegmentScanner`.

    Attributes:
        frame_max: the largest accepted frame.
        fast: whether complete messages are passed on, which needs an open connection.
        stopped: whether input is dropped.
        hold: whether input is kept for later.
        cut: whether input was left when the work budget of the turn was spent.
        pending: contents that are being received as single frames.
    """

    frame_max: int
    fast: bool
    stopped: bool
    hold: bool
    cut: bool
    pending: int

    def feed(self, data: bytes | memoryview) -> object:
        """Scan input."""

    def let_go(self) -> object:
        """Break the reference cycle with the connection."""


class FramedConnection(BaseConnection):
    """The server's side of one connection; versions derive from it.

    Args:
        broker, users, registry, settings, peer, now, version: as for `BaseConnection`.

    Attributes:
        scanner: splits the input into frames; a version sets it.
        deferred: whether it waits for another turn.
        departed: whether the peer has left while the connection waits for another turn.
        tasks: the long operations in progress, in order.
    """

    def __init__(
        self,
        broker: Broker,
        users: Users,
        registry: ConnectionRegistry,
        settings: Settings,
        peer: Peer,
        now: float,
        version: str,
    ) -> None:
        super().__init__(broker, users, registry, settings, peer, now, version)
        # The connection of a version sets it before any input.
        self.scanner = cast(Scanner, None)
        self.deferred = False
        self.departed = False
        self.tasks: deque[Step] = deque()

    # --- implemented by each version ------------------------------------------------------------

    def caught(self, error: Exception) -> None:
        """Close a channel or the connection because of an error."""
        raise NotImplementedError

    def beat(self) -> None:
        """Write a heartbeat, ahead of output that waits for a commit."""
        raise NotImplementedError

    def _write_collected(self) -> None:
        """Write what was collected in this turn: confirms, completions."""

    # --- the shell's side -----------------------------------------------------------------------

    def receive(self, data: bytes | memoryview, now: float) -> None:
        """Process input, or queue it when the user has spent its budget of this turn."""
        self.now = now
        byte_count = len(data)
        if byte_count:
            self.traffic.recv_oct += byte_count
            self.traffic.recv_cnt += 1
        if self.closing:
            return
        turns = self.registry.turns
        if self.deferred or not turns.begin(self.account):
            self.scanner.hold = True
            self.scanner.feed(data)
            self._put_off()
            return
        try:
            self._take(data)
        finally:
            turns.end()

    def _take(self, data: bytes | memoryview) -> int:
        """Process input within the budget of the turn."""
        try:
            self.scanner.feed(data)
        except Exception as error:
            # The frames are malformed: later input cannot be parsed.
            self.caught(error)
            self.scanner.stopped = True
        self._end_of_turn()
        if self.scanner.cut:
            self.scanner.cut = False
            self._put_off()
        return 0

    def _put_off(self) -> int:
        """Queue the connection for another turn."""
        if not self.deferred:
            self.deferred = True
            self.registry.turns.wait(self.account, self)
        return 0

    def go_on(self) -> None:
        """Continue in another turn: long operations first, then the later input."""
        self.deferred = False
        tasks = self.tasks
        while tasks:
            if not self._step(tasks[0]):
                self._put_off()
                return
            tasks.popleft()
        if self.closing or not self.scanner.hold:
            pass
        elif self.departed or not (self.paused or self.congested or self.out.size > _OUTPUT_STOP):
            self.scanner.hold = False
            self._take(b"")
        if self.starved and not self.congested:
            self.relieve()
        if self.departed and not self.deferred:
            self.eof()
        self.touch()

    def _step(self, step: Step) -> bool:
        """Do a slice of a long operation; an exception ends it."""
        try:
            return step()
        except Exception as error:
            self.caught(error)
            return True

    def perform(self, step: Step) -> None:
        """Do a long operation in slices; input waits until it is done.

        The operation continues after the end of the connection.

        Args:
            step: does a slice; the last one also does what follows, such as a reply.
        """
        if self.tasks or not self._begin_task(step):
            self.tasks.append(step)
            self.scanner.hold = True
            self._put_off()

    def _begin_task(self, step: Step) -> bool:
        """Do the first slice; most operations have no other."""
        turns = self.registry.turns
        if turns.current is not None:
            return step()
        turns.begin_anyway(self.account)
        try:
            return step()
        finally:
            turns.end()

    def suspend(self) -> None:
        """Suspend the long operation until `wake` is called."""
        self.deferred = True

    def wake(self) -> None:
        """Continue the long operation that has called `suspend`."""
        if self.tasks:
            self.deferred = False
            self._put_off()

    def sign_in(self, user: User) -> None:
        """Set the user, to whose budget the connection's work counts from now on."""
        self.user = user
        self.account = self.registry.turns.account(f"user {user.name}")

    def resume(self, now: float) -> None:
        """Continue with input that was held back while the output was too long."""
        if (
            self.scanner.hold
            and not self.deferred
            and not self.congested
            and not self.closing
            and self.out.size <= _OUTPUT_STOP
            and self.origin not in self.registry.pending_logins.verifying
        ):
            self.scanner.hold = False
            self.receive(b"", now)

    @property
    def held_back(self) -> bool:
        """True if input is held back, so that further reads would only fill memory."""
        return self.scanner.hold

    def relieved(self) -> None:
        """Serve the consumers that waited for space in the output."""
        if not self.starved or self.congested:
            return
        turns = self.registry.turns
        if self.deferred or not turns.begin(self.account):
            self._put_off()
            return
        try:
            self.relieve()
        finally:
            turns.end()

    def relieve(self) -> None:
        """Serve the channels whose consumers waited for space in the output."""
        self.starved = False
        # A served channel is last the next time, so that a backlog does not take all space.
        for number, channel in list(self.channels.items()):
            before = self.out.size
            channel.serve()
            if self.out.size > before and self.channels.get(number) is channel:
                self.channels[number] = self.channels.pop(number)

    def eof(self) -> None:
        """Handle the end of the peer's input, after the waiting input is processed."""
        if self.deferred and not self.departed and not self.closing:
            self.departed = True
            # Deliveries to the peer stop.
            self.congested = True
            return
        super().eof()
        self.let_go()

    def let_go(self) -> None:
        """Break the reference cycle with the scanner, which would delay the release of memory."""
        self.scanner.let_go()

    def log_loss(self) -> None:
        """Log what the peer left unfinished (AMQP 0-9-1 1.4.2.10 and 1.5.2.6 ask for errors)."""
        if self.state is ConnectionState.CLOSING:
            self.log("error", f"{self.peer}: lost before connection.close-ok")
        elif self.state is ConnectionState.OPEN:
            log_closing(self, LOST)

    def tick(self, now: float) -> None:
        """Check heartbeats and deadlines."""
        if not self.begins_in_time(now):
            return
        if not self.heartbeat or self.closing or self.state is ConnectionState.CLOSED:
            return
        if 2 * (now - self._sent_at) >= self.heartbeat:
            self._sent_at = now
            self.beat()
            self.touch()
        if self.paused or self.scanner.hold:
            # Heartbeats of a connection that is not read do not arrive: restart its timeout.
            self.now = now
        if now - self.now >= self.heartbeat * 2:
            if self.transport is not None and self.transport.unread():
                # Heartbeats may be unread: a busy broker reads them before it decides.
                return
            text = f"missed heartbeats from client, timeout: {self.heartbeat}s"
            self.log("warning", f"{self.peer}: {text}")
            self.cut()

    # --- the end --------------------------------------------------------------------------------

    def part(self) -> None:
        """Linger after connection.close-ok: the peer may close again, or end its side."""
        self.state = ConnectionState.CLOSED
        self.deadline = self.now + limits.LINGER_SECONDS
        self.paused = False
        self.scanner.fast = False
        if not self.tasks:
            # Otherwise the input continues after them.
            self.scanner.hold = False
        self.touch()

    def finish(self) -> None:
        """End the connection after the close handshake."""
        self.scanner.stopped = True
        super().finish()

    def _let_go(self, left: list[Queue]) -> None:
        """Release exclusive queues and the blocked state after the channels; serve the queues.

        Args:
            left: the queues that it consumed from.
        """
        events = self.broker.events
        if self.vhost is not None:
            self.vhost.drop_owned(self)
        if self.announced:
            self.announced = False
            connection_closed(self)
        for queue in left:
            if not queue.deleted:
                queue.drain()
        self.forget_blocked()
        if events.waiting:
            events.publish()

    def _end_of_turn(self) -> None:
        """End the turn: write confirms and completions, block a publisher if necessary."""
        self._write_collected()
        if self.published:
            self.hold_publisher()
        if self.held is not None and self.out.size > _OUTPUT_STOP:
            self.scanner.hold = True
        if self.broker.events.waiting:
            self.broker.events.publish()
