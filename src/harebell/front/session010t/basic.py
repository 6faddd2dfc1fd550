"""The class basic (class 60): as in 0-9, with completion in place of most replies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.front.session010t.access import check_ticket
from harebell.front.session010t.queue import meant
from harebell.front.session09 import basic as common
from harebell.front.session09.replies import soft
from harebell.front.tickets import READ, WRITE
from harebell.model.queue.reply import REPLY_TO
from harebell.model.resource import missing
from harebell.wire.v09 import methods

if TYPE_CHECKING:
    from harebell.front.session010t.channel import TransitionalChannel

_CLASS = 60
_CONSUME, _PUBLISH, _GET, _RECOVER = 20, 40, 70, 100


def consume(channel: TransitionalChannel, method: methods.BasicConsume) -> None:
    """basic.consume: the reply goes out before the first delivery."""
    check_ticket(channel, method.ticket, READ, (_CLASS, _CONSUME))
    method.queue = meant(channel, method.queue, _CLASS, _CONSUME)
    if method.queue == REPLY_TO:
        raise missing("queue", method.queue, channel.vhost.name)
    common.consume(channel, method)


def get(channel: TransitionalChannel, method: methods.BasicGet) -> None:
    """basic.get: one message, or get-empty."""
    check_ticket(channel, method.ticket, READ, (_CLASS, _GET))
    method.queue = meant(channel, method.queue, _CLASS, _GET)
    common.get(channel, method)


def publish(channel: TransitionalChannel, method: methods.BasicPublish) -> None:
    """basic.publish: complete when its content has come and is where it shall be."""
    check_ticket(channel, method.ticket, WRITE, (_CLASS, _PUBLISH))
    common.publish(channel, method)


def recover(channel: TransitionalChannel, method: methods.BasicRecover) -> None:
    """basic.recover: not in a transaction."""
    if channel.transaction is not None:
        text = "basic.recover in a transacted session"
        raise soft(406, text, _CLASS, _RECOVER)
    common.recover(channel, method)


HANDLERS = {
    methods.BasicQos: common.qos,
    methods.BasicConsume: consume,
    methods.BasicCancel: common.cancel,
    methods.BasicGet: get,
    methods.BasicPublish: publish,
    methods.BasicAck: common.ack,
    methods.BasicReject: common.reject,
    methods.BasicRecover: recover,
}
