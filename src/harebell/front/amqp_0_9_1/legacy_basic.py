"""The class basic in versions other than 0-9-1.

qos      the limits apply to the channel, in messages and in bytes
recover  with requeue=false unacknowledged messages are redelivered to the same consumer
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.base.limits import WORK_FRAME_UNITS
from harebell.base.slices import Slices, stepped
from harebell.front.amqp_0_9_1.basic import requeue_all
from harebell.front.common.errors import soft
from harebell.front.common.unacked import Unacked
from harebell.wire.v09 import methods

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.legacy_channel import LegacyChannel

_RECOVER = (60, 100)


def qos(channel: LegacyChannel, method: methods.BasicQos) -> None:
    """basic.qos: set the limits of unacknowledged deliveries of the channel."""
    # In these versions `global` means the connection; the limits are kept per channel.
    channel.prefetch = method.prefetch_count
    channel.window.size = method.prefetch_size
    channel.windowed = method.prefetch_size > 0
    channel.connection.send(channel.number, methods.BasicQosOk())
    channel.limit(method.prefetch_count)


def _deliver_again(channel: LegacyChannel) -> Slices[None]:
    """Redeliver unacknowledged messages; those without a consumer are requeued."""
    to_requeue: list[Unacked] = []
    # `numbers` is a copy: each redelivery adds an entry with a new tag.
    for tag in channel.unacked.numbers():
        entry: Unacked | None = channel.unacked.get(tag)
        consumer: Any = None if entry is None else entry.consumer
        if entry is None or consumer is None:
            # It timed out in an earlier turn; or it is from basic.get, and has no consumer.
            continue
        channel.unacked.take(tag)
        # Only some queues can read a message again that is delivered already.
        read = getattr(entry.queue, "delivered", None)
        message = None if read is None else read(entry.position)
        started = channel.consumers is not None and channel.consumers.get(consumer.tag) is consumer
        if message is None or not started:
            to_requeue.append(entry)
            continue
        entry.forget()
        entry.queue.count_delivery(consumer, True)
        consumer.deliver(message, entry.position, True)
        yield
    # After all redeliveries: a requeued message could go to this channel again meanwhile.
    for entry in to_requeue:
        entry.requeue()
        yield
    channel.serve_queues(to_requeue)


def recover_unacked(channel: LegacyChannel, requeue: bool, answer: methods.Method | None) -> None:
    """Requeue or redeliver unacknowledged messages, in slices; the reply is sent first.

    Args:
        channel: the channel of the method.
        requeue: whether to requeue them, or to redeliver them to their consumers.
        answer: the reply; None if the version has none.
    """
    if channel.transaction is not None:
        raise soft(406, "basic.recover is not for channels with transactions", *_RECOVER)
    if answer is not None:
        channel.connection.send(channel.number, answer)
    if requeue:
        requeue_all(channel)
        return
    work = channel.connection.registry.work
    channel.connection.perform(stepped(_deliver_again(channel), work, WORK_FRAME_UNITS, bool))


def recover_async(channel: LegacyChannel, method: methods.BasicRecoverAsync) -> None:
    """basic.recover of 0-9, which has no reply."""
    recover_unacked(channel, method.requeue, None)
