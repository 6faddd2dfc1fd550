"""First in, first out: which messages of one log are ready, and which is next.

    log      | settled ... | delivered . requeued . delivered | ready ready ready |
                                                              ^ cursor            ^ end

Everything from the cursor to the end is ready, in order. Requeued messages are before the cursor,
in a heap, and are taken first, so a requeued message returns to its place, as in RabbitMQ. A
restored log may have settled messages behind the cursor; they are skipped, as are messages taken
out of order.

Leased messages are ranges of positions (`leased_ranges`), which the cursor skips. When a claim is
released, the cursor moves back to the begin of the claim.

A staged batch may have any number of rows, so they are appended in slices over several turns. Until
the batch is committed, a barrier hides them and all other messages published meanwhile
(`staged_rows`): the barrier is the end for all readers. A rollback settles the rows.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from heapq import heappop, heappush

from harebell.base.c_types import C, Cpdef, Done, Py, i64, i64_or_minus_1, isize
from harebell.base.message import Message
from harebell.base.ports import Log
from harebell.kernels.batches import BatchBuilder
from harebell.model.queue.order.contract import MessageOrder
from harebell.model.queue.order.leased_ranges import LeasedRanges, PositionRange, RangeClaim
from harebell.model.queue.order.staged_rows import StagedRows


class FifoOrder(MessageOrder):
    """A first-in-first-out order over one log.

    Args:
        log: the log of the messages; all in it are ready.
        marks: whether the log records what was delivered, as it is read again after a restart.

    Attributes:
        damaged: ready messages that could not be read; they were skipped.
        staged: the open batch; None without one.
    """

    def __init__(self, log: Log, marks: bool) -> None:
        super().__init__(log)
        self.count = log.live()
        self.damaged: i64 = 0
        self.staged: StagedRows | None = None
        self._marks = marks
        self._cursor: i64 = log.first()
        # Below this position the log may have gaps, so the cursor asks the log for the next one.
        self._old: i64 = log.end()
        self._seen: i64 = log.seen()
        self._requeued: list[int] = []
        # Positions from the cursor on that are out; None if there are none: `_next` tests it.
        self._held: set[int] | None = None
        self._leases: LeasedRanges | None = None
        # Requeued messages: those that count as never delivered, as their consumer had not seen
        # them, and whether they are sorted. A heap takes a message quickly, a sorted list finds a
        # position.
        self._fresh: set[int] | None = None
        self._sorted = False

    @property
    def hidden(self) -> int:
        """How many messages an open batch hides."""
        return 0 if self.staged is None else self.staged.hidden

    def end(self) -> i64:
        """Return the position behind the last that may be ready."""
        return self.log.end() if self.staged is None else self.staged.barrier

    def keep(self, message: Message) -> Done:
        """Append a message; behind the barrier it is not ready yet."""
        self.log.append(message)
        if self.staged is None:
            self.count += 1
        else:
            self.staged.hidden += 1
        return 0

    def deliver_direct(self, message: Message) -> i64:
        """Append a message that is delivered at once, as none is ready; return its position."""
        position: i64 = self.log.append(message)
        # Nothing is ready, so everything between the old cursor and the end is settled or out.
        self._cursor = position + 1
        if self._held is not None:
            self._held = None
        if self._marks:
            self.log.see(position + 1)
        return position

    def take(self) -> C[Message | None]:
        """Take the next readable message; None if there is none."""
        while self.count > 0:
            position: i64 = self._next()
            message: Message | None = self.log.read(position)
            if message is not None:
                self.position = position
                return message
            self._pass_over(position)
        return None

    def spilled_head(self) -> i64_or_minus_1:
        """Return the position of the next message if `Log.is_spilled` says so, else -1."""
        if not self.log.has_large or self.count <= 0:
            return -1
        if self._requeued:
            position: i64 = self._requeued[0]
        else:
            position = self._cursor
            if position < self._old or self._held is not None:
                position = self._cursor = self._next_old(position)
        return position if self.log.is_spilled(position) else -1

    def skip_spilled(self) -> Done:
        """Take the next message, which is spilled, without reading it."""
        self.position = self._next()
        return 0

    def _next(self) -> i64_or_minus_1:
        """Take the next position, and set `redelivered`."""
        self.count -= 1
        if self._requeued:
            # Before the message at the cursor, which is younger, except after a released claim.
            position: i64 = self._requeued.pop(0) if self._sorted else heappop(self._requeued)
            self.redelivered = self._fresh is None or self._take_redelivered(position)
            return position
        position = self._cursor
        if position < self._old or self._held is not None:
            position = self._next_old(position)
        self._cursor = position + 1
        self.redelivered = position < self._seen
        if self._marks:
            # Before the delivery: after a crash the message counts as redelivered, even if no
            # client got it. RabbitMQ does the same; the other error would hide a duplicate.
            self.log.see(position + 1)
        return position

    def first_ready(self) -> i64_or_minus_1:
        """Return the smallest position that is ready; -1 if there is none."""
        if self.count <= 0:
            return -1
        position: i64 = self._cursor
        if position < self._old or self._held is not None:
            position = self._cursor = self._next_old(position)
        # The first element is the smallest, in a heap and in a sorted list. At the end nothing is
        # ready from the cursor on.
        if self._requeued and (self._requeued[0] < position or position >= self.end()):
            return self._requeued[0]
        return position

    def peek(self) -> C[Message | None]:
        """Return the next readable message, which stays ready."""
        while self.count > 0:
            if self._requeued:
                position: i64 = self._requeued[0]
            else:
                position = self._cursor
                if position < self._old or self._held is not None:
                    position = self._next_old(position)
                    self._cursor = position
            message: Message | None = self.log.read(position)
            if message is not None:
                return message
            self.count -= 1
            if self._requeued:
                if self._sorted:
                    self._requeued.pop(0)
                else:
                    heappop(self._requeued)
            else:
                self._cursor = position + 1
            self._pass_over(position)
        return None

    def _next_old(self, position: i64) -> i64:
        """Return the next position from the cursor on that is neither settled nor out."""
        begin: i64 = position
        position = self._next_free(position)
        held = self._held
        if held is not None:
            while position in held:
                position = self._next_free(position + 1)
            # Positions behind the cursor are requeued by `restore` only.
            if len(held) <= position - begin:
                self._held = {each for each in held if each >= position} or None
            else:
                held.difference_update(range(begin, position))
                if not held:
                    self._held = None
        return position

    def _next_free(self, position: i64) -> i64:
        """Return the first position from one on that is neither settled nor leased."""
        position = self.log.next(position)
        return position if self._leases is None else self._leases.skip(position)

    def first_ready_from(self, position: i64) -> i64_or_minus_1:
        """Return the first ready position from a position on; -1 if there is none."""
        first: i64 = -1
        if self._requeued:
            self._sort()
            index: isize = bisect_left(self._requeued, position)
            if index < len(self._requeued):
                first = self._requeued[index]
        position = max(position, self._cursor)
        end: i64 = self.end()
        while position < end:
            position = self._next_free(position)
            if self._held is None or position not in self._held:
                break
            position += 1
        if position < end and (first < 0 or position < first):
            first = position
        return first

    def take_out(self, position: i64) -> C[bool]:
        """Take a message out of order, and set `redelivered`; False if it is not ready."""
        self._sort()
        index: isize = bisect_left(self._requeued, position)
        if index < len(self._requeued) and self._requeued[index] == position:
            del self._requeued[index]
            self.redelivered = self._take_redelivered(position)
        else:
            if not self._cursor <= position < self.end() or self._next_free(position) != position:
                return False
            if self._held is None:
                self._held = set()
            elif position in self._held:
                return False
            self._held.add(position)
            self.redelivered = position < self._seen
        self.count -= 1
        return True

    def discard(self, position: int) -> bool:
        """Settle a ready message out of order; False if it is not ready."""
        if not self.take_out(position):
            return False
        self.pass_settled(position)
        self.log.settle(position)
        return True

    def pass_settled(self, position: i64) -> Done:
        """Forget that a message is out: the log knows that it is settled."""
        held = self._held
        if held is not None:
            held.discard(position)
            if not held:
                self._held = None
        self._old = max(self._old, position + 1)
        return 0

    def mark_out(self, position: i64) -> Done:
        """Note that a message may be delivered from now on, and those before it."""
        # Before the delivery, as in `_next`.
        return self.log.see(position + 1) if self._marks else 0

    def settle(self, position: i64) -> Done:
        """Remove a message."""
        held = self._held
        if held is not None and position in held:
            # The log knows what is settled, so it need not be kept in memory here too.
            self.pass_settled(position)
        return self.log.settle(position)

    def settle_range(self, first: i64, end: i64) -> Done:
        """Remove the messages from `first` up to, not including, `end`."""
        held = self._held
        if held is not None:
            held.difference_update(range(first, end))
            self._old = max(self._old, end)
            if not held:
                self._held = None
        return self.log.settle_range(first, end)

    def ready_before(self, level: int, end: int) -> tuple[int, int]:
        """Return how many messages before a position are ready, and the first of them."""
        first = self.first_ready_from(0)
        if not 0 <= first < end:
            return 0, -1
        count = bisect_left(self._requeued, end)
        if end > self._cursor:
            count += self.log.live_in(self._cursor, end)
            for begin, behind in self._out():
                # Those that were requeued meanwhile are counted above.
                count -= self.log.live_in(max(begin, self._cursor), min(behind, end))
        return count, first

    def was_out(self, position: i64) -> C[bool]:
        """True if a ready message may have been delivered before."""
        if position < self._cursor or (self._held is not None and position in self._held):
            return self._fresh is None or position not in self._fresh
        return position < self._seen

    def mark(self, into: Py[BatchBuilder]) -> Done:
        """Set the redelivered marks of a row builder."""
        into.marks(self._cursor, self._seen, self._held, self._fresh, None)
        return 0

    def mark_claimed(self, into: Py[BatchBuilder], seen: i64) -> Done:
        """As `mark`, for a claim, whose own delivery does not count.

        Args:
            into: the builder.
            seen: the value of `seen` when the claim was made; -1 for the current one.
        """
        into.marks(0, self._seen if seen < 0 else seen, None, None, None)
        return 0

    def saw(self, end: i64) -> Done:
        """Note that messages below a position may have been delivered before."""
        self._seen = max(self._seen, end)
        return 0

    def seen(self) -> i64:
        """Return the position below which messages may have been delivered before."""
        return self._seen

    def _take_redelivered(self, position: i64) -> C[bool]:
        """Forget whether a requeued message counts as delivered before, and return it."""
        fresh = self._fresh
        if fresh is None or position not in fresh:
            return True
        fresh.discard(position)
        if not fresh:
            self._fresh = None
        return False

    def _sort(self) -> Done:
        """Sort the requeued positions, and keep them sorted from now on."""
        if not self._sorted:
            self._sorted = True
            self._requeued.sort()
        return 0

    def hold(self, position: i64) -> C[bool]:
        """Withhold a message after a restart; False if it is not ready."""
        if not self._cursor <= position < self._old or self._next_free(position) != position:
            return False
        if self._held is None:
            self._held = set()
        if position in self._held:
            return False
        self._held.add(position)
        self.count -= 1
        return True

    def _pass_over(self, position: i64) -> Done:
        """Skip a ready message that cannot be read; it stays in the log for a repair."""
        self.damaged += 1
        end: i64 = self.end()
        if position >= end:
            # The log counts more messages than it can read.
            self.damaged -= 1
            self._cursor = end
            self.count = 0
        return 0

    def restore(self, position: i64, redelivered: bool) -> Done:
        if not redelivered:
            if self._fresh is None:
                self._fresh = set()
            self._fresh.add(position)
        if self._sorted:
            insort(self._requeued, position)
        else:
            heappush(self._requeued, position)
        self.count += 1
        return 0

    def purge(self) -> i64:
        """Settle all ready messages; return how many."""
        count: i64 = self.count
        for position in self._requeued:
            self.log.settle(position)
        self._requeued.clear()
        end: i64
        begin: i64
        begin, end = self._cursor, self.end()
        for first, behind in self._out():
            # It is delivered or leased, not ready: keep it.
            if first > begin:
                self.log.settle_range(begin, first)
            begin = max(begin, behind)
        if begin < end:
            self.log.settle_range(begin, end)
        self._cursor = end
        self._held = None
        self._fresh = None
        self.count = 0
        return count

    def _out(self) -> Cpdef[list[PositionRange]]:
        """Return the positions from the cursor on that are out or leased, in order."""
        out = [(position, position + 1) for position in self._held or ()]
        out.extend(self._leases or ())
        out.sort()
        return [run for run in out if run[1] > self._cursor]

    def relax(self) -> Done:
        """Allow the requeued positions to be a heap again; they are sorted on demand."""
        # A sorted list is a heap.
        self._sorted = False
        return 0

    def next_ready(self, cursors: list[int]) -> i64_or_minus_1:
        """Return the first ready position from the cursor of the log on."""
        return self.first_ready_from(cursors[0])

    def levels(self) -> C[list[tuple[int, FifoOrder]]]:
        """Return the only order."""
        return [(0, self)]

    def heads_by_log(self) -> list[tuple[Log, int]]:
        """Return the only log, with the position of the oldest ready message; nothing if none."""
        position = self.first_ready()
        return [(self.log, position)] if position >= 0 else []

    def recount(self) -> Done:
        """Do nothing: the count is that of the log."""
        return 0

    def order_for(self, message: Message) -> FifoOrder:
        """Return the only order."""
        return self

    # --- staged batches -------------------------------------------------------------------------

    def begin_batch(self) -> Done:
        """Hide new messages."""
        self.staged = StagedRows(self.log)
        return 0

    def has_row(self, position: i64) -> C[bool]:
        """True if a position is a row of the open batch."""
        return self.staged is not None and self.staged.has(position)

    def commit_batch(self) -> i64:
        """Make the hidden messages ready; return how many."""
        count: i64 = self.hidden
        self.count += count
        self.staged = None
        return count

    def roll_back_batch(self) -> i64:
        """Settle the rows, and make the other messages ready; return how many these are."""
        if self.staged is not None:
            # Settled rows are gaps behind the cursor.
            self._old = max(self._old, self.staged.settle())
        return self.commit_batch()

    # --- leases ---------------------------------------------------------------------------------

    def leases(self) -> C[LeasedRanges]:
        """Return the leased ranges, made on first use: most queues are never leased."""
        if self._leases is None:
            self._leases = LeasedRanges(self.log)
        return self._leases

    def claim(
        self, messages: i64, byte_count: i64, ranges: i64
    ) -> C[list[tuple[int, int, int, int]]]:
        """Lease the next messages; return the runs, see `RangeClaim` for them and the limits."""
        claim: RangeClaim = RangeClaim(self.log, messages, byte_count, ranges)
        # Requeued messages first, as for consumers: they are the oldest.
        self._sort()
        while self._requeued and claim.has_room():
            position: i64 = self._requeued[0]
            if claim.add(position, position + 1):
                self.count -= 1
                self._requeued.pop(0)
                if self._take_redelivered(position):
                    self.saw(position + 1)
        held = sorted(self._held or ())
        while self.count > 0 and claim.has_room():
            position = self._cursor = self._next_old(self._cursor)
            index: isize = bisect_left(held, position)
            end: i64 = held[index] if index < len(held) else self.end()
            if self._leases is not None:
                end = self._leases.ahead(position, end)
            if position >= end:
                break
            count: i64 = claim.add(position, end)
            if count:
                self.count -= count
                self._cursor = claim.runs[-1][1]
        self._old = max(self._old, self._cursor)
        if self._marks:
            self.log.see(self._cursor)
        # Only now: runs of this claim may still have been merged.
        first: i64
        for first, end, _, _ in claim.runs:
            self.leases().add(first, end)
        return claim.runs

    def withhold(self, first: i64, end: i64) -> i64:
        """Lease a range after a restart; return how many messages it has."""
        count = self.log.live_in(first, end)
        self.leases().add(first, end)
        self.count -= count
        self._old = max(self._old, min(end, self.log.end()))
        return count

    def end_lease_out(self, first: i64, end: i64) -> Done:
        """End the lease of a range whose messages the caller puts back one by one.

        After a restart the cursor may still be before them; it must not take them again.
        """
        self.leases().remove(first, end)
        position: i64 = self.log.next(max(first, self._cursor))
        while position < end:
            if self._held is None:
                self._held = set()
            self._held.add(position)
            position = self.log.next(position + 1)
        return 0

    def release(self, runs: list[PositionRange]) -> i64:
        """Make leased ranges ready again in their place; return how many messages.

        The cursor moves back, so messages behind it may be out: from now on deliveries are noted
        one by one, and requeued messages behind the cursor wait for it.
        """
        count: i64 = 0
        before = self._cursor
        mine: LeasedRanges = LeasedRanges(self.log)
        for first, end in runs:
            self.leases().remove(first, end)
            mine.add(first, end)
            count += self.log.live_in(first, end)
        self.count += count
        if self._held is not None:
            # Messages that were requeued before the cursor moved back, and leased then.
            self._held = {each for each in self._held if mine.behind(each) == each} or None
        back = min([first for first, _ in runs], default=before)
        if back < before:
            self._go_back(back, before, mine)
        # The group may have read them, so they count as delivered before.
        self._seen = max(self._seen, max([end for _, end in runs], default=0))
        return count

    def _go_back(self, position: i64, before: i64, mine: LeasedRanges) -> Done:
        """Move the cursor back.

        Args:
            position: the first position of the released ranges.
            before: where the cursor was.
            mine: the released ranges.
        """
        self._sort()
        # From now on these are behind the cursor, which comes to them by itself.
        requeued = [each for each in self._requeued if position <= each < before]
        self._requeued = [each for each in self._requeued if not position <= each < before]
        ready = set(requeued)
        held = set(self._held or ())
        held -= ready
        current: i64 = self._next_free(position)
        while current < before:
            behind: i64 = mine.behind(current)
            if behind == current:
                if current not in ready:
                    # It is neither settled, leased nor ready, so it is delivered.
                    held.add(current)
                behind = current + 1
            current = self._next_free(behind)
        self._held = held or None
        if self._fresh is not None:
            self._fresh -= ready
        self._cursor = position
        self._old = max(self._old, before)
        self._seen = max(self._seen, before)
        return 0

    def delete(self) -> Done:
        """Delete the log."""
        self.log.delete()
        self._leases = None
        self._requeued.clear()
        self.count = 0
        return 0
