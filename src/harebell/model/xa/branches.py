"""Distributed transactions (X/Open XA): the branches of a broker, and the calls on them.

The table of `states.py` has the states and calls; this module carries out the work. Until it is
prepared, a branch keeps its work in memory. Prepare writes the work as one record (`record.py`) to
a log of the broker. From then on the record is the work, after restarts too: the commit reads it,
carries it out and settles it, in one commit of the store that a crash keeps whole or not at all.
Meanwhile the messages that the branch has acknowledged are withheld.

A branch belongs to the user that started it, after restarts too: its record has the name. For other
users, except administrators, the branch does not exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from harebell.base.bcc import revealed
from harebell.base.gauge import Gauge
from harebell.base.message import PERSISTENT, Message, Properties
from harebell.base.ports import BRANCH_LOG, Log, Store
from harebell.base.share import Shares
from harebell.base.slices import Slices, at_once, emptied, in_pieces
from harebell.base.timers import Timers
from harebell.model import limits
from harebell.model.exchange.delayed import HELD_PREFIX, DelayedExchange, Held
from harebell.model.queue.contract import Queue
from harebell.model.transaction import Transaction
from harebell.model.xa.branch import (
    OPERATOR,
    Asker,
    Branch,
    BranchError,
    Committer,
    SettledDelivery,
    take_back,
)
from harebell.model.xa.record import (
    BranchRecord,
    RecordedQueue,
    RecordError,
    Settlement,
    decode,
    decode_in_slices,
)
from harebell.model.xa.states import DONE, IN_DOUBT, Call, Fault, State, Status, Step, step
from harebell.model.xa.xid import Xid

if TYPE_CHECKING:
    from harebell.model.vhost import VHost

_MS = 1000
_RECORD = Properties(b"", delivery_mode=PERSISTENT)


class Outcome(NamedTuple):
    """The result of a call.

    Args:
        status: the XA status.
        ticket: the commit that has to be on disk before the reply; 0 for none.
    """

    status: Status
    ticket: int = 0


class Branches:
    """All branches of a broker.

    Args:
        store: stores prepared branches.
        timers: the timers of the broker, for timeouts of branches.
        vhosts: the vhosts by name.
        gauge: counts the memory of branches.
        log: the log of prepared branches, if it is open already.
    """

    def __init__(
        self,
        store: Store,
        timers: Timers,
        vhosts: Mapping[str, VHost],
        gauge: Gauge,
        log: Log | None = None,
    ) -> None:
        self._store = store
        self._commit = store.commit
        self._timers = timers
        self._clock = timers.clock
        self._vhosts = vhosts
        self._gauge = gauge
        self._branches: dict[tuple[str, Xid], Branch] = {}
        self._shares = Shares(
            "branches", limits.BRANCHES, "end some: one that was rolled back is kept for an hour"
        )
        self._kept = log

    # --- find -----------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._branches)

    def find(self, vhost: str, xid: Xid) -> Branch | None:
        """Return a known branch, or None."""
        return self._branches.get((vhost, xid))

    def of(self, vhost: str | None = None) -> list[Branch]:
        """Return the branches of a vhost, or all, the oldest first."""
        return [each for each in self._branches.values() if vhost in (None, each.vhost)]

    def in_doubt(self, vhost: str, asker: Asker) -> list[Xid]:
        """Return the result of a recovery scan: prepared and heuristically decided branches."""
        return [
            branch.xid
            for branch in self.of(vhost)
            if branch.state in IN_DOUBT and branch.open_to(asker)
        ]

    # --- calls of sessions ----------------------------------------------------------------------

    def begin(self, vhost: str, xid: Xid, asker: Asker) -> Branch:
        """Make a branch for the session that starts it.

        Raises:
            BranchError: it is known already, or there are too many.
        """
        existing = self.find(vhost, xid)
        if existing is not None:
            if not existing.open_to(asker):
                # Even a read-only one: its transaction manager may still ask about it.
                raise refused(existing, Fault.ALREADY_KNOWN, Call.START)
            # A read-only branch is finished, but still known.
            self.apply(existing, Call.START)
            self._forget(existing)
        objection = self._shares.objection(asker.name)
        if objection:
            raise BranchError(Fault.TOO_MUCH, f"xid {xid} cannot be started: {objection}")
        branch = Branch(xid, vhost, asker.name, self._gauge)
        self.apply(branch, Call.START)
        self._add(branch)
        branch.timeout = limits.BRANCH_TIMEOUT_SECONDS
        self._wake(branch, branch.timeout)
        return branch

    def apply(self, branch: Branch, call: Call) -> Step:
        """Apply a call of the state table to a branch and to its work.

        Raises:
            BranchError: the table refuses it.
        """
        before = branch.state
        outcome = step(before, call)
        if isinstance(outcome, Fault):
            raise refused(branch, outcome, call)
        branch.state = outcome.state
        # Its work is rolled back at the first failure, while other sessions may still be
        # associated.
        if outcome.state in DONE and before not in DONE:
            branch.undo()
        if outcome.state is State.UNKNOWN:
            self._forget(branch)
        elif outcome.state in (State.FAILED, State.EXPIRED, State.READ_ONLY):
            # A call that changes nothing, such as a join, must not prolong the time.
            if outcome.state is not before:
                self._wake(branch, limits.BRANCH_REMEMBERED_SECONDS)
        elif outcome.state in IN_DOUBT and branch.timer is not None:
            # A promise has no timeout: the transaction manager or an operator decides.
            branch.timer.stop()
        return outcome

    # --- calls of transaction managers -----------------------------------------------------------

    def prepare(self, vhost: str, xid: Xid, asker: Asker) -> Slices[Outcome]:
        """Prepare a branch: its commit or rollback will succeed from now on.

        Raises:
            BranchError: it is not known, or not in a state for that.
        """
        branch = self._named(vhost, xid, asker)
        done: Transaction[SettledDelivery] = Transaction()
        call = Call.PREPARE
        # XA_RDONLY of X/Open XA: nothing is left to commit, so the second phase falls away. The
        # room is checked now, as the commit of a prepared branch must not fail.
        if branch.work.pending() == (0, 0):
            call = Call.PREPARE_NOTHING
        elif not branch.work.has_room():
            call = Call.PREPARE_CROWDED
        if call is Call.PREPARE and branch.state is State.IDLE:
            branch.moment = self._clock.ms
            branch.counted = branch.work.pending()
            with self._busy(branch):
                record = yield from _record_of(branch)
                data = yield from record.encode_in_slices()
                yield from emptied(record.publishes)
            # From here on the record has the work, and the publishes need no memory any more.
            branch.position = self._append(data)
            done, branch.work = branch.work, Transaction()
            branch.release()
        applied = self.apply(branch, call)
        yield from emptied(done.publishes)
        waits = applied.state is State.PREPARED
        return Outcome(applied.status, self._commit.ticket if waits else 0)

    def commit(
        self, vhost: str, xid: Xid, asker: Asker, *, one_phase: bool, in_turns: bool = False
    ) -> Slices[Outcome]:
        """Do the work of a branch.

        Args:
            vhost: the name of the vhost.
            xid: the branch.
            asker: the user.
            one_phase: whether it was not prepared.
            in_turns: whether it may take several turns; its work is in one commit even then.

        Raises:
            BranchError: it is not known, or not in a state for that.
        """
        branch = self._named(vhost, xid, asker)
        if branch.state is State.PREPARED and not one_phase:
            yield from self._finish(branch, do=True, in_turns=in_turns)
            outcome = self.apply(branch, Call.COMMIT)
        else:
            doing = self._do_directly(branch, one_phase=one_phase)
            outcome = yield from (
                branch.work.in_one_commit(self._commit, doing) if in_turns else doing
            )
        # A commit leaves nothing to roll back but counted memory; a branch without room is rolled
        # back here.
        if outcome.state is State.UNKNOWN:
            branch.undo()
        return self._outcome_of(outcome)

    def _do_directly(self, branch: Branch, *, one_phase: bool) -> Slices[Step]:
        """Commit a branch that was not prepared."""
        call = Call.COMMIT
        if one_phase:
            crowded = branch.state is State.IDLE and not branch.work.has_room()
            call = Call.COMMIT_CROWDED if crowded else Call.COMMIT_ONE_PHASE
        applied = self.apply(branch, call)
        if applied.status is Status.OK:
            yield from branch.work.commit(Committer(), self._commit, self._clock.steady)
        return applied

    def rollback(self, vhost: str, xid: Xid, asker: Asker) -> Slices[Outcome]:
        """Roll a branch back, and requeue what it acknowledged.

        Raises:
            BranchError: it is not known, or not in a state for that.
        """
        branch = self._named(vhost, xid, asker)
        prepared = branch.state is State.PREPARED
        if prepared:
            yield from self._finish(branch, do=False)
        applied = self.apply(branch, Call.ROLLBACK)
        branch.undo()
        # Without a record nothing has to reach the disk: a crash rolls the branch back, too.
        return self._outcome_of(applied) if prepared else Outcome(applied.status)

    def forget(self, vhost: str, xid: Xid, asker: Asker) -> Outcome:
        """Forget a heuristic decision.

        Raises:
            BranchError: it is not known, or was not decided heuristically.
        """
        branch = self._named(vhost, xid, asker)
        applied = self.apply(branch, Call.FORGET)
        self._settle(branch)
        return self._outcome_of(applied)

    def decide(self, vhost: str, xid: Xid, *, commit: bool) -> Outcome:
        """Commit or roll back a prepared branch for an operator (heuristic decision).

        Raises:
            BranchError: it is not known, or not prepared.
        """
        branch = self._named(vhost, xid, OPERATOR)
        call = Call.DECIDE_COMMIT if commit else Call.DECIDE_ROLLBACK
        outcome = step(branch.state, call)
        if isinstance(outcome, Fault):
            raise refused(branch, outcome, call)
        # The decision and the work become one commit: a crash must not leave an undone decision.
        self._commit.joint = True
        record = BranchRecord(xid, vhost, branch.user, outcome.state, branch.moment, branch.timeout)
        # Before the work: what cannot be stored is not done.
        position = self._append(record.encode())
        try:
            at_once(self._finish(branch, do=commit))
        except BranchError:
            self._log().settle(position)
            raise
        self.apply(branch, call)
        branch.position = position
        return self._outcome_of(outcome)

    def set_timeout(self, vhost: str, xid: Xid, asker: Asker, seconds: int) -> None:
        """Set the timeout of a branch from now on; 0 for the default.

        Raises:
            BranchError: it is not known, or the timeout is too long.
        """
        branch = self._named(vhost, xid, asker)
        longest = limits.BRANCH_TIMEOUT_MAX_SECONDS
        if seconds > longest:
            raise BranchError(
                Fault.BAD_VALUE, f"a timeout of {seconds} s for xid {xid}: {longest} s is the most"
            )
        self.apply(branch, Call.SET_TIMEOUT)
        branch.timeout = seconds or limits.BRANCH_TIMEOUT_SECONDS
        if branch.state in (State.ACTIVE, State.IDLE):
            self._wake(branch, branch.timeout)

    def timeout(self, vhost: str, xid: Xid, asker: Asker) -> int:
        """Return the timeout of a branch in seconds.

        Raises:
            BranchError: it is not known.
        """
        branch = self._named(vhost, xid, asker)
        self.apply(branch, Call.GET_TIMEOUT)
        return branch.timeout

    # --- restarts -------------------------------------------------------------------------------

    def restore(self) -> list[str]:
        """Restore prepared branches; the queues must exist and must not be configured yet.

        Returns:
            A log line for each invalid record.
        """
        log = self._log()
        lost = []
        position = log.first()
        while position < log.end():
            message = log.read(position)
            if message is not None:
                try:
                    self._restore(position, decode(message.body))
                except RecordError as error:
                    lost.append(f"a prepared transaction at position {position}: {error}")
            position = log.next(position + 1)
        return lost

    def vhost_gone(self, vhost: str) -> None:
        """Delete the branches of a deleted vhost."""
        for branch in self.of(vhost):
            self._settle(branch)
            branch.undo()
            self._forget(branch)

    def _restore(self, position: int, record: BranchRecord) -> None:
        branch = Branch(record.xid, record.vhost, record.user, self._gauge)
        branch.state = record.state
        branch.moment = record.moment
        branch.timeout = record.timeout
        branch.position = position
        branch.counted = (len(record.publishes), len(record.settlements))
        branch.held = {
            (each.queue, each.position)
            for each, queue in self._places(record)
            if queue is not None and queue.withhold(each.position)
        }
        self._add(branch)

    # --- inside ---------------------------------------------------------------------------------

    def _named(self, vhost: str, xid: Xid, asker: Asker) -> Branch:
        branch = self.find(vhost, xid)
        if branch is None or not branch.open_to(asker):
            raise unknown(xid)
        if branch.busy:
            raise BranchError(
                Fault.ILLEGAL_STATE, f"xid {xid} is being prepared, committed or rolled back"
            )
        return branch

    @contextmanager
    def _busy(self, branch: Branch) -> Iterator[None]:
        """Refuse other calls on the branch meanwhile; its vhost may be deleted."""
        branch.busy = True
        # A timeout must not roll back a branch while its work is being written.
        if branch.timer is not None:
            branch.timer.stop()
        try:
            yield
        finally:
            branch.busy = False
            if branch.state is State.IDLE:
                self._wake(branch, branch.timeout)
        if self._branches.get((branch.vhost, branch.xid)) is not branch:
            raise unknown(branch.xid)

    def _outcome_of(self, applied: Step) -> Outcome:
        """Return the outcome of a change to a log: the reply waits for the disk."""
        self._commit.urgent = True
        return Outcome(applied.status, self._commit.ticket)

    def _log(self) -> Log:
        if self._kept is None:
            self._kept = self._store.open_log(BRANCH_LOG, durable=True, keep_all=True)
        return self._kept

    def _append(self, record: bytes) -> int:
        self._commit.urgent = True
        return self._log().append(Message("", "", _RECORD, record))

    def _settle(self, branch: Branch) -> None:
        if branch.position >= 0:
            self._log().settle(branch.position)
            self._log().sync_soon()
            branch.position = -1

    def _finish(self, branch: Branch, *, do: bool, in_turns: bool = False) -> Slices[None]:
        """Commit or roll back a prepared branch from its record."""
        with self._busy(branch):
            work = yield from self._work_of(branch)
            if do:
                doing = self._carry_out(branch, work)
                yield from (work.in_one_commit(self._commit, doing) if in_turns else doing)
                return
            for entries in work.forget():
                take_back(entries)
            self._settle(branch)

    def _carry_out(self, branch: Branch, work: Transaction[SettledDelivery]) -> Slices[None]:
        """Carry out the work, and settle the record; a crash must not separate them."""
        now = self._clock.steady
        # `more`: settling the record is one more change that a crash must not separate.
        yield from work.commit(Committer(promised=True), self._commit, now, more=1)
        self._settle(branch)

    def _work_of(self, branch: Branch) -> Slices[Transaction[SettledDelivery]]:
        """Return the work of the record of a prepared branch."""
        message = self._log().read(branch.position)
        if message is None:
            raise BranchError(
                Fault.FAILED, f"xid {branch.xid}: the record of its work cannot be read"
            )
        try:
            record = yield from decode_in_slices(message.body)
        except RecordError as error:
            raise BranchError(
                Fault.FAILED, f"xid {branch.xid}: the record of its work is damaged: {error}"
            ) from None
        work: Transaction[SettledDelivery] = Transaction()
        vhost = self._vhosts.get(record.vhost)
        keeps = vhost is not None and any(each.keeps for each in vhost.exchanges.values())
        places = [self._queue(record, place) for place in record.queues]
        routes: dict[tuple[int, ...], tuple[Queue, ...]] = {}
        for publishes in in_pieces(record.publishes):
            yield
            for publish in publishes:
                queues = routes.get(publish.queues)
                if queues is None:
                    named = [places[number] for number in publish.queues]
                    # Queues that were deleted since get nothing.
                    queues = tuple(queue for queue in named if queue is not None)
                    routes[publish.queues] = queues
                if vhost is not None and keeps:
                    # The record does not say which exchanges keep something of it.
                    vhost.context.route_again(publish.message, queues)
                work.publish(publish.message, queues, 0)
        yield from emptied(record.publishes)
        for each, queue in self._places(record):
            # After a restart only messages that are still there were withheld for the branch.
            withheld = branch.held is None or (each.queue, each.position) in branch.held
            if queue is not None and withheld:
                work.settle([SettledDelivery(queue, each.position)], each.kind)
        return work

    def _places(self, record: BranchRecord) -> list[tuple[Settlement, Queue | None]]:
        """Return queue and position of the settlements of a record; None for a deleted queue."""
        queues = [self._queue(record, place) for place in record.queues]
        return [(each, queues[each.queue]) for each in record.settlements]

    def _queue(self, record: BranchRecord, place: RecordedQueue) -> Queue | None:
        vhost = self._vhosts.get(record.vhost)
        queue = None if vhost is None else _destination(vhost, place.name)
        # With another identity it was deleted and declared again: positions mean other messages.
        return queue if queue is not None and queue.identity == place.identity else None

    def _wake(self, branch: Branch, seconds: int) -> None:
        if branch.timer is None:
            branch.timer = self._timers.timer(partial(self._time_out, branch))
        branch.timer.set(self._clock.steady + seconds * _MS)

    def _time_out(self, branch: Branch) -> None:
        # The xid may have been used again since the timer was set.
        if self._branches.get((branch.vhost, branch.xid)) is branch:
            self.apply(branch, Call.TIMEOUT)

    def _add(self, branch: Branch) -> None:
        self._branches[branch.vhost, branch.xid] = branch
        self._shares.add(branch.user)

    def _forget(self, branch: Branch) -> None:
        if branch.timer is not None:
            branch.timer.stop()
        if self._branches.pop((branch.vhost, branch.xid), None) is not None:
            self._shares.remove(branch.user)


def unknown(xid: Xid) -> BranchError:
    """Return the error for an unknown branch."""
    return BranchError(Fault.UNKNOWN_XID, f"xid {xid} is not known")


def refused(branch: Branch, fault: Fault, call: Call) -> BranchError:
    """Return the error for a call that the table refuses."""
    if fault is Fault.UNKNOWN_XID:
        return unknown(branch.xid)
    if fault is Fault.ALREADY_KNOWN:
        return BranchError(fault, f"xid {branch.xid} is known already")
    return BranchError(
        fault, f"{call.value} is not possible for xid {branch.xid}: it is {branch.state.value}"
    )


def _destination(vhost: VHost, name: str) -> Queue | None:
    """Return the destination of that name: a queue, a requester or a delaying exchange."""
    router = vhost.router
    destination = router.queues.get(name) or router.replies.get(name)
    if destination is None and name.startswith(HELD_PREFIX):
        exchange = router.exchanges.get(name.removeprefix(HELD_PREFIX))
        return exchange.held if isinstance(exchange, DelayedExchange) else None
    return destination


def _record_of(branch: Branch) -> Slices[BranchRecord]:
    record = BranchRecord(
        branch.xid, branch.vhost, branch.user, moment=branch.moment, timeout=branch.timeout
    )
    for publishes in in_pieces(branch.work.publishes):
        yield
        for message, queues, _ in publishes:
            existing = [queue for queue in queues if not queue.deleted]
            # A delaying exchange keeps the blind keys, which queues must not show (see `bcc`).
            delaying = [queue for queue in existing if isinstance(queue, Held)]
            if delaying:
                record.add(revealed(message), delaying)
            if len(existing) > len(delaying):
                record.add(message, [queue for queue in existing if queue not in delaying])
    for settled in in_pieces(branch.work.settled):
        yield
        for entries, kind in settled:
            for entry in entries:
                if not entry.queue.deleted:
                    number = record.number(entry.queue)
                    record.settlements.append(Settlement(number, entry.position, kind))
    return record
