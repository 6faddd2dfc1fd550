"""Expire messages at the head of a queue, which is where RabbitMQ expires them.

    kept_until   a message with an expiry was kept: it may be the head
    check_head   there is another head: after deliveries, claims and drops
    expire_heads remove what has expired, and wake when the next head does

A queue with several logs has a head in each. `expiry` has the TTL and the timer.
"""

from __future__ import annotations

from harebell.base.c_types import Done, i32, i64
from harebell.base.message import Message
from harebell.model.dead_letter import EXPIRED
from harebell.model.limits import EXPIRED_PER_TURN
from harebell.model.queue.features.expiry import Expiry
from harebell.model.queue.features.queue_internals import QueueInternals
from harebell.model.queue.features.ready_bytes import subtract_ready_bytes
from harebell.model.queue.order.contract import MessageOrder

_EXPIRED_PER_TURN: i32 = EXPIRED_PER_TURN


def kept_until(queue: QueueInternals, due: i64) -> Done:
    """Note that a message with an expiry was kept; only the head of the queue matters."""
    expiry: Expiry = queue.with_expiry()
    expiry.active = True
    # With several logs the message may be the head of its own, though not of the queue.
    if queue.order.count == 1 or queue.order.heads > 1:
        if due <= queue.clock.steady:
            expire_heads(queue)
        else:
            expiry.wake_at(due)
    return 0


def check_head(queue: QueueInternals) -> Done:
    """Check the expiry of a new head, if messages may expire."""
    expiry: Expiry | None = queue.expiry
    if expiry is None or not expiry.active:
        return 0
    if queue.order.count == 0:
        # Delivered messages may be requeued, and claims released.
        expiry.active = queue.unacked > 0 or queue.leased > 0
    else:
        # Also if the timer is set for later: messages keep the expiry that they were published
        # with, so a newer one may expire first.
        expire_heads(queue)
    return 0


def expire_heads(queue: QueueInternals) -> Done:
    """Remove expired messages at the head, and set the timer for the new head."""
    if queue.deleted:
        return 0
    now: i64 = queue.clock.steady
    earliest: i64 = 0
    head: i32
    for head in range(queue.order.heads):
        due: i64 = _expire_head(queue, head, now)
        if due and (earliest == 0 or due < earliest):
            earliest = due
    if earliest:
        queue.with_expiry().wake_at(earliest)
    return 0


def _expire_head(queue: QueueInternals, head: i32, now: i64) -> i64:
    """Remove expired messages of one log; return when the next one expires, 0 for never."""
    order: MessageOrder = queue.order
    for _ in range(_EXPIRED_PER_TURN):
        message: Message | None = order.peek_head(head)
        if message is None:
            return 0
        if message.due == 0 or message.due > now:
            return message.due
        message = order.take_head(head)
        if message is not None:
            subtract_ready_bytes(queue, message)
            queue.dead_letter(order.position, EXPIRED)
        if queue.work.charge(1):
            break
    # The next head may have expired, too: the timer continues in the next turn.
    return now
