"""The basic class of 0-8 and 0-9, but for what happens per message.

qos      the limits are the channel's, in messages and in octets
recover  with requeue=false what is out goes out again, to the consumer that had it
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harebell.front.amqp_0_8.access import check_ticket
from harebell.front.amqp_0_9_1 import basic, tunnel
from harebell.front.common.access_tickets import READ, WRITE
from harebell.front.common.errors import soft
from harebell.front.common.unacked import Unacked
from harebell.wire.v09 import methods, methods_older
from harebell.wire.v09.domains import ABSENT

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.windowed_channel import OlderChannel

_CLASS = 60
_CONSUME = (_CLASS, 20)
_PUBLISH = (_CLASS, 40)
_GET = (_CLASS, 70)
_RECOVER = (_CLASS, 100)


def qos(channel: OlderChannel, method: methods.BasicQos) -> None:
    """basic.qos: how much may be out on the channel, whoever consumes there."""
    channel.prefetch = method.prefetch_count
    channel.window.size = method.prefetch_size
    channel.windowed = method.prefetch_size > 0
    channel.connection.send(channel.number, methods.BasicQosOk())
    channel.limit(method.prefetch_count)


def consume(channel: OlderChannel, method: methods.BasicConsume) -> None:
    """basic.consume: with arguments, which Qpid's clients send, or without."""
    check_ticket(channel, method.ticket, READ, _CONSUME)
    # What a client sends says more than its name: of 0-8 only Qpid's layout has arguments.
    channel.connection.qpid = method.arguments is not ABSENT
    if method.arguments.get(tunnel.ASKED) == 1:
        tunnel.consume(channel, method)
        return
    basic.consume(channel, method)


def get(channel: OlderChannel, method: methods.BasicGet) -> None:
    """basic.get."""
    check_ticket(channel, method.ticket, READ, _GET)
    basic.get(channel, method)


def publish(channel: OlderChannel, method: methods.BasicPublish) -> None:
    """basic.publish whose header and body come as frames of their own."""
    check_ticket(channel, method.ticket, WRITE, _PUBLISH)
    basic.publish(channel, method)


def _deliver_again(channel: OlderChannel) -> list[Unacked]:
    """Send what is out to its consumers once more; returns what has none any more."""
    left: list[Unacked] = []
    for tag in channel.unacked.numbers():
        entry: Unacked = channel.unacked.get(tag)
        consumer: Any = entry.consumer
        if consumer is None:
            # Whoever asked by basic.get cannot be sent anything.
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


def _recover(channel: OlderChannel, requeue: bool, answer: methods.Method | None) -> None:
    """What is out goes back, or out again; the answer comes before all of it."""
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


def recover_0_8(channel: OlderChannel, method: methods.BasicRecover) -> None:
    """basic.recover of 0-8: Qpid's clients wait for an answer, the others do not know it."""
    answer = methods.BasicRecoverOk() if channel.connection.qpid else None
    _recover(channel, method.requeue, answer)


def recover_async(channel: OlderChannel, method: methods.BasicRecoverAsync) -> None:
    """basic.recover of 0-9, which nobody answers."""
    _recover(channel, method.requeue, None)


def recover_sync(channel: OlderChannel, method: methods_older.BasicRecoverSync) -> None:
    """basic.recover-sync of Qpid's 0-9."""
    _recover(channel, method.requeue, methods_older.BasicRecoverSyncOk())


def recover(channel: OlderChannel, method: methods.BasicRecover) -> None:
    """basic.recover of 0-9-1, from a client of 0-9."""
    _recover(channel, method.requeue, methods.BasicRecoverOk())


HANDLERS: dict[type, Callable[[Any, Any], None]] = {
    methods.BasicQos: qos,
    methods.BasicConsume: consume,
    methods.BasicGet: get,
    methods.BasicPublish: publish,
    methods.BasicRecover: recover,
    methods.BasicRecoverAsync: recover_async,
    methods_older.BasicRecoverSync: recover_sync,
}
HANDLERS_0_8 = {**HANDLERS, methods.BasicRecover: recover_0_8}
