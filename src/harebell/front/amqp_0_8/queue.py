"""The queue class of 0-8 and 0-9.

An existing queue is accepted as it is: durable and auto-delete are not compared in a redeclaration
(0-8#065, 0-8#069), and arguments only if there are any. A missing queue or exchange cannot be
deleted, and an invalid bind closes the connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.auth.permissions import CONFIGURE
from harebell.base.errors import ErrorKind, Refusal
from harebell.front.amqp_0_9_1 import queue
from harebell.front.common.access_tickets import ACTIVE, PASSIVE, READ
from harebell.front.common.errors import hard, soft
from harebell.front.common.names import clean, meant
from harebell.front.common.permission import QUEUE, check
from harebell.front.operations.bind import check_binding
from harebell.model.queue.contract import Queue
from harebell.model.resource import RESERVED_PREFIX, missing, rendered
from harebell.wire.v09 import methods

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.legacy_channel import LegacyChannel

_DECLARE = (50, 10)
_BIND = (50, 20)
_PURGE = (50, 30)
_DELETE = (50, 40)
_UNBIND = (50, 50)


def declare(channel: LegacyChannel, method: methods.QueueDeclare) -> None:
    """queue.declare: create it, or accept the existing one."""
    channel.check_ticket(method.ticket, PASSIVE if method.passive else ACTIVE, _DECLARE)
    name = clean(method.queue)
    if not method.passive:
        if name.startswith(RESERVED_PREFIX):
            text = f"queue name '{name}' contains reserved prefix '{RESERVED_PREFIX}*'"
            raise hard(403, text, *_DECLARE)
        existing = channel.vhost.queues.get(name)
        if existing is not None:
            _take_over_options(method, existing)
    queue.declare(channel, method)


def _take_over_options(method: methods.QueueDeclare, existing: Queue) -> None:
    """Take over the options of the existing queue that a second declaration does not change."""
    # The shared declaration compares them, and would refuse other values.
    method.durable = existing.durable
    method.auto_delete = existing.auto_delete
    if not method.arguments:
        method.arguments = dict(existing.arguments)


def bind(channel: LegacyChannel, method: methods.QueueBind) -> None:
    """queue.bind: an invalid one closes the connection, a missing queue or exchange the channel."""
    channel.check_ticket(method.ticket, ACTIVE, _BIND)
    if not clean(method.exchange):
        text = "no queue may be bound to the default exchange, which is internal"
        raise hard(530, text, *_BIND)
    request = queue.binding_request(channel, method)
    # Before the refusals below, which say whether exchange and queue exist and what they are.
    check_binding(channel, QUEUE, request.destination, request.source, request.key)
    exchange = channel.vhost.exchanges.get(clean(method.exchange))
    if exchange is not None:
        if exchange.internal:
            text = f"no queue may be bound to '{exchange.name}', which is internal"
            raise hard(530, text, *_BIND)
        existing = channel.vhost.queues.get(request.destination)
        if existing is not None and existing.durable and not exchange.durable:
            resource = rendered("queue", existing.name, channel.vhost.name)
            text = f"{resource} is durable and exchange '{exchange.name}' is not"
            raise soft(406, text, *_BIND)
    try:
        queue.bind(channel, method)
    except Refusal as error:
        if error.kind is ErrorKind.PRECONDITION_FAILED:
            raise hard(530, error.text, *_BIND) from None
        raise


def unbind(channel: LegacyChannel, method: methods.QueueUnbind) -> None:
    """queue.unbind, which 0-9 has, and 0-8 has from RabbitMQ."""
    channel.check_ticket(method.ticket, ACTIVE, _UNBIND)
    queue.unbind(channel, method)


def purge(channel: LegacyChannel, method: methods.QueuePurge) -> None:
    """queue.purge: needs the ticket for reading."""
    channel.check_ticket(method.ticket, READ, _PURGE)
    queue.purge(channel, method)


def delete(channel: LegacyChannel, method: methods.QueueDelete) -> None:
    """queue.delete: the queue must exist."""
    channel.check_ticket(method.ticket, ACTIVE, _DELETE)
    name = meant(method.queue, channel.last_queue)
    check(channel, CONFIGURE, QUEUE, name)
    if name not in channel.vhost.queues:
        raise missing("queue", name, channel.vhost.name)
    queue.delete(channel, method)


HANDLERS = {
    methods.QueueDeclare: declare,
    methods.QueueBind: bind,
    methods.QueueUnbind: unbind,
    methods.QueuePurge: purge,
    methods.QueueDelete: delete,
}
