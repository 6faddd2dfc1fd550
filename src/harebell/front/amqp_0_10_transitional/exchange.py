"""The class exchange (class 40): declare and delete, which completion answers, and query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.auth.permissions import CONFIGURE
from harebell.front.amqp_0_9_1.long_methods import delete_exchange
from harebell.front.amqp_0_10_transitional.access import check_ticket
from harebell.front.amqp_0_10_transitional.layer import layer_of
from harebell.front.common.access_tickets import ACTIVE, PASSIVE
from harebell.front.common.errors import hard, soft
from harebell.front.common.permission import (
    EXCHANGE,
    QUEUE,
    check,
    check_any,
    may_see,
)
from harebell.front.operations.caller import caller_of
from harebell.front.operations.declare import ExchangeOptions, find_exchange, make_exchange
from harebell.model.exchange import KINDS
from harebell.model.exchange.kind import ALTERNATE, ALTERNATE_ONCE
from harebell.model.queue.features.alternate_exchange import ALTERNATE as QUEUE_ALTERNATE
from harebell.model.reserved import check_exchange_deletion
from harebell.model.resource import missing, rendered
from harebell.wire.v09 import methods
from harebell.wire.v09.methods_transitional import ExchangeQuery, ExchangeQueryOk

if TYPE_CHECKING:
    from harebell.front.amqp_0_10_transitional.channel import TransitionalChannel
    from harebell.model.exchange.kind import Exchange

_CLASS = 40
_DECLARE, _DELETE, _QUERY = 10, 20, 30


def _check_named(name: str, method_id: int) -> None:
    if not name:
        raise hard(530, "the name of the exchange is empty", _CLASS, method_id)


def declare(channel: TransitionalChannel, method: methods.ExchangeDeclare) -> None:
    """exchange.declare: create it, or check type and alternate; passive: check that it exists."""
    name = method.exchange
    right = PASSIVE if method.passive else ACTIVE
    check_ticket(channel, method.ticket, right, (_CLASS, _DECLARE))
    _check_named(name, _DECLARE)
    if method.passive:
        find_exchange(caller_of(channel), name)
        return
    if method.type not in KINDS:
        raise hard(503, f"unknown exchange type '{method.type}'", _CLASS, _DECLARE)
    check(channel, CONFIGURE, EXCHANGE, name)
    existing = channel.vhost.exchanges.get(name)
    if existing is not None:
        _check_same(channel, existing, method)
    else:
        _make(channel, method)
    if channel.vhost.exchange(name).durable:
        channel.hold_until_recorded()


def _check_same(
    channel: TransitionalChannel, existing: Exchange, method: methods.ExchangeDeclare
) -> None:
    """Check a redeclaration, in which durable and auto-delete are ignored."""
    resource = rendered("exchange", existing.name, channel.vhost.name)
    if method.type != existing.KIND:
        text = f"{resource} is of type '{existing.KIND}', not '{method.type}'"
        raise hard(530, text, _CLASS, _DECLARE)
    if method.alternate_exchange and method.alternate_exchange != (existing.alternate or ""):
        text = f"{resource} has the alternate exchange '{existing.alternate or ''}'"
        raise soft(504, text, _CLASS, _DECLARE)


def _make(channel: TransitionalChannel, method: methods.ExchangeDeclare) -> None:
    name = method.exchange
    arguments = dict(method.arguments)
    if method.alternate_exchange:
        arguments[ALTERNATE] = method.alternate_exchange
        # The rule "double-failure": the alternate of an alternate exchange gets nothing.
        arguments[ALTERNATE_ONCE] = True
    options = ExchangeOptions(method.durable, method.auto_delete, arguments=arguments)
    make_exchange(caller_of(channel), name, method.type, options)


def delete(channel: TransitionalChannel, method: methods.ExchangeDelete) -> None:
    """exchange.delete: refused for the alternate exchange of a queue."""
    name = method.exchange
    check_ticket(channel, method.ticket, ACTIVE, (_CLASS, _DELETE))
    _check_named(name, _DELETE)
    check_exchange_deletion(name, channel.vhost.name)
    check(channel, CONFIGURE, EXCHANGE, name)
    if name not in channel.vhost.exchanges:
        raise missing("exchange", name, channel.vhost.name)
    for queue in channel.vhost.queues.values():
        if queue.arguments.get(QUEUE_ALTERNATE) == name:
            resource = rendered("exchange", name, channel.vhost.name)
            # The name of a queue is shown only to users who may see it.
            is_visible = may_see(channel, QUEUE, queue.name)
            text = f"{resource} is the alternate exchange of " + (
                f"queue '{queue.name}'" if is_visible else "a queue"
            )
            raise soft(504, text, _CLASS, _DELETE)
    exchange = channel.vhost.find_exchange_to_delete(name, if_unused=method.if_unused)

    delete_exchange(channel, name, exchange, (_CLASS, _DELETE))


def query(channel: TransitionalChannel, method: ExchangeQuery) -> None:
    """exchange.query: describe it; no name means the default exchange."""
    check_ticket(channel, method.ticket, PASSIVE, (_CLASS, _QUERY))
    check_any(channel, EXCHANGE, method.name)
    exchange = channel.vhost.exchanges.get(method.name)
    if exchange is None:
        answer = ExchangeQueryOk(not_found=True)
    else:
        arguments = layer_of(channel.connection).table(exchange.arguments)
        answer = ExchangeQueryOk(exchange.KIND, exchange.durable, arguments=arguments)
    channel.connection.send(channel.number, answer)


HANDLERS = {
    methods.ExchangeDeclare: declare,
    methods.ExchangeDelete: delete,
    ExchangeQuery: query,
}
