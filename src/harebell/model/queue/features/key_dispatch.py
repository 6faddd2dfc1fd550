"""Deliver messages of a queue with ordering keys (`x-group-key`).

Consumers get messages of keys that they hold first. Then messages of free keys are delivered to the
least busy consumer. `order.keyed` keeps the keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.c_types import C, i32, i64
from harebell.base.message import Message
from harebell.model.consumer import Consumer
from harebell.model.dead_letter import EXPIRED
from harebell.model.limits import GROUP_SCAN_MESSAGES
from harebell.model.queue.features.ready_bytes import subtract_ready_bytes

if TYPE_CHECKING:
    from harebell.model.queue.features.queue_internals import QueueInternals
    from harebell.model.queue.order.keyed import KeyedOrder

_SCAN_MAX: i32 = GROUP_SCAN_MESSAGES


class KeyDispatch:
    """The deliveries of one queue with ordering keys.

    Args:
        queue: whose consumers hold the keys.
        order: the message order of the queue.
    """

    def __init__(self, queue: QueueInternals, order: KeyedOrder) -> None:
        self._queue = queue
        self._order = order

    def drain(self) -> C[None]:
        """Deliver to ready consumers while there are messages for them."""
        queue = self._queue
        if not queue.consumers.count:
            return
        while queue.no_local is not None and queue.no_local.release_one():
            self.deal()
        self.deal()

    def deal(self) -> C[None]:
        """Deliver messages of held keys to their holders, then of free keys to any consumer."""
        queue: QueueInternals
        order: KeyedOrder
        queue, order = self._queue, self._order
        passed: i32 = 0
        while order.count > 0:
            # A holder first: its messages can go to no other consumer, those of free keys to any.
            consumer: Consumer | None = self._holder()
            goes_on: bool = consumer is not None
            if consumer is not None:
                position: i64 = order.keys.first_of(consumer)
            else:
                consumer = queue.consumers.pick_least_busy()
                if consumer is None:
                    return
                position = order.keys.first_free()
            message: Message | None = order.take_for(position)
            if message is not None:
                if not goes_on:
                    queue.consumers.served(consumer)
                self._deliver(queue.with_count(message), consumer, goes_on)
            elif position < 0:
                passed += 1
                if not order.passed_over:
                    return
                if passed >= _SCAN_MAX:
                    # Very many messages of held keys in a row: `again` continues in a later turn.
                    consumer.again()
                    return

    def _deliver(self, message: Message, consumer: Consumer, goes_on: bool) -> C[None]:
        """Deliver the message that was just taken; the consumer holds its key from now on.

        Args:
            message: the first message of a key that the consumer holds, or no consumer.
            consumer: a consumer that is ready.
            goes_on: whether the consumer held the key before.
        """
        queue: QueueInternals
        order: KeyedOrder
        queue, order = self._queue, self._order
        position: i64 = order.position
        subtract_ready_bytes(queue, message)
        # The timer watches the oldest message only, whatever its key.
        if message.due and queue.expired(message):
            queue.dead_letter(position, EXPIRED)
            return
        local = queue.no_local
        redelivered: bool = order.redelivered
        if local is not None:
            taker: Consumer = local.taker(consumer, position, only=goes_on)
            if taker is None:
                local.put_aside(position, redelivered)
                # Later messages of its key must not overtake it: the order itself holds the key,
                # and never takes another one.
                if order.key is not None:
                    order.hold_key(position, order)
                    order.keys.pause(position)
                return
            consumer = taker
            redelivered = local.redelivered(position, redelivered)
        queue.unacked += 1
        order.hold_key(position, consumer)
        queue.count_delivery(consumer, redelivered)
        consumer.deliver(message, position, redelivered)

    def _holder(self) -> C[Consumer | None]:
        """Return a ready consumer that holds a key with waiting messages."""
        consumer: Consumer
        for consumer in self._queue.consumers:
            if (
                consumer.group is None
                and self._order.keys.first_of(consumer) >= 0
                and consumer.ready()
            ):
                return consumer
        return None

    def take_free(self) -> C[Message | None]:
        """Take the next message whose key is free, for basic.get, and hold the key."""
        order = self._order
        for _ in range(_SCAN_MAX):
            position: i64 = order.keys.first_free()
            message: Message | None = order.take_for(position)
            if message is not None:
                # basic.get has no consumer: the order holds the key until the message is settled.
                order.hold_key(order.position, order)
                return self._queue.with_count(message)
            if position < 0 and not order.passed_over:
                break
        return None
