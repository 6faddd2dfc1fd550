"""The exchange class of 0-8 and 0-9, and Qpid's exchange.bound.

An existing exchange is not changed: a redeclaration compares only the type (0-8#050, 0-8#052).
Another type is 530 with Qpid, whose clients expect it, and in 0-9; 507 in 0-8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.auth.permissions import CONFIGURE
from harebell.front.amqp_0_9_1 import exchange
from harebell.front.common.access_tickets import ACTIVE, PASSIVE
from harebell.front.common.errors import hard
from harebell.front.common.names import clean
from harebell.front.common.permission import EXCHANGE, check, check_binding_seen
from harebell.model.exchange import KINDS
from harebell.model.reserved import check_exchange_deletion
from harebell.model.resource import missing, rendered
from harebell.wire.v09 import methods, methods_older

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.legacy_channel import LegacyChannel

_DECLARE = (40, 10)
_DELETE = (40, 20)
_PUBLISHED = "0-8"

FOUND = 0
NO_EXCHANGE = 1
NO_QUEUE = 2
NO_BINDINGS = 3
QUEUE_NOT_BOUND = 4
KEY_NOT_BOUND = 5
QUEUE_NOT_BOUND_WITH_KEY = 6
"""The reply codes of exchange.bound-ok, numbered by Qpid."""


def declare(channel: LegacyChannel, method: methods.ExchangeDeclare) -> None:
    """exchange.declare: create it, or check that the existing one has that type."""
    channel.check_ticket(method.ticket, PASSIVE if method.passive else ACTIVE, _DECLARE)
    existing = channel.vhost.exchanges.get(clean(method.exchange))
    # An empty name is refused there.
    if method.passive or not method.exchange:
        exchange.declare(channel, method)
        return
    if method.type not in KINDS:
        raise hard(503, f"unknown exchange type '{method.type}'", *_DECLARE)
    if existing is None:
        exchange.declare(channel, method)
        return
    # Not the shared declaration, which compares durable and arguments as well.
    check(channel, CONFIGURE, EXCHANGE, existing.name)
    if method.type != existing.KIND:
        resource = rendered("exchange", existing.name, channel.vhost.name)
        text = f"{resource} is of type '{existing.KIND}', not '{method.type}'"
        not_allowed = channel.connection.qpid or channel.connection.version != _PUBLISHED
        raise hard(530 if not_allowed else 507, text, *_DECLARE)
    if not method.nowait:
        channel.connection.send(channel.number, methods.ExchangeDeclareOk())


def delete(channel: LegacyChannel, method: methods.ExchangeDelete) -> None:
    """exchange.delete: the exchange must exist."""
    channel.check_ticket(method.ticket, ACTIVE, _DELETE)
    name = clean(method.exchange)
    if name:
        check_exchange_deletion(name, channel.vhost.name)
        check(channel, CONFIGURE, EXCHANGE, name)
    if name and name not in channel.vhost.exchanges:
        raise missing("exchange", name, channel.vhost.name)
    exchange.delete(channel, method)


def bound(channel: LegacyChannel, method: methods_older.ExchangeBound) -> None:
    """exchange.bound: query bindings."""
    # Only Qpid's clients have this method.
    channel.connection.qpid = True
    check_binding_seen(channel, method.exchange, method.queue, method.routing_key)
    code, text = _bound(channel, method)
    reply = methods_older.ExchangeBoundOk(reply_code=code, reply_text=text)
    channel.connection.send(channel.number, reply)


def _bound(channel: LegacyChannel, method: methods_older.ExchangeBound) -> tuple[int, str]:
    vhost = channel.vhost
    source = vhost.exchanges.get(method.exchange)
    if source is None:
        return NO_EXCHANGE, f"exchange '{method.exchange}' not found"
    queue = vhost.queues.get(method.queue) if method.queue else None
    if method.queue and queue is None:
        return NO_QUEUE, f"queue '{method.queue}' not found"
    if source.default:
        return _bound_to_default(channel, method)
    pairs = [(each.destination, each.routing_key) for each in source.bindings.values()]
    if not pairs:
        return NO_BINDINGS, f"nothing is bound to exchange '{method.exchange}'"
    if queue is not None:
        keys = [key for destination, key in pairs if destination is queue]
        if not keys:
            return QUEUE_NOT_BOUND, f"queue '{method.queue}' is not bound"
        if method.routing_key and method.routing_key not in keys:
            text = f"queue '{method.queue}' is not bound with key '{method.routing_key}'"
            return QUEUE_NOT_BOUND_WITH_KEY, text
    elif method.routing_key and method.routing_key not in [key for _, key in pairs]:
        return KEY_NOT_BOUND, f"no queue is bound with key '{method.routing_key}'"
    return FOUND, ""


def _bound_to_default(
    channel: LegacyChannel, method: methods_older.ExchangeBound
) -> tuple[int, str]:
    """Answer for the default exchange, which binds every queue by its name only."""
    key = method.routing_key
    if method.queue:
        if key and key != method.queue:
            text = f"queue '{method.queue}' is not bound with key '{key}'"
            return QUEUE_NOT_BOUND_WITH_KEY, text
        return FOUND, ""
    if key and key not in channel.vhost.queues:
        return KEY_NOT_BOUND, f"no queue is bound with key '{key}'"
    if not channel.vhost.queues:
        return NO_BINDINGS, "nothing is bound to the default exchange"
    return FOUND, ""


HANDLERS = {
    methods.ExchangeDeclare: declare,
    methods.ExchangeDelete: delete,
    methods_older.ExchangeBound: bound,
}
