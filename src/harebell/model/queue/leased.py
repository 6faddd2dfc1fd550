"""Queues whose messages can be leased: set apart as runs of positions, until somebody commits.

What is leased is neither ready nor unacknowledged. Nothing touches it, neither purge nor time nor a
limit of the queue, until it is committed or released. `harebell.model.lease` says who leases what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from harebell.base.limits import COUNTED_PER_TURN, LEASE_CLAIM_RANGES, LEASE_SINGLE_MESSAGES
from harebell.base.message import Message
from harebell.base.ports import Log
from harebell.kernels.batches import BatchBuilder
from harebell.model.dead_letter import EXPIRED
from harebell.model.queue.overflow import Overflow
from harebell.model.queue.spans import Stretch, pour_runs
from harebell.model.queue.sparing import SparingQueue
from harebell.model.queue.staging_order import StagingOrder
from harebell.model.resource import precondition, rendered

_RANGES = LEASE_CLAIM_RANGES
_SINGLE = LEASE_SINGLE_MESSAGES
_COUNTED = COUNTED_PER_TURN
_EXPIRED = EXPIRED


class Run(NamedTuple):
    """Messages of one log that are leased together: all in the run that are not settled.

    Args:
        level: of a priority queue; 0 in all others.
        first: the first position in the level's log.
        end: the position behind the last one.
    """

    level: int
    first: int
    end: int


class Taken(NamedTuple):
    """What was taken for a claim.

    Args:
        runs: where it is.
        messages: how many.
        octets: that they take in the log.
        seen: for every level, below which position messages may have been handed out before.
    """

    runs: tuple[Run, ...]
    messages: int
    octets: int
    seen: tuple[tuple[int, int], ...] = ()


class LeasedQueue(SparingQueue):
    """A queue that leases.

    Args:
        name: its name.
        vhost: the name of its vhost.
        **options: as for `Queue`.
    """

    BITS = 0
    """How many bits of a position say its level."""

    # --- what a kind fills ----------------------------------------------------------------------

    def _levels(self) -> list[tuple[int, StagingOrder]]:
        """Its ready orders with their levels, in the order of their turns."""
        raise NotImplementedError

    def _recount(self) -> int:
        """How many messages are ready has changed in the orders."""
        raise NotImplementedError

    def _place(self, position: int) -> tuple[int, int]:
        """The level of a position of the queue, and the position in its log."""
        return 0, position

    def _give_back(self, runs: Sequence[Run]) -> int:
        """What was leased is ready again; the orders know it no longer as leased afterwards."""
        orders = dict(self._levels())
        for level in {run.level for run in runs}:
            mine = [(run.first, run.end) for run in runs if run.level == level]
            orders[level].release(mine)
        return 0

    # --- leases ---------------------------------------------------------------------------------

    def check_lease(self) -> None:
        """Refuse leases where they would break what the queue promises."""
        if self._single:
            thing = rendered("queue", self.name, self.vhost)
            raise precondition(
                f"no lease is possible on {thing}: it has a single active consumer, and a lease "
                "would be a second one"
            )

    def claim(self, messages: int, octets: int, holder: object) -> Taken | None:
        """Lease what is ready; None when nothing is.

        Args:
            messages: how many at most.
            octets: that they take in the log, at most, but for the first one; 0 for any number.
            holder: the group that claims; it holds the ordering keys of what it gets.
        """
        if self._unused is not None:
            self._unused.used()
        if self._local is not None:
            self._local.release_all()
        if self._expiring:
            self.expire()
        if self._ready <= 0:
            return None
        most = octets if octets > 0 else -1
        taken = self._claim_singly(messages, most, holder) if self._one_by_one() else None
        if taken is None:
            taken = self._claim_runs(messages, most)
        if taken.messages == 0:
            return None
        self.leased += taken.messages
        overflow = self._overflow
        if overflow is not None and overflow.refusing and overflow.low(self._ready):
            overflow.refusing = False
        if self._expiring:
            self._look_ahead()
        orders = dict(self._levels())
        levels = sorted({run.level for run in taken.runs})
        return taken._replace(seen=tuple([(level, orders[level].seen()) for level in levels]))

    def _one_by_one(self) -> bool:
        """Whether each message has to be looked at."""
        return self._expiring or (self._overflow is not None and self._overflow.counts)

    def _claim_runs(self, messages: int, octets: int) -> Taken:
        """Take what is next as it stands in the logs."""
        runs: list[Run] = []
        count = size = 0
        for level, order in self._levels():
            left = -1 if octets < 0 else max(octets - size, 0)
            if count >= messages or order.count <= 0 or (left == 0 and count):
                continue
            for first, end, more, taking in order.claim(
                messages - count, left, _RANGES - len(runs)
            ):
                runs.append(Run(level, first, end))
                count += more
                size += taking
            if order.count:
                break
        self._recount()
        return Taken(tuple(runs), count, size)

    def _claim_singly(self, messages: int, octets: int, holder: object) -> Taken:
        """Take what is next one by one, for something has to be known of each message."""
        orders = dict(self._levels())
        runs: list[Run] = []
        count = size = 0
        for _ in range(_SINGLE):
            message = self._take() if count < messages else None
            if message is None:
                break
            if self._overflow is not None:
                self._left(self._overflow, message)
            position = self._position
            if message.due and message.due <= self._clock.steady:
                self._bury(position, _EXPIRED)
                continue
            level, here = self._place(position)
            log: Log = orders[level].log
            taking = log.reach(here, here + 1, 1, -1)[2]
            if count and octets >= 0 and size + taking > octets:
                self._came_before(position, message)
                break
            if self._again:
                orders[level].saw(here + 1)
            size += taking
            count += 1
            last = runs[-1] if runs else None
            if last is not None and last.level == level and log.next(last.end) == here:
                runs[-1] = Run(level, last.first, here + 1)
            else:
                runs.append(Run(level, here, here + 1))
            if len(runs) >= _RANGES:
                break
        for run in runs:
            orders[run.level].lease(run.first, run.end)
        return Taken(tuple(runs), count, size)

    def _came_before(self, position: int, message: Message) -> int:
        """A message that was taken goes back to its place: nothing has happened to it."""
        self._untake(position)
        overflow = self._overflow
        if overflow is not None and (overflow.counting is None or self._counts_at(position)):
            overflow.octets += len(message.body)
        return 0

    def _untake(self, position: int) -> int:
        """The message that was taken last is ready again, as if nobody had looked at it."""
        fresh = not self._again
        self._put_back(position)
        if fresh:
            self._untouched(position)
        return 0

    def settle_claim(self, runs: Sequence[Run], messages: int) -> int:
        """What was leased is done with."""
        if self.deleted:
            return 0
        orders = dict(self._levels())
        for level in {run.level for run in runs}:
            mine = [(run.first, run.end) for run in runs if run.level == level]
            orders[level].settle_leased(mine)
        self.leased -= messages
        self.sync_soon()
        return 0

    def release_claim(self, runs: Sequence[Run], messages: int) -> int:
        """What was leased is ready again; the caller drains afterwards."""
        if self.deleted:
            return 0
        self.leased -= messages
        self._give_back(runs)
        self._recount()
        overflow = self._overflow
        if overflow is not None:
            if overflow.counts:
                self._count_again(overflow, runs, messages)
            self._grown()
        if self._expiring:
            # It was published before what the timer was set for.
            self._mixed = True
            self.expire()
        return 0

    def _count_again(self, overflow: Overflow, runs: Sequence[Run], messages: int) -> int:
        """The bodies of what came back count again; if they are many, all are counted anew."""
        if messages > _COUNTED:
            return self.begin_count()
        orders = dict(self._levels())
        for run in runs:
            log: Log = orders[run.level].log
            position = log.next(run.first)
            while position < run.end:
                counting = overflow.counting
                message = log.read(position)
                if message is not None and (counting is None or counting.has(run.level, position)):
                    overflow.octets += len(message.body)
                position = log.next(position + 1)
        return 0

    def within(self, runs: Sequence[Run]) -> tuple[Run, ...]:
        """After a restart: runs without positions that their logs have not come to.

        A claim may be on disk before messages in it; their positions will be those of others.
        """
        ends = {level: order.log.end() for level, order in self._levels()}
        cut = [Run(run.level, run.first, min(run.end, ends.get(run.level, 0))) for run in runs]
        return tuple([run for run in cut if run.first < run.end])

    def withhold_claim(self, runs: Sequence[Run], holder: object) -> int:
        """After a restart: what was leased is so again; returns how many messages are there.

        Called before `configure`, for runs that `within` has cut.

        Args:
            runs: of the claim.
            holder: the group that claimed them.
        """
        orders = dict(self._levels())
        count = 0
        for run in runs:
            order = orders.get(run.level)
            if order is not None:
                count += order.withhold(run.first, run.end)
        self.leased += count
        self._recount()
        return count

    def settle_again(self, runs: Sequence[Run]) -> int:
        """After a restart: what was committed is done with, if the disk has not known it yet."""
        orders = dict(self._levels())
        for run in runs:
            order = orders.get(run.level)
            if order is not None:
                order.withhold(run.first, run.end)
                order.settle_leased([(run.first, run.end)])
        self._recount()
        return 0

    def leased_logs(self) -> dict[int, Log]:
        """The logs of the queue by level, for who reads what is claimed."""
        return {level: order.log for level, order in self._levels()}

    def pour_claim(
        self,
        runs: Sequence[Run],
        first: int,
        end: int,
        into: BatchBuilder,
        seen: Sequence[tuple[int, int]] = (),
    ) -> int:
        """Make rows of what a claim has from a position up to another; as `pour`.

        Args:
            runs: of the claim.
            first: the first position.
            end: the position behind the last.
            into: who makes the rows.
            seen: of the claim, see `Taken`.
        """
        orders = dict(self._levels())
        where = [Stretch(*run, orders[run.level].log) for run in runs]
        return pour_runs(where, self.BITS, first, end, into, self._marker(into, dict(seen)))

    def _marker(
        self, into: BatchBuilder, claimed: dict[int, int] | None = None
    ) -> Callable[[int], None]:
        """What tells a builder whose rows follow, and which of them may have been delivered."""
        orders = dict(self._levels())

        def mark(level: int) -> None:
            if claimed is not None:
                orders[level].mark_claimed(into, claimed.get(level, -1))
            else:
                orders[level].mark(into)
            if self.BITS:
                into.at_level(self.BITS, level)

        return mark

    def position_of(self, level: int, position: int) -> int:
        """The position of the queue for one in the log of a level."""
        return position

    def _look_ahead(self) -> int:
        """Another message may be at the head now; what is leased may come back."""
        SparingQueue._look_ahead(self)  # noqa: SLF001  # what every queue does
        self._expiring = self._expiring or self.leased > 0
        return 0
