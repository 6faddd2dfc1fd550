"""Leases: named groups that durably claim messages of a queue, then commit or release them.

    ready --claim--> leased under a number --commit--> settled
      ^                    |
      +------release, or timeout of a group without a holder

A claim never changes and survives restarts. Opening a group starts a new epoch and fences the older
ones. The timeout of a group runs only while no connection holds it; then its open claims are
released, and their numbers are never used again. A group without claims and holder is deleted after
some time, or earlier if the queue has too many groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from harebell.base import limits as base_limits
from harebell.base.eras import continued
from harebell.base.errors import ErrorKind, HarebellError, Refusal
from harebell.base.ports import Store
from harebell.base.timers import Timers
from harebell.model import limits
from harebell.model.lease.group import FLOOR, ROWS, Group, QueueLeases, Settling
from harebell.model.lease.record import Claim, GroupRecord, LeaseRecordError, decode
from harebell.model.queue.queue import MessageQueue
from harebell.model.resource import precondition, rendered

if TYPE_CHECKING:
    from harebell.model.queue.contract import Queue
    from harebell.model.vhost import VHost


class Leases:
    """All lease groups of a broker.

    Args:
        store: the store with the definitions and the group commit.
        timers: the timers of the broker; they release groups without a holder.
        vhosts: the vhosts by name.
    """

    def __init__(self, store: Store, timers: Timers, vhosts: Mapping[str, VHost]) -> None:
        self._store = store
        self._commit = store.commit
        self._changed: dict[Group, None] = {}
        self._commit.closing.append(self._write_changed)
        self._timers = timers
        self._clock = timers.clock
        self._vhosts = vhosts
        self._held: dict[object, dict[Group, None]] = {}

    # --- find -----------------------------------------------------------------------------------

    def of(self, vhost: str | None = None) -> list[Group]:
        """Return the groups of a vhost, or all."""
        return [
            group
            for name, groups in self._vhosts.items()
            if vhost in (None, name)
            for queue in groups.queues.values()
            if queue.leases is not None
            for group in queue.leases.groups.values()
        ]

    def find(self, vhost: VHost, queue: Queue, name: str) -> Group:
        """Return the group of that name.

        Raises:
            Refusal: there is none.
        """
        group: Group | None = None if queue.leases is None else queue.leases.groups.get(name)
        if group is None:
            resource = rendered("queue", queue.name, vhost.name)
            raise Refusal(ErrorKind.NOT_FOUND, f"no lease group '{name}' of {resource}")
        return group

    def current(self, vhost: VHost, queue: Queue, name: str, epoch: int) -> Group:
        """Return the group of that name if the epoch is its current one.

        Raises:
            Refusal: there is no such group, or the epoch is not its current one.
        """
        group = self.find(vhost, queue, name)
        if epoch != group.epoch:
            over = "is over" if epoch < group.epoch else "never began"
            raise Refusal(
                ErrorKind.FENCED, f"epoch {epoch} {over}: it is epoch {group.epoch} of {group}"
            )
        return group

    def opened(self, group: Group, number: int) -> Claim:
        """Return an open claim.

        Raises:
            Refusal: no claim with that number is open.
        """
        claim = group.claims.get(number)
        if claim is not None:
            return claim
        if not 0 < number <= group.last:
            raise precondition(f"claim {number} was never made, the last is {group.last}: {group}")
        if number <= group.committed and number not in group.unreported:
            raise precondition(f"claim {number} was committed, so it cannot be read: {group}")
        raise Refusal(ErrorKind.LOST, f"claim {number} is open no longer, it was released: {group}")

    # --- requests of clients --------------------------------------------------------------------

    def open(
        self,
        vhost: VHost,
        queue: Queue,
        name: str,
        timeout: int,
        holder: object,
        user: str = "",
    ) -> Group:
        """Open a group with a new epoch; make it if it does not exist.

        Args:
            vhost: where the queue is.
            queue: a durable queue, of a type that has leases.
            name: the name of the group.
            timeout: its timeout in milliseconds; 0 to keep the current one.
            holder: the connection that holds it from now on.
            user: the name of the user whose group it is, if it is made.

        Raises:
            Refusal: the queue has no leases or too many groups, or name or timeout is invalid.
        """
        queue.check_lease()
        if name == FLOOR:
            raise precondition("a lease group needs a name")
        if timeout > base_limits.LEASE_TIMEOUT_MAX_MS:
            limit = base_limits.LEASE_TIMEOUT_MAX_MS
            raise precondition(f"a lease timeout of {timeout} ms is too long: {limit} is the most")
        assert isinstance(queue, MessageQueue), "who may be leased from can lease"
        if queue.leases is None:
            queue.leases = QueueLeases(self)
        held: QueueLeases = queue.leases
        group = held.groups.get(name)
        if group is None:
            # Only the user's own groups make room: no other user can push out the groups of others.
            if held.shares.objection(user):
                self._make_room(held, user)
            resource = rendered("queue", queue.name, vhost.name)
            held.shares.check(user, cannot=f"lease group '{name}' of {resource} cannot be made")
            group = Group(vhost, queue, name, held.floor)
            group.user = user
            group.eras = continued("", self._store.new_era(), 1, 1)
            # Written before the queue has the group: a name that cannot be stored is refused.
            self._write(group)
            held.groups[name] = group
            held.shares.add(user)
        before = group.epoch, group.timeout, group.idle_since
        group.epoch += 1
        group.timeout = timeout or group.timeout
        group.idle_since = 0
        try:
            self._write(group)
        except HarebellError:
            group.epoch, group.timeout, group.idle_since = before
            raise
        # The client that opens the group learns the last lost claim with the answer.
        group.unreported.clear()
        self._hold(group, holder)
        self._note("opened", group)
        return group

    def claim(self, group: Group, messages: int, byte_count: int, holder: object) -> Claim | None:
        """Claim ready messages; None if there are none.

        Args:
            group: the group, in its epoch.
            messages: how many at most; 0 for the most that a claim may have.
            byte_count: most bytes of the log; 0 for no limit.
            holder: the connection; it holds the group if no other one does.

        Raises:
            Refusal: too many claims are open.
        """
        if len(group.claims) >= limits.LEASE_OPEN_CLAIMS:
            raise precondition(
                f"{len(group.claims)} claims are open, commit or release some: {group}"
            )
        self._hold_if_free(group, holder)
        limit = min(messages or base_limits.LEASE_CLAIM_MESSAGES, base_limits.LEASE_CLAIM_MESSAGES)
        claimed = group.queue.claims().claim(limit, byte_count, group)
        if claimed is None:
            return None
        group.last += 1
        claim = Claim(group.last, claimed.messages, claimed.byte_count, claimed.runs, claimed.seen)
        group.claims[claim.number] = claim
        if group.queue.durable:
            # Now, in the turn of the client: the end of a commit would do it for thousands at once.
            claim.encode()
        try:
            self._write(group)
        except HarebellError:
            group.last -= 1
            del group.claims[claim.number]
            group.queue.claims().release(claim.runs, claim.messages)
            raise
        return claim

    def commit(self, group: Group, number: int, holder: object) -> int:
        """Commit all claims up to a number; return how many messages were settled.

        The caller drains: ordering keys may be free now.

        Raises:
            Refusal: there was no such claim, or one of them was taken back.
        """
        self._hold_if_free(group, holder)
        if number > group.last:
            raise precondition(f"claim {number} was never made, the last is {group.last}: {group}")
        # Committed before: a client repeats a commit when it got no answer.
        if number <= group.committed:
            return 0
        lost = next((each for each in group.unreported if group.committed < each <= number), 0)
        if lost or number not in group.claims:
            which = lost or number
            raise Refusal(
                ErrorKind.LOST, f"claim {which} is open no longer, it was released: {group}"
            )
        done = [claim for claim in group.claims.values() if claim.number <= number]
        before, group.committed = group.committed, number
        # Kept in the row until the settlements are on disk: a commit writes definitions before
        # logs, so a crash may leave the row without them.
        group.settling += [(self._commit.ticket, claim) for claim in done]
        try:
            self._write_without(group, done)
        except HarebellError:
            group.committed = before
            del group.settling[-len(done) :]
            raise
        for claim in done:
            group.queue.claims().settle(claim.runs, claim.messages)
        return sum(claim.messages for claim in done)

    def release(self, group: Group, number: int, holder: object) -> int:
        """Release claims from a number on; return how many messages. The caller drains."""
        self._hold_if_free(group, holder)
        back = group.claims_from(number)
        if back:
            self._write_without(group, back)
            self._make_ready(group, back)
        return sum(claim.messages for claim in back)

    def renew(self, group: Group, holder: object) -> None:
        """Note that a connection holds the group in its epoch."""
        self._hold(group, holder)

    def close(self, group: Group, *, forget: bool) -> int:
        """End the hold on a group; return how many messages were released.

        Args:
            group: the group, in its epoch.
            forget: whether to release its claims and delete it.
        """
        if not forget:
            self._unheld(group)
            self._leave(group)
            return 0
        # Before its messages are ready: if the rows cannot be changed, the claims stay as they are.
        self._forget(group)
        back = group.claims_from(1)
        group.claims.clear()
        self._make_ready(group, back)
        return sum(claim.messages for claim in back)

    def take_back(self, group: Group, number: int = 0) -> list[Claim]:
        """Release open claims from a number on, for an operator or the timeout: they count as lost.

        The caller drains the queue.
        """
        back = group.claims_from(number)
        if back:
            before, group.lost = group.lost, max(group.lost, back[-1].number)
            try:
                self._write_without(group, back)
            except HarebellError:
                group.lost = before
                raise
            self._make_ready(group, back)
            # Until its client has opened the group again, a commit of one of these is refused.
            group.unreported.extend([claim.number for claim in back])
            self._note("lost", group)
            if group.holder is None:
                self._leave(group)
        return back

    def forget(self, group: Group) -> int:
        """Delete a group for an operator; return how many messages were released."""
        self._note("lost", group)
        return self.close(group, forget=True)

    def left(self, holder: object) -> None:
        """Release the holds of a closed connection."""
        for group in self._held.pop(holder, ()):
            group.holder = None
            self._leave(group)

    def drop(self, group: Group) -> None:
        """Delete a group, with its queue or alone."""
        self._unheld(group)
        if group.timer is not None:
            group.timer.stop()
        self._note("closed", group)

    # --- restarts -------------------------------------------------------------------------------

    def restore(self) -> list[str]:
        """Restore the groups; the queues must exist and must not be configured yet.

        Returns:
            A log line for each group that is invalid or has lost messages.
        """
        reports: list[str] = []
        records: list[tuple[Group, GroupRecord]] = []
        for key, fields in self._store.definitions.load(ROWS):
            vhost = self._vhosts.get(key[0])
            queue = None if vhost is None else vhost.queues.get(key[1])
            if vhost is None or not isinstance(queue, MessageQueue):
                reports.append(f"lease group '{key[2]}' of queue '{key[1]}' has lost its queue")
                continue
            try:
                record = decode(fields["state"]["record"])
            except (LeaseRecordError, KeyError, TypeError) as error:
                reports.append(f"lease group '{key[2]}' of queue '{key[1]}': {error}: left out")
                continue
            # Another identity: the queue was deleted and declared again.
            if fields["identity"] == queue.identity:
                self._restore_one(vhost, queue, key[2], fields["state"], record, records)
        for group, record in records:
            # In all groups first: a settled message must not be claimed by any of them.
            group.settling = self._settle_again(group.queue, record)
        for group, record in records:
            reports += self._withhold(group, record)
        return reports

    def _restore_one(
        self,
        vhost: VHost,
        queue: MessageQueue,
        name: str,
        state: Mapping[str, Any],
        record: GroupRecord,
        restored: list[tuple[Group, GroupRecord]],
    ) -> None:
        if queue.leases is None:
            queue.leases = QueueLeases(self)
        # Not a group: the epoch that fences clients of deleted groups, and their settlements.
        if name == FLOOR:
            held: QueueLeases = queue.leases
            held.floor = record.epoch
            held.settling = self._settle_again(queue, record)
            if record.settling:
                self._put(vhost, queue, FLOOR, held.record_of_deleted())
            return
        group = queue.leases.groups[name] = Group(vhost, queue, name, record.epoch)
        group.user = state.get("user", "")
        # A new era: a claim of this process must not be taken for one of another copy of the store.
        group.eras = continued(state.get("eras", ""), self._store.new_era(), record.last + 1, 1)
        queue.leases.shares.add(group.user)
        group.committed, group.last, group.lost = record.committed, record.last, record.lost
        group.timeout, group.idle_since = record.timeout, record.idle_since
        restored.append((group, record))

    def _settle_again(self, queue: MessageQueue, record: GroupRecord) -> list[Settling]:
        """Settle what was committed; return the claims that another restart has to settle again."""
        settling = []
        for claim in record.settling:
            runs = queue.claims().within(claim.runs)
            queue.claims().settle_again(runs)
            if runs:
                settling.append((self._commit.ticket, replace(claim, runs=runs)))
        return settling

    def _withhold(self, group: Group, record: GroupRecord) -> list[str]:
        """Withhold the messages of the open claims of a restored group."""
        reports = []
        reduced = []
        for claim in record.claims:
            runs = group.queue.claims().within(claim.runs)
            count = group.queue.claims().restore(runs, group)
            if count == claim.messages:
                group.claims[claim.number] = claim
            else:
                reduced.append((claim, runs, count))
        for claim, runs, count in reduced:
            # Transient messages are gone after a restart, and unconfirmed ones after a crash. The
            # claim then counts as lost, so that no client gets a part of it as if it were the
            # whole. After all claims are restored: a released message is ready only if no other
            # claim holds its ordering key.
            group.queue.claims().release(runs, count)
            group.lost = max(group.lost, claim.number)
            group.unreported.append(claim.number)
            reports.append(
                f"{group}: claim {claim.number} had {claim.messages} messages, of which {count} "
                "outlived the restart: it counts as lost"
            )
        if reports or record.settling:
            self._write(group)
        self._leave(group)
        return reports

    # --- inside ---------------------------------------------------------------------------------

    def _hold(self, group: Group, holder: object) -> None:
        self._unheld(group)
        group.holder = holder
        if group.idle_since:
            group.idle_since = 0
            self._write(group)
        self._held.setdefault(holder, {})[group] = None
        if group.timer is not None:
            group.timer.stop()

    def _hold_if_free(self, group: Group, holder: object) -> None:
        if group.holder is None:
            self._hold(group, holder)

    def _unheld(self, group: Group) -> None:
        holder, group.holder = group.holder, None
        held = self._held.get(holder)
        if held is not None:
            held.pop(group, None)
            if not held:
                del self._held[holder]

    def _leave(self, group: Group) -> None:
        """Start the timeout of a group without a holder."""
        if group.queue.deleted:
            return
        rest = group.timeout
        if not group.claims:
            if not group.idle_since:
                # Stored, so that restarts do not start the time again.
                group.idle_since = self._clock.ms
                self._write(group)
            # A wall clock that was set back must not end it early.
            idle = max(0, self._clock.ms - group.idle_since)
            rest = max(0, base_limits.LEASE_GROUP_KEPT_MS - idle)
        if group.timer is None:
            group.timer = self._timers.timer(partial(self._time_out, group))
        group.timer.set(self._clock.steady + rest)

    def _time_out(self, group: Group) -> None:
        if group.holder is not None or group.queue.deleted:
            return
        if group.claims:
            self.take_back(group)
            group.queue.drain()
        else:
            self._forget(group)

    def _make_room(self, held: QueueLeases, user: str) -> None:
        """Delete the user's group that has been idle longest, if it was idle for its timeout."""
        now = self._clock.ms
        idle = [
            group
            for group in held.groups.values()
            if group.user == user and group.idle_since and now - group.idle_since >= group.timeout
        ]
        if idle:
            self._forget(min(idle, key=lambda group: group.idle_since))

    def _write_without(self, group: Group, gone: list[Claim]) -> None:
        """Remove claims from a group and store that, or leave both as they were."""
        for claim in gone:
            del group.claims[claim.number]
        try:
            self._write(group)
        except HarebellError:
            # Sorted again: the order of the dictionary is that of the claims.
            claims = {**group.claims, **{claim.number: claim for claim in gone}}
            group.claims = dict(sorted(claims.items()))
            raise

    def _make_ready(self, group: Group, back: list[Claim]) -> None:
        """Make the messages of claims ready again that the group no longer has."""
        for claim in back:
            group.queue.claims().release(claim.runs, claim.messages)
        if group.timer is not None and not group.claims:
            group.timer.stop()

    def _forget(self, group: Group) -> None:
        vhost, queue = group.vhost, group.queue
        held: QueueLeases = queue.leases
        before = held.floor, held.settling
        held.floor = max(held.floor, group.epoch)
        if queue.durable:
            # Its row is removed before the log is written: keep the settlements that the log lacks.
            held.settling = self._not_durable(held.settling + group.settling)
            try:
                with vhost.recorder.whole():
                    self._put(vhost, queue, FLOOR, held.record_of_deleted())
                    vhost.recorder.drop(ROWS, (vhost.name, queue.name, group.name))
            except HarebellError:
                held.floor, held.settling = before
                raise
        del held.groups[group.name]
        held.shares.remove(group.user)
        self.drop(group)

    def _write(self, group: Group) -> None:
        """Store the group with the commit that gathers, as it is when that commit is closed.

        A row has all open claims, and many more may be made before the commit is closed.
        """
        if not group.queue.durable:
            return
        # Its row is in the gathering commit already, and is written once more when that is closed.
        if group.written == self._commit.ticket:
            self._changed[group] = None
            return
        group.written = self._commit.ticket
        self._write_now(group)

    def _write_changed(self) -> None:
        """Store the changed groups: the gathering commit is about to be closed."""
        for group in self._changed:
            held: QueueLeases | None = group.queue.leases
            if held is not None and held.groups.get(group.name) is group:
                self._write_now(group)
        self._changed.clear()

    def _write_now(self, group: Group) -> None:
        group.settling = self._not_durable(group.settling)
        record = GroupRecord(
            group.epoch,
            group.committed,
            group.last,
            group.lost,
            group.timeout,
            tuple(group.claims.values()),
            tuple([claim for _, claim in group.settling]),
            group.idle_since,
        )
        self._put(group.vhost, group.queue, group.name, record, group.user, group.eras)

    def _not_durable(self, settling: list[Settling]) -> list[Settling]:
        done = self._commit.done
        return [entry for entry in settling if entry[0] > done]

    def _put(
        self,
        vhost: VHost,
        queue: MessageQueue,
        name: str,
        record: GroupRecord,
        user: str = "",
        eras: str = "",
    ) -> None:
        state = {"record": record.encode(), "user": user, "eras": eras}
        fields = {"identity": queue.identity, "state": state}
        vhost.recorder.put(ROWS, (vhost.name, queue.name, name), fields)

    def _note(self, what: str, group: Group) -> None:
        facts: dict[str, Any] = {
            "name": group.name,
            "queue": group.queue.name,
            "vhost": group.vhost.name,
            "epoch": group.epoch,
            "lost": group.lost,
        }
        group.vhost.recorder.events.note(f"lease.{what}", facts)
