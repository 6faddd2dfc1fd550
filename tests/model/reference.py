"""A reference broker: AMQP 0-9-1 as its users know it, in naive Python with lists and dicts.

Nothing here comes from the broker's sources, and nothing is fast. Operations change the state
and say what the broker has to answer. Deliveries are not predicted: the broker chooses them
within limits, and `judge` says whether it kept to them.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Container
from typing import Any

from tests.model.things import Channel, Consumer, Entry, Message, Queue, Refused, Unacked
from tests.model.topology import Topology


class Reference(Topology):
    """The broker: every operation is a method; `do` runs one and returns what is said."""

    def __init__(self) -> None:
        super().__init__()
        self.channels: dict[tuple[int, int], Channel] = {}
        self.out_of_order = False
        self.positions = 0

    def do(self, at: tuple[int, int], operation: str, *arguments: Any) -> list[tuple[int, Any]]:
        """Run an operation on a channel; returns (connection, event) for all that is said."""
        self.said = []
        self.out_of_order = False
        channel = self.channels[at]
        try:
            getattr(self, operation)(channel, *arguments)
        except Refused as refused:
            if refused.hard:
                self.drop_connection(at[0])
                self.said.append((at[0], (0, "connection.close", refused.code)))
            else:
                self.drop_channel(channel)
                self.said.append((at[0], (at[1], "channel.close", refused.code)))
        return self.said

    # --- connections and channels ---------------------------------------------------------------

    def open_connection(self, connection: int, wants_cancel: bool) -> None:
        self.connections[connection] = wants_cancel

    def open_channel(self, connection: int, number: int) -> None:
        self.channels[connection, number] = Channel(connection, number)

    def close_channel(self, channel: Channel) -> None:
        self.drop_channel(channel)
        self.say(channel, "channel.close-ok")

    def drop_channel(self, channel: Channel) -> None:
        del self.channels[channel.connection, channel.number]
        for consumer in list(channel.consumers.values()):
            self.remove_consumer(consumer)
        if channel.transaction is not None:
            self.undo(channel)
        self.requeue(list(channel.unacked.values()))
        channel.unacked.clear()

    def vanish(self, channel: Channel) -> None:
        self.drop_connection(channel.connection)

    def drop_connection(self, connection: int) -> None:
        channels = [c for c in self.channels.values() if c.connection == connection]
        for channel in channels:
            for consumer in list(channel.consumers.values()):
                self.remove_consumer(consumer)
        for channel in channels:
            self.drop_channel(channel)
        for queue in [q for q in self.queues.values() if q.owner == connection]:
            self.drop_queue(queue)
        del self.connections[connection]

    def restart(self, clean: bool) -> None:
        """The broker ended, and another goes on: what is durable is left, and nobody is connected.

        After an end that was not clean everything may have been handed out before.
        """
        for channel in self.channels.values():
            self.undo(channel)
            self.requeue(list(channel.unacked.values()))
        self.channels.clear()
        self.connections.clear()
        self.queues = {name: queue for name, queue in self.queues.items() if queue.durable}
        self.exchanges = {name: each for name, each in self.exchanges.items() if each.durable}
        ends: dict[str, Container[str]] = {"queue": self.queues, "exchange": self.exchanges}
        self.bindings = [b for b in self.bindings if b[0] in self.exchanges and b[2] in ends[b[1]]]
        for queue in self.queues.values():
            queue.consumers.clear()
            queue.ready = [entry for entry in queue.ready if entry.message.persistent]
            for entry in queue.ready:
                entry.redelivered |= not clean

    # --- publishing ------------------------------------------------------------------------------

    def publish(self, channel: Channel, message: Message, mandatory: bool) -> None:
        if self.exchange(message.exchange).internal:
            raise Refused(403)
        names = self.destinations(message.exchange, message, set())
        queues = [self.queues[name] for name in names]
        if channel.transaction is not None:
            channel.transaction.append(("publish", message, queues, mandatory))
            return
        self.accept(channel, message, queues, mandatory)
        if channel.confirmed is not None:
            channel.confirmed += 1
            self.say(channel, "confirmed", channel.confirmed)

    def accept(
        self, channel: Channel, message: Message, queues: list[Queue], mandatory: bool
    ) -> None:
        alive = [queue for queue in queues if self.queues.get(queue.name) is queue]
        for queue in alive:
            self.positions += 1
            queue.ready.append(Entry(self.positions, message))
        if mandatory and not alive:
            self.say(channel, "basic.return", 312, message.exchange, message.key, message.body)

    # --- consuming ------------------------------------------------------------------------------

    def qos(self, channel: Channel, count: int, whole_channel: bool) -> None:
        if whole_channel:
            channel.prefetch_global = count
        else:
            channel.prefetch = count
        self.say(channel, "basic.qos-ok")

    def consume(
        self, channel: Channel, name: str, tag: str, no_ack: bool, exclusive: bool, priority: int
    ) -> None:
        if tag in channel.consumers:
            raise Refused(530, hard=True)
        queue = self.queue(channel, name)
        if any(c.exclusive for c in queue.consumers) or (exclusive and queue.consumers):
            raise Refused(403)
        consumer = Consumer(channel, tag, queue, no_ack, exclusive, priority, channel.prefetch)
        channel.consumers[tag] = consumer
        queue.consumers.append(consumer)
        self.start_counting(queue)
        self.say(channel, "basic.consume-ok", tag)

    def cancel(self, channel: Channel, tag: str) -> None:
        if tag in channel.consumers:
            self.remove_consumer(channel.consumers[tag])
        self.say(channel, "basic.cancel-ok", tag)

    def remove_consumer(self, consumer: Consumer) -> None:
        queue = consumer.queue
        del consumer.channel.consumers[consumer.tag]
        queue.consumers.remove(consumer)
        self.start_counting(queue)
        if queue.auto_delete and not queue.consumers:
            self.drop_queue(queue)

    def get(self, channel: Channel, name: str, no_ack: bool) -> None:
        queue = self.queue(channel, name)
        if not queue.ready:
            self.say(channel, "basic.get-empty")
            return
        entry = queue.ready.pop(0)
        tag = self.hand_over(channel, queue, entry, None, no_ack)
        message, again = entry.message, entry.redelivered
        left = len(queue.ready)
        event = (tag, again, message.exchange, message.key, left, message.body)
        self.say(channel, "basic.get-ok", *event)

    def hand_over(
        self, channel: Channel, queue: Queue, entry: Entry, consumer: Consumer | None, no_ack: bool
    ) -> int:
        tag = channel.next_tag
        channel.next_tag += 1
        if not no_ack:
            channel.unacked[tag] = Unacked(tag, entry, queue, consumer)
            if consumer is not None:
                consumer.outstanding += 1
        return tag

    # --- acknowledging --------------------------------------------------------------------------

    def settle(
        self, channel: Channel, tag: int, multiple: bool, ack: bool, requeue: bool = False
    ) -> None:
        """basic.ack, basic.nack and basic.reject."""
        if not (multiple and tag == 0) and tag not in channel.unacked:
            raise Refused(406)
        last = tag if tag or not multiple else channel.next_tag
        tags = [t for t in channel.unacked if t == tag or (multiple and t <= last)]
        entries = [channel.unacked.pop(t) for t in sorted(tags)]
        if channel.transaction is not None:
            channel.transaction.append(("settle", entries, requeue and not ack))
        else:
            self.finish(entries, requeue and not ack)

    def finish(self, entries: list[Unacked], requeue: bool) -> None:
        if requeue:
            self.requeue(entries)
            return
        for each in entries:
            if each.consumer is not None:
                each.consumer.outstanding -= 1

    def requeue(self, entries: list[Unacked]) -> None:
        """Messages return to their places, marked as delivered before."""
        for each in entries:
            if each.consumer is not None:
                each.consumer.outstanding -= 1
            if self.queues.get(each.queue.name) is each.queue:
                each.entry.redelivered = True
                insort(each.queue.ready, each.entry)

    def recover(self, channel: Channel, requeue: bool) -> None:
        if not requeue:
            raise Refused(540, hard=True)
        entries = list(channel.unacked.values())
        channel.unacked.clear()
        self.requeue(entries)
        self.say(channel, "basic.recover-ok")

    # --- confirms and transactions --------------------------------------------------------------

    def confirm(self, channel: Channel) -> None:
        if channel.transaction is not None:
            raise Refused(406)
        channel.confirmed = channel.confirmed or 0
        self.say(channel, "confirm.select-ok")

    def select(self, channel: Channel) -> None:
        if channel.confirmed is not None:
            raise Refused(406)
        channel.transaction = channel.transaction or []
        self.say(channel, "tx.select-ok")

    def commit(self, channel: Channel) -> None:
        if channel.transaction is None:
            raise Refused(406)
        todo, channel.transaction = channel.transaction, []
        # What is published goes out before what comes back: places and priorities are then mixed.
        self.out_of_order = True
        for kind, *rest in todo:
            if kind == "publish":
                self.accept(channel, *rest)
        for kind, *rest in todo:
            if kind == "settle":
                self.finish(*rest)
        self.say(channel, "tx.commit-ok")

    def rollback(self, channel: Channel) -> None:
        if channel.transaction is None:
            raise Refused(406)
        self.undo(channel)
        self.say(channel, "tx.rollback-ok")

    def undo(self, channel: Channel) -> None:
        for kind, *rest in channel.transaction or []:
            if kind == "settle":
                channel.unacked.update({each.tag: each for each in rest[0]})
        channel.unacked = dict(sorted(channel.unacked.items()))
        channel.transaction = []

    @staticmethod
    def start_counting(queue: Queue) -> None:
        """Turns are even from now on: the consumers have changed."""
        for consumer in queue.consumers:
            consumer.served = 0
