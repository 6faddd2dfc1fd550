"""Keep the count of the bytes that are ready in a queue with limits.

    published, requeued, put aside no more    + bytes of the body
    delivered, claimed, dropped, expired      - bytes of the body

Without limits nothing is counted. `byte_accounting` counts a backlog from before the limit.
"""

from __future__ import annotations

from harebell.base.c_types import Done, i64
from harebell.base.message import Message
from harebell.model.queue.features.limits import Limits
from harebell.model.queue.features.queue_internals import QueueInternals


def subtract_ready_bytes(queue: QueueInternals, message: Message) -> Done:
    """Subtract the message at `order.position`, which was just taken, from the ready bytes."""
    limits: Limits | None = queue.limits
    if limits is None:
        return 0
    if limits.counting is None or limits.counting.has(queue.order.position):
        limits.byte_count -= len(message.body)
    if queue.ready_count() == 0:
        # Messages that could not be read were never subtracted.
        limits.byte_count = 0
        limits.counting = None
    # RabbitMQ's quorum queues take messages again only when they are well below the limit:
    # otherwise publishers would be refused and admitted in turns.
    if limits.refusing and limits.low(queue.order.count):
        limits.refusing = False
    return 0


def add_ready_bytes(queue: QueueInternals, position: i64, message: Message) -> Done:
    """Add a message that is ready again, unless the count of a backlog will still reach it."""
    limits: Limits | None = queue.limits
    if limits is not None and (limits.counting is None or limits.counting.has(position)):
        limits.byte_count += len(message.body)
    return 0


def add_ready_bytes_at(queue: QueueInternals, position: i64) -> Done:
    """Add the bytes of the message at a position that is ready again, if bytes are counted."""
    if queue.limits is not None and queue.limits.counts:
        message: Message | None = queue.order.read(position)
        if message is not None:
            add_ready_bytes(queue, position, message)
    return 0
