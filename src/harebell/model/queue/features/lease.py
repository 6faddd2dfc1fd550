"""Leases of a queue: ranges of positions that a group has claimed and not committed.

A leased message is neither ready nor unacknowledged. Purge, expiry and limits do not apply to it
until it is committed or released. `harebell.model.lease.leases` keeps the groups and their claims.

    claim      ready messages; with ordering keys, of keys that are free or held by the group
    commit     settle; keys without other deliveries are free
    release    ready again, in its place; a quorum queue counts a failed delivery

A queue has this part from its first lease on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from harebell.base.c_types import C, Cpdef, Done, i32, i64
from harebell.base.message import Message
from harebell.base.ports import Log
from harebell.kernels.batches import BatchBuilder
from harebell.model.dead_letter import EXPIRED
from harebell.model.limits import (
    COUNTED_PER_TURN,
    LEASE_CLAIM_RANGES,
    LEASE_KEYED_MESSAGES,
    LEASE_SINGLE_MESSAGES,
)
from harebell.model.queue.features.head_expiry import check_head, expire_heads
from harebell.model.queue.features.limit_enforcement import begin_count, check_limits
from harebell.model.queue.features.limits import Limits
from harebell.model.queue.features.ready_bytes import (
    add_ready_bytes,
    add_ready_bytes_at,
    subtract_ready_bytes,
)
from harebell.model.queue.order.contract import MessageOrder
from harebell.model.queue.position_range import (
    LogRange,
    PickedPositions,
    append_runs_to,
    level_marker,
)

if TYPE_CHECKING:
    from harebell.model.queue.features.queue_internals import QueueInternals
    from harebell.model.queue.order.fifo import FifoOrder
    from harebell.model.queue.order.keyed import KeyedOrder

_SINGLE: i32 = LEASE_SINGLE_MESSAGES
_RANGES: i32 = LEASE_CLAIM_RANGES


class LeasedRange(NamedTuple):
    """A range of positions of one log that is leased: all messages in it that are not settled.

    Args:
        level: the level in a priority queue; 0 in all others.
        first: the first position in the level's log.
        end: the position behind the last one.
    """

    level: int
    first: int
    end: int


class ClaimedMessages(NamedTuple):
    """The messages of a claim.

    Args:
        runs: their positions.
        messages: how many.
        byte_count: their size in the log.
        seen: for each level, the position below which messages may have been delivered before.
    """

    runs: tuple[LeasedRange, ...]
    messages: int
    byte_count: int
    seen: tuple[tuple[int, int], ...] = ()


class Claims:
    """The leases of one queue.

    Args:
        queue: whose messages are claimed.
    """

    def __init__(self, queue: QueueInternals) -> None:
        self._queue = queue
        self._order: MessageOrder = queue.order

    # --- claiming -------------------------------------------------------------------------------

    def claim(self, messages: i64, byte_count: i64, holder: object) -> C[ClaimedMessages | None]:
        """Lease ready messages; None if there are none.

        Args:
            messages: how many at most.
            byte_count: most bytes of the log; the first message may be larger; 0 for no limit.
            holder: the group; it holds the ordering keys of its messages.
        """
        queue: QueueInternals
        order: MessageOrder
        queue, order = self._queue, self._order
        if queue.keyed is not None:
            # Each leased message of a key is kept in memory.
            messages = min(messages, LEASE_KEYED_MESSAGES - queue.leased)
            if messages <= 0:
                return None
        queue.prepare_take()
        if order.count <= 0:
            return None
        limit = byte_count if byte_count > 0 else -1
        if queue.keyed is not None:
            taken = self._claim_keyed(queue.keyed, messages, limit, holder)
        elif queue.may_expire or queue.counts_bytes or not order.in_ranges():
            # Expiry and size are known only of messages that were read.
            taken = self._claim_singly(messages, limit)
        else:
            taken = self._claim_ranges(messages, limit)
        if taken.messages == 0:
            return None
        queue.leased += taken.messages
        # Leased messages are not ready, so a queue that refused messages may have room now.
        limits: Limits | None = queue.limits
        if limits is not None and limits.refusing and limits.low(order.count):
            limits.refusing = False
        check_head(queue)
        orders = dict(order.levels())
        levels = sorted({run.level for run in taken.runs})
        return taken._replace(seen=tuple([(level, orders[level].seen()) for level in levels]))

    def _claim_ranges(self, messages: i64, byte_count: i64) -> Cpdef[ClaimedMessages]:
        """Claim whole ranges of the logs."""
        runs: list[LeasedRange] = []
        count: i64 = 0
        size: i64 = 0
        order: FifoOrder
        for level, order in self._order.levels():
            remaining: i64 = -1 if byte_count < 0 else max(byte_count - size, 0)
            if count >= messages or order.count <= 0 or (remaining == 0 and count):
                continue
            for first, end, run_messages, run_bytes in order.claim(
                messages - count, remaining, _RANGES - len(runs)
            ):
                runs.append(LeasedRange(level, first, end))
                count += run_messages
                size += run_bytes
            if order.count:
                # A limit is reached: lower priorities must not overtake what remains ready.
                break
        self._order.recount()
        return ClaimedMessages(tuple(runs), count, size)

    def _claim_singly(self, messages: i64, byte_count: i64) -> Cpdef[ClaimedMessages]:
        """Claim one message at a time, if each has to be read."""
        queue: QueueInternals
        order: MessageOrder
        queue, order = self._queue, self._order
        orders = dict(order.levels())
        bits: i32 = order.level_bits
        runs: list[LeasedRange] = []
        count: i64 = 0
        size: i64 = 0
        for _ in range(_SINGLE):
            message: Message | None = order.take() if count < messages else None
            if message is None:
                break
            position: i64
            redelivered: bool
            position, redelivered = order.position, order.redelivered
            subtract_ready_bytes(queue, message)
            if message.due and queue.expired(message):
                queue.dead_letter(position, EXPIRED)
                continue
            in_log: i64
            level: i32
            level, in_log = position & ((1 << bits) - 1), position >> bits
            log: Log = orders[level].log
            message_bytes: i64 = log.reach(in_log, in_log + 1, 1, -1)[2]
            # The first message is claimed whatever its size, or no claim could ever pass it.
            if count and byte_count >= 0 and size + message_bytes > byte_count:
                order.untake(position, redelivered)
                add_ready_bytes(queue, position, message)
                break
            if redelivered:
                # Rows of a claim are marked by position only, so all below count as redelivered.
                orders[level].saw(in_log + 1)
            size += message_bytes
            count += 1
            last = runs[-1] if runs else None
            if last is not None and last.level == level and log.next(last.end) == in_log:
                runs[-1] = LeasedRange(level, last.first, in_log + 1)
            else:
                runs.append(LeasedRange(level, in_log, in_log + 1))
            if len(runs) >= _RANGES:
                break
        for run in runs:
            orders[run.level].leases().add(run.first, run.end)
        return ClaimedMessages(tuple(runs), count, size)

    def _claim_keyed(
        self, order: KeyedOrder, messages: i64, byte_count: i64, holder: object
    ) -> Cpdef[ClaimedMessages]:
        """Claim messages of keys that are free or held by the group."""
        queue: QueueInternals
        log: Log
        queue, log = self._queue, order.log
        picked = PickedPositions(log)
        size: i64 = 0
        examined: i64 = 0
        while examined < _SINGLE:
            if len(picked) >= messages or picked.ranges >= _RANGES:
                break
            position: i64 = order.keys.first_of(holder)
            if position < 0:
                position = order.keys.first_free()
            message: Message | None = (
                order.take_at(position) if position >= 0 else order.take_new(holder)
            )
            if message is None:
                if position < 0 and not order.passed_over:
                    break
                # An empty claim tells the group that the queue has nothing for it, so the
                # search continues until it finds something. Skipped messages have a limit of
                # their own.
                examined += len(picked) > 0
                continue
            examined += 1
            position = order.position
            message_bytes: i64 = log.reach(position, position + 1, 1, -1)[2]
            expired: bool = message.due != 0 and queue.expired(message)
            if (
                not expired
                and len(picked)
                and byte_count >= 0
                and size + message_bytes > byte_count
            ):
                order.untake(position, order.redelivered)
                break
            subtract_ready_bytes(queue, message)
            if expired:
                queue.dead_letter(position, EXPIRED)
                continue
            size += message_bytes
            picked.add(position)
            if order.redelivered:
                order.levels()[0][1].saw(position + 1)
            order.hold_key(position, holder)
        runs = picked.in_order()
        for first, end in runs:
            order.levels()[0][1].leases().add(first, end)
        return ClaimedMessages(
            tuple([LeasedRange(0, first, end) for first, end in runs]), len(picked), size
        )

    # --- commit and release ---------------------------------------------------------------------

    def settle(self, runs: Sequence[LeasedRange], messages: i64) -> Done:
        """Settle leased messages; with ordering keys the caller drains afterwards."""
        queue = self._queue
        if queue.deleted:
            return 0
        keyed = queue.keyed
        if keyed is not None:
            # Before they are settled: `_positions` leaves out settled messages.
            for position in self._positions(runs):
                keyed.keys.release(position)
        for level, mine in self._by_level(runs):
            level.leases().settle(mine)
        queue.leased -= messages
        queue.sync_soon()
        return 0

    def release(self, runs: Sequence[LeasedRange], messages: i64) -> Done:
        """Make leased messages ready again; the caller drains afterwards."""
        queue: QueueInternals
        queue, order = self._queue, self._order
        if queue.deleted:
            return 0
        queue.leased -= messages
        if queue.quorum is not None or queue.keyed is not None:
            self._release_singly(runs)
        else:
            for level, mine in self._by_level(runs):
                level.release(mine)
        order.recount()
        if queue.selecting is not None:
            for run in runs:
                queue.selecting.back_to(self.position_of(run.level, run.first))
        if queue.counts_bytes and queue.quorum is None:
            # A quorum queue handles each message by itself: some are dead-lettered.
            if messages > COUNTED_PER_TURN:
                # Reading all of them now would stop the broker: count the queue again, in turns.
                begin_count(queue)
            else:
                for position in self._positions(runs):
                    add_ready_bytes_at(queue, position)
        # Neither limits nor expiry applied to leased messages; both do again.
        check_limits(queue)
        if queue.expiry is not None and queue.expiry.active:
            expire_heads(queue)
        return 0

    def _release_singly(self, runs: Sequence[LeasedRange]) -> Done:
        queue: QueueInternals
        order: MessageOrder
        queue, order = self._queue, self._order
        fifo: FifoOrder = order.levels()[0][1]
        for run in runs:
            fifo.end_lease_out(run.first, run.end)
            position: i64 = fifo.log.next(run.first)
            while position < run.end:
                if queue.quorum is not None:
                    # A released claim is a failed delivery, as if its consumer had died.
                    queue.quorum.requeue(position, True)
                else:
                    order.restore(position, True)
                position = fifo.log.next(position + 1)
        return 0

    def _by_level(
        self, runs: Sequence[LeasedRange]
    ) -> list[tuple[FifoOrder, list[tuple[int, int]]]]:
        orders = dict(self._order.levels())
        return [
            (orders[level], [(run.first, run.end) for run in runs if run.level == level])
            for level in {run.level for run in runs}
        ]

    def _positions(self, runs: Sequence[LeasedRange]) -> Iterator[int]:
        """Yield the positions of messages that are not settled."""
        orders = dict(self._order.levels())
        for run in runs:
            log: Log = orders[run.level].log
            position = log.next(run.first)
            while position < run.end:
                yield self.position_of(run.level, position)
                position = log.next(position + 1)

    # --- after a restart ------------------------------------------------------------------------

    def within(self, runs: Sequence[LeasedRange]) -> tuple[LeasedRange, ...]:
        """Return runs without positions that their logs do not have.

        A claim may be on disk before its messages; after a crash others get their positions.
        """
        ends = {level: order.log.end() for level, order in self._order.levels()}
        cut = [
            LeasedRange(run.level, run.first, min(run.end, ends.get(run.level, 0))) for run in runs
        ]
        return tuple([run for run in cut if run.first < run.end])

    def restore(self, runs: Sequence[LeasedRange], holder: object) -> int:
        """Lease what was leased before the restart; return how many messages.

        Called before `configure`, with runs from `within`.

        Args:
            runs: the runs of the claim.
            holder: the group.
        """
        orders = dict(self._order.levels())
        count = 0
        for run in runs:
            order = orders.get(run.level)
            if order is not None:
                count += order.withhold(run.first, run.end)
        self._queue.leased += count
        self._order.recount()
        # The keys are not stored: they are read from the messages again.
        keyed = self._queue.keyed
        if keyed is not None:
            for position in self._positions(runs):
                key = keyed.key_of(keyed.read(position))
                if key is not None:
                    keyed.keys.hold(position, key, holder)
        return count

    def settle_again(self, runs: Sequence[LeasedRange]) -> int:
        """Settle what was committed before the restart; the log on disk may not have it."""
        orders = dict(self._order.levels())
        for run in runs:
            order = orders.get(run.level)
            if order is not None:
                # A lease first: its messages are ready in the order, which has to skip them.
                order.withhold(run.first, run.end)
                order.leases().settle([(run.first, run.end)])
        self._order.recount()
        return 0

    # --- reading --------------------------------------------------------------------------------

    def logs(self) -> dict[int, Log]:
        """Return the logs of the queue by level."""
        return {level: order.log for level, order in self._order.levels()}

    def append_to(
        self,
        runs: Sequence[LeasedRange],
        first: int,
        end: int,
        into: BatchBuilder,
        seen: Sequence[tuple[int, int]] = (),
    ) -> int:
        """Make rows of the messages of a claim; as `Queue.append_to`.

        Args:
            runs: the runs of the claim.
            first: the first position.
            end: the position behind the last.
            into: the builder of the rows.
            seen: see `ClaimedMessages`.
        """
        levels, bits = self._order.levels(), self._order.level_bits
        orders = dict(levels)
        where = [LogRange(*run, orders[run.level].log) for run in runs]
        mark = level_marker(levels, bits, into, dict(seen))
        return append_runs_to(where, bits, first, end, into, mark)

    def position_of(self, level: i64, position: i64) -> C[int]:
        """Convert a position in the log of a level to one of the queue."""
        return position << self._order.level_bits | level
