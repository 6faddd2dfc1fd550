"""Settle or requeue many deliveries, in slices under the work budget.

A client may have a million unacknowledged deliveries, and acknowledge or requeue all with one
method, or by closing the channel. Requeued messages are not redelivered before all are requeued;
otherwise the order would be lost.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller
from typing import TYPE_CHECKING

from harebell.front.common.unacked import Unacked
from harebell.front.limits import COMPLETED_PER_STEP, REFUSED_AT_ONCE
from harebell.model.queue.contract import Queue
from harebell.model.transaction import ACCEPT, REJECT, REQUEUE, REQUEUE_RETURNED

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.open_channel import OpenChannel

_CAPABILITY = "uncounted_requeue"
"""Of a client that only looks: deliveries that it has at the end of a channel have not failed."""


# By name and not as `Unacked.settle`: deliveries of some versions and classes override it.
_ONE_BY_ONE: dict[int, Callable[[Unacked], int]] = {
    ACCEPT: methodcaller("settle"),
    REJECT: methodcaller("reject"),
    REQUEUE: methodcaller("requeue"),
    REQUEUE_RETURNED: methodcaller("requeue_returned"),
}


def settle_all(channel: OpenChannel, last: int, kind: int) -> None:
    """Settle every delivery up to a tag, then serve their queues.

    Args:
        channel: the channel of the deliveries; it may be closed before all is done.
        last: the last delivery tag.
        kind: what happens to each: ACCEPT, REJECT, REQUEUE or REQUEUE_RETURNED.
    """
    perform(channel, last, _ONE_BY_ONE[kind], {}, channel, acknowledges=kind == ACCEPT)


def requeue_all(channel: OpenChannel, consumed: list[Queue]) -> None:
    """Requeue every unacknowledged delivery of a closed channel.

    Args:
        channel: a channel that gets no more deliveries.
        consumed: queues that it consumed from, which are also served afterwards.
    """
    counts = not channel.connection.wants(_CAPABILITY)
    requeue = _ONE_BY_ONE[REQUEUE] if counts else _requeue_uncounted
    perform(channel, channel.next_tag - 1, requeue, dict.fromkeys(consumed), None)


def _requeue_uncounted(entry: Unacked) -> int:
    if entry.consumer is not None:
        entry.consumer.released()
    return entry.queue.requeue_uncounted(entry.position, True)


def perform(
    channel: OpenChannel,
    last: int,
    settle: Callable[[Unacked], int],
    queues: dict[Queue, None],
    served: OpenChannel | None,
    *,
    acknowledges: bool = False,
) -> None:
    """Settle the deliveries in slices.

    Args:
        channel: the channel of the deliveries.
        last: the last delivery tag.
        settle: what happens to each.
        queues: the queues to serve afterwards; those of the deliveries are added.
        served: the channel, if it has a limit for all consumers; None when it is closed.
        acknowledges: whether they are acknowledged.
    """
    work = channel.connection.registry.work
    few = COMPLETED_PER_STEP if acknowledges else REFUSED_AT_ONCE

    def step() -> bool:
        # By tag in each slice: a delivery may time out, or be settled, between two of them.
        while True:
            entries = channel.take_some(last, few)
            if not entries:
                break
            if acknowledges:
                channel.counters.ack += len(entries)
            for entry in entries:
                settle(entry)
                queues[entry.queue] = None
            if work.charge(len(entries)):
                return False
        if served is not None and served.waiting is not None:
            served.share_prefetch()
        # Only now: a queue that was served earlier would deliver messages out of order.
        for queue in queues:
            if not queue.deleted:
                queue.drain()
        return True

    channel.connection.perform(step)
