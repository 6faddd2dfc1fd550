"""Read a queue of Harebell by leases, exactly once.

    latestOffset(claim 3)   claims up to 3 are in Spark's commit log: they are committed, which
                            acknowledges their messages; claim 4 is made
    partitions(3, 4)        the range of claim 4, the same however often it is read

The name of the group is in the first offset of the query, so the group lives as long as the
checkpoint. Opening it begins a new epoch: another query on the same checkpoint is fenced, and
gets an error.
"""

from __future__ import annotations

import logging
import sys
import uuid
from dataclasses import replace
from typing import Any, NamedTuple

from harebell.base.limits import LEASE_CLAIM_MESSAGES, LEASE_GROUP_KEPT_MS
from harebell.client.blocking import Channel
from harebell.client.errors import Fenced, LeaseLost, NotFound, PreconditionFailed
from harebell.client.protocol.leases import Lease
from harebell.spark.options.offset_limits import EARLIEST
from harebell.spark.options.source_options import Options
from harebell.spark.options.values import OptionError
from harebell.spark.reading.broker_connection import BrokerConnection
from harebell.spark.reading.data_loss_policy import DataLossPolicy
from harebell.spark.reading.errors import QueueGone, SourceError, no_queue
from harebell.spark.reading.offsets import ClaimOffset, QueueOffset, expected
from harebell.spark.reading.planning import OffsetRange
from harebell.wire.v09.lease import ClaimInfo

_LOG = logging.getLogger("harebell.spark")


class _Group:
    """A group that this process holds."""

    def __init__(self, name: str, lease: Lease, connection: BrokerConnection) -> None:
        self.name = name
        self.epoch = lease.epoch
        self.generation = lease.generation
        self.committed = lease.committed
        self.newest = lease.last
        self.claims = {claim.number: claim for claim in lease.claims}
        self.connection_number = connection.made

    def missing(self, first: int, last: int) -> list[int]:
        """Return the claims after `first` up to `last` that are neither open nor committed."""
        numbers = range(max(first, self.committed) + 1, min(last, self.newest) + 1)
        found = [number for number in numbers if number not in self.claims]
        # The broker does not know these claims: its data directory was restored from an older copy.
        return found + list(range(max(self.newest, first) + 1, last + 1))


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

    def __init__(self, options: Options, connection: BrokerConnection, kind: str) -> None:
        self.queue = options.queue
        self._options = options
        self._connection = connection
        self._kind = kind
        self._losses = DataLossPolicy(options)
        self._group: _Group | None = None
        self._begun: ClaimOffset | None = None
        self._left: int | None = None
        self._over = False
        self._given_back: set[int] = set()
        # Whether `claimed` was called, and its result.
        self._answered = False
        self._answer: ClaimInfo | None = None

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
            name = self._options.group or f"{self._options.group_prefix}-{uuid.uuid4().hex}"
            self._open(name)
            assert self._group is not None, "it was opened"
            # An existing group continues at its last commit.
            self._begun = ClaimOffset(self._group.generation, name, self._group.committed)
        return self._begun

    def join(self) -> QueueOffset:
        """Begin with a queue that a running query has found."""
        return self.begin()

    def before(self, end: QueueOffset) -> QueueOffset:
        """Return the offset before the first claim."""
        return replace(self._own(end), claim=0)

    def prepare(self) -> None:
        """Remember the number of ready messages; claimed ones are counted separately."""
        self._left = self._waiting()
        self._over = False

    def available(self, start: QueueOffset) -> int:
        """Commit what Spark has committed; return the number of messages for the next claim."""
        here = self._own(start)
        group = self._held(here)
        here = self._settled(here, group)
        # Claims that Spark has not logged are a micro-batch by themselves.
        following = any(number > here.claim for number in group.claims)
        return sys.maxsize if following else self._waiting()

    def advance(self, start: QueueOffset, max_messages: int, byte_count: int | None) -> QueueOffset:
        """Commit what Spark has committed, and make the next claim."""
        here = self._own(start)
        if self._over:
            return here
        group = self._held(here)
        here = self._settled(here, group)
        following = [number for number in sorted(group.claims) if number > here.claim]
        if following:
            # Claimed by a process that died before Spark logged the offset.
            return replace(here, claim=following[0])
        return self._claimed(here, max_messages, byte_count)

    def extend(
        self, start: QueueOffset, end: QueueOffset, max_messages: int, byte_count: int | None
    ) -> QueueOffset:
        """Make one more claim."""
        here = self._own(end)
        group = self._held(here)
        if any(number > here.claim for number in group.claims):
            return here
        return self._claimed(here, max_messages, byte_count)

    # --- claims that are made together ----------------------------------------------------------

    def wanted(
        self, offset: QueueOffset, max_messages: int, byte_count: int | None, *, more: bool
    ) -> ClaimRequest | None:
        """Return the claim that `advance`, or with `more` `extend`, would make now.

        Returns:
            None if there is nothing to claim, or if more than a commit and a claim is needed.
        """
        group = self._group
        if self._over or self._answered or group is None or not isinstance(offset, ClaimOffset):
            return None
        known = (group.name, group.generation, group.connection_number)
        if known != (offset.group, offset.generation, self._connection.made):
            return None
        if group.newest != offset.claim or group.missing(0, offset.claim):
            return None
        if self._left is not None:
            max_messages = min(max_messages, self._left)
        if max_messages <= 0:
            return None
        commit = 0 if more else max(group.claims, default=0)
        messages = min(max_messages, LEASE_CLAIM_MESSAGES)
        return ClaimRequest(self.queue, group.name, group.epoch, commit, messages, byte_count or 0)

    def committed(self, upto: int) -> None:
        """Record that claims of this reader were committed."""
        group = self._group
        assert group is not None, "only a part with a group asks"
        group.committed = max(group.committed, upto)
        for number in [number for number in group.claims if number <= upto]:
            del group.claims[number]

    def claimed(self, claim: ClaimInfo | None) -> None:
        """Keep the result of a claim that was made ahead, until `advance` or `extend` uses it."""
        self._answered, self._answer = True, claim

    def forget_group(self) -> None:
        """Forget the group after an unknown result: it must be opened again to find its claims."""
        self._group = None

    # --- what tasks read ------------------------------------------------------------------------

    def plan(self, start: QueueOffset, end: QueueOffset) -> list[OffsetRange]:
        """Return the ranges of the claims between two offsets."""
        first, last = self._own(start), self._own(end)
        group = self._held(last)
        if group.generation != last.generation:
            return []
        if first.generation != last.generation or first.claim > last.claim:
            # After a lost log or a forgotten group the numbers start again.
            first = replace(first, claim=0)
        missing = group.missing(first.claim, last.claim)
        if missing:
            self._losses.report(
                f"{_claims(missing)} of group {last.group!r} on queue {self.queue!r}, which Spark "
                f"had planned for the micro-batch that did not end, went back to the queue: "
                f"{self._why(group, last)}. Their messages come again in later micro-batches; if "
                "the sink has nothing of this one, they come once"
            )
            self._given_back.update(missing)
        if first.claim < group.committed:
            # Only claims in Spark's commit log are committed, so the sink has their rows.
            _LOG.warning(
                "claims up to %d of group %r on queue %r are planned again, but were committed: "
                "the sink has their rows, and they are not read again",
                min(group.committed, last.claim),
                last.group,
                self.queue,
            )
        chosen = [
            claim
            for number, claim in sorted(group.claims.items())
            if first.claim < number <= last.claim
        ]
        return [self._range(group, claim) for claim in chosen]

    def report(self) -> dict[str, Any] | None:
        """Return the last claim, and the number of messages that are ready for the next one."""
        group = self._group
        if group is None:
            return None
        try:
            waiting = self._waiting()
        except QueueGone:
            return None
        offset = ClaimOffset(group.generation, group.name, group.newest).to_json()
        return offset | {"ready": waiting}

    def finish(self, start: QueueOffset) -> None:
        """Commit the last claims and close the group."""
        self._over = True
        group, self._group = self._group, None
        if group is not None and not group.claims:
            self._connection.call(
                lambda channel: channel.lease_close(self.queue, group.name, group.epoch)
            )

    def leave(self, start: QueueOffset) -> None:
        """Commit what Spark has committed, requeue the rest, and delete the group."""
        here = self._own(start)
        group = self._group or self._open(here.group)
        # An earlier attempt may have deleted the group already: then nothing is left to commit.
        if group.generation == here.generation and here.claim <= group.newest:
            self._settled(here, group)
        self._group = None
        self._connection.call(
            lambda channel: channel.lease_close(self.queue, group.name, group.epoch, forget=True)
        )

    def stop(self) -> None:
        """Forget the group; the broker keeps it until the lease expires."""
        self._group = None

    # --- the group ------------------------------------------------------------------------------

    def _why(self, group: _Group, offset: ClaimOffset) -> str:
        """Return why claims of a group may be open no longer."""
        if group.newest < offset.claim:
            days = LEASE_GROUP_KEPT_MS // 86_400_000
            return (
                f"the group was not used for {days} days, an operator removed it, or the broker's "
                "data is of an older date"
            )
        return (
            f"no query held the group for {self._options.lease_timeout:g} s (leaseTimeout), an "
            "operator released them, or they did not outlive a restart of the broker"
        )

    def _held(self, offset: ClaimOffset) -> _Group:
        """Return the group of an offset; open it if this process does not hold it.

        Raises:
            SourceError: another client has opened it, or the queue was declared again.
        """
        group = self._group
        if group is None or group.name != offset.group:
            group = self._open(offset.group)
        elif group.connection_number != self._connection.made:
            self._ask(
                "hold",
                group,
                lambda channel, queue, name, epoch: channel.lease_renew(queue, name, epoch),
            )
            group.connection_number = self._connection.made
        if group.generation != offset.generation:
            self._losses.report_new_log(self.queue, offset.generation, group.generation)
        return group

    def _open(self, name: str) -> _Group:
        try:
            lease = self._connection.call(
                lambda channel: channel.lease_open(
                    self.queue, name, timeout=self._options.lease_timeout
                )
            )
        except NotFound as error:
            raise no_queue(self._options) from error
        except PreconditionFailed as error:
            raise SourceError(
                f"queue {self.queue!r} cannot be read exactly once ({error.text}): read it with "
                "delivery=at-least-once, or look at it with delivery=peek"
            ) from error
        self._group = _Group(name, lease, self._connection)
        # From now on it is part of the group's claims.
        self._answered, self._answer = False, None
        return self._group

    def _settled(self, here: ClaimOffset, group: _Group) -> ClaimOffset:
        """Commit up to an offset; return it, or the beginning of a new log."""
        if group.generation != here.generation:
            return ClaimOffset(group.generation, group.name, group.committed)
        # Not those of a micro-batch that was planned without them.
        missing = [each for each in group.missing(0, here.claim) if each not in self._given_back]
        if missing:
            self._losses.report(
                f"{_claims(missing)} of group {group.name!r} on queue {self.queue!r}, which Spark "
                f"has processed, went back to the queue before the broker knew that: "
                f"{self._why(group, here)}. Their messages come again"
            )
        if group.newest < here.claim:
            # The broker has deleted the group, and counts from 1 again.
            return ClaimOffset(group.generation, group.name, group.committed)
        open_ones = [number for number in group.claims if number <= here.claim]
        if open_ones:
            upto = max(open_ones)
            self._ask(
                "commit",
                group,
                lambda channel, queue, name, epoch: channel.lease_commit(queue, name, epoch, upto),
            )
            self.committed(upto)
        return here

    def _claimed(self, here: ClaimOffset, max_messages: int, byte_count: int | None) -> ClaimOffset:
        group = self._held(here)
        answered, claim = self._answered, self._answer
        self._answered, self._answer = False, None
        if claim is not None:
            return self._taken(here, group, claim)
        if answered and self._left is None:
            return here
        if self._left is not None:
            max_messages = min(max_messages, self._left)
        if max_messages <= 0:
            return here
        # The broker limits a claim to a million messages, whatever the request says.
        max_messages = min(max_messages, LEASE_CLAIM_MESSAGES)
        made = self._connection.made
        claim = self._found(group, max_messages, byte_count)
        if self._connection.made != made:
            return self._claimed_before(here, group)
        return here if claim is None else self._taken(here, group, claim)

    def _taken(self, here: ClaimOffset, group: _Group, claim: ClaimInfo) -> ClaimOffset:
        """Return the offset after a new claim."""
        group.claims[claim.number] = claim
        group.newest = claim.number
        if self._left is not None:
            self._left -= claim.messages
        return replace(here, claim=claim.number)

    def _claimed_before(self, here: ClaimOffset, known: _Group) -> ClaimOffset:
        """Find a claim whose answer was lost with the connection."""
        group = self._open(known.name)
        if group.generation != known.generation:
            return here
        fresh = [number for number in sorted(group.claims) if number > known.newest]
        if self._left is not None:
            self._left -= sum(group.claims[number].messages for number in fresh)
        return replace(here, claim=fresh[0]) if fresh else here

    def _found(self, group: _Group, max_messages: int, byte_count: int | None) -> ClaimInfo | None:
        """Return a claim. If the query ends without one, search behind expired messages."""

        def call(channel: Channel, queue: str, name: str, epoch: int) -> ClaimInfo | None:
            return channel.lease_claim(queue, name, epoch, max_messages, byte_count or 0)

        claim: ClaimInfo | None = self._ask("claim", group, call)
        waiting = 0 if claim is not None or self._left is None else self._waiting()
        while claim is None and waiting:
            before = waiting
            claim = self._ask("claim", group, call)
            waiting = self._waiting()
            if waiting >= before:
                break
        return claim

    def _waiting(self) -> int:
        """Return the number of ready messages."""
        try:
            found = self._connection.call(
                lambda channel: channel.declare_queue(self.queue, passive=True)
            )
        except NotFound as error:
            raise no_queue(self._options) from error
        return found.message_count

    def _ask(self, what: str, group: _Group, call: Any) -> Any:
        """Call one method of the group.

        Raises:
            SourceError: the group is fenced, or the lease is lost.
        """
        try:
            return self._connection.call(
                lambda channel: call(channel, self.queue, group.name, group.epoch)
            )
        except Fenced as error:
            raise SourceError(
                f"another query has taken over the lease of group {group.name!r} on queue "
                f"{self.queue!r}, and this one ends ({error.text}): two queries must not share a "
                "checkpoint or a group"
            ) from error
        except LeaseLost as error:
            self._group = None
            raise SourceError(
                f"group {group.name!r} on queue {self.queue!r} cannot {what}: {error.text}; start "
                "the query again to see what is lost"
            ) from error
        except NotFound as error:
            raise no_queue(self._options) from error

    def _range(self, group: _Group, claim: ClaimInfo) -> OffsetRange:
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


def _claims(numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"claim {numbers[0]}"
    return f"{len(numbers)} claims from {numbers[0]} to {numbers[-1]}"
