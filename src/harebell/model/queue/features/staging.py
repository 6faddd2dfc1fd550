"""A staged batch that is open in a queue.

    begin_batch       new messages are hidden from now on: neither ready nor browsed
    stage             append a row; other messages are published meanwhile
    commit_batch      make rows and other messages ready
    roll_back_batch   settle the rows, make the other messages ready

One batch is open at a time. Hidden messages count for the limits of the queue, and reach consumers,
only when they become ready. The message order keeps them behind a barrier, and a queue has this
part while a batch is open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.c_types import C, Cdef, Done, i32, i64, isize
from harebell.base.message import FAMILY_FILE, FAMILY_STREAM, Message
from harebell.kernels.rows import Rows
from harebell.model.queue.contract import REJECTED as FULL
from harebell.model.queue.features.expiry import Expiry
from harebell.model.queue.features.limit_enforcement import (
    begin_count,
    check_limits,
    refuse_if_full,
)
from harebell.model.queue.features.limits import Limits
from harebell.model.queue.order.contract import MessageOrder

if TYPE_CHECKING:
    from harebell.model.queue.features.queue_internals import QueueInternals

_FILE: i32 = FAMILY_FILE
_STREAM: i32 = FAMILY_STREAM
_FULL: i32 = FULL


class OpenBatch:
    """The open batch of one queue.

    Args:
        queue: whose new messages are hidden from now on.

    Attributes:
        count: the number of hidden messages.
        byte_count: bytes of their bodies.
    """

    def __init__(self, queue: QueueInternals) -> None:
        self.count: i64 = 0
        self.byte_count: i64 = 0
        self._queue = queue
        self._order: MessageOrder = queue.order
        # Whether a hidden message has an expiry.
        self._expires = False
        self._order.begin_batch()

    def publish(self, message: Message) -> Cdef[i32]:
        """Publish a message that is no row of the batch: hide it, or refuse it at a limit."""
        queue = self._queue
        if queue.limits is not None:
            # Messages that are hidden already count here: all of them become ready together.
            byte_count: i64 = self.byte_count + len(message.body)
            if refuse_if_full(queue, message, self._order.count + self.count, byte_count):
                return _FULL
        message = self._hide(message)
        self._order.keep(message)
        return queue.outcome(message)

    def stage(self, message: Message) -> Cdef[i32]:
        """Append a row, even to a full queue: the caller has checked `has_room`."""
        queue = self._queue
        if queue.deduplication is not None and queue.deduplication.holds(message):
            return 0
        message = self._hide(message)
        self._order.staged_for(message).append(message)
        return queue.outcome(message)

    def rows_differ(self, like: Message) -> Cdef[bool]:
        """True if each row has to be staged by itself, as something is noted or numbered."""
        queue = self._queue
        expiry: Expiry | None = queue.expiry
        dated: bool = like.due > 0 or (expiry is not None and expiry.ttl >= 0)
        noted: bool = queue.deduplication is not None or queue.no_local is not None
        return dated or noted or queue.sequence is not None

    def stage_rows(self, rows: Rows, first: isize, end: isize, like: Message) -> Cdef[i32]:
        """Append rows that differ in their bodies only, see `Queue.stage_rows`."""
        queue = self._queue
        if like.exchange is not queue.source:
            queue.arrives_from(like.exchange)
        queue.counters.publish += end - first
        self.count += end - first
        self.byte_count += rows.body_bytes(first, end)
        queue.spares = queue.spares or _FILE <= like.family <= _STREAM
        self._order.staged_for(like).append_rows(rows, first, end, like)
        return 0

    def _hide(self, message: Message) -> C[Message]:
        """Note a message that is appended next; return it with its expiry."""
        queue = self._queue
        if message.exchange is not queue.source:
            queue.arrives_from(message.exchange)
        queue.counters.publish += 1
        expiry: Expiry | None = queue.expiry
        if expiry is not None and expiry.ttl >= 0:
            message = expiry.dated(message, queue.clock.steady)
        if queue.sequence is not None:
            message = queue.sequence.numbered(message)
        local = queue.no_local
        if local is not None and message.origin and local.concerns(message.origin):
            local.note(self._order.next_position(message), message.origin)
        queue.note_kept(message)
        self.count += 1
        self.byte_count += len(message.body)
        self._expires = self._expires or message.due > 0
        queue.spares = queue.spares or _FILE <= message.family <= _STREAM
        return message

    def end(self, roll_back: bool) -> Cdef[Done]:
        """Make the hidden messages ready; settle the rows first if the batch is rolled back."""
        queue = self._queue
        if roll_back:
            self._order.roll_back_batch()
        else:
            self._order.commit_batch()
        limits: Limits | None = queue.limits
        if limits is not None:
            if (roll_back or queue.values is not None) and limits.counts:
                # `byte_count` includes rows, which are gone; it is not known how many bytes.
                begin_count(queue)
            else:
                limits.byte_count += self.byte_count
        if self._expires:
            queue.with_expiry().active = True
        check_limits(queue)
        queue.drain()
        return 0
