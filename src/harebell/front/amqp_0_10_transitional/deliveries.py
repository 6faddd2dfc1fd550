"""Transfers to the client: consumers of class message, and their unacknowledged deliveries.

A delivery is a command of the broker. The client acknowledges it by completing the command
(execution.complete): all up to a mark, or some by their numbers.

    our commands      1  2  3  4  5  6        complete: mark 2, ranges (5,5)
    deliveries        a     b     c  d        a and c are acknowledged, b and d are out

The entries are those of the channel, under delivery tags that clients of this class never see, so
they are requeued with the others when the channel ends, and time out with them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain, islice, takewhile
from typing import TYPE_CHECKING, Any

from harebell.base.message import Message
from harebell.base.slices import Slices, ended, stepped
from harebell.front.amqp_0_9_1.prefetch_size_window import TOO_LONG, UNKNOWN, SizedUnacked
from harebell.front.amqp_0_10_transitional.completion import after, distance
from harebell.front.amqp_0_10_transitional.credit import Credit
from harebell.front.amqp_0_10_transitional.layer import layer_of
from harebell.front.amqp_0_10_transitional.outgoing import commands_of, transfer_of
from harebell.front.common.firehose_tap import delivered
from harebell.front.common.interceptors import stamped_as_sent
from harebell.front.common.unacked import Unacked
from harebell.front.limits import COMPLETED_PER_STEP, OUTPUT_HIGH_BYTES, SETTLED_AT_ONCE
from harebell.model.consumer import Consumer
from harebell.model.queue.contract import Queue
from harebell.model.transaction import ACCEPT

if TYPE_CHECKING:
    from harebell.front.amqp_0_10_transitional.channel import TransitionalChannel

_FRAME_OVERHEAD = 8
_NAME = b"harebell-%d"


class TransferConsumer(Consumer):
    """Delivers messages as message.transfer.

    Args:
        channel: the channel or session it was started on.
        queue: what it consumes.
        destination: the destination of its transfers.
        **options: as for `Consumer`.
    """

    __slots__ = ("channel",)

    def __init__(
        self, channel: TransitionalChannel, queue: Queue, destination: str, **options: Any
    ) -> None:
        super().__init__(queue, destination, **options)
        self.channel = channel

    def ready(self) -> bool:
        """True if there is credit and room in the output, and flow is on."""
        channel = self.channel
        if not channel.may_deliver():
            return False
        if not self.no_ack:
            for credit in deliveries_of(channel).credits():
                answer = credit.admits(self.queue)
                if answer == UNKNOWN:
                    # The message, and so its size, is in the queue only in a later turn.
                    self.again()
                if answer in (TOO_LONG, UNKNOWN):
                    return False
        connection = channel.connection
        if connection.congested or connection.out.size >= OUTPUT_HIGH_BYTES:
            connection.starved = True
            return False
        return True

    def deliver(self, message: Message, position: int, redelivered: bool) -> int:
        """Write message.transfer and remember what has to be acknowledged."""
        channel = self.channel
        deliveries = deliveries_of(channel)
        if channel.connection.stamps:
            message = stamped_as_sent(channel.connection, message)
        number = deliveries.send(message, self.tag, redelivered)
        if not self.no_ack:
            self.unacked += 1
            tag = deliveries.note(number)
            against = deliveries.credits()
            entry = SizedUnacked(against, message, self.queue, self, position, tag)
            channel.unacked.put(tag, entry)
        if channel.router.tracer is not None:
            delivered(channel, message, self.queue.name, redelivered)
        return 0

    def again(self) -> int:
        """Request another turn for consumers that were not fully served."""
        return self.channel.connection.ask_for_turn()

    def queue_deleted(self) -> None:
        """Remove the consumer: its queue was deleted."""
        self.channel.consumer_lost(self)


class Deliveries:
    """The unacknowledged deliveries of class message on one channel.

    Args:
        channel: the channel, or session.

    Attributes:
        credit: what message.qos set for the session.
    """

    def __init__(self, channel: TransitionalChannel) -> None:
        self._channel = channel
        self.credit = Credit()
        # Number of our command -> delivery tag, in the order of sending.
        self._tags: dict[int, int] = {}
        # The same for acknowledgements in a transaction: a rollback restores them.
        self._given: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._tags)

    def credits(self) -> tuple[Credit, ...]:
        """Return the limits that a delivery counts against."""
        shared: Credit | None = layer_of(self._channel.connection).credit
        return (self.credit,) if shared is None else (self.credit, shared)

    def send(self, message: Message, destination: str, redelivered: bool) -> int:
        """Write a message; returns the number of the transfer as a command."""
        channel = self._channel
        connection = channel.connection
        transfer = transfer_of(message, destination, redelivered, layer_of(connection).dialect)
        name = _NAME % after(channel.sent)
        payloads = commands_of(transfer, name, connection.frame_max - _FRAME_OVERHEAD)
        numbers = [channel.write_method(payload) for payload in payloads]
        # By reference the transfer is the second command, behind message.open.
        return numbers[min(1, len(numbers) - 1)]

    def note(self, number: int) -> int:
        """Note a delivery under its number; return its delivery tag."""
        channel = self._channel
        tag = channel.next_tag
        channel.next_tag = tag + 1
        self._tags[number] = tag
        return tag

    def tags(self) -> set[int]:
        """Return the delivery tags of the channel that belong to this class."""
        return set(self._tags.values())

    def completed(self, mark: int, ranges: tuple[tuple[int, int], ...]) -> None:
        """Acknowledge all commands up to the mark, and those of the ranges, in slices."""
        self._reclaim()
        numbers = chain(self._up_to(mark), self._within(ranges) if ranges else ())
        transaction = self._channel.transaction

        def completing() -> Slices[None]:
            while some := list(islice(numbers, COMPLETED_PER_STEP)):
                if self._channel.transaction is not transaction:
                    # The session has ended between two slices: its end requeues the others.
                    return
                entries = self._take(some)
                if entries:
                    self.give(entries, ACCEPT)
                yield

        if len(self._tags) <= SETTLED_AT_ONCE:
            ended(completing())
            return
        connection = self._channel.connection
        connection.perform(
            stepped(completing(), connection.registry.work, COMPLETED_PER_STEP, bool)
        )

    def take_all(self) -> list[Unacked]:
        """Remove and return all unacknowledged deliveries, in the order of sending."""
        self._reclaim()
        return self._take(list(self._tags))

    def recovering(self, *, requeue: bool) -> Slices[None]:
        """Requeue every delivery, or redeliver it to its consumer, one per slice.

        Args:
            requeue: whether to requeue those that could be redelivered, too.
        """
        channel = self._channel
        to_requeue: list[Unacked] = []
        by_queue: dict[Queue, Unacked] = {}
        # A copy: each redelivery has a new number.
        for number in list(self._tags):
            for entry in self._take([number]):
                if requeue:
                    entry.requeue()
                    by_queue[entry.queue] = entry
                elif not self.send_again(entry):
                    to_requeue.append(entry)
            yield
        # After all redeliveries: a requeued message could go to this channel again meanwhile.
        for entry in to_requeue:
            entry.requeue()
            by_queue[entry.queue] = entry
            yield
        channel.serve_queues(list(by_queue.values()))
        self.freed()

    def take_oldest(self) -> Unacked | None:
        """Remove and return the oldest unacknowledged delivery; None if there is none."""
        self._reclaim()
        while self._tags:
            entries = self._take([next(iter(self._tags))])
            if entries:
                return entries[0]
        return None

    def send_again(self, entry: Unacked) -> bool:
        """Redeliver to the same consumer; False if that is not possible.

        Args:
            entry: a removed one; if True is returned it is unacknowledged under a new number.
        """
        channel, consumer = self._channel, entry.consumer
        if not isinstance(consumer, TransferConsumer):
            return False
        if (channel.consumers or {}).get(consumer.tag) is not consumer:
            return False
        message = entry.queue.delivered(entry.position)
        if message is None:
            return False
        entry.queue.count_delivery(consumer, True)
        self._tags[self.send(message, consumer.tag, True)] = entry.tag
        channel.unacked.put(entry.tag, entry)
        return True

    def give(self, entries: list[Unacked], kind: int) -> None:
        """Settle removed entries: now, or with the transaction."""
        channel = self._channel
        if channel.transaction is not None:
            channel.transaction.settle(entries, kind)
        else:
            channel.take_effect(entries, kind)

    def freed(self) -> None:
        """Serve the consumers that waited for credit of ended deliveries."""
        channel = self._channel
        if self.credit.limited:
            channel.serve()
        shared: Credit | None = layer_of(channel.connection).credit
        if shared is not None and shared.limited:
            for other in list(channel.connection.channels.values()):
                other.serve()

    def _take(self, numbers: list[int]) -> list[Unacked]:
        """Remove and return the existing entries of some numbers."""
        channel = self._channel
        entries = []
        for number in numbers:
            tag = self._tags.pop(number, None)
            entry: Unacked | None = None if tag is None else channel.unacked.take(tag)
            if tag is not None and entry is not None:
                entries.append(entry)
                if channel.transaction is not None:
                    self._given[number] = tag
        return entries

    def _reclaim(self) -> None:
        """Restore the deliveries of a transaction that was rolled back."""
        if not self._given:
            return
        channel, given = self._channel, self._given
        returned = {}
        # A rollback restores all. Without one, two are looked at: there may be 100,000, and a
        # peer may complete each of them by itself.
        ends = (next(iter(given)), next(reversed(given)))
        if any(channel.unacked.get(given[end]) is not None for end in ends):
            returned = {n: tag for n, tag in given.items() if channel.unacked.get(tag) is not None}
        if returned:
            both = self._tags | returned
            # In the order of sending, which a mark and message.reject refer to.
            self._tags = {n: both[n] for n in _in_order(both, channel.sent)}
        transaction = channel.transaction
        # Nothing pending: the transaction has ended, and a commit has settled them for good.
        if returned or transaction is None or not any(transaction.pending()):
            self._given.clear()

    def _up_to(self, mark: int) -> Iterator[int]:
        """Yield the outstanding numbers up to a mark; they may be removed meanwhile."""
        return takewhile(lambda number: distance(number, mark) >= 0, list(self._tags))

    def _within(self, ranges: tuple[tuple[int, int], ...]) -> list[int]:
        """Return the outstanding numbers in some ranges, in time independent of their width."""
        if sum(distance(first, last) + 1 for first, last in ranges) <= len(self._tags):
            in_ranges: dict[int, None] = {}
            for first, last in ranges:
                steps = range(distance(first, last) + 1)
                in_ranges |= dict.fromkeys(after(first, step) for step in steps)
            return [number for number in in_ranges if number in self._tags]
        if not self._tags:
            return []
        # A peer chooses wide ranges: both lists are sorted by distance, and walked once together.
        base = next(iter(self._tags))
        spans = sorted((distance(base, first), distance(base, last)) for first, last in ranges)
        numbers, begun, reach = [], 0, -1
        for number in self._tags:
            steps_on = distance(base, number)
            while begun < len(spans) and spans[begun][0] <= steps_on:
                reach = max(reach, spans[begun][1])
                begun += 1
            if steps_on <= reach:
                numbers.append(number)
        return numbers


def _in_order(numbers: Collection[int], newest: int) -> list[int]:
    """Return numbers of commands in the order of sending, given the newest one."""
    if max(numbers) <= newest:
        return sorted(numbers)
    # They wrap around: those above the newest number are older than it.
    return sorted(numbers, key=lambda number: distance(newest, number))


def deliveries_of(channel: TransitionalChannel) -> Deliveries:
    """Return the deliveries of class message on a channel."""
    deliveries: Deliveries | None = channel.transfers
    if deliveries is None:
        deliveries = channel.transfers = Deliveries(channel)
    return deliveries
