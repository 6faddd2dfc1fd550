"""A connection whose input goes through a scanner: what all versions with frames have in common.

receive     octets to the scanner, which calls what the version makes of them
_tell       what gathered in the turn is written: confirms, completions
relieved    the output is short again: channels go on
"""

from __future__ import annotations

from typing import Any

from harebell.auth.users import Users
from harebell.base import limits
from harebell.front.hub import Hub
from harebell.front.link import Link
from harebell.front.peer import Peer
from harebell.front.settings import Settings
from harebell.front.told import connection_closed
from harebell.model.broker import Broker
from harebell.model.queue.kind import Queue
from harebell.wire.v09.states import ConnectionState

_OUTPUT_STOP = limits.OUTPUT_STOP_BYTES


class ScannedLink(Link):
    """The server's side of one connection; versions derive from it.

    Args:
        broker, users, hub, settings, peer, now, version: as for `Link`.

    Attributes:
        scanner: takes frames apart; a version sets it.
    """

    def __init__(
        self,
        broker: Broker,
        users: Users,
        hub: Hub,
        settings: Settings,
        peer: Peer,
        now: float,
        version: str,
    ) -> None:
        super().__init__(broker, users, hub, settings, peer, now, version)
        self.scanner: Any = None

    # --- what a version does in its own way -----------------------------------------------------

    def caught(self, error: Exception) -> None:
        """Close a channel or the connection because of an error."""
        raise NotImplementedError

    def beat(self) -> None:
        """Write a heartbeat, before whatever waits for a commit."""
        raise NotImplementedError

    def _tell(self) -> None:
        """Write what gathered in this turn."""

    # --- the shell's side -----------------------------------------------------------------------

    def receive(self, data: bytes | memoryview, now: float) -> None:
        """Take what was read."""
        self.now = now
        if self.closing:
            return
        try:
            self.scanner.feed(data)
        except Exception as error:
            # The frames themselves are broken: nothing after this can be understood.
            self.caught(error)
            self.scanner.stopped = True
        self._end_of_turn()

    def resume(self, now: float) -> None:
        """Go on with input that was held back while the output was too long."""
        if (
            self.scanner.hold
            and not self.congested
            and not self.closing
            and self.out.size <= _OUTPUT_STOP
        ):
            self.scanner.hold = False
            self.receive(b"", now)

    @property
    def held_back(self) -> bool:
        """Whether input is held back, and reading more would only fill memory."""
        held: bool = self.scanner.hold
        return held

    def relieved(self) -> None:
        """Output was written: serve the consumers that had no room for it."""
        if self.starved and not self.congested:
            self.starved = False
            # Another channel goes first each time, or a flooded one would take all the room.
            waiting = list(self.channels.items())
            for _, channel in waiting:
                channel.serve()
            if waiting:
                first, _ = waiting[0]
                self.channels[first] = self.channels.pop(first)

    def log_loss(self) -> None:
        """Log what the peer left undone (AMQP 0-9-1 1.4.2.10 and 1.5.2.6 ask for errors)."""
        journal = self.settings.journal
        if self.state is ConnectionState.CLOSING:
            journal("error", f"{self.peer}: lost before connection.close-ok")
        elif self.state is ConnectionState.OPEN:
            journal("warning", f"{self.peer}: closed without connection.close")

    def tick(self, now: float) -> None:
        """Time has passed: heartbeats and deadlines."""
        if not self.begins_in_time(now):
            return
        if not self.heartbeat or self.closing:
            return
        if 2 * (now - self._sent_at) >= self.heartbeat:
            self._sent_at = now
            self.beat()
            self.touch()
        if self.paused or self.scanner.hold:
            # A connection we do not read cannot show that it lives; its time starts when we do.
            self.now = now
        if now - self.now >= self.heartbeat * 2:
            if self.shell is not None and self.shell.unread():
                # Its heartbeats may be there: a busy broker reads them before it judges.
                return
            text = f"missed heartbeats from client, timeout: {self.heartbeat}s"
            self.settings.journal("warning", f"{self.peer}: {text}")
            self.cut()

    # --- the end --------------------------------------------------------------------------------

    def finish(self) -> None:
        """The close handshake is done."""
        self.scanner.stopped = True
        super().finish()

    def _let_go(self, left: list[Queue]) -> None:
        """The channels are closed: nothing of the peer is left, and others get what it had.

        Args:
            left: queues that it consumed from.
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
            events.tell()

    def _end_of_turn(self) -> None:
        """Write what is due, and hold a publisher back when something is short."""
        self._tell()
        if self.published:
            self.hold_publisher()
        if self.held is not None and self.out.size > _OUTPUT_STOP:
            self.scanner.hold = True
        if self.broker.events.waiting:
            self.broker.events.tell()
