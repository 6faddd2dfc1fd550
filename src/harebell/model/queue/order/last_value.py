"""Last values: of the messages with equal keys only the newest stays, in first-in-first-out order.

    published    a1  b1  a2  c1  b2
    ready        .   .   a2  c1  b2        a1 and b1 were replaced, and are dropped

A message that is ready leaves when a newer one of its key is kept. A message that is out
(delivered, put aside, or waiting for its retry) cannot be recalled; it is dropped when it would be
ready again. Messages without a key replace nothing and are never replaced.

The record of a replaced message is settled only when the newer one is on disk: a crash before must
find one of the two. A crash between finds both, and the start replaces the older again.

    leaving      { a2: a1, b2: b1 }        the older message by the newer one

If the newer one is settled first, because it was consumed, the older is settled with it: a crash
must not bring back a value whose successor was consumed.

Two entries per key are in memory. The segments of the log are small (`LAST_VALUE_SEGMENT_BYTES`),
because a segment stays on disk as long as one of its messages does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Any

from harebell.base.c_types import C, Done, Py, i64, isize
from harebell.base.message import Message
from harebell.base.ports import Commit, Log
from harebell.kernels.rows import Rows
from harebell.model.dedup_cache import digest
from harebell.model.editor import Editor
from harebell.model.limits import LAST_VALUE_KEY_BYTES
from harebell.model.queue.order.fifo import FifoOrder
from harebell.model.queue.order.ordering_keys import value_of
from harebell.model.queue.order.staged_rows import StagedRows

_KEY_BYTES: isize = LAST_VALUE_KEY_BYTES


class LastValueOrder(FifoOrder):
    """A first-in-first-out order in which a message replaces an older one of its key.

    Args:
        log: the log of the messages; all in it are ready.
        marks: as for `FifoOrder`.
        key_name: the source of the key: a header, a property or `routing_key`.
        commit: the group commit of a durable log; None for a transient one.

    Attributes:
        replaced: how many messages were replaced.
        displaced: the position of the ready message that the last one replaced; -1 for none.
        victim: this message, if `reads` is set and it can be read.
        reads: whether replaced messages are read, because their size matters.
    """

    def __init__(self, log: Log, marks: bool, key_name: str, commit: Commit | None) -> None:
        super().__init__(log, marks)
        self.replaced: i64 = 0
        self.displaced: i64 = -1
        self.victim: Message | None = None
        self.reads = False
        self._key_name = key_name
        self._commit = commit
        self._editor: Editor | None = None
        # The position of the newest message of a key, and the key of that position.
        self._newest: dict[Hashable, int] = {}
        self._keys: dict[int, Hashable] = {}
        # Positions that are out, and must not be ready again.
        self._outdated: set[int] = set()
        # By the position of a message, that of the older one which it replaced.
        self._leaving: dict[int, int] = {}
        # The commits that have the newer ones on disk, and the positions of these.
        self._waits: deque[tuple[int, int]] = deque()
        # The older ones: they are in the log, and must not be read.
        self._dropped: set[int] = set()

    # --- keys -----------------------------------------------------------------------------------

    def use_editor(self, editor: Editor) -> Done:
        """Set the editor, and replace what a crash has left of older values."""
        self._editor = editor
        position: i64 = self.log.next(0)
        end: i64 = self.log.end()
        while position < end:
            key = self.key_of(self.log.read(position))
            if key is not None:
                older: i64 = self._newest.get(key, -1)
                self._note(key, older, position)
                if older >= 0:
                    # Both are on disk.
                    FifoOrder.discard(self, older)
            position = self.log.next(position + 1)
        return 0

    def key_of(self, message: Message | None) -> C[Hashable | None]:
        """Return the key of a message; None if it has none."""
        editor = self._editor
        if message is None or editor is None:
            return None
        value: Any = None
        if message.has_headers:
            value = editor.header_of(message, self._key_name)
        if value is None:
            value = value_of(editor, self._key_name, message)
        return None if value is None else _comparable(value)

    def older(self, message: Message) -> C[Message | None]:
        """Return the ready message that this one would replace; None if there is none."""
        key = self.key_of(message)
        position: i64 = -1 if key is None else self._newest.get(key, -1)
        if position < 0 or self.first_ready_from(position) != position:
            return None
        return self.log.read(position)

    def key_count(self) -> i64:
        """Return how many keys have a message."""
        return len(self._newest)

    # --- a newer value --------------------------------------------------------------------------

    def keep(self, message: Message) -> Done:
        key = self.key_of(message)
        position: i64 = self.log.end()
        FifoOrder.keep(self, message)
        self.displaced = -1
        if key is None:
            return 0
        staged = self.staged
        if staged is None:
            return self._put(key, position)
        assert isinstance(staged, StagedValues), "as made by begin_batch"
        staged.pending.append((key, position, position + 1))
        return 0

    def deliver_direct(self, message: Message) -> i64:
        key = self.key_of(message)
        position: i64 = FifoOrder.deliver_direct(self, message)
        if key is not None:
            self._put(key, position)
        return position

    def keep_anew(self, position: i64, message: Message) -> C[bool]:
        """Keep a message that is out with other headers; False if it must stay as it is.

        It was replaced, has another key now, or would be hidden by an open batch. The caller
        settles the position where it was.
        """
        key = self._keys.get(position)
        outdated = self._outdated and position in self._outdated
        if outdated or self.staged is not None or self.key_of(message) != key:
            return False
        anew: i64 = self.log.end()
        FifoOrder.keep(self, message)
        if key is not None:
            self._note(key, position, anew)
        return True

    def _put(self, key: Hashable, position: i64) -> Done:
        """Note a message that was kept, and replace the older one of its key."""
        older: i64 = self._newest.get(key, -1)
        self._note(key, older, position)
        if older < 0:
            return 0
        self.replaced += 1
        if self.take_out(older):
            self.displaced = older
            self.victim = self.log.read(older) if self.reads else None
        else:
            self._outdated.add(older)
        commit = self._commit
        if commit is None:
            return self._drop(older)
        self._leaving[position] = older
        self._waits.append((commit.ticket, position))
        self._dropped.add(older)
        return self.settle_replaced()

    def _note(self, key: Hashable, older: i64, position: i64) -> Done:
        """Note the newest message of a key, and the one before; -1 for none."""
        if older >= 0:
            del self._keys[older]
        self._newest[key] = position
        self._keys[position] = key
        return 0

    def _forget(self, position: i64) -> Done:
        """Forget a message that leaves, if it is the newest of a key."""
        key = self._keys.pop(position, None)
        if key is not None:
            del self._newest[key]
        return 0

    def settle_replaced(self) -> Done:
        """Settle the older ones of the messages that are on disk."""
        commit = self._commit
        if commit is None:
            return 0
        done: i64 = commit.done
        while self._waits and self._waits[0][0] <= done:
            self._settle_older(self._waits.popleft()[1])
        return 0

    def settle_all_replaced(self) -> Done:
        """Settle what was replaced, on disk or not: the queue is about to be deleted."""
        while self._waits:
            self._settle_older(self._waits.popleft()[1])
        return 0

    def _settle_older(self, position: i64) -> Done:
        """Settle what a message has replaced, what that had replaced, and so on."""
        while self._leaving:
            position = self._leaving.pop(position, -1)
            if position < 0:
                break
            self._dropped.discard(position)
            self._drop(position)
        return 0

    def _drop(self, position: i64) -> Done:
        """Settle a message that is not ready."""
        self.pass_settled(position)
        self.log.settle(position)
        return 0

    # --- the end of a message -------------------------------------------------------------------

    def read(self, position: i64) -> C[Message | None]:
        """Return a message; None if it was replaced, or cannot be read."""
        if self._dropped and position in self._dropped:
            return None
        return self.log.read(position)

    def is_outdated(self, position: i64) -> C[bool]:
        """True if a message that is out was replaced meanwhile."""
        return position in self._outdated

    def restore(self, position: i64, redelivered: bool) -> Done:
        """Make a message ready again, unless a newer one has replaced it."""
        if self._outdated and position in self._outdated:
            self._outdated.discard(position)
            return 0
        return FifoOrder.restore(self, position, redelivered)

    def settle(self, position: i64) -> Done:
        self._forget(position)
        if self._outdated:
            self._outdated.discard(position)
        if self._leaving:
            self._settle_older(position)
        return FifoOrder.settle(self, position)

    def settle_range(self, first: i64, end: i64) -> Done:
        position: i64
        for position in range(first, end):
            self.settle(position)
        return 0

    def discard(self, position: int) -> bool:
        if not FifoOrder.discard(self, position):
            return False
        self.settle(position)
        return True

    def purge(self) -> i64:
        count: i64 = FifoOrder.purge(self)
        for position in [each for each in self._keys if not self.holds(each)]:
            self.settle(position)
        return count

    def delete(self) -> Done:
        self._newest = {}
        self._keys = {}
        self._outdated = set()
        self._leaving = {}
        self._waits.clear()
        self._dropped = set()
        return FifoOrder.delete(self)

    # --- staged batches -------------------------------------------------------------------------

    def begin_batch(self) -> Done:
        self.staged = StagedValues(self.log, self)
        return 0

    def commit_batch(self) -> i64:
        """Make the hidden messages ready that are the newest of their keys; return how many."""
        staged = self.staged
        if staged is None:
            return 0
        assert isinstance(staged, StagedValues), "as made by begin_batch"
        # Of the hidden messages of a key all but the newest are dropped before any is ready.
        newest: dict[Hashable, int] = {}
        first: i64
        end: i64
        for key, first, end in staged.pending:
            if self.log.next(first) != first:
                # A row of a batch that was rolled back.
                continue
            older: i64 = newest.get(key, -1)
            if older >= 0:
                self.log.settle(older)
                staged.hidden -= 1
                self.replaced += 1
            if end - 1 > first:
                self.log.settle_range(first, end - 1)
                staged.hidden -= end - 1 - first
                self.replaced += end - 1 - first
            newest[key] = end - 1
        count: i64 = FifoOrder.commit_batch(self)
        self.pass_settled(self.log.end() - 1)
        for key, position in newest.items():
            self._put(key, position)
        self.displaced = -1
        return count


class StagedValues(StagedRows):
    """The open batch of a queue of last values.

    Args:
        log: where the rows go.
        order: knows the keys of messages.

    Attributes:
        pending: hidden messages with a key, in order: key, first position, end.
    """

    def __init__(self, log: Log, order: LastValueOrder) -> None:
        super().__init__(log)
        self.pending: list[tuple[Hashable, int, int]] = []
        self._order: Py[LastValueOrder] = order

    def append(self, message: Message) -> Done:
        first: i64 = self._log.end()
        key = self._order.key_of(message)
        StagedRows.append(self, message)
        if key is not None:
            self.pending.append((key, first, first + 1))
        return 0

    def append_rows(self, rows: Rows, first: isize, end: isize, like: Message) -> Done:
        """Append rows that differ in their bodies only, so they have one key."""
        begin: i64 = self._log.end()
        key = self._order.key_of(like)
        StagedRows.append_rows(self, rows, first, end, like)
        if key is not None:
            self.pending.append((key, begin, begin + end - first))
        return 0


def _comparable(value: Any) -> C[Hashable]:
    """Return a key that is equal for equal values only, and not large."""
    if isinstance(value, bytes):
        # Octets and text are one value: 0-10 clients send either.
        value = value.decode(errors="surrogateescape")
    if isinstance(value, str):
        return value if len(value) <= _KEY_BYTES else digest(value)
    # In Python True is 1; in a field table it is not.
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return digest(value)
