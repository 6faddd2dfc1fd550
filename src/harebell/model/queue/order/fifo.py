"""First in, first out: which messages of one log are ready, and which is next.

    log      | settled ... | delivered . ready again . delivered | ready ready ready |
                                                                 ^ cursor            ^ end

Everything from the cursor to the end is ready, in order. Requeued messages are before the cursor,
in a heap, and are taken first, so a requeued message returns to its place. A restored log may have
settled messages behind the cursor; they are skipped, as are messages taken out of order.

Leased messages are kept as ranges of positions, so a claim costs the same for one message and for a
million. When a claim is released, the cursor moves back to the begin of the claim.

A staged batch may have any number of rows, so they are appended in slices over several turns. Until
the batch is committed, a barrier hides them and all other messages published meanwhile:

    log      | settled ... | ready ready | row row . message . row row row |
                             ^ cursor    ^ barrier: the end for all readers

A rollback settles the rows.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from heapq import heappop, heappush
from operator import itemgetter

from harebell.base.message import Message
from harebell.base.ports import Log
from harebell.kernels.batches import BatchBuilder
from harebell.kernels.rows import Rows
from harebell.model.queue.order.contract import MessageOrder
from harebell.model.queue.position_range import PositionRanges

PositionRange = tuple[int, int]
_first_of = itemgetter(0)


class FifoOrder(MessageOrder):
    """A first-in-first-out order over one log.

    Args:
        log: the log of the messages; all in it are ready.
        marks: whether the log records what was delivered, as it is read again after a restart.

    Attributes:
        damaged: ready messages that could not be read; they were skipped.
        hidden: the number of messages behind the barrier.
    """

    def __init__(self, log: Log, marks: bool) -> None:
        super().__init__(log)
        self.count = log.live()
        self.damaged = 0
        self.hidden = 0
        self._marks = marks
        self._cursor = log.first()
        self._old = log.end()
        self._seen = log.seen()
        self._returned: list[int] = []
        self._held: set[int] | None = None
        self._leased: PositionRanges | None = None
        # Requeued messages: those that count as never delivered, and whether they are sorted.
        self._fresh: set[int] | None = None
        self._sorted = False
        # The barrier of an open batch, and the ranges of its rows; the last one may still grow.
        self._barrier = -1
        self._rows: list[PositionRange] = []
        self._rows_first = self._rows_end = 0

    def end(self) -> int:
        """Return the position behind the last that may be ready."""
        return self.log.end() if self._barrier < 0 else self._barrier

    def keep(self, message: Message) -> int:
        """Append a message; behind the barrier it is not ready yet."""
        self.log.append(message)
        if self._barrier < 0:
            self.count += 1
        else:
            self.hidden += 1
        return 0

    def hand_over(self, message: Message) -> int:
        """Append a message that is delivered at once, as none is ready; return its position."""
        position = self.log.append(message)
        self._cursor = position + 1
        if self._held is not None:
            self._held = None
        if self._marks:
            self.log.see(position + 1)
        return position

    def take(self) -> Message | None:
        """Take the next readable message; None if there is none."""
        while self.count > 0:
            position = self._next()
            message = self.log.read(position)
            if message is not None:
                self.position = position
                return message
            self._pass_over(position)
        return None

    def far(self) -> int:
        """Return the position of the next message if it is far (`Log.far`); -1 for any other."""
        if not self.log.has_large or self.count <= 0:
            return -1
        if self._returned:
            position = self._returned[0]
        else:
            position = self._cursor
            if position < self._old or self._held is not None:
                position = self._cursor = self._next_old(position)
        return position if self.log.far(position) else -1

    def skip(self) -> int:
        """Take the next message, which is far, without reading it."""
        self.position = self._next()
        return 0

    def _next(self) -> int:
        """Take the next position, and set `redelivered`."""
        self.count -= 1
        if self._returned:
            position = self._returned.pop(0) if self._sorted else heappop(self._returned)
            self.redelivered = self._fresh is None or self._touched(position)
            return position
        position = self._cursor
        if position < self._old or self._held is not None:
            position = self._next_old(position)
        self._cursor = position + 1
        self.redelivered = position < self._seen
        if self._marks:
            self.log.see(position + 1)
        return position

    def first_ready(self) -> int:
        """Return the smallest position that is ready; -1 if there is none."""
        if self.count <= 0:
            return -1
        position = self._cursor
        if position < self._old or self._held is not None:
            position = self._cursor = self._next_old(position)
        # The first element is the smallest, in a heap and in a sorted list.
        if self._returned and (self._returned[0] < position or position >= self.end()):
            return self._returned[0]
        return position

    def peek(self) -> Message | None:
        """Return the next readable message, which stays ready."""
        while self.count > 0:
            if self._returned:
                position = self._returned[0]
            else:
                position = self._cursor
                if position < self._old or self._held is not None:
                    position = self._next_old(position)
                    self._cursor = position
            message = self.log.read(position)
            if message is not None:
                return message
            self.count -= 1
            if self._returned:
                if self._sorted:
                    self._returned.pop(0)
                else:
                    heappop(self._returned)
            else:
                self._cursor = position + 1
            self._pass_over(position)
        return None

    def _next_old(self, position: int) -> int:
        """Return the next position from the cursor on that is neither settled nor out."""
        begin = position
        position = self._skip(self.log.next(position))
        held = self._held
        if held is not None:
            while position in held:
                position = self._skip(self.log.next(position + 1))
            # Positions behind the cursor are requeued by `put_back` only.
            if len(held) <= position - begin:
                self._held = {each for each in held if each >= position} or None
            else:
                held.difference_update(range(begin, position))
                if not held:
                    self._held = None
        return position

    def _skip(self, position: int) -> int:
        """Return the first position from an unsettled one on that is not leased."""
        if self._leased is not None:
            behind = self._leased.behind(position)
            while behind != position:
                position = self.log.next(behind)
                behind = self._leased.behind(position)
        return position

    def look(self, position: int) -> int:
        """Return the first ready position from a position on; -1 if there is none."""
        self._sort()
        found = -1
        at = bisect_left(self._returned, position)
        if at < len(self._returned):
            found = self._returned[at]
        position = max(position, self._cursor)
        end = self.end()
        while position < end:
            position = self._skip(self.log.next(position))
            if self._held is None or position not in self._held:
                break
            position += 1
        if position < end and (found < 0 or position < found):
            found = position
        return found

    def take_out(self, position: int) -> bool:
        """Take a message out of order, and set `redelivered`; False if it is not ready."""
        self._sort()
        at = bisect_left(self._returned, position)
        if at < len(self._returned) and self._returned[at] == position:
            del self._returned[at]
            self.redelivered = self._touched(position)
        else:
            if not self._cursor <= position < self.end() or self.log.next(position) != position:
                return False
            if self._skip(position) != position:
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
        held = self._held
        if held is not None:
            # The log knows what is settled, so it need not be kept in memory here too.
            held.discard(position)
            if not held:
                self._held = None
        self._old = max(self._old, position + 1)
        self.log.settle(position)
        return True

    def was_out(self, position: int) -> bool:
        """True if a ready message may have been delivered before."""
        if position < self._cursor or (self._held is not None and position in self._held):
            return self._fresh is None or position not in self._fresh
        return position < self._seen

    def mark(self, into: BatchBuilder) -> int:
        """Tell a row builder which messages may have been delivered before."""
        into.marks(self._cursor, self._seen, self._held, self._fresh, None)
        return 0

    def mark_claimed(self, into: BatchBuilder, seen: int) -> int:
        """As `mark`, for a claim, whose own delivery does not count.

        Args:
            into: the builder.
            seen: the value of `seen` when the claim was made; -1 for the current one.
        """
        into.marks(0, self._seen if seen < 0 else seen, None, None, None)
        return 0

    def saw(self, end: int) -> int:
        """Note that messages below a position may have been delivered before."""
        self._seen = max(self._seen, end)
        return 0

    def seen(self) -> int:
        """Return the position below which messages may have been delivered before."""
        return self._seen

    def untouched(self, position: int) -> int:
        """Count a message that was just put back as never delivered."""
        if self._fresh is None:
            self._fresh = set()
        self._fresh.add(position)
        return 0

    def _touched(self, position: int) -> bool:
        """True if a requeued message counts as delivered before."""
        fresh = self._fresh
        if fresh is None or position not in fresh:
            return True
        fresh.discard(position)
        if not fresh:
            self._fresh = None
        return False

    def _sort(self) -> int:
        """Sort the requeued positions, and keep them sorted from now on."""
        if not self._sorted:
            self._sorted = True
            self._returned.sort()
        return 0

    def hold(self, position: int) -> bool:
        """Withhold a message after a restart; False if it is not ready."""
        if not self._cursor <= position < self._old or self._skip(position) != position:
            return False
        if self._held is None:
            self._held = set()
        if position in self._held:
            return False
        self._held.add(position)
        self.count -= 1
        return True

    def _pass_over(self, position: int) -> int:
        """Skip a ready message that cannot be read; it stays in the log for a repair."""
        self.damaged += 1
        end = self.end()
        if position >= end:
            # The log counts more messages than it can read.
            self.damaged -= 1
            self._cursor = end
            self.count = 0
        return 0

    def put_back(self, position: int) -> int:
        """Return a message that was taken to its place."""
        if self._sorted:
            insort(self._returned, position)
        else:
            heappush(self._returned, position)
        self.count += 1
        return 0

    def purge(self) -> int:
        """Settle all ready messages; return how many."""
        count = self.count
        for position in self._returned:
            self.log.settle(position)
        self._returned.clear()
        begin, end = self._cursor, self.end()
        for first, behind in self._out():
            # It is out, not ready: keep it.
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

    def _out(self) -> list[PositionRange]:
        """Return the positions from the cursor on that are out or leased, in order."""
        out = [(position, position + 1) for position in self._held or ()]
        out.extend(self._leased or ())
        out.sort()
        return [run for run in out if run[1] > self._cursor]

    def relax(self) -> int:
        """Allow the requeued positions to be a heap again; they are sorted on demand."""
        # A sorted list is a heap.
        self._sorted = False
        return 0

    def next_ready(self, cursors: list[int]) -> int:
        """Return the first ready position from the cursor of the log on."""
        return self.look(cursors[0])

    def levels(self) -> list[tuple[int, FifoOrder]]:
        """Return the only order."""
        return [(0, self)]

    def recount(self) -> int:
        """Do nothing: the count is that of the log."""
        return 0

    def order_for(self, message: Message) -> FifoOrder:
        """Return the only order."""
        return self

    # --- staged batches -------------------------------------------------------------------------

    def begin_batch(self) -> int:
        """Hide new messages."""
        self._barrier = self.log.end()
        self._rows_first = self._rows_end = self._barrier
        return 0

    def stage(self, message: Message) -> int:
        """Append a row of the batch."""
        position = self.log.append(message)
        if position != self._rows_end:
            self._end_range()
            self._rows_first = position
        self._rows_end = position + 1
        self.hidden += 1
        return 0

    def stage_rows(self, rows: Rows, first: int, end: int, like: Message) -> int:
        """Append rows of the batch that differ in their bodies only."""
        position = self.log.append_rows(rows, first, end, like)
        if position != self._rows_end:
            self._end_range()
            self._rows_first = position
        self._rows_end = position + end - first
        self.hidden += end - first
        return 0

    def _end_range(self) -> int:
        if self._rows_end > self._rows_first:
            self._rows.append((self._rows_first, self._rows_end))
        return 0

    def has_row(self, position: int) -> bool:
        """True if a position is a row of the open batch."""
        if self._barrier < 0 or position < self._barrier:
            return False
        if self._rows_first <= position < self._rows_end:
            return True
        at = bisect_right(self._rows, position, key=_first_of) - 1
        return at >= 0 and position < self._rows[at][1]

    def commit_batch(self) -> int:
        """Make the hidden messages ready; return how many."""
        count = self.hidden
        self.count += count
        self._barrier = -1
        self.hidden = 0
        self._rows = []
        return count

    def roll_back_batch(self) -> int:
        """Settle the rows, and make the other messages ready; return how many these are."""
        self._end_range()
        for first, end in self._rows:
            self.log.settle_range(first, end)
            self.hidden -= end - first
            # From now on there are gaps behind the cursor.
            self._old = max(self._old, end)
        return self.commit_batch()

    # --- leases ---------------------------------------------------------------------------------

    def claim(self, messages: int, byte_count: int, limit: int) -> list[tuple[int, int, int, int]]:
        """Lease the next messages.

        Args:
            messages: how many at most.
            byte_count: most bytes of the log; the first message may be larger; -1 for no limit.
            limit: most runs.

        Returns:
            The runs: first position, end, messages in it, and their size.
        """
        found: list[tuple[int, int, int, int]] = []
        self._sort()
        while self._returned and messages > 0 and len(found) < limit:
            position = self._returned[0]
            count, size = self._lease(position, position + 1, 1, byte_count, found)
            if count == 0:
                return found
            self._returned.pop(0)
            if self._touched(position):
                self.saw(position + 1)
            messages -= 1
            byte_count = max(byte_count - size, 0) if byte_count >= 0 else -1
        held = sorted(self._held or ())
        while messages > 0 and self.count > 0 and len(found) < limit:
            position = self._next_old(self._cursor)
            self._cursor = position
            at = bisect_left(held, position)
            end = held[at] if at < len(held) else self.end()
            if self._leased is not None:
                end = self._leased.ahead(position, end)
            if position >= end:
                break
            count, size = self._lease(position, end, messages, byte_count, found)
            if count == 0:
                break
            self._cursor = found[-1][1]
            messages -= count
            byte_count = max(byte_count - size, 0) if byte_count >= 0 else -1
        self._old = max(self._old, self._cursor)
        if self._marks:
            self.log.see(self._cursor)
        return found

    def _lease(
        self,
        first: int,
        end: int,
        messages: int,
        byte_count: int,
        found: list[tuple[int, int, int, int]],
    ) -> PositionRange:
        """Lease a range up to the limits; return how many messages, and their size."""
        reached, count, size = self.log.reach(first, end, messages, byte_count)
        if count == 0 and not found:
            reached, count, size = self.log.reach(first, end, 1, -1)
        if count == 0:
            return 0, 0
        self.count -= count
        run = (first, reached, count, size)
        if found and self.log.next(found[-1][1]) == first:
            # They are adjacent: all messages between them are settled.
            last = found.pop()
            self.end_lease(last[0], last[1])
            run = (last[0], reached, last[2] + count, last[3] + size)
        self.lease(run[0], reached)
        found.append(run)
        return count, size

    def lease(self, first: int, end: int) -> int:
        """Lease a range that was taken: all messages in it that are not settled."""
        if self._leased is None:
            self._leased = PositionRanges()
        self._leased.add(first, end)
        return 0

    def withhold(self, first: int, end: int) -> int:
        """Lease a range after a restart; return how many messages it has."""
        _, count, _ = self.log.reach(first, end, end - first, -1)
        self.lease(first, end)
        self.count -= count
        self._old = max(self._old, min(end, self.log.end()))
        return count

    def settle_leased(self, runs: list[PositionRange]) -> int:
        """Settle leased ranges."""
        for first, end in runs:
            self.end_lease(first, end)
            self.log.settle_range(first, end)
        return 0

    def end_lease(self, first: int, end: int) -> int:
        """End the lease of a range; the caller settles it or makes it ready."""
        if self._leased is not None:
            self._leased.remove(first, end)
            if not self._leased:
                self._leased = None
        return 0

    def end_lease_out(self, first: int, end: int) -> int:
        """End the lease of a range whose messages the caller puts back one by one.

        After a restart the cursor may still be before them; it must not take them again.
        """
        self.end_lease(first, end)
        position = self.log.next(max(first, self._cursor))
        while position < end:
            if self._held is None:
                self._held = set()
            self._held.add(position)
            position = self.log.next(position + 1)
        return 0

    def release(self, runs: list[PositionRange]) -> int:
        """Make leased ranges ready again in their place; return how many messages.

        The cursor moves back, so messages behind it may be out: from now on deliveries are noted
        one by one, and requeued messages behind the cursor wait for it.
        """
        count = 0
        before = self._cursor
        mine = PositionRanges()
        for first, end in runs:
            self.end_lease(first, end)
            mine.add(first, end)
            count += self.log.reach(first, end, end - first, -1)[1]
        self.count += count
        if self._held is not None:
            # Messages that were requeued before the cursor moved back, and leased then.
            self._held = {each for each in self._held if mine.behind(each) == each} or None
        back = min([first for first, _ in runs], default=before)
        if back < before:
            self._go_back(back, before, mine)
        self._seen = max(self._seen, max([end for _, end in runs], default=0))
        return count

    def _go_back(self, position: int, before: int, mine: PositionRanges) -> None:
        """Move the cursor back."""
        self._sort()
        returned = [each for each in self._returned if position <= each < before]
        self._returned = [each for each in self._returned if not position <= each < before]
        ready = set(returned)
        held = set(self._held or ())
        held -= ready
        at = self.log.next(position)
        while at < before:
            behind = mine.behind(at)
            if behind == at:
                at = self._skip(at)
                if at >= before:
                    break
                behind = mine.behind(at)
            if behind == at:
                if at not in ready:
                    held.add(at)
                behind = at + 1
            at = self.log.next(behind)
        self._held = held or None
        if self._fresh is not None:
            self._fresh -= ready
        self._cursor = position
        self._old = max(self._old, before)
        self._seen = max(self._seen, before)

    def delete(self) -> int:
        """Delete the log."""
        self.log.delete()
        self._leased = None
        self._returned.clear()
        self.count = 0
        return 0
