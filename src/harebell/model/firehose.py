"""The firehose: copies of all messages of a vhost on `amq.rabbitmq.trace` while tracing is on.

    publish.<exchange>   a published message: exchange_name, routing_keys, properties, node, vhost,
                         connection, channel, user, routed_queues
    deliver.<queue>      a delivered message: the same, with redelivered (1 or 0) and without
                         routed_queues

The body is that of the message. Messages of the firehose itself are not copied, confirmed or
returned (RabbitMQ's `rabbit_trace`).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from harebell.base.bcc import further_keys
from harebell.base.limits import NAME_BYTES
from harebell.base.message import Message
from harebell.model.editor import Editor
from harebell.model.queue.contract import Queue
from harebell.model.router import Router

TRACE_EXCHANGE = "amq.rabbitmq.trace"


class Actor(NamedTuple):
    """The publisher or receiver of a message.

    Args:
        connection: the name of the connection.
        channel: the channel number.
        user: the name of the user.
    """

    connection: str
    channel: int
    user: str


def _plain(value: Any) -> Any:
    """Return a property as a header value: seconds for a timestamp, octets if it is no UTF-8."""
    if isinstance(value, str) and not value.isascii():
        data = value.encode(errors="surrogateescape")
        return value if data.decode(errors="replace") == value else data
    return int(value.timestamp()) if isinstance(value, datetime) else value


def _cut(key: str) -> str:
    """Return a routing key that is cut to the 255 bytes that AMQP allows."""
    return key.encode()[:NAME_BYTES].decode(errors="ignore")


class Firehose:
    """The firehose of one vhost.

    Args:
        vhost: its name.
        node: the name of the broker.
        router: the router of the vhost.
        editor: reads and composes messages.
    """

    def __init__(self, vhost: str, node: str, router: Router, editor: Editor) -> None:
        self._vhost = vhost
        self._node = node
        self._router = router
        self._editor = editor

    def published(
        self, message: Message, keys: Iterable[str], queues: Iterable[Queue], actor: Actor
    ) -> None:
        """Copy a message that was published and routed.

        Args:
            message: the message as the queues get it.
            keys: its routing keys.
            queues: those that it was routed to.
            actor: its publisher.
        """
        self._show(
            f"publish.{message.exchange}",
            message,
            keys,
            actor,
            {"routed_queues": [queue.name for queue in queues]},
        )

    def delivered(self, message: Message, queue: str, redelivered: bool, actor: Actor) -> None:
        """Copy a message that was delivered, or taken with basic.get.

        Args:
            message: the message as delivered.
            queue: the name of its queue.
            redelivered: whether it was delivered before.
            actor: its receiver.
        """
        if message.exchange == TRACE_EXCHANGE:
            return
        keys = [message.routing_key]
        if message.has_headers:
            keys += further_keys(self._editor.headers_of(message))
        self._show(f"deliver.{queue}", message, keys, actor, {"redelivered": int(redelivered)})

    def _show(
        self,
        key: str,
        message: Message,
        keys: Iterable[str],
        actor: Actor,
        more: dict[str, Any],
    ) -> None:
        exchange = self._router.exchanges[TRACE_EXCHANGE]
        if not exchange.bindings:
            # All properties are decoded below: not for every message of a vhost without a reader.
            return
        key = _cut(key)
        message = self._editor.basic_of(message)
        properties = self._editor.properties_of(message)
        headers: dict[str, Any] = {
            "exchange_name": message.exchange,
            "routing_keys": list(keys),
            "properties": {name: _plain(value) for name, value in properties.items()},
            "node": self._node,
            "vhost": self._vhost,
            "connection": actor.connection,
            "channel": actor.channel,
            "user": actor.user,
            **more,
        }
        try:
            shown = self._editor.composed(TRACE_EXCHANGE, key, message.body, {"headers": headers})
        except (TypeError, ValueError):
            # The headers may have the maximum depth already, so they cannot be nested.
            headers["properties"].pop("headers", None)
            shown = self._editor.composed(TRACE_EXCHANGE, key, message.body, {"headers": headers})
        self._router.send(exchange, shown)
