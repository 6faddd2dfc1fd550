"""The class basic (class 60): as in 0-9, with completion in place of most replies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.front.amqp_0_9_1 import basic as family_basic
from harebell.front.amqp_0_9_1 import legacy_basic, tunnel
from harebell.front.amqp_0_10_transitional.access import check_ticket, ticketed
from harebell.front.amqp_0_10_transitional.queue import meant
from harebell.front.common.access_tickets import READ, WRITE
from harebell.model.queue.reply import REPLY_TO
from harebell.model.resource import missing
from harebell.wire.v09 import methods

if TYPE_CHECKING:
    from harebell.front.amqp_0_10_transitional.channel import TransitionalChannel

_CLASS = 60
_CONSUME, _GET = 20, 70


def consume(channel: TransitionalChannel, method: methods.BasicConsume) -> None:
    """basic.consume: the reply is sent before the first delivery."""
    check_ticket(channel, method.ticket, READ, (_CLASS, _CONSUME))
    method.queue = meant(channel, method.queue, _CLASS, _CONSUME)
    if method.queue == REPLY_TO:
        # Direct reply-to is RabbitMQ's, which has never had this version.
        raise missing("queue", method.queue, channel.vhost.name)
    if method.arguments.get(tunnel.ASKED) == 1:
        tunnel.consume(channel, method)
    else:
        family_basic.consume(channel, method)


def get(channel: TransitionalChannel, method: methods.BasicGet) -> None:
    """basic.get: one message, or get-empty."""
    check_ticket(channel, method.ticket, READ, (_CLASS, _GET))
    method.queue = meant(channel, method.queue, _CLASS, _GET)
    family_basic.get(channel, method)


def reject(channel: TransitionalChannel, method: methods.BasicReject) -> None:
    """basic.reject: drop or dead-letter, or with requeue deliver to another consumer."""
    entry = channel.unacked.get(method.delivery_tag)
    # `take_effect` requeues it for other consumers; in a transaction only at the commit.
    if method.requeue:
        channel.refused.tags.add(method.delivery_tag)
    family_basic.reject(channel, method)
    if channel.transaction is None:
        channel.refused.tags.discard(method.delivery_tag)
    if entry is not None and channel.transaction is None:
        channel.settled(entry.queue)


HANDLERS = {
    methods.BasicQos: legacy_basic.qos,
    methods.BasicConsume: consume,
    methods.BasicCancel: family_basic.cancel,
    methods.BasicGet: get,
    methods.BasicPublish: ticketed(WRITE, (_CLASS, 40), family_basic.publish),
    methods.BasicAck: family_basic.ack,
    methods.BasicReject: reject,
    methods.BasicRecover: legacy_basic.recover_async,
}
