"""Interceptors: what the broker writes into every message as it comes in, where that is configured.

    set_header_timestamp      header timestamp_in_ms, and the property timestamp (seconds)
    set_header_routing_node   header x-routed-by: the name of the broker

Each replaces what the publisher wrote only where it may overwrite (RabbitMQ's
`message_interceptors.incoming`). Without interceptors none of this is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.base.message import Properties
from harebell.base.values import Long
from harebell.wire.v09.content import (
    decode_properties,
    parse_properties,
)
from harebell.wire.v09.edit import edited, stamped

if TYPE_CHECKING:
    from harebell.front.session09.channel import Channel

TIMESTAMP = "timestamp_in_ms"
NODE = "x-routed-by"
_MS = 1000


def intercepted(channel: Channel, properties: Properties) -> Properties:
    """The properties of a message that was just published, with what the broker adds."""
    connection = channel.connection
    settings = connection.settings
    decoded = decode_properties(properties.raw)
    headers = decoded.headers or {}
    changes: dict[str, Any] = {}
    raw = properties.raw
    ms = connection.broker.clock.ms
    if settings.stamp_time is not None:
        if settings.stamp_time or TIMESTAMP not in headers:
            changes[TIMESTAMP] = Long(ms)
        if settings.stamp_time or decoded.timestamp is None:
            raw = stamped(raw, ms // _MS)
    if settings.stamp_node is not None and (settings.stamp_node or NODE not in headers):
        changes[NODE] = connection.broker.events.node
    return parse_properties(edited(raw, changes) if changes else raw)
