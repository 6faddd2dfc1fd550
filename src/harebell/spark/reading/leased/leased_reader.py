"""Read a queue of Harebell by leases, exactly once.

    latestOffset(claim 3)   claims up to 3 are in Spark's commit log: they are committed, which
                            acknowledges their messages; claim 4 is made
    partitions(3, 4)        the range of claim 4, the same however often it is read

`states` has the life of a reader as a table, `group` the cases in which the checkpoint and the
broker do not have the same claims.

The name of the group is in the first offset of the query, so the group lives as long as the
checkpoint. Opening it begins a new epoch: another query on the same checkpoint is fenced, and
gets an error.
"""

from __future__ import annotations

import logging
import sys
import uuid
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

from harebell.base.limits import LEASE_CLAIM_MESSAGES
from harebell.client.blocking import Channel
from harebell.client.errors import Fenced, LeaseLost, NotFound, PreconditionFailed
from harebell.spark.options.offset_limits import EARLIEST
from harebell.spark.options.source_options import Options
from harebell.spark.options.values import OptionError
from harebell.spark.reading.broker_connection import BrokerConnection
from harebell.spark.reading.errors import (
    QueueGone,
    SourceError,
    fenced,
    is_older_state,
    no_queue,
    not_found,
)
from harebell.spark.reading.leased.group import Comparison, Group, Standing
from harebell.spark.reading.leased.missing_claims import MissingClaims
from harebell.spark.reading.leased.states import ReaderEvent, ReaderState, following
from harebell.spark.reading.offsets import ClaimOffset, QueueOffset, expected
from harebell.spark.reading.planning import OffsetRange
from harebell.wire.v09.lease import ClaimInfo

_LOG = logging.getLogger("harebell.spark")


class ClaimRequest(NamedTuple):
    """A claim to be made together with others (see `claims`).

    Args:
        queue: the name of the queue.
        group: name of the lease group.
        epoch: of the group.
        commit: the claim up to which everything is committed first; 0 for none.
        messages: maximum number of messages.
        byte_count: maximum bytes of messages; 0 for no limit.
    """

    queue: str
    group: str
    epoch: int
    commit: int
    messages: int
    byte_count: int


class LeasedReader:
    """Read one leased queue.

    Args:
        options: which queue, and how.
        connection: where the claims are made.
        kind: type of the queue.
    """

    offset_class: ClassVar[type[QueueOffset]] = ClaimOffset

    def __init__(self, options: Options, connection: BrokerConnection, kind: str) -> None:
        self.queue = options.queue
        self._options = options
        self._connection = connection
        self._kind = kind
        self._missing = MissingClaims(options)
        self._state = ReaderState.CLOSED
        self._group: Group | None = None
        # Of the claim that was made together with others, in the state `ANSWERED`.
        self._answer: ClaimInfo | None = None
        self._begun: ClaimOffset | None = None
        # Messages that an AvailableNow query has still to claim; None for another query.
        self._remaining: int | None = None

    def begin(self) -> QueueOffset:
        """Begin a new query at the head of the queue, with a group of its own.

        Raises:
            OptionError: the options set another starting offset.
        """
        place = self._options.starting.of(self.queue)
        if place is not None and place.kind != EARLIEST:
            raise OptionError(
                f"the option startingOffsets says {place} for queue {self.queue!r}, but a "
                f"{self._kind} queue is always read from its head: leave it out, or use "
                "delivery=peek"
            )
        if self._begun is None:
            # `join` is called until a micro-batch has the queue: it must not make a group each
            # time.
            name = self._options.group or f"{self._options.group_prefix}-{uuid.uuid4().hex}"
            group = self._open(name)
            # An existing group continues at its last commit.
            self._begun = group.offset(group.committed)
        return self._begun

    def join(self) -> QueueOffset:
        """Begin with a queue that a running query has found."""
        return self.begin()

    def before(self, end: QueueOffset) -> QueueOffset:
        """Return the offset before the first claim."""
        return replace(self._own(end), claim=0, eras="")

    def prepare(self) -> None:
        """Remember the number of ready messages; claimed ones are counted separately."""
        self._remaining = self._count_ready()
        self._move(ReaderEvent.PREPARED)

    def available(self, start: QueueOffset) -> int:
        """Commit what Spark has committed; return the number of messages for the next claim."""
        here = self._own(start)
        group, compared = self._held(here)
        here = self._settled(here, group, compared)
        # Claims that Spark has not logged are a micro-batch by themselves.
        return sys.maxsize if group.after(here.claim) else self._count_ready()

    def advance(self, start: QueueOffset, max_messages: int, byte_count: int | None) -> QueueOffset:
        """Commit what Spark has committed, and make the next claim."""
        here = self._own(start)
        if self._state is ReaderState.FINISHED:
            return here
        group, compared = self._held(here)
        here = self._settled(here, group, compared)
        unlogged = group.after(here.claim)
        if unlogged:
            # Claimed by a process that died before Spark logged the offset.
            return group.offset(unlogged[0])
        return self._claimed(here, group, max_messages, byte_count)

    def extend(
        self, start: QueueOffset, end: QueueOffset, max_messages: int, byte_count: int | None
    ) -> QueueOffset:
        """Make one more claim."""
        here = self._own(end)
        group, _ = self._held(here)
        if group.after(here.claim):
            return here
        return self._claimed(here, group, max_messages, byte_count)

    # --- claims that are made together ----------------------------------------------------------

    def next_request(
        self, offset: QueueOffset, max_messages: int, byte_count: int | None, *, more: bool
    ) -> ClaimRequest | None:
        """Return the claim that `advance`, or with `more` `extend`, would make now.

        Returns:
            None if there is nothing to claim, or if more than a commit and a claim is needed.
        """
        group = self._group
        if (
            self._state is not ReaderState.HELD
            or group is None
            or not isinstance(offset, ClaimOffset)
        ):
            return None
        # After a reconnect `_held` has to compare with the broker before anything is claimed.
        known = (group.name, group.generation, group.connection_number)
        if known != (offset.group, offset.generation, self._connection.made):
            return None
        # A claim that is not logged is a micro-batch already; a missing one must be reported.
        if group.newest != offset.claim or group.compare(offset).missing:
            return None
        max_messages = self._allowed(max_messages)
        if max_messages <= 0:
            return None
        # `extend` gets an end that Spark has not logged yet: nothing may be committed for it.
        commit = 0 if more else max(group.claims, default=0)
        return ClaimRequest(
            self.queue, group.name, group.epoch, commit, max_messages, byte_count or 0
        )

    def record_commit(self, upto: int) -> None:
        """Record that claims of this reader were committed together with those of others."""
        assert self._group is not None, "only a reader with a group has a request"
        self._group.record_commit(upto)

    def keep_answer(self, claim: ClaimInfo | None) -> None:
        """Keep the answer to a claim that was made together, until the next call uses it."""
        self._answer = claim
        self._move(ReaderEvent.CLAIM_ANSWERED)

    def forget_group(self) -> None:
        """Forget the group after an unknown result: it must be opened again to find its claims."""
        self._drop_group(ReaderEvent.LOST)

    # --- what tasks read ------------------------------------------------------------------------

    def plan(self, start: QueueOffset, end: QueueOffset) -> list[OffsetRange]:
        """Return the ranges of the claims between two offsets."""
        first, last = self._own(start), self._own(end)
        group, compared = self._held(last)
        # `_held` has reported the loss, and failOnDataLoss=false lets the query go on.
        if group.generation != last.generation:
            return []
        begin = _behind(first, last)
        shared = compared.shared
        self._missing.report_planned(last, shared, group.missing(begin, last, shared))
        if begin < min(group.committed, shared):
            # Only claims in Spark's commit log are committed, so the sink has their rows.
            _LOG.warning(
                "claims up to %d of group %r on queue %r are planned again, but were committed: "
                "the sink has their rows, and they are not read again",
                min(group.committed, shared),
                last.group,
                self.queue,
            )
        chosen = [
            claim for number, claim in sorted(group.claims.items()) if begin < number <= shared
        ]
        return [self._range(group, claim) for claim in chosen]

    def report(self) -> dict[str, Any] | None:
        """Return the last claim, and the number of messages that are ready for the next one."""
        group = self._group
        if group is None:
            return None
        try:
            ready = self._count_ready()
        except QueueGone:
            return None
        offset = ClaimOffset(group.generation, group.name, group.newest).to_json()
        return offset | {"ready": ready}

    def finish(self, start: QueueOffset) -> None:
        """Commit the last claims and close the group."""
        group = self._group
        self._drop_group(ReaderEvent.DRAINED)
        # Open claims wait for a late commit; the broker requeues them with the lease's end.
        if group is not None and not group.claims:
            self._connection.call(
                lambda channel: channel.lease_close(self.queue, group.name, group.epoch)
            )

    def leave(self, start: QueueOffset) -> None:
        """Commit what Spark has committed, requeue the rest, and delete the group."""
        here = self._own(start)
        group = self._group or self._open(here.group)
        # An earlier attempt may have deleted the group already: then nothing is left to commit.
        compared = group.compare(here)
        if group.generation == here.generation and compared.shared == here.claim:
            self._settled(here, group, compared)
        self._drop_group(ReaderEvent.STOPPED)
        self._connection.call(
            lambda channel: channel.lease_close(self.queue, group.name, group.epoch, forget=True)
        )

    def stop(self) -> None:
        """Forget the group; the broker keeps it until the lease expires."""
        self._drop_group(ReaderEvent.STOPPED)

    # --- the group ------------------------------------------------------------------------------

    def _move(self, event: ReaderEvent) -> None:
        self._state = following(self._state, event)
        if self._state is ReaderState.CLOSED:
            self._group = None

    def _drop_group(self, event: ReaderEvent) -> None:
        self._move(event)
        self._group = None

    def _held(self, offset: ClaimOffset) -> tuple[Group, Comparison]:
        """Return the group of an offset and compare them; open it if this process does not hold it.

        Raises:
            SourceError: another client has opened it, the queue was declared again, or the offset
                was changed.
        """
        group = self._group
        if group is None or group.name != offset.group:
            group = self._open(offset.group)
        elif group.connection_number != self._connection.made:
            group = self._held_again(group)
        compared = group.compare(offset)
        if compared.standing is Standing.ANOTHER_LOG:
            self._missing.report_new_log(group, offset)
        elif compared.standing is Standing.CHANGED:
            # The numbers of the claims that are not made yet would be used a second time.
            raise SourceError(
                f"the checkpoint has claim {offset.claim} of group {offset.group!r} on queue "
                f"{self.queue!r}, and the broker has made {group.newest} only, without a restore: "
                "somebody has changed the checkpoint; begin with a new one"
            )
        return group, compared

    def _held_again(self, group: Group) -> Group:
        """Return the group over a new connection: another one if the broker has an older copy."""
        self._connection.opened()
        made = self._connection.made
        try:
            eras = self._connection.eras(self.queue, group.name)
            # The broker was restored to a copy without the newest claims: their numbers come again.
            if group.offset(group.newest).shared(eras, group.newest) < group.newest:
                return self._open(group.name)
            # Not opened: a new epoch would fence the tasks that read the present micro-batch.
            self._connection.call(
                lambda channel: channel.lease_renew(self.queue, group.name, group.epoch)
            )
        except (Fenced, NotFound) as error:
            if is_older_state(error):
                return self._opened_in_older_state(group.name)
            if isinstance(error, Fenced):
                raise fenced(error, self.queue, group.name) from error
            raise no_queue(self._options) from error
        group.eras, group.connection_number = eras, made
        self._move(ReaderEvent.RENEWED)
        return group

    def _opened_in_older_state(self, name: str) -> Group:
        """Open the group again: the next call of Spark says which claims are lost, if any are."""
        _LOG.warning(
            "the broker was restored to an older state, in which this query had not opened group "
            "%r on queue %r yet, or an operator removed the group: it is opened again",
            name,
            self.queue,
        )
        return self._open(name)

    def _open(self, name: str) -> Group:
        try:
            # A lost connection between the two is noticed later: the group has the older number.
            self._connection.opened()
            made = self._connection.made
            lease = self._connection.call(
                lambda channel: channel.lease_open(
                    self.queue, name, timeout=self._options.lease_timeout
                )
            )
            eras = self._connection.eras(self.queue, name)
        except NotFound as error:
            raise no_queue(self._options) from error
        except PreconditionFailed as error:
            raise SourceError(
                f"queue {self.queue!r} cannot be read exactly once ({error.text}): read it with "
                "delivery=at-least-once, or look at it with delivery=peek"
            ) from error
        self._group = Group(name, lease, eras, made)
        self._move(ReaderEvent.OPENED)
        return self._group

    def _settled(self, here: ClaimOffset, group: Group, compared: Comparison) -> ClaimOffset:
        """Commit up to an offset, and report missing claims before it.

        Returns:
            The offset from which the query goes on.

        Raises:
            DataLoss: the query must fail.
        """
        standing = compared.standing
        if standing is Standing.ANOTHER_LOG:
            return compared.continuation
        # Losses come first: a query that fails because of them has acknowledged nothing more.
        if compared.missing:
            self._missing.report_processed(group, here, compared.shared, compared.missing)
        if standing is Standing.CHECKPOINT_IS_OLDER:
            self._missing.report_older_checkpoint(group, here)
        # A new group has made the claims up to here for other messages.
        if standing is not Standing.GROUP_IS_NEW:
            self._commit(group, compared.shared)
        return compared.continuation

    def _commit(self, group: Group, last: int) -> None:
        """Commit the open claims up to one."""
        upto = max((number for number in group.claims if number <= last), default=0)
        if upto:
            self._ask(
                "commit",
                group,
                lambda channel, queue, name, epoch: channel.lease_commit(queue, name, epoch, upto),
            )
            group.record_commit(upto)

    def _claimed(
        self, here: ClaimOffset, group: Group, max_messages: int, byte_count: int | None
    ) -> ClaimOffset:
        """Return the offset after one more claim: that which was made together, or a new one."""
        if group.connection_number != self._connection.made:
            # The connection was lost in the commit before this claim.
            group, _ = self._held(here)
        if self._state is ReaderState.ANSWERED:
            self._move(ReaderEvent.ANSWER_USED)
            if self._answer is not None:
                return self._taken(here, group, self._answer)
            # There was nothing to claim. An AvailableNow query ends then, so it asks once more:
            # expired messages may have been in front of others (`_claim`).
            if self._remaining is None:
                return here
        max_messages = self._allowed(max_messages)
        if max_messages <= 0:
            return here
        made = self._connection.made
        claim = self._claim(group, max_messages, byte_count)
        if self._connection.made != made:
            # A repeated request: the broker may have made the first claim and lost only its answer.
            return self._claimed_before(here, group)
        return here if claim is None else self._taken(here, group, claim)

    def _allowed(self, max_messages: int) -> int:
        """Return how many messages the next claim may have."""
        if self._remaining is not None:
            max_messages = min(max_messages, self._remaining)
        # The broker limits a claim to a million messages, whatever the request says.
        return min(max_messages, LEASE_CLAIM_MESSAGES)

    def _taken(self, here: ClaimOffset, group: Group, claim: ClaimInfo) -> ClaimOffset:
        """Return the offset after a new claim."""
        group.claims[claim.number] = claim
        group.newest = claim.number
        if self._remaining is not None:
            self._remaining -= claim.messages
        return group.offset(claim.number)

    def _claimed_before(self, here: ClaimOffset, earlier: Group) -> ClaimOffset:
        """Return the offset after a claim whose answer was lost with the connection.

        Args:
            here: the offset if the broker has made no claim.
            earlier: the group as it was before the claim.
        """
        group = self._open(earlier.name)
        if group.generation != earlier.generation:
            return here
        if group.shared(earlier.offset(earlier.newest)) < earlier.newest:
            # The next call of Spark says what is lost.
            return here
        fresh = group.after(earlier.newest)
        if self._remaining is not None:
            self._remaining -= sum(group.claims[number].messages for number in fresh)
        # Only the first: each later one is a micro-batch that is not logged.
        return group.offset(fresh[0]) if fresh else here

    def _claim(self, group: Group, max_messages: int, byte_count: int | None) -> ClaimInfo | None:
        """Return a claim. If the query ends without one, search behind expired messages."""

        def call(channel: Channel, queue: str, name: str, epoch: int) -> ClaimInfo | None:
            return channel.lease_claim(queue, name, epoch, max_messages, byte_count or 0)

        claim: ClaimInfo | None = self._ask("claim", group, call)
        ready = 0 if claim is not None or self._remaining is None else self._count_ready()
        while claim is None and ready:
            before = ready
            claim = self._ask("claim", group, call)
            ready = self._count_ready()
            # No expired message was dropped by that claim, so there is nothing behind them.
            if ready >= before:
                break
        return claim

    def _count_ready(self) -> int:
        """Return the number of ready messages."""
        try:
            state = self._connection.call(
                lambda channel: channel.declare_queue(self.queue, passive=True)
            )
        except NotFound as error:
            raise no_queue(self._options) from error
        return state.message_count

    def _ask(self, what: str, group: Group, call: Any) -> Any:
        """Call one method of the group.

        Raises:
            SourceError: the group is fenced, or the lease is lost.
        """
        try:
            return self._connection.call(
                lambda channel: call(channel, self.queue, group.name, group.epoch)
            )
        except Fenced as error:
            raise fenced(error, self.queue, group.name) from error
        except LeaseLost as error:
            # The next call opens the group, and compares which claims are left.
            self._drop_group(ReaderEvent.LOST)
            raise SourceError(
                f"group {group.name!r} on queue {self.queue!r} cannot {what}: {error.text}; start "
                "the query again to see what is lost"
            ) from error
        except NotFound as error:
            self._drop_group(ReaderEvent.LOST)
            raise not_found(error, self._options, group.name) from error

    def _range(self, group: Group, claim: ClaimInfo) -> OffsetRange:
        return OffsetRange(
            self.queue,
            group.generation,
            claim.first,
            claim.end,
            claim.messages,
            group.name,
            group.epoch,
            claim.number,
        )

    def _own(self, offset: QueueOffset) -> ClaimOffset:
        return expected(offset, ClaimOffset, self.queue)


def _behind(first: ClaimOffset, last: ClaimOffset) -> int:
    """Return the last claim before a micro-batch, as the history of its end counts."""
    if first.generation != last.generation:
        return 0
    if first.eras and last.eras:
        return first.shared(last.eras, last.claim)
    # After a forgotten group or a restore the numbers start again; a new claim has eras.
    again = first.claim > last.claim or (first.claim == last.claim and last.eras)
    return 0 if again else first.claim
