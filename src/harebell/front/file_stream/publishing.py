"""Publish a file or a packet, with the checks that class `basic` has.

Permissions, topics, interceptors, CC and BCC, transactions, limits and tracing apply as they do
there. Both classes have no expiration and no user-id; a direct reply-to has no effect in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harebell.auth.permissions import WRITE
from harebell.base.bcc import BCC, BccMessage
from harebell.base.message import Message, Properties, new_message
from harebell.base.values import Long
from harebell.front.common.channel_details import details_of
from harebell.front.common.errors import soft
from harebell.front.common.firehose_tap import actor
from harebell.front.common.interceptors import NODE, TIMESTAMP
from harebell.front.common.permission import check_topic
from harebell.front.common.property_checks import check_user_id
from harebell.front.convert.carried import USER_ID
from harebell.front.operations.publish import writable_exchange
from harebell.front.operations.returns import AT_ONCE, IMMEDIATE
from harebell.front.operations.special_properties import checked_keys
from harebell.model.exchange.kind import Exchange
from harebell.model.queue.contract import Queue
from harebell.wire.v09.property_list import PropertyList

if TYPE_CHECKING:
    from harebell.front.file_stream.file_stream_channel import FileStreamChannel


@dataclass(frozen=True, slots=True)
class Publish:
    """The fields of a publish of either class.

    Args:
        listed: the property list of its class.
        method_id: its number.
        exchange, routing_key: as given.
        flags: MANDATORY and IMMEDIATE.
        ticket: the access ticket; 0 where there is none.
    """

    listed: PropertyList
    method_id: int
    exchange: str
    routing_key: str
    flags: int
    ticket: int = 0

    @property
    def place(self) -> tuple[int, int]:
        """The class and method ids, for errors."""
        return self.listed.class_id, self.method_id


@dataclass(frozen=True, slots=True)
class Routed:
    """A checked message and its queues."""

    message: Message
    queues: tuple[Queue, ...]
    keys: tuple[str, ...]


def allowed(channel: FileStreamChannel, request: Publish) -> Exchange:
    """Find an exchange that the user may publish to.

    Raises:
        Refusal: the user may not write to it, or it does not exist.
        ProtocolError: 403, it is internal.
    """
    channel.check_presented(request.ticket, WRITE, request.place)
    return writable_exchange(
        channel, request.exchange, lambda text: soft(403, text, *request.place)
    )


def routed(
    channel: FileStreamChannel, request: Publish, properties: Properties, body: bytes
) -> Routed:
    """Check a message, and route it.

    Raises:
        Refusal: the user may not publish it.
        ProtocolError: it is too large, or its headers cannot be used.
    """
    connection, router = channel.connection, channel.router
    if len(body) > connection.message_max:
        limit = connection.message_max
        text = f"message size {len(body)} is larger than configured max size {limit}"
        raise soft(311, text, *request.place)
    exchange = allowed(channel, request)
    decoded = request.listed.decode(properties.raw)
    headers: Mapping[str, Any] = decoded.headers or {}
    check_user_id(_user_id(headers), connection.user)
    keys = checked_keys(headers, request.place)
    for key in (request.routing_key, *keys):
        check_topic(channel, WRITE, request.exchange, key)
    settings = connection.settings
    if settings.stamp_time is not None or settings.stamp_node is not None:
        properties = _stamped(channel, request.listed, decoded)
    message = new_message(exchange.name, request.routing_key, properties, body)
    queues = router.route_keys(exchange, message, keys)
    if BCC in headers and queues:
        # Queues get the message without the header; a return shows it as it was published.
        decoded.headers = {name: value for name, value in headers.items() if name != BCC}
        without_bcc = request.listed.made(decoded)
        message = BccMessage(message, without_bcc, properties)
    if router.origins:
        message.origin = connection.origin
    exchange.published += 1
    exchange.routed += len(queues)
    channel.counters.publish += 1
    details_of(channel).exchange(exchange.name).publish += 1
    connection.arrivals.count(len(body), len(queues), False)
    return Routed(message, queues, (request.routing_key, *keys))


def accept(channel: FileStreamChannel, routed_content: Routed, flags: int) -> int:
    """Publish a routed message to its queues, at once or with the channel's transaction.

    Returns the combined result bits of the queues.
    """
    connection = channel.connection
    connection.published = True
    message, queues = routed_content.message, routed_content.queues
    firehose = channel.router.tracer
    if firehose is not None:
        firehose.published(message, list(routed_content.keys), queues, actor(channel))
    # Channels refuse IMMEDIATE, which 0-9-1 does not have; see `LegacyChannel`.
    if flags & IMMEDIATE:
        flags = flags & ~IMMEDIATE | AT_ONCE
    return channel.forward(message, queues, flags)


def _user_id(headers: Mapping[str, Any]) -> str | None:
    """Return the header that becomes the user-id in class basic, and is checked like it."""
    value = headers.get(USER_ID)
    return value if isinstance(value, str) else None


def _stamped(channel: FileStreamChannel, listed: PropertyList, decoded: Any) -> Properties:
    """Add the configured headers and properties to a published file or packet."""
    connection = channel.connection
    settings, ms = connection.settings, connection.broker.clock.ms
    headers = dict(decoded.headers or {})
    if settings.stamp_time is not None:
        if settings.stamp_time or TIMESTAMP not in headers:
            headers[TIMESTAMP] = Long(ms)
        if settings.stamp_time or decoded.timestamp is None:
            decoded.timestamp = ms // 1000
    if settings.stamp_node is not None and (settings.stamp_node or NODE not in headers):
        headers[NODE] = connection.broker.events.node
    decoded.headers = headers
    return listed.made(decoded)
