"""Messages with properties that the broker processes, beyond routing.

    reply-to amq.rabbitmq.reply-to   becomes the secret reply name of the publisher
    expiration                       must be a number of milliseconds
    headers CC and BCC               lists of further routing keys; the queues do not see BCC
    user-id                          must be the publisher's own

Other messages do not use this module. The order of the checks is RabbitMQ's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from harebell.auth.permissions import WRITE
from harebell.base.bcc import BCC, CC, hidden
from harebell.base.message import Message, Properties, new_message
from harebell.front.common.errors import soft
from harebell.front.common.permission import check_topic
from harebell.front.common.property_checks import check_expiration, check_user_id
from harebell.model.equivalence import type_name
from harebell.model.queue.reply import REPLY_TO
from harebell.wire.v09.content import decode_properties, parse_properties
from harebell.wire.v09.edit import answered_at

if TYPE_CHECKING:
    from harebell.auth.topics import TopicRule
    from harebell.auth.users import User
    from harebell.model.exchange.kind import Exchange
    from harebell.model.queue.contract import Queue
    from harebell.model.vhost import VHost

_PUBLISH = (60, 40)
_CHECKED = 0x0110
"""The flags of expiration and user-id."""
_REPLY = 0x0200
_REPLY_BYTES = REPLY_TO.encode()


class Publisher(Protocol):
    """A channel that publishes, or what stands for one where there is no connection.

    Attributes:
        topic: the allowed routing keys at the exchange; None for all.
    """

    topic: TopicRule | None

    @property
    def vhost(self) -> VHost:
        """The vhost of the exchange."""

    @property
    def user(self) -> User:
        """The user whose permissions are checked."""

    def reply_name(self) -> str:
        """Return the secret name at which the publisher consumes replies; "" without any."""

    def due_at(self, ttl_ms: int) -> int:
        """Return when a message that is published now expires."""


def prepared(
    publisher: Publisher, exchange: Exchange, routing_key: str, properties: Properties, body: bytes
) -> tuple[Message, tuple[Queue, ...]]:
    """Check a message with such properties, and route it.

    Returns:
        The message as its queues get it, or as it is returned without any, and the queues.
    """
    router = publisher.vhost.router
    raw = properties.raw
    flags = int.from_bytes(raw[:2])
    # A search in the bytes is quicker than decoding; it may find the letters elsewhere, which
    # costs only time. BCC contains CC.
    may_copy = properties.has_headers and b"CC" in raw
    may_answer = flags & _REPLY and _REPLY_BYTES in raw
    if not (flags & _CHECKED or may_copy or may_answer):
        if publisher.topic is not None:
            check_topic(publisher, WRITE, exchange.name, routing_key)
        message = new_message(exchange.name, routing_key, properties, body)
        return message, router.route(exchange, message)
    decoded = decode_properties(raw)
    if decoded.reply_to == REPLY_TO:
        properties = parse_properties(answered_at(raw, _reply_name(publisher)))
    check_expiration(decoded)
    headers = decoded.headers or {}
    keys = checked_keys(headers, _PUBLISH)
    if publisher.topic is not None:
        for key in (routing_key, *keys):
            check_topic(publisher, WRITE, exchange.name, key)
    check_user_id(decoded.user_id, publisher.user)
    message = new_message(exchange.name, routing_key, properties, body)
    queues = router.route_keys(exchange, message, keys)
    # Without queues the message is returned, with all headers that its publisher set.
    if BCC in headers and queues:
        message = hidden(message)
    if decoded.expiration is not None:
        message.due = publisher.due_at(int(decoded.expiration))
    return message, queues


def _reply_name(publisher: Publisher) -> str:
    """Return the secret name at which a publisher consumes replies."""
    name = publisher.reply_name()
    if not name:
        raise soft(406, "fast reply consumer does not exist", *_PUBLISH)
    return name


def checked_keys(headers: Mapping[str, Any], place: tuple[int, int]) -> list[str]:
    """Return the routing keys in the headers CC and BCC; values that are not strings are ignored.

    Args:
        headers: of the message.
        place: the class and method ids, for errors.
    """
    keys: list[str] = []
    for name in (CC, BCC):
        value = headers.get(name, ())
        if not isinstance(value, list | tuple):
            kind = type_name(value)
            text = f'invalid message: {{unacceptable_type_in_header,"{name}",{kind}}}'
            raise soft(406, text, *place)
        keys += [key for key in value if isinstance(key, str)]
    return keys
