"""Leases of queues with ordering keys: a group that claims holds keys as a consumer does.

    claim      what is ready of keys that are free, or that its open claims have already
    commit     its keys go on, when nothing of them is out any more
    release    back to where the key waits: it goes first, once nothing of the key is out

So each message of a claim is looked at, and remembered while it is out. Without `x-group-key`
everything is as in any queue that leases.
"""

from __future__ import annotations

from collections.abc import Sequence

from harebell.base.limits import LEASE_CLAIM_RANGES, LEASE_KEYED_MESSAGES, LEASE_SINGLE_MESSAGES
from harebell.model.dead_letter import EXPIRED
from harebell.model.queue.chosen import Chosen
from harebell.model.queue.grouped import GroupedQueue
from harebell.model.queue.groups import Groups
from harebell.model.queue.leased import Run, Taken

_LOOKED_MOST = LEASE_SINGLE_MESSAGES
_KEYED_MOST = LEASE_KEYED_MESSAGES
_RANGES = LEASE_CLAIM_RANGES


class KeyLeasedQueue(GroupedQueue):
    """A queue that leases, and keeps the order of each key while it does.

    Args:
        name: its name.
        vhost: the name of its vhost.
        log: where its messages are kept; what is in it is ready.
        **options: as for `Queue`.
    """

    def claim(self, messages: int, octets: int, holder: object) -> Taken | None:
        """Lease what is ready; with keys, what is of keys that are free or the group's own."""
        if self._groups is not None:
            messages = min(messages, _KEYED_MOST - self.leased)
            if messages <= 0:
                return None
        return GroupedQueue.claim(self, messages, octets, holder)

    def _one_by_one(self) -> bool:
        """Each message has a key."""
        return self._groups is not None or GroupedQueue._one_by_one(self)  # noqa: SLF001  # any queue

    def _claim_singly(self, messages: int, octets: int, holder: object) -> Taken:
        groups = self._groups
        if groups is None:
            return GroupedQueue._claim_singly(self, messages, octets, holder)  # noqa: SLF001  # no keys
        log = self._order.log
        chosen = Chosen(log)
        size = looked = 0
        while looked < _LOOKED_MOST:
            if len(chosen) >= messages or chosen.runs >= _RANGES:
                break
            position = groups.first_of(holder)
            if position < 0:
                position = groups.first_free()
            if position >= 0:
                message = self._take_at(groups, position)
            else:
                message = self._take_new(groups, holder)
            if message is None:
                if position < 0 and not self._passed_over:
                    break
                # A claim without messages says that there are none for it: so long it looks on.
                # What may be passed over has a limit of its own.
                looked += len(chosen) > 0
                continue
            looked += 1
            taking = log.reach(self._position, self._position + 1, 1, -1)[2]
            expired = message.due and message.due <= self._clock.steady
            if not expired and len(chosen) and octets >= 0 and size + taking > octets:
                self._not_yet(groups)
                break
            if self._overflow is not None:
                self._left(self._overflow, message)
            if expired:
                self._bury(self._position, EXPIRED)
                continue
            size += taking
            chosen.add(self._position)
            if self._again:
                self._order.saw(self._position + 1)
            if self._key is not None:
                groups.hold(self._position, self._key, holder)
        runs = chosen.in_order()
        for first, end in runs:
            self._order.lease(first, end)
        return Taken(tuple([Run(0, first, end) for first, end in runs]), len(chosen), size)

    def _not_yet(self, groups: Groups) -> int:
        """The message that was just taken goes back to its place: nothing has happened to it."""
        if self._key is not None:
            groups.wait(self._key, self._position, again=self._again)
        else:
            self._order.put_back(self._position)
            if not self._again:
                self._order.untouched(self._position)
        self._ready = self._order.count + groups.count
        return 0

    def settle_claim(self, runs: Sequence[Run], messages: int) -> int:
        """What was leased is done with, and its keys may go on; the caller drains afterwards."""
        groups = self._groups
        if groups is not None and not self.deleted:
            log = self._order.log
            for run in runs:
                position = log.next(run.first)
                while position < run.end:
                    groups.release(position)
                    position = log.next(position + 1)
        return GroupedQueue.settle_claim(self, runs, messages)

    def _give_back(self, runs: Sequence[Run]) -> int:
        """Everything goes where its key waits; keys of which nothing more is out may go on."""
        if self._groups is None:
            return GroupedQueue._give_back(self, runs)  # noqa: SLF001  # what a queue without keys does
        order = self._order
        for run in runs:
            order.end_lease_out(run.first, run.end)
            position = order.log.next(run.first)
            while position < run.end:
                self._put_back(position)
                position = order.log.next(position + 1)
        return 0

    def _recount(self) -> int:
        self._ready = self._order.count + (0 if self._groups is None else self._groups.count)
        return 0

    def withhold_claim(self, runs: Sequence[Run], holder: object) -> int:
        """After a restart: what was leased is so again, and its keys are held."""
        count = GroupedQueue.withhold_claim(self, runs, holder)
        groups = self._groups
        if groups is not None:
            log = self._order.log
            for run in runs:
                position = log.next(run.first)
                while position < run.end:
                    message = log.read(position)
                    key = None if message is None else self._key_of(message)
                    if key is not None:
                        groups.hold(position, key, holder)
                    position = log.next(position + 1)
        return count
