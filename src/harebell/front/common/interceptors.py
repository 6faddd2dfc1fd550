"""Message interceptors: headers and properties that the broker adds to every message.

    as it comes in: set_header_timestamp     header timestamp_in_ms, and the property timestamp (s)
                    set_header_routing_node  header x-routed-by: the name of the broker
    as it goes out: timestamp                header x-opt-rabbitmq-sent-time

In 1.0 they are annotations, times are of the type timestamp, and the first is
x-opt-rabbitmq-received-time: the properties belong to the publisher.

A publisher's own value is replaced only if overwriting is configured (RabbitMQ's
`message_interceptors`). Without interceptors none of this is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from harebell.base.message import Message, Properties, new_message
from harebell.base.values import Long
from harebell.front.convert.dispatch import FAMILIES_1_0
from harebell.front.convert.editor import headers_of, with_headers
from harebell.wire.v09.content import (
    decode_properties,
    parse_properties,
)
from harebell.wire.v09.edit import edited, stamped

if TYPE_CHECKING:
    from harebell.front.common.settings import Settings
    from harebell.model.broker import Broker

TIMESTAMP = "timestamp_in_ms"
NODE = "x-routed-by"
SENT = "x-opt-rabbitmq-sent-time"
RECEIVED = "x-opt-rabbitmq-received-time"
_MS = 1000


class Door(Protocol):
    """A connection, or what stands for one, as far as interceptors need it."""

    @property
    def settings(self) -> Settings:
        """What is configured."""

    @property
    def broker(self) -> Broker:
        """The broker."""


def intercepted(connection: Door, properties: Properties) -> Properties:
    """Add the configured headers and properties to a published message."""
    if properties.family in FAMILIES_1_0:
        return _annotated(connection, properties)
    settings = connection.settings
    decoded = decode_properties(properties.raw)
    headers = decoded.headers or {}
    changes: dict[str, Any] = {}
    raw = properties.raw
    ms = connection.broker.clock.ms
    if settings.stamp_time is not None:
        if settings.stamp_time or TIMESTAMP not in headers:
            # RabbitMQ writes the type octet `l`.
            changes[TIMESTAMP] = Long(ms)
        if settings.stamp_time or decoded.timestamp is None:
            raw = stamped(raw, ms // _MS)
    if settings.stamp_node is not None and (settings.stamp_node or NODE not in headers):
        changes[NODE] = connection.broker.events.node
    return parse_properties(edited(raw, changes) if changes else raw)


def _annotated(connection: Door, properties: Properties) -> Properties:
    """Add the configured annotations to a published message of 1.0."""
    from harebell.front.convert.amqp_1_0 import Milliseconds, edited_properties

    settings = connection.settings
    headers = headers_of(new_message("", "", properties, b""))
    changes: dict[str, Any] = {}
    if settings.stamp_time is not None and (settings.stamp_time or RECEIVED not in headers):
        changes[RECEIVED] = Milliseconds(connection.broker.clock.ms)
    if settings.stamp_node is not None and (settings.stamp_node or NODE not in headers):
        changes[NODE] = connection.broker.events.node
    return edited_properties(properties, changes) if changes else properties


def stamped_as_sent(connection: Door, message: Message, kind: type[int] = Long) -> Message:
    """Copy a message with the time at which it is sent to this client.

    Args:
        connection: of the client.
        message: what is sent.
        kind: the type of the time in its version.
    """
    copy = with_headers(message, {SENT: kind(connection.broker.clock.ms)})
    copy.offset, copy.deliveries, copy.due = message.offset, message.deliveries, message.due
    return copy
