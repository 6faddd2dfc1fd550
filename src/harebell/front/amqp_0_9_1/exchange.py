"""The exchange class (AMQP 0-9-1 1.6; bind and unbind are RabbitMQ's)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.front.amqp_0_9_1.long_methods import delete_exchange
from harebell.front.common.names import clean
from harebell.front.common.permission import EXCHANGE
from harebell.front.operations import bind as bind_operation
from harebell.front.operations.bind import BindingRequest
from harebell.front.operations.caller import caller_of
from harebell.front.operations.declare import ExchangeOptions, declare_exchange, find_exchange
from harebell.front.operations.delete import deletable_exchange
from harebell.wire.v09 import methods

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.channel import Channel


def declare(channel: Channel, method: methods.ExchangeDeclare) -> None:
    """exchange.declare: create it, or check that it is the same; passive: check that it exists."""
    name, caller = clean(method.exchange), caller_of(channel)
    if method.passive:
        channel.vhost.check_not_default(name)
        exchange = find_exchange(caller, name)
    else:
        options = ExchangeOptions(
            method.durable, method.auto_delete, method.internal, method.arguments
        )
        exchange = declare_exchange(caller, name, method.type, options)
    if exchange.durable:
        channel.hold_until_recorded()
    if not method.nowait:
        channel.connection.send(channel.number, methods.ExchangeDeclareOk())


def delete(channel: Channel, method: methods.ExchangeDelete) -> None:
    """exchange.delete: succeeds for a missing exchange, as with RabbitMQ."""
    name = clean(method.exchange)
    exchange = deletable_exchange(caller_of(channel), name, if_unused=method.if_unused)
    reply = None if method.nowait else methods.ExchangeDeleteOk()
    delete_exchange(channel, name, exchange, (40, 20), reply)


def _binding_request(method: methods.ExchangeBind | methods.ExchangeUnbind) -> BindingRequest:
    source, name = clean(method.source), clean(method.destination)
    return BindingRequest(EXCHANGE, name, source, method.routing_key, method.arguments)


def bind(channel: Channel, method: methods.ExchangeBind) -> None:
    """exchange.bind: messages of `source` go to `destination` too."""
    binding = bind_operation.bind(caller_of(channel), _binding_request(method))
    # A binding of a transient exchange is not recorded, so nothing is waited for.
    if binding.destination.durable:
        channel.hold_until_recorded()
    if not method.nowait:
        channel.connection.send(channel.number, methods.ExchangeBindOk())


def unbind(channel: Channel, method: methods.ExchangeUnbind) -> None:
    """exchange.unbind: succeeds for a missing binding, as with RabbitMQ."""
    bind_operation.unbind(caller_of(channel), _binding_request(method))
    channel.hold_until_recorded()
    if not method.nowait:
        channel.connection.send(channel.number, methods.ExchangeUnbindOk())


HANDLERS = {
    methods.ExchangeDeclare: declare,
    methods.ExchangeDelete: delete,
    methods.ExchangeBind: bind,
    methods.ExchangeUnbind: unbind,
}
