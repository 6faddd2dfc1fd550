"""Deliveries that have not been acknowledged yet.

Mostly a consumer gets messages one behind the other, and acknowledges many with one method. So
deliveries in a row share one object, the run, which is in the map at the tag of each of them:

    tag         7    8    9    10   11
    position    40   41   42   60   61
    map         run  run  run  run' run'

A run does not store its end: the map says which deliveries are open. For a single delivery an entry
of its own is made on demand.
"""

from __future__ import annotations

from harebell.base.c_types import C, Done, Py, i64, u64
from harebell.base.counters import Counters
from harebell.base.sequence import Sequence
from harebell.model.consumer import Consumer
from harebell.model.queue.contract import Queue


class Unacked:
    """One entry of a channel's unacknowledged deliveries, kept under its delivery tag.

    Args:
        queue: the queue of the message.
        consumer: its consumer; None for basic.get.
        position: its position in the queue's log.
        tag: its delivery tag.
    """

    def __init__(self, queue: Queue, consumer: Consumer | None, position: i64, tag: u64) -> None:
        self.queue = queue
        self.consumer = consumer
        self.position = position
        self.tag = tag

    def count_ack(self) -> Done:
        """Count an acknowledgement for the channel and queue."""
        if self.consumer is not None:
            self.consumer.details.ack += 1
        return 0

    def forget(self) -> None:
        """Release the consumer's credit: the message is delivered again under another tag."""
        if self.consumer is not None:
            self.consumer.released()

    def settle(self) -> Done:
        """Acknowledge the delivery."""
        # Counted here and not in the queue, which settles messages without an acknowledgement, too.
        self.queue.counters.ack += 1
        if self.consumer is not None:
            self.consumer.details.ack += 1
            self.consumer.released()
        return self.queue.settle(self.position)

    def settle_some(self, tag: u64, count: i64) -> Done:
        """Acknowledge the deliveries of this member of the map from a tag on.

        Args:
            tag: the tag of the first.
            count: how many; 1 unless this is a run.
        """
        return self.settle()

    def entry(self, tag: u64) -> C[Unacked]:
        """Return the delivery with a tag by itself."""
        return self

    def reject(self) -> Done:
        """Reject the message without requeue."""
        if self.consumer is not None:
            self.consumer.released()
        return self.queue.reject(self.position)

    def requeue(self) -> Done:
        """Requeue the message in its position; the caller drains the queue."""
        if self.consumer is not None:
            self.consumer.released()
        return self.queue.requeue(self.position)

    def requeue_returned(self) -> Done:
        """Requeue the message without counting a failed delivery."""
        if self.consumer is not None:
            self.consumer.released()
        return self.queue.requeue_returned(self.position)

    def time_out(self) -> Done:
        """Requeue the message after the acknowledgement timeout."""
        if self.consumer is not None:
            self.consumer.released()
        return self.queue.time_out(self.position)


class UnackedGet(Unacked):
    """A message that was taken with basic.get, and is not acknowledged.

    Args:
        queue, position, tag: as for `Unacked`.
        details: the counters of the channel and queue.
    """

    def __init__(self, queue: Queue, position: int, tag: int, details: Counters) -> None:
        super().__init__(queue, None, position, tag)
        self.details = details

    def count_ack(self) -> Done:
        """Count an acknowledgement for the channel and queue."""
        self.details.ack += 1
        return 0

    def settle(self) -> Done:
        """Acknowledge the message."""
        self.details.ack += 1
        # Cython has no `super()` without arguments in a method that C calls.
        return Unacked.settle(self)


def new_unacked(queue: Queue, consumer: Consumer | None, position: i64, tag: u64) -> C[Unacked]:
    """Make an entry without the cost of a Python call, for the hot path."""
    entry: Unacked = Unacked.__new__(Unacked)
    entry.queue = queue
    entry.consumer = consumer
    entry.position = position
    entry.tag = tag
    return entry


class UnackedRun(Unacked):
    """Deliveries in a row to one consumer: their tags rise by 1, their positions by `step`.

    Args:
        queue, consumer: as for `Unacked`.
        position: the position of the first.
        tag: the tag of the first.

    Attributes:
        step: the distance of positions that follow each other in the queue.
    """

    def __init__(self, queue: Queue, consumer: Consumer, position: int, tag: int) -> None:
        Unacked.__init__(self, queue, consumer, position, tag)
        self.step: i64 = queue.step

    def settle_some(self, tag: u64, count: i64) -> Done:
        """Acknowledge deliveries of the run, as `settle` one after the other would."""
        consumer: Consumer | None
        queue: Queue
        consumer, queue = self.consumer, self.queue
        assert consumer is not None, "as it was made"
        queue.counters.ack += count
        consumer.details.ack += count
        consumer.released_some(count)
        return queue.settle_some(self.position + (tag - self.tag) * self.step, count)

    def entry(self, tag: u64) -> C[Unacked]:
        """Return the delivery with a tag by itself."""
        position = self.position + (tag - self.tag) * self.step
        return new_unacked(self.queue, self.consumer, position, tag)


def new_run(queue: Queue, consumer: Consumer, position: i64, tag: u64) -> C[UnackedRun]:
    """Make a run without the cost of a Python call: of consumers in turns, each delivery is one."""
    run: UnackedRun = UnackedRun.__new__(UnackedRun)
    run.queue = queue
    run.consumer = consumer
    run.position = position
    run.tag = tag
    run.step = queue.step
    return run


class UnackedDeliveries(Sequence):
    """The unacknowledged deliveries of a channel, by delivery tag."""

    def __init__(self) -> None:
        Sequence.__init__(self, 1)
        # The run that the next delivery may continue.
        self._run: UnackedRun | None = None

    def deliver(self, consumer: Consumer, position: i64, tag: u64) -> Done:
        """Add the delivery of a message of the queue of a consumer."""
        run = self._run
        if (
            run is None
            or run.consumer is not consumer
            or position != run.position + (tag - run.tag) * run.step
        ):
            run = self._run = new_run(consumer.queue, consumer, position, tag)
        return self.put(tag, run)

    def get(self, number: i64) -> C[Py[Unacked | None]]:
        """Return the delivery with a tag; None if there is none."""
        member: Unacked | None = Sequence.get(self, number)
        return None if member is None else member.entry(number)

    def member(self, number: i64) -> C[Unacked | None]:
        """Return the run of a tag, or its only delivery; None if there is none."""
        member: Unacked | None = Sequence.get(self, number)
        return member

    def take(self, number: i64) -> C[Py[Unacked | None]]:
        """Remove and return the delivery with a tag; None if there is none."""
        member = self.take_member(number)
        return None if member is None else member.entry(number)

    def take_member(self, number: i64) -> C[Unacked | None]:
        """Remove the delivery with a tag; return as `member` does."""
        member: Unacked | None = Sequence.take(self, number)
        if self.count == 0:
            # Otherwise the run would keep the consumer of a closed channel in a cycle.
            self._run = None
        return member

    def take_run(self, number: i64, last: i64) -> i64:
        """Remove the deliveries of a run from a tag on; return how many."""
        count: i64 = Sequence.take_run(self, number, last)
        if self.count == 0:
            self._run = None
        return count
