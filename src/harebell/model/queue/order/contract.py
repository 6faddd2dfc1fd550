"""The contract of a message order: which message of a queue is next.

Each queue type has a message order. The order keeps the messages in one log or several, and knows
which are ready and which is next. Consumers, limits and time are handled by `MessageQueue`.

An order implements the methods of the first section. The others have defaults for an order over
one log, `log`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from harebell.base.c_types import C, Done, i32, i64, i64_or_minus_1
from harebell.base.message import Message
from harebell.base.ports import Log
from harebell.kernels.batches import BatchBuilder
from harebell.model.queue.position_range import MessageRange, span_of

if TYPE_CHECKING:
    from harebell.model.queue.order.fifo import FifoOrder
    from harebell.model.queue.order.staged_rows import StagedRows


class MessageOrder:
    """The messages of one queue.

    Args:
        log: the log of the messages; None for an order over several logs.

    Attributes:
        count: the number of ready messages.
        position: the position of the message that was taken last.
        redelivered: whether that message may have been delivered before.
        level_bits: how many bits of a position are the level of its log.
        staging: whether a batch is open, which hides new messages; a log that is made meanwhile
            takes part in it.
        heads: how many messages are checked for expiry: one for each log.
    """

    def __init__(self, log: Log | None) -> None:
        self.log: Log = log  # type: ignore[assignment]
        self.count: i64 = 0
        self.position: i64 = -1
        self.redelivered = False
        self.level_bits: i32 = 0
        self.heads: i32 = 1
        self.staging = False

    # --- implemented by each order ----------------------------------------------------------------

    def keep(self, message: Message) -> Done:
        """Append a message behind those that are ready."""
        raise NotImplementedError

    def deliver_direct(self, message: Message) -> i64:
        """Keep a message that is delivered at once, as none is ready; return its position."""
        raise NotImplementedError

    def take(self) -> C[Message | None]:
        """Take the next ready message; set `position` and `redelivered`."""
        raise NotImplementedError

    def peek(self) -> C[Message | None]:
        """Return the next ready message, which stays ready."""
        raise NotImplementedError

    def restore(self, position: i64, redelivered: bool) -> Done:
        """Make a message that was taken ready again, in its place.

        Args:
            position: the position of the message.
            redelivered: whether it counts as delivered before; not every order records that.
        """
        raise NotImplementedError

    def next_ready(self, cursors: list[int]) -> i64_or_minus_1:
        """Return the first ready position from these cursors on; -1 if there is none.

        Args:
            cursors: one for each log.
        """
        raise NotImplementedError

    def was_out(self, position: i64) -> C[bool]:
        """True if a ready message may have been delivered before."""
        raise NotImplementedError

    def take_out(self, position: i64) -> C[bool]:
        """Take a ready message out of order, and set `redelivered`; False if it is not ready."""
        raise NotImplementedError

    def mark_out(self, position: i64) -> Done:
        """Note on disk, where that is kept, that a message may be delivered from now on."""
        raise NotImplementedError

    def ready_before(self, level: int, end: int) -> tuple[int, int]:
        """Return how many messages of a level are ready before a position in its log.

        Returns:
            How many, and the position of the first of them in that log; -1 if there is none.
        """
        raise NotImplementedError

    def hold(self, position: i64) -> C[bool]:
        """Withhold a message after a restart; False if it is not ready."""
        raise NotImplementedError

    def purge(self) -> i64:
        """Settle all ready messages; return how many."""
        raise NotImplementedError

    def delete(self) -> Done:
        """Delete all messages and the logs."""
        raise NotImplementedError

    def levels(self) -> C[list[tuple[int, FifoOrder]]]:
        """Return the orders of the logs with their levels, in the order in which they are taken."""
        raise NotImplementedError

    def recount(self) -> Done:
        """Set `count` again after the orders of the logs were changed directly."""
        raise NotImplementedError

    # --- overridden by some orders ----------------------------------------------------------------

    def order_for(self, message: Message) -> FifoOrder:
        """Return the order of the log in which a message is kept."""
        return self.levels()[0][1]

    def staged_for(self, message: Message) -> C[StagedRows]:
        """Return the open batch in the log in which a message is kept."""
        staged = self.order_for(message).staged
        assert staged is not None, "every log takes part in a batch from its begin on"
        return staged

    def begin_batch(self) -> Done:
        """Hide new messages."""
        self.staging = True
        for _, order in self.levels():
            order.begin_batch()
        return 0

    def commit_batch(self) -> i64:
        """Make the hidden messages ready; return how many."""
        self.staging = False
        count = sum([order.commit_batch() for _, order in self.levels()])
        self.recount()
        return count

    def roll_back_batch(self) -> i64:
        """Settle the rows of the batch, make the other messages ready; return their number."""
        self.staging = False
        count = sum([order.roll_back_batch() for _, order in self.levels()])
        self.recount()
        return count

    def untake(self, position: i64, redelivered: bool) -> Done:
        """Undo `take`."""
        return self.restore(position, redelivered)

    def spilled_head(self) -> i64_or_minus_1:
        """Return the position of the next message if `Log.is_spilled` says so, else -1."""
        return -1

    def load_spilled(self, done: Callable[[], object]) -> Done:
        """Read the next message, which is spilled, in slices."""
        self.log.load_spilled(self.spilled_head(), done)
        return 0

    def skip_spilled(self) -> Done:
        """Take the next message, which is spilled, without reading it; set `position`."""
        raise NotImplementedError

    def take_victim(self) -> C[Message | None]:
        """Take the message to drop when the queue is full."""
        return self.take()

    def peek_head(self, head: i32) -> C[Message | None]:
        """Return the first message of one of the `heads`, which stays ready."""
        return self.peek()

    def take_head(self, head: i32) -> C[Message | None]:
        """Take the first message of one of the `heads`."""
        return self.take()

    def is_spilled(self, position: i64) -> C[bool]:
        """True if `read` would block the event loop: the message is large and on disk."""
        return self.log.has_large and self.log.is_spilled(position)

    def load(self, position: i64, done: Callable[[], object]) -> Done:
        """Read a spilled message in slices; `done` is called when it is no longer spilled."""
        self.log.load_spilled(position, done)
        return 0

    def pass_by(self, cursors: list[int], position: i64) -> Done:
        """Move the cursors behind a position that `next_ready` returned."""
        cursors[0] = position + 1
        return 0

    def acquire(self, position: i64, holder: object) -> C[bool]:
        """Take a message out of order for one holder; False if it may not have it."""
        return self.take_out(position)

    def discard(self, position: int) -> bool:
        """Settle a ready message out of order; False if it is not ready."""
        if not self.take_out(position):
            return False
        self.settle(position)
        return True

    def in_ranges(self) -> C[bool]:
        """True if the next messages are ranges of the logs that can be claimed as they are."""
        return True

    def next_position(self, message: Message) -> i64:
        """Return the position that the next message gets."""
        return self.log.end()

    def read(self, position: i64) -> C[Message | None]:
        """Return a message that is not settled; None if it cannot be read."""
        return self.log.read(position)

    def settle(self, position: i64) -> Done:
        """Remove a message."""
        return self.log.settle(position)

    def settle_range(self, first: i64, end: i64) -> Done:
        """Remove the messages from `first` up to, not including, `end`; not with several logs."""
        return self.log.settle_range(first, end)

    def holds(self, position: i64) -> C[bool]:
        """True if there is a message at a position, and it is not settled."""
        return position < self.log.end() and self.log.next(position) == position

    def time_of(self, position: int) -> int:
        """Return when a message was appended, in milliseconds since 1970; 0 if it is unknown."""
        return self.log.time_of(position)

    def heads_by_log(self) -> list[tuple[Log, int]]:
        """Return each log that has ready messages, with the position of the oldest of them."""
        heads = ((order.log, order.first_ready()) for _, order in self.levels())
        return [(log, position) for log, position in heads if position >= 0]

    def delivery_count(self, position: i64) -> i32:
        """Return the delivery count in the log; see `features.retry_delays`."""
        return self.log.count(position)

    def set_delivery_count(self, position: i64, count: i32) -> Done:
        """Write the delivery count to the log."""
        return self.log.set_count(position, count)

    def counted_positions(self) -> list[int]:
        """Return the positions of messages with a delivery count."""
        return self.log.counted()

    def sync_soon(self) -> Done:
        """Add what was settled to the next commit."""
        return self.log.sync_soon()

    def span(self, moment: int) -> MessageRange:
        """Return the range of the messages, see `contract.Queue.span`."""
        order = self.levels()[0][1]
        return span_of(self.log, order.end(), moment, order.hidden)

    def append_to(self, first: int, end: int, into: BatchBuilder) -> int:
        """Make rows of messages, delivered or not, see `contract.Queue.append_to`."""
        order = self.levels()[0][1]
        order.mark(into)
        return self.log.append_to(first, min(end, order.end()), into)


def with_others(positions: Iterable[int], counted: tuple[int, int], end: int) -> tuple[int, int]:
    """Add positions to the result of `ready_before`, as far as they are before `end`."""
    others = [position for position in positions if position < end]
    count, first = counted
    ready = [*others, first] if first >= 0 else others
    return count + len(others), min(ready, default=-1)
