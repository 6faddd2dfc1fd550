"""The exchange class (AMQP 0-9-1 1.6; bind and unbind are RabbitMQ's)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.auth.permissions import CONFIGURE, READ, WRITE
from harebell.front.amqp_0_9_1.lasting import delete_exchange
from harebell.front.common.names import clean
from harebell.front.common.permission import (
    EXCHANGE,
    check,
    check_any,
    check_other_exchange,
    check_topic,
)
from harebell.model.reserved import check_exchange_deletion, check_exchange_type
from harebell.wire.v09 import methods

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.channel import Channel


def declare(channel: Channel, method: methods.ExchangeDeclare) -> None:
    """exchange.declare: make it, or check that it is the same; passive: check that it is there."""
    name = clean(method.exchange)
    if method.passive:
        channel.vhost.check_not_default(name)
        check_any(channel, EXCHANGE, name)
        channel.vhost.exchange(name)
    else:
        check_exchange_type(method.type)
        channel.vhost.check_not_default(name)
        check(channel, CONFIGURE, EXCHANGE, name)
        if name not in channel.vhost.exchanges:
            check_other_exchange(channel, EXCHANGE, name, method.arguments, "alternate-exchange")
        channel.vhost.declare_exchange(
            name,
            method.type,
            durable=method.durable,
            auto_delete=method.auto_delete,
            internal=method.internal,
            arguments=method.arguments,
        )
    if channel.vhost.exchange(name).durable:
        channel.hold_until_recorded()
    if not method.nowait:
        channel.connection.send(channel.number, methods.ExchangeDeclareOk())


def delete(channel: Channel, method: methods.ExchangeDelete) -> None:
    """exchange.delete: also fine for one that does not exist, as with RabbitMQ."""
    name = clean(method.exchange)
    channel.vhost.check_not_default(name)
    check_exchange_deletion(name, channel.vhost.name)
    check(channel, CONFIGURE, EXCHANGE, name)
    exchange = channel.vhost.find_exchange_to_delete(name, if_unused=method.if_unused)
    reply = None if method.nowait else methods.ExchangeDeleteOk()
    delete_exchange(channel, name, exchange, (40, 20), reply)


def bind(channel: Channel, method: methods.ExchangeBind) -> None:
    """exchange.bind: messages of `source` go to `destination` too."""
    check(channel, WRITE, EXCHANGE, clean(method.destination))
    channel.vhost.check_not_default(clean(method.destination))
    channel.vhost.check_not_default(clean(method.source))
    check(channel, READ, EXCHANGE, clean(method.source))
    check_topic(channel, READ, clean(method.source), method.routing_key)
    # With both missing, the source is the one that is named.
    channel.vhost.exchange(clean(method.source))
    destination = channel.vhost.exchange(clean(method.destination))
    channel.vhost.bind(clean(method.source), destination, method.routing_key, method.arguments)
    if destination.durable:
        channel.hold_until_recorded()
    if not method.nowait:
        channel.connection.send(channel.number, methods.ExchangeBindOk())


def unbind(channel: Channel, method: methods.ExchangeUnbind) -> None:
    """exchange.unbind: also fine for a binding that does not exist, as with RabbitMQ."""
    check(channel, WRITE, EXCHANGE, clean(method.destination))
    channel.vhost.check_not_default(clean(method.destination))
    channel.vhost.check_not_default(clean(method.source))
    check(channel, READ, EXCHANGE, clean(method.source))
    check_topic(channel, READ, clean(method.source), method.routing_key)
    destination = channel.vhost.exchanges.get(clean(method.destination))
    channel.vhost.unbind(clean(method.source), destination, method.routing_key, method.arguments)
    channel.hold_until_recorded()
    if not method.nowait:
        channel.connection.send(channel.number, methods.ExchangeUnbindOk())


HANDLERS = {
    methods.ExchangeDeclare: declare,
    methods.ExchangeDelete: delete,
    methods.ExchangeBind: bind,
    methods.ExchangeUnbind: unbind,
}
