"""The class basic in versions other than 0-9-1.

qos      the limits are the channel's, in messages and in octets
recover  with requeue=false what is out goes out again, to the consumer that had it
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.front.common.errors import soft
from harebell.front.common.unacked import Unacked
from harebell.wire.v09 import methods

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.windowed_channel import WindowedChannel

_RECOVER = (60, 100)


def qos(channel: WindowedChannel, method: methods.BasicQos) -> None:
    """basic.qos: how much may be unacknowledged on the channel as a whole."""
    channel.prefetch = method.prefetch_count
    channel.window.size = method.prefetch_size
    channel.windowed = method.prefetch_size > 0
    channel.connection.send(channel.number, methods.BasicQosOk())
    channel.limit(method.prefetch_count)


def _deliver_again(channel: WindowedChannel) -> list[Unacked]:
    """Deliver unacknowledged messages again; return those that have no consumer any more."""
    left: list[Unacked] = []
    for tag in channel.unacked.numbers():
        entry: Unacked = channel.unacked.get(tag)
        consumer: Any = entry.consumer
        if consumer is None:
            # It came by basic.get, so there is no consumer to deliver to.
            continue
        channel.unacked.take(tag)
        read = getattr(entry.queue, "delivered", None)
        message = None if read is None else read(entry.position)
        here = channel.consumers is not None and channel.consumers.get(consumer.tag) is consumer
        if message is None or not here:
            left.append(entry)
            continue
        entry.forget()
        consumer.deliver(message, entry.position, True)
    return left


def give_back(channel: WindowedChannel, requeue: bool, answer: methods.Method | None) -> None:
    """Requeue unacknowledged messages, or deliver them again; the answer is sent first.

    Args:
        channel: where it was asked for.
        requeue: whether it goes back to its queues, or to the consumers that had it.
        answer: the reply; None where the version has none.
    """
    if channel.transaction is not None:
        raise soft(406, "basic.recover is not for channels with transactions", *_RECOVER)
    if answer is not None:
        channel.connection.send(channel.number, answer)
    if requeue:
        entries: list[Unacked] = [channel.unacked.take(tag) for tag in channel.unacked.numbers()]
    else:
        entries = _deliver_again(channel)
    for entry in entries:
        entry.requeue()
    channel.serve_queues(entries)


def recover_async(channel: WindowedChannel, method: methods.BasicRecoverAsync) -> None:
    """basic.recover of 0-9, which has no reply."""
    give_back(channel, method.requeue, None)
