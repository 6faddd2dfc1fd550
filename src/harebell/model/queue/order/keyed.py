"""Ordering keys: messages of one key are delivered in order, to one holder at a time.

Different keys are delivered in parallel. While a consumer has unacknowledged deliveries of a key,
only it gets the next messages of that key, within its prefetch. A requeued message, or one that
waits for its retry, blocks its key until no delivery of the key is out, and is delivered first.

The positions of messages that are skipped because their key is held are kept in memory. At a limit
(`waiting_max`) the queue waits for the holders, so memory is bounded.

`take` and `peek` return the oldest message, whatever its key: for expiry and limits. Deliveries use
`take_at` and `take_new`, see `features.key_dispatch`.
"""

from __future__ import annotations

from collections.abc import Hashable

from harebell.base.c_types import C, Done, i64, i64_or_minus_1
from harebell.base.message import Message
from harebell.base.ports import Log
from harebell.kernels.batches import BatchBuilder
from harebell.model.editor import Editor
from harebell.model.limits import GROUP_WAITING_MESSAGES
from harebell.model.queue.order.contract import MessageOrder, with_others
from harebell.model.queue.order.fifo import FifoOrder
from harebell.model.queue.order.ordering_keys import OrderingKeys, key_of


class KeyedOrder(MessageOrder):
    """First in, first out for each key.

    Args:
        log: the log of the messages; all in it are ready.
        marks: as for `FifoOrder`.
        key_name: the source of the key: `routing_key`, a property or a header.

    Attributes:
        keys: the held keys, and the messages that wait for them.
        key: the key of the message that was taken last; None if it has none.
        passed_over: whether `take_new` found a message that has to wait for its key.
        waiting_max: most messages that are skipped and kept in memory.
    """

    def __init__(self, log: Log, marks: bool, key_name: str) -> None:
        super().__init__(log)
        self._fifo = FifoOrder(log, marks)
        self._key_name = key_name
        self._editor: Editor | None = None
        self.count = self._fifo.count
        self.keys = OrderingKeys()
        self.key: Hashable | None = None
        self.passed_over = False
        self.waiting_max: i64 = GROUP_WAITING_MESSAGES

    def use_editor(self, editor: Editor) -> int:
        """Set the editor; before that, no message has a key."""
        self._editor = editor
        return 0

    def key_of(self, message: Message | None) -> C[Hashable | None]:
        """Return the key of a message; None if it has none."""
        if message is None or self._editor is None:
            return None
        return key_of(self._editor, self._key_name, message)

    def levels(self) -> C[list[tuple[int, FifoOrder]]]:
        return [(0, self._fifo)]

    def recount(self) -> Done:
        self.count = self._fifo.count + self.keys.count
        return 0

    def keep(self, message: Message) -> Done:
        self._fifo.keep(message)
        return self.recount()

    def deliver_direct(self, message: Message) -> i64:
        return self._fifo.deliver_direct(message)

    # --- the next message of a key --------------------------------------------------------------

    def take_at(self, position: i64) -> C[Message | None]:
        """Take a message that waits for its key; None if it cannot be read."""
        self.key, self.redelivered = self.keys.take(position)
        self.position = position
        self.recount()
        return self.log.read(position)

    def take_new(self, holder: object) -> C[Message | None]:
        """Take the next message that was not examined yet; None if there is none or it has to wait.

        Set `passed_over` if it has to wait.

        Args:
            holder: messages of its keys need not wait.
        """
        self.passed_over = False
        # Memory is bounded: the queue waits until holders settle messages.
        if self.keys.count >= self.waiting_max:
            return None
        fifo = self._fifo
        message: Message | None = fifo.take()
        if message is not None:
            self.position = fifo.position
            self.redelivered = fifo.redelivered
            self.key = self.key_of(message)
            if (
                self.key is not None
                and self.key in self.keys
                and (holder is None or not self.keys.goes_on(self.key, holder))
            ):
                self.keys.wait(self.key, fifo.position, redelivered=fifo.redelivered)
                self.passed_over = True
                message = None
        self.recount()
        return message

    def take_for(self, position: i64) -> C[Message | None]:
        """Take the waiting message at a position; with -1 the next new one."""
        return self.take_at(position) if position >= 0 else self.take_new(None)

    def hold_key(self, position: i64, holder: object) -> Done:
        """Note that the message that was just taken is out: its holder has the key now."""
        if self.key is not None:
            self.keys.hold(position, self.key, holder)
        return 0

    def restore(self, position: i64, redelivered: bool) -> Done:
        """Requeue a message: it is first once no delivery of its key is out."""
        key = self.keys.release(position)
        if key is None:
            # A message of a released claim or a finished retry: its key is no longer held.
            key = self.key_of(self.log.read(position))
        if key is None:
            self._fifo.restore(position, redelivered)
        else:
            self.keys.restore(key, position, redelivered=redelivered)
        return self.recount()

    def untake(self, position: i64, redelivered: bool) -> Done:
        """Undo `take_at` or `take_new`: the message waits for its key again."""
        if self.key is not None:
            self.keys.wait(self.key, position, redelivered=redelivered)
        else:
            self._fifo.restore(position, redelivered)
        return self.recount()

    def hold(self, position: i64) -> C[bool]:
        held: bool = self._fifo.hold(position)
        key = self.key_of(self.log.read(position)) if held else None
        if key is not None:
            # It is out, so later messages of its key have to wait. No consumer has it: the order
            # itself holds the key.
            self.keys.hold(position, key, self)
        self.recount()
        return held

    # --- the oldest message, whatever its key ---------------------------------------------------

    def take(self) -> C[Message | None]:
        """Take the oldest message."""
        position: i64 = self.keys.oldest()
        while position >= 0:
            message: Message | None = self.take_at(position)
            if message is not None:
                return message
            position = self.keys.oldest()
        fifo = self._fifo
        message = fifo.take()
        self.position = fifo.position
        self.redelivered = fifo.redelivered
        self.recount()
        return message

    def peek(self) -> C[Message | None]:
        """Return the oldest message."""
        position: i64 = self.keys.oldest()
        while position >= 0:
            message: Message | None = self.log.read(position)
            if message is not None:
                return message
            self.keys.take(position)
            position = self.keys.oldest()
        message = self._fifo.peek()
        self.recount()
        return message

    def spilled_head(self) -> i64_or_minus_1:
        return self._fifo.spilled_head() if self.keys.oldest() < 0 else -1

    def skip_spilled(self) -> Done:
        self._fifo.skip_spilled()
        self.position = self._fifo.position
        self.redelivered = self._fifo.redelivered
        return self.recount()

    # --- browsers, limits -----------------------------------------------------------------------

    def next_ready(self, cursors: list[int]) -> i64_or_minus_1:
        first: i64 = self._fifo.first_ready_from(cursors[0])
        waiting: i64 = self.keys.after(cursors[0])
        return waiting if waiting >= 0 and (first < 0 or waiting < first) else first

    def heads_by_log(self) -> list[tuple[Log, int]]:
        positions = (self._fifo.first_ready(), self.keys.oldest())
        ready = [position for position in positions if position >= 0]
        return [(self.log, min(ready))] if ready else []

    def was_out(self, position: i64) -> C[bool]:
        if self.keys.waits(position):
            return self.keys.was_out(position)
        return self._fifo.was_out(position)

    def take_out(self, position: i64) -> C[bool]:
        out: bool = self._fifo.take_out(position)
        self.redelivered = self._fifo.redelivered
        self.recount()
        return out

    def discard(self, position: int) -> bool:
        if self.keys.waits(position):
            self.keys.take(position)
            self.log.settle(position)
            gone = True
        else:
            gone = self._fifo.discard(position)
        self.recount()
        return gone

    def acquire(self, position: i64, holder: object) -> C[bool]:
        """Take a message for a holder of its key; False if another holder has the key."""
        if self.keys.waits(position):
            if not self.keys.may_go(position, holder):
                return False
            key, self.redelivered = self.keys.take(position)
        else:
            key = self.key_of(self.log.read(position))
            # A key with deliveries or waiting messages has others that come before this one.
            if (key is not None and key in self.keys) or not self.take_out(position):
                return False
        if key is not None:
            self.keys.hold(position, key, holder)
        self.recount()
        return True

    def acquire_wanted(self, position: i64, holder: object) -> C[bool]:
        """Take a message for a holder that does not want those before it; False if its key is held.

        A message that waits for its key is no obstacle: it may be one that the holder never takes.
        """
        waits: bool = self.keys.waits(position)
        key = self.keys.key_at(position) if waits else self.key_of(self.log.read(position))
        if key is not None and not self.keys.is_free(key):
            return False
        if waits:
            key, self.redelivered = self.keys.take(position)
        elif not self.take_out(position):
            return False
        if key is not None:
            self.keys.hold(position, key, holder)
        self.recount()
        return True

    def in_ranges(self) -> C[bool]:
        # The next messages are those of free keys, which may be anywhere.
        return False

    def append_to(self, first: int, end: int, into: BatchBuilder) -> int:
        """Make rows; with keys, the position alone does not show what was delivered."""
        into.marks(0, 0, None, None, lambda position: self.was_out(position))
        return self.log.append_to(first, min(end, self._fifo.end()), into)

    def ready_before(self, level: int, end: int) -> tuple[int, int]:
        return with_others(self.keys.positions(), self._fifo.ready_before(level, end), end)

    def mark_out(self, position: i64) -> Done:
        return self._fifo.mark_out(position)

    def settle(self, position: i64) -> Done:
        return self._fifo.settle(position)

    def settle_range(self, first: i64, end: i64) -> Done:
        return self._fifo.settle_range(first, end)

    def purge(self) -> i64:
        count: i64 = self.count
        for position in self.keys.positions():
            self.keys.take(position)
            self.log.settle(position)
        self._fifo.purge()
        self.recount()
        return count

    def delete(self) -> Done:
        self.keys = OrderingKeys()
        self._fifo.delete()
        return self.recount()
