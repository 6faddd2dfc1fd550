"""Read a queue of Harebell by leases: every message is processed exactly once.

    latestOffset(claim 3)   claims up to 3 are in Spark's commit log: they are committed, which
                            settles their messages; claim 4 is made
    partitions(3, 4)        the range of claim 4, the same however often it is read

The group that claims has its name from the first offset of the query, and so lives as long as the
checkpoint. Opening it begins a new epoch: a query that runs on the same checkpoint somewhere else
is fenced, and gets an error.
"""

from __future__ import annotations

import logging
import uuid
from dataclasses import replace
from typing import Any, NamedTuple

from harebell.base.limits import LEASE_CLAIM_MESSAGES
from harebell.client.blocking import Channel
from harebell.client.errors import Fenced, LeaseLost, NotFound, PreconditionFailed
from harebell.client.protocol.leases import Lease
from harebell.spark.options.offset_limits import EARLIEST
from harebell.spark.options.source_options import Options
from harebell.spark.options.values import OptionError
from harebell.spark.reading.broker_connection import BrokerConnection
from harebell.spark.reading.data_loss_policy import DataLossPolicy, no_queue
from harebell.spark.reading.offsets import ClaimOffset, OffsetError, QueueOffset
from harebell.spark.reading.planning import OffsetRange
from harebell.spark.reading.queue_consumer import QueueGone, SourceError
from harebell.wire.v09.lease import ClaimInfo

_LOG = logging.getLogger("harebell.spark")


class _Group:
    """A group that this process holds."""

    def __init__(self, name: str, lease: Lease, link: BrokerConnection) -> None:
        self.name = name
        self.epoch = lease.epoch
        self.generation = lease.generation
        self.committed = lease.committed
        self.newest = lease.last
        self.claims = {claim.number: claim for claim in lease.claims}
        self.link_made = link.made

    def missing(self, first: int, last: int) -> list[int]:
        """Claims after `first` up to `last` that are neither open nor committed."""
        numbers = range(max(first, self.committed) + 1, min(last, self.newest) + 1)
        found = [number for number in numbers if number not in self.claims]
        # The broker does not know these claims: its data directory is an older one.
        return found + list(range(max(self.newest, first) + 1, last + 1))


class ClaimRequest(NamedTuple):
    """A claim that is to be made together with others (see `claims`).

    Args:
        queue: the queue.
        group: who claims.
        epoch: of the group.
        commit: the claim up to which everything is committed first; 0 for none.
        messages: how many at most.
        octets: of messages, at most; 0 for any number.
    """

    queue: str
    group: str
    epoch: int
    commit: int
    messages: int
    octets: int


class LeasedReader:
    """One leased queue.

    Args:
        options: which queue, and how.
        link: the connection.
        kind: of the queue.
    """

    def __init__(self, options: Options, link: BrokerConnection, kind: str) -> None:
        self.queue = options.queue
        self._options = options
        self._link = link
        self._kind = kind
        self._losses = DataLossPolicy(options)
        self._group: _Group | None = None
        self._begun: ClaimOffset | None = None
        self._left: int | None = None
        self._over = False
        # Whether `claimed` has been called, and with what.
        self._answered = False
        self._answer: ClaimInfo | None = None

    def begin(self) -> QueueOffset:
        """A new query begins at the head of the queue, with a group of its own.

        Raises:
            OptionError: it is to begin somewhere else.
        """
        place = self._options.starting.of(self.queue)
        if place is not None and place.kind != EARLIEST:
            raise OptionError(
                f"the option startingOffsets says {place} for queue {self.queue!r}, but a "
                f"{self._kind} queue is always read from its head: leave it out, or use "
                "delivery=peek"
            )
        if self._begun is None:
            name = self._options.group or f"spark-{uuid.uuid4().hex}"
            self._open(name)
            assert self._group is not None, "it was opened"
            # A group that was there before goes on where it was.
            self._begun = ClaimOffset(self._group.generation, name, self._group.committed)
        return self._begun

    def join(self) -> QueueOffset:
        """The same as for a new query."""
        return self.begin()

    def before(self, end: QueueOffset) -> QueueOffset:
        """Before the first claim."""
        return replace(self._own(end), claim=0)

    def prepare(self) -> None:
        """Remember how many messages are ready; those that are claimed already count apart."""
        self._left = self._waiting()
        self._over = False

    def advance(self, start: QueueOffset, max_messages: int, octets: int | None) -> QueueOffset:
        """Commit what Spark has committed, and claim what comes next."""
        here = self._own(start)
        if self._over:
            return here
        group = self._held(here)
        here = self._settled(here, group)
        following = [number for number in sorted(group.claims) if number > here.claim]
        if following:
            # Claimed by a process that died before Spark wrote it down.
            return replace(here, claim=following[0])
        return self._claimed(here, max_messages, octets)

    def extend(
        self, start: QueueOffset, end: QueueOffset, max_messages: int, octets: int | None
    ) -> QueueOffset:
        """One more claim."""
        here = self._own(end)
        group = self._held(here)
        if any(number > here.claim for number in group.claims):
            return here
        return self._claimed(here, max_messages, octets)

    # --- claims that are made together ----------------------------------------------------------

    def wanted(
        self, point: QueueOffset, max_messages: int, octets: int | None, *, more: bool
    ) -> ClaimRequest | None:
        """What `advance` would ask the broker now, or with `more` `extend`.

        Returns:
            None where that is nothing, or more than to commit and to claim.
        """
        group = self._group
        if self._over or self._answered or group is None or not isinstance(point, ClaimOffset):
            return None
        known = (group.name, group.generation, group.link_made)
        if known != (point.group, point.generation, self._link.made):
            return None
        if group.newest != point.claim or group.missing(0, point.claim):
            return None
        if self._left is not None:
            max_messages = min(max_messages, self._left)
        if max_messages <= 0:
            return None
        commit = 0 if more else max(group.claims, default=0)
        messages = min(max_messages, LEASE_CLAIM_MESSAGES)
        return ClaimRequest(self.queue, group.name, group.epoch, commit, messages, octets or 0)

    def committed(self, upto: int) -> None:
        """Take note that claims of this reader were committed."""
        group = self._group
        assert group is not None, "only a part with a group asks"
        group.committed = max(group.committed, upto)
        for number in [number for number in group.claims if number <= upto]:
            del group.claims[number]

    def claimed(self, claim: ClaimInfo | None) -> None:
        """Keep a claim that was made ahead, or that nothing was ready, until it is asked for."""
        self._answered, self._answer = True, claim

    def forget_group(self) -> None:
        """Whether something was claimed is not known: the group has to be opened to tell."""
        self._group = None

    # --- what tasks read ------------------------------------------------------------------------

    def plan(self, start: QueueOffset, end: QueueOffset) -> list[OffsetRange]:
        """The ranges of the claims between two offsets."""
        first, last = self._own(start), self._own(end)
        group = self._held(last)
        if group.generation != last.generation:
            return []
        if first.generation != last.generation or first.claim > last.claim:
            # Where a lost log or a forgotten group was passed over, counting began again.
            first = replace(first, claim=0)
        missing = group.missing(first.claim, last.claim)
        if missing:
            self._losses.report(
                f"{_claims(missing)} of group {last.group!r} on queue {self.queue!r}, which Spark "
                "had planned, went back to the queue when the lease's time was over, by an "
                "operator's word, or with the broker's data: their messages come again in later "
                "micro-batches"
            )
        if first.claim < group.committed:
            # Only what was in Spark's commit log is ever committed, so its sink has it.
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
        """The last claim, and how many messages wait for the next one."""
        group = self._group
        if group is None:
            return None
        try:
            waiting = self._waiting()
        except QueueGone:
            return None
        point = ClaimOffset(group.generation, group.name, group.newest).to_json()
        return point | {"ready": waiting}

    def finish(self, start: QueueOffset) -> None:
        """Commit the last claims and hold the group no longer."""
        self._over = True
        group, self._group = self._group, None
        if group is not None and not group.claims:
            self._link.call(
                lambda channel: channel.lease_close(self.queue, group.name, group.epoch)
            )

    def leave(self, start: QueueOffset) -> None:
        """Commit what Spark has committed, give the rest back, and forget the group."""
        here = self._own(start)
        group = self._group or self._open(here.group)
        # An older attempt to leave may have come as far as that: then there is nothing to commit.
        if group.generation == here.generation and here.claim <= group.newest:
            self._settled(here, group)
        self._group = None
        self._link.call(
            lambda channel: channel.lease_close(self.queue, group.name, group.epoch, forget=True)
        )

    def stop(self) -> None:
        """Leave: the group waits for the query to start again, as long as the lease lasts."""
        self._group = None

    # --- the group ------------------------------------------------------------------------------

    def _held(self, point: ClaimOffset) -> _Group:
        """The group of an offset, opened by this process.

        Raises:
            SourceError: somebody else has taken it over, or the queue is another one.
        """
        group = self._group
        if group is None or group.name != point.group:
            group = self._open(point.group)
        elif group.link_made != self._link.made:
            self._ask(
                "hold",
                group,
                lambda channel, queue, name, epoch: channel.lease_renew(queue, name, epoch),
            )
            group.link_made = self._link.made
        if group.generation != point.generation:
            self._losses.report(
                f"queue {self.queue!r} was deleted and declared again since the checkpoint: its "
                f"log was {point.generation} and is {group.generation}; messages that were in the "
                "old one are gone"
            )
        return group

    def _open(self, name: str) -> _Group:
        try:
            lease = self._link.call(
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
        self._group = _Group(name, lease, self._link)
        # It is among the claims of the group now.
        self._answered, self._answer = False, None
        return self._group

    def _settled(self, here: ClaimOffset, group: _Group) -> ClaimOffset:
        """Commit up to an offset; returns it, or the beginning of a new log."""
        if group.generation != here.generation:
            return ClaimOffset(group.generation, group.name, group.committed)
        missing = group.missing(0, here.claim)
        if missing:
            self._losses.report(
                f"{_claims(missing)} of group {group.name!r} on queue {self.queue!r} went back to "
                "the queue before they could be committed, when the lease's time was over, by an "
                "operator's word, or with the broker's data: their messages come again, although "
                "Spark has processed them"
            )
        if group.newest < here.claim:
            # The broker has forgotten the group, and counts from 1 again.
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

    def _claimed(self, here: ClaimOffset, max_messages: int, octets: int | None) -> ClaimOffset:
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
        # The broker gives no more at once; a million is a claim, whatever was asked for.
        max_messages = min(max_messages, LEASE_CLAIM_MESSAGES)
        made = self._link.made
        claim = self._found(group, max_messages, octets)
        if self._link.made != made:
            return self._told_again(here, group)
        return here if claim is None else self._taken(here, group, claim)

    def _taken(self, here: ClaimOffset, group: _Group, claim: ClaimInfo) -> ClaimOffset:
        """The end of a claim that was made now."""
        group.claims[claim.number] = claim
        group.newest = claim.number
        if self._left is not None:
            self._left -= claim.messages
        return replace(here, claim=claim.number)

    def _told_again(self, here: ClaimOffset, known: _Group) -> ClaimOffset:
        """A claim whose answer was lost with the connection is there nonetheless."""
        group = self._open(known.name)
        if group.generation != known.generation:
            return here
        fresh = [number for number in sorted(group.claims) if number > known.newest]
        if self._left is not None:
            self._left -= sum(group.claims[number].messages for number in fresh)
        return replace(here, claim=fresh[0]) if fresh else here

    def _found(self, group: _Group, max_messages: int, octets: int | None) -> ClaimInfo | None:
        """A claim. Where the query ends without one, it is looked for behind what has expired."""

        def call(channel: Channel, queue: str, name: str, epoch: int) -> ClaimInfo | None:
            return channel.lease_claim(queue, name, epoch, max_messages, octets or 0)

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
        """How many messages are ready."""
        try:
            found = self._link.call(lambda channel: channel.declare_queue(self.queue, passive=True))
        except NotFound as error:
            raise no_queue(self._options) from error
        return found.message_count

    def _ask(self, what: str, group: _Group, call: Any) -> Any:
        """One method of the group.

        Raises:
            SourceError: fenced, or the lease is lost.
        """
        try:
            return self._link.call(
                lambda channel: call(channel, self.queue, group.name, group.epoch)
            )
        except Fenced as error:
            raise SourceError(
                f"another query has taken over the lease of group {group.name!r} on queue "
                f"{self.queue!r}, and this one ends ({error.text}): two queries must not share a "
                "checkpoint"
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

    def _own(self, point: QueueOffset) -> ClaimOffset:
        if not isinstance(point, ClaimOffset):
            raise OffsetError(
                f"the checkpoint holds the offset {point.to_json()!r} for queue {self.queue!r}, "
                "which belongs to a query of another delivery: use a new checkpoint"
            )
        return point


def _claims(numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"claim {numbers[0]}"
    return f"{len(numbers)} claims from {numbers[0]} to {numbers[-1]}"
