"""Enforce the length limits of a queue: refuse new messages, or drop the oldest.

    publish      refuse_if_full --- check_limits: drop the oldest, or refuse from now on
    requeue      check_limits
    new policy   change_limits --- begin_count, in several turns if the backlog is large

`limits` has the numbers, `ready_bytes` keeps the count of bytes. A queue without limits calls
nothing here but `change_limits`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from harebell.base.c_types import C, Done, i32, i64
from harebell.base.message import Message
from harebell.base.timers import NEVER
from harebell.model.dead_letter import MAXLEN
from harebell.model.limits import COUNTED_PER_TURN, TRIMMED_PER_TURN
from harebell.model.queue.features.byte_accounting import BEHIND, ByteAccount
from harebell.model.queue.features.failure_counts import with_failures
from harebell.model.queue.features.head_expiry import check_head
from harebell.model.queue.features.limits import Limits, limits_of
from harebell.model.queue.features.queue_internals import QueueInternals
from harebell.model.queue.features.ready_bytes import subtract_ready_bytes
from harebell.model.queue.features.spared_files import take_victim
from harebell.model.queue.order.contract import MessageOrder

_TRIMMED: i32 = TRIMMED_PER_TURN


def change_limits(queue: QueueInternals, settings: Mapping[str, Any]) -> None:
    """Set the limits, and apply them.

    Args:
        queue: the queue, whose other parts are configured already.
        settings: arguments and policies merged, by policy key.
    """
    before = queue.limits
    limits = queue.limits = limits_of(settings, quorum=queue.quorum is not None)
    if limits is None:
        return
    if before is not None:
        limits.turn = before.turn
    if limits.counts:
        # The bytes that are ready do not depend on the limit, so their count goes on.
        if before is not None and before.counts:
            limits.byte_count = before.byte_count
            limits.counting = before.counting
        else:
            begin_count(queue)
    check_limits(queue)


def refuse_if_full(queue: QueueInternals, message: Message, ready: i64, byte_count: i64) -> C[bool]:
    """True if a message is refused, before it is known whether it becomes ready.

    Args:
        queue: the queue, which has limits.
        message: the one that was published; it may be dead-lettered.
        ready: how many are ready, or hidden by an open batch.
        byte_count: bytes of its body, and of those that an open batch hides.
    """
    limits: Limits | None = queue.limits
    if limits is None or not limits.refuses(ready, byte_count):
        return False
    if queue.values is not None:
        # It may take the place of another one.
        older: Message | None = queue.values.older(message)
        if older is not None and not limits.full(ready - 1, byte_count - len(older.body)):
            return False
    if limits.letters and queue.dead_letters is not None:
        queue.dead_letters.send_later(message, MAXLEN)
    return True


def check_limits(queue: QueueInternals) -> Done:
    """Drop the oldest messages above the limits, or refuse new ones."""
    limits: Limits | None = queue.limits
    if limits is not None and limits.over(queue.order.count):
        if limits.drops:
            trim(queue)
        elif limits.takes_one_more:
            limits.refusing = True
    return 0


def trim(queue: QueueInternals) -> Done:
    """Drop the oldest messages until the limits are met; in several turns if they are many."""
    limits: Limits | None = queue.limits
    order: MessageOrder = queue.order
    limit: i32 = _TRIMMED
    in_turns: bool = _rest_is_due(queue)
    if queue.dead_letters is not None:
        limit = queue.dead_letters.room(in_turns=in_turns)
    dropped: i32 = 0
    # Neither body nor size is needed, so large messages are skipped without reading them.
    unread: bool = queue.dead_letters is None and limits is not None and not limits.counts
    # With priorities the dropped message need not be the oldest of all.
    unread = unread and order.heads == 1 and not queue.spares
    while limits is not None and limits.over(order.count):
        # A letter takes as long as the history that its publisher has written.
        spent: bool = dropped > 0 and queue.dead_letters is not None and queue.work.charge(0)
        if (spent or dropped >= limit) and _schedule_rest(queue):
            break
        if unread and order.spilled_head() >= 0:
            dropped += 1
            order.skip_spilled()
            order.settle(order.position)
            continue
        message: Message | None = None
        if order.count > 0:
            message = take_victim(order) if queue.spares else order.take_victim()
        if message is None:
            # No remaining message may be dropped, or the queue is empty. If it is empty, the bytes
            # are those of messages that could not be read, and were never subtracted.
            limits.byte_count = limits.byte_count if order.count > 0 else 0
            return 0
        dropped += 1
        subtract_ready_bytes(queue, message)
        # Its dead letter may come back to this queue, which changes `order.position`.
        position: i64 = order.position
        if queue.dead_letters is not None:
            queue.dead_letters.send_later(with_failures(message, order, position), MAXLEN)
            if not in_turns and _rest_is_due(queue):
                # The dead letter came back to this queue; continue in the next turn.
                limit = dropped
        order.settle(position)
    check_head(queue)
    return 0


def begin_count(queue: QueueInternals) -> Done:
    """Count the bytes of the ready messages, in several turns if they are many."""
    limits: Limits | None = queue.limits
    if limits is not None:
        limits.byte_count = 0
        limits.counting = ByteAccount(queue.order)
        _go_on_counting(queue)
    return 0


def _go_on_counting(queue: QueueInternals) -> None:
    limits = queue.limits
    if limits is None or limits.counting is None:
        return
    # Without timers there is no later turn.
    limit = BEHIND if queue.context is None else COUNTED_PER_TURN
    if limits.counting.count(limits, limit):
        limits.counting = None
    else:
        _schedule_rest(queue)


def _schedule_rest(queue: QueueInternals) -> C[bool]:
    """Continue to count and drop in the next turn; False if there is none."""
    limits: Limits | None = queue.limits
    if queue.context is None or limits is None:
        return False
    if limits.turn is None:
        limits.turn = queue.context.timers.timer(partial(_do_rest, queue))
    limits.turn.set_earlier(queue.clock.steady)
    return True


def _rest_is_due(queue: QueueInternals) -> C[bool]:
    limits: Limits | None = queue.limits
    return limits is not None and limits.turn is not None and limits.turn.due != NEVER


def _do_rest(queue: QueueInternals) -> None:
    """Continue to count and drop."""
    if not queue.deleted:
        _go_on_counting(queue)
        check_limits(queue)
