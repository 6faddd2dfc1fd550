"""Queues that take a batch whose rows come in slices, and show it as a whole.

    begin_batch       from now on no new message is ready
    stage             appends a row; messages of others come meanwhile by `publish`
    commit_batch      the batch is committed: rows and messages are ready
    roll_back_batch   the batch is refused: its rows are settled, the messages are ready

One batch is open at a time. What is hidden counts for the limits of the queue, and is seen by
consumers, from the moment on when it is ready.
"""

from __future__ import annotations

from typing import Any

from harebell.base.message import FAMILY_FILE, Message
from harebell.model.queue.kind import REJECTED
from harebell.model.queue.staging_order import StagingOrder
from harebell.model.queue.weighed import WeighedQueue

_FULL = REJECTED
_SPARED = FAMILY_FILE


class StagingQueue(WeighedQueue):
    """A queue that can hide what comes until a batch is committed.

    Args:
        name: its name.
        vhost: the name of its vhost.
        **options: as for `Queue`.
    """

    def __init__(self, name: str, vhost: str, **options: Any) -> None:
        super().__init__(name, vhost, **options)
        # Of what is kept back: how many messages, the octets of their bodies, and whether one of
        # them expires.
        self._hidden = 0
        self._hidden_octets = 0
        self._hidden_due = False

    # --- what a kind fills ----------------------------------------------------------------------

    def _order_for(self, message: Message) -> StagingOrder:
        """The order of the log that a message belongs in."""
        raise NotImplementedError

    # --- the open batch -------------------------------------------------------------------------

    def begin_batch(self) -> int:
        """What comes from now on is not ready yet."""
        self.staging = True
        for _, order in self._levels():
            order.begin_batch()
        return 0

    def stage(self, message: Message) -> int:
        """Take a row of the batch, however full the queue is: that was asked before."""
        if self._repeats is not None and self._repeats.known(message):
            return 0
        message = self._hide(message)
        self._order_for(message).stage(message)
        return self._taken_hidden(message)

    def _publish_hidden(self, message: Message) -> int:
        """Take a message that somebody publishes meanwhile."""
        overflow = self._overflow
        if overflow is not None:
            # What is kept back is here already.
            self._ready += self._hidden
            overflow.octets += self._hidden_octets
            full = self._refuses(overflow, message)
            self._ready -= self._hidden
            overflow.octets -= self._hidden_octets
            if full:
                return _FULL
        message = self._hide(message)
        self._keep(message)
        return self._taken_hidden(message)

    def _hide(self, message: Message) -> Message:
        self.published += 1
        if self._ttl >= 0:
            message = self._dated(message)
        local = self._local
        if local is not None and message.origin and local.concerns(message.origin):
            local.note(self.next_position(message), message.origin)
        self._hidden += 1
        self._hidden_octets += len(message.body)
        self._hidden_due = self._hidden_due or message.due > 0
        self._spares = self._spares or message.family >= _SPARED
        return message

    def commit_batch(self) -> int:
        """The batch is committed: what was kept back is ready."""
        return self._end_batch(roll_back=False)

    def roll_back_batch(self) -> int:
        """The batch is refused: its rows go, and what else was kept back is ready."""
        return self._end_batch(roll_back=True)

    def _end_batch(self, roll_back: bool) -> int:
        if self.deleted or not self.staging:
            return 0
        self.staging = False
        for _, order in self._levels():
            if roll_back:
                order.roll_back_batch()
            else:
                order.commit_batch()
        self._recount()
        overflow = self._overflow
        if overflow is not None and roll_back and overflow.counts:
            self.begin_count()
        elif overflow is not None:
            overflow.octets += self._hidden_octets
        self._mixed = self._mixed or self._hidden_due
        self._expiring = self._expiring or self._hidden_due
        self._hidden = self._hidden_octets = 0
        self._hidden_due = False
        if overflow is not None:
            self._grown()
        self.drain()
        return 0
