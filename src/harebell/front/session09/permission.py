"""May this user do that? Asked by every method before it does anything.

    method                        configure   write               read
    queue.declare                 queue       dead-letter exch.   queue, for a dead-letter exchange
    exchange.declare              exchange    alternate exch.     exchange, for an alternate one
    queue.delete exchange.delete  the thing
    *.bind *.unbind                           destination         source, and its topic
    queue.purge                                                   queue
    basic.consume basic.get                                       queue
    bulk.span bulk.read                                           queue
    basic.publish                             exchange, and its topic
    stage.commit                              each row's exchange, and its topic

A topic is the routing key at an exchange of the type topic, where the user has topic permissions.
A passive declaration asks for nothing. Both rows of extra exchanges are for new things only, as
with RabbitMQ. A publish asks when the exchange of its channel changes or the router's epoch does,
which every change of permissions moves on, so an ordinary publish pays nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harebell.auth.permissions import READ, WRITE
from harebell.model.exchange.topic import TopicExchange
from harebell.model.resource import refused, rendered

if TYPE_CHECKING:
    from harebell.auth.topics import TopicPermission
    from harebell.front.place import Place
    from harebell.model.exchange.kind import Exchange

QUEUE = "queue"
EXCHANGE = "exchange"
DEFAULT_EXCHANGE = "amq.default"
"""What the default exchange is called where permissions are meant."""


def check(channel: Place, action: str, kind: str, name: str) -> None:
    """Refuse what the channel's user may not do.

    Args:
        channel: where it is asked for.
        action: configure, write or read.
        kind: QUEUE or EXCHANGE.
        name: of the queue or exchange, which need not exist.

    Raises:
        Refusal: ACCESS_REFUSED.
    """
    vhost = channel.vhost.name
    user = channel.connection.user
    held = user.permissions.get(vhost)
    if kind == EXCHANGE and name == "":
        name = DEFAULT_EXCHANGE
    if held is None or not held.allow(action, name):
        thing = rendered(kind, name, vhost)
        raise refused(f"{action} access to {thing} refused for user '{user.name}'")


def topic_of(channel: Place, exchange: Exchange) -> TopicPermission | None:
    """What the channel's user may do with the topics of an exchange; None for everything."""
    held = channel.connection.user.topic_permissions.get(channel.vhost.name)
    if held is None or exchange.KIND != TopicExchange.KIND:
        return None
    return held.get(exchange.name)


def check_topic(channel: Place, action: str, name: str, key: str) -> None:
    """Refuse a routing key that the channel's user may not use with an exchange.

    Args:
        channel: where it is asked for.
        action: write or read.
        name: of the exchange, which need not exist.
        key: the routing key.

    Raises:
        Refusal: ACCESS_REFUSED.
    """
    exchange = channel.vhost.exchanges.get(name)
    topic = None if exchange is None else topic_of(channel, exchange)
    if topic is not None and not topic.allow(action, key):
        thing = rendered(EXCHANGE, name, channel.vhost.name)
        user = channel.connection.user.name
        raise refused(f"{action} access to topic '{key}' in {thing} refused for user '{user}'")


def check_other_exchange(
    channel: Place, kind: str, name: str, arguments: Mapping[str, Any], key: str
) -> None:
    """Refuse a thing whose messages go on to an exchange that the user may not publish to."""
    other = arguments.get(key)
    if isinstance(other, str):
        check(channel, READ, kind, name)
        check(channel, WRITE, EXCHANGE, other)
