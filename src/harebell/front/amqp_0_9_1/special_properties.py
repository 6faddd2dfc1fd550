"""Messages with properties that the broker processes, beyond routing.

    reply-to amq.rabbitmq.reply-to   becomes the secret reply name of this channel
    expiration                       must be a number of milliseconds
    headers CC and BCC               lists of further routing keys; the queues do not see BCC
    user-id                          must be the publisher's own

Other messages do not use this module. The order of the checks is RabbitMQ's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harebell.auth.permissions import WRITE
from harebell.base.message import Message, Properties, copy_message, new_message
from harebell.front.common.errors import soft
from harebell.front.common.permission import check_topic
from harebell.front.common.property_checks import check_expiration, check_user_id
from harebell.model.bcc import BCC, hidden
from harebell.model.equivalence import type_name
from harebell.model.queue.reply import REPLY_TO
from harebell.model.transaction import due_at_commit
from harebell.wire.v09.content import decode_properties, parse_properties
from harebell.wire.v09.edit import answered_at

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.open_channel import OpenChannel
    from harebell.model.exchange.kind import Exchange
    from harebell.model.queue.contract import Queue
    from harebell.model.queue.reply import ReplyQueue

_PUBLISH = (60, 40)
_CHECKED = 0x0110
"""The flags of expiration and user-id."""
_REPLY = 0x0200
_REPLY_BYTES = REPLY_TO.encode()
_COPIES = "CC"


def prepared(
    channel: OpenChannel, exchange: Exchange, routing_key: str, properties: Properties, body: bytes
) -> tuple[Message, tuple[Queue, ...]]:
    """Check a message with such properties, and route it.

    Returns:
        The message as its queues get it, or as it is returned without any, and the queues.
    """
    router = channel.vhost.router
    raw = properties.raw
    flags = int.from_bytes(raw[:2])
    copied = properties.has_headers and b"CC" in raw
    answered = flags & _REPLY and _REPLY_BYTES in raw
    if not (flags & _CHECKED or copied or answered):
        if channel.topic is not None:
            check_topic(channel, WRITE, exchange.name, routing_key)
        message = new_message(exchange.name, routing_key, properties, body)
        return message, router.route(exchange, message)
    decoded = decode_properties(raw)
    if decoded.reply_to == REPLY_TO:
        properties = parse_properties(answered_at(raw, _reply_name(channel)))
    check_expiration(decoded)
    headers = decoded.headers or {}
    keys = [*_further_keys(headers, _COPIES), *_further_keys(headers, BCC)]
    if channel.topic is not None:
        for key in (routing_key, *keys):
            check_topic(channel, WRITE, exchange.name, key)
    check_user_id(decoded, channel.connection.user)
    message = new_message(exchange.name, routing_key, properties, body)
    if not keys:
        queues = router.route(exchange, message)
    else:
        copies = [copy_message(message, exchange.name, key) for key in keys]
        queues = router.route_all(exchange, (message, *copies))
    if BCC in headers and queues:
        message = hidden(message)
    if decoded.expiration is not None:
        ttl = int(decoded.expiration)
        if channel.transaction is not None:
            message.due = due_at_commit(ttl)
        else:
            message.due = channel.connection.broker.clock.steady + ttl
    return message, queues


def _reply_name(channel: OpenChannel) -> str:
    """Return the secret name at which this channel consumes replies."""
    queue: ReplyQueue | None = channel.reply_queue
    if queue is None or queue.deleted:
        raise soft(406, "fast reply consumer does not exist", *_PUBLISH)
    return queue.name


def _further_keys(headers: Mapping[str, Any], name: str) -> list[str]:
    """Return the routing keys in a header; values that are not strings are ignored."""
    if name not in headers:
        return []
    value = headers[name]
    if not isinstance(value, list | tuple):
        kind = type_name(value)
        text = f'invalid message: {{unacceptable_type_in_header,"{name}",{kind}}}'
        raise soft(406, text, *_PUBLISH)
    return [key for key in value if isinstance(key, str)]
