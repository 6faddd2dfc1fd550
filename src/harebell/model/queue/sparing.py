"""Queues that are too full, and which message goes: files never do, packets by their priority.

    drop-head      7b 3f 2p 5p 1p 4b      b: class basic, f: file, p: packet of class stream
    goes           ^                      the oldest, where that is no file and no packet
    goes                    ^             of packets the least urgent among those next to each other

A file is passed over, for its publisher is held back instead (AMQP 0-8, class file: the server must
not discard a file message). A queue in which there never was a file or a packet has none of this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.limits import SPARING_SCAN_MESSAGES
from harebell.base.message import FAMILY_FILE, FAMILY_STREAM, Message
from harebell.model.queue.browsed import BrowsedQueue

if TYPE_CHECKING:
    from harebell.model.queue.overflow import Incoming

_FILE = FAMILY_FILE
_STREAM = FAMILY_STREAM
_SCAN = SPARING_SCAN_MESSAGES
_NOTHING = -1


class SparingQueue(BrowsedQueue):
    """A queue that knows what may be thrown away.

    Args:
        name: its name.
        vhost: the name of its vhost.
        **options: as for `Queue`.
    """

    def takes(self, octets: int) -> bool:
        """Whether one more message of that size would neither be refused nor push one out."""
        overflow = self._overflow
        if overflow is None:
            return True
        if overflow.refusing or overflow.full(self._ready, octets):
            waits = self._ready or not any(consumer.ready() for consumer in self.consumers)
            return not waits
        return True

    def may_refuse(self) -> bool:
        """Whether it has a limit, and refuses what is too much."""
        return self._overflow is not None and not self._overflow.drops

    def has_room(self, incoming: Incoming) -> bool:
        """Whether it would take messages that are to come together, were there no consumer."""
        overflow = self._overflow
        return overflow is None or overflow.drops or overflow.has_room(self._ready, incoming, False)

    def _may_skip(self) -> bool:
        return not self._spares

    def _victim(self) -> Message | None:
        if not self._spares:
            return self._take()
        message = self._peek()
        if message is None or (message.family != _FILE and message.family != _STREAM):
            return self._take()
        return self._least_wanted()

    def _least_wanted(self) -> Message | None:
        """Look through what waits, the oldest first, and take what goes; None for nothing."""
        cursors = [0] * self.LOGS
        found: Message | None = None
        at = _NOTHING
        for _ in range(_SCAN):
            position = self._look(cursors)
            if position < 0:
                break
            self._pass(cursors, position)
            message = self._read(position)
            if message is None or message.family == _FILE:
                continue
            if message.family != _STREAM:
                if found is None:
                    found, at = message, position
                break
            if found is None or message.priority < found.priority:
                found, at = message, position
        if found is None or not self._take_out(at):
            return None
        self._position = at
        return found
