"""The message editor of the model: headers, properties, and copies with other headers.

The model asks in terms of class basic for messages of every family: one of another
family is converted first, which happens once. What goes on with other headers goes on as basic; the
headers `x-amqp-...` of docs/protocols/conversion.md let the way back restore what basic has no word
for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from harebell.base.message import FAMILY_09, Message
from harebell.front.convert.dispatch import converted
from harebell.model.editor import Editor
from harebell.wire.v09.content import (
    BasicProperties,
    decode_properties,
    encode_properties,
    parse_properties,
)
from harebell.wire.v09.edit import edited, header_octets
from harebell.wire.v09.fields import EncodedTable


def _basic(message: Message) -> Message:
    return message if message.family == FAMILY_09 else converted(message, FAMILY_09)


def headers_of(message: Message) -> Mapping[str, Any]:
    """The decoded header table; empty when there is none."""
    return decode_properties(_basic(message).raw).headers or {}


def expiration_of(message: Message) -> str | None:
    """The property expiration; None when there is none."""
    return decode_properties(_basic(message).raw).expiration


def property_of(message: Message, name: str) -> Any:
    """A property by its name in Python; None when there is none."""
    return getattr(decode_properties(_basic(message).raw), name)


def forwarded(
    message: Message, exchange: str, routing_key: str, headers: Mapping[str, Any]
) -> Message:
    """Make the copy of a message that goes to another exchange: the same body, without expiration.

    Args:
        message: what was published.
        exchange: where it goes to.
        routing_key: what it is routed by from now on.
        headers: headers and their new values; None removes a header.
    """
    basic = _basic(message)
    raw = edited(basic.raw, headers, keep_expiration=False)
    return Message(exchange, routing_key, parse_properties(raw), basic.body)


def with_headers(message: Message, headers: Mapping[str, Any]) -> Message:
    """Copy a message with other headers; None removes one."""
    basic = _basic(message)
    properties = parse_properties(edited(basic.raw, headers))
    return Message(message.exchange, message.routing_key, properties, basic.body)


def properties_of(message: Message) -> dict[str, Any]:
    """All properties that a message has, by their names in Python; headers as they are encoded."""
    raw = _basic(message).raw
    decoded = msgspec.structs.asdict(decode_properties(raw))
    found = {name: value for name, value in decoded.items() if value is not None}
    if "headers" in found:
        found["headers"] = EncodedTable(header_octets(raw), _depth(found["headers"]))
    return found


def _depth(value: Any) -> int:
    """The nesting depth of tables and arrays in a value; 0 for other values."""
    if isinstance(value, Mapping):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list | tuple):
        return 1 + max(map(_depth, value), default=0)
    return 0


def composed(
    exchange: str, routing_key: str, body: bytes, properties: Mapping[str, Any]
) -> Message:
    """A message of the broker's own.

    Args:
        exchange: that it is published to.
        routing_key: what it is routed by.
        body: its body.
        properties: by their names in Python.
    """
    raw = encode_properties(BasicProperties(**properties))
    return Message(exchange, routing_key, parse_properties(raw), body)


EDITOR = Editor(
    headers_of, expiration_of, forwarded, property_of, properties_of, composed, with_headers
)
"""All of that for the model."""
