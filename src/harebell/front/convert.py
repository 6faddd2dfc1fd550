"""Between messages as they came and what the model asks of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from harebell.base.message import Message
from harebell.model.editor import Editor
from harebell.wire.v09.content import (
    BasicProperties,
    decode_properties,
    encode_properties,
    parse_properties,
)
from harebell.wire.v09.edit import edited


def headers_of(message: Message) -> Mapping[str, Any]:
    """The decoded header table; empty when there is none."""
    return decode_properties(message.raw).headers or {}


def expiration_of(message: Message) -> str | None:
    """The property expiration; None when there is none."""
    return decode_properties(message.raw).expiration


def property_of(message: Message, name: str) -> Any:
    """A property by its name in Python; None when there is none."""
    return getattr(decode_properties(message.raw), name)


def forwarded(
    message: Message, exchange: str, routing_key: str, headers: Mapping[str, Any]
) -> Message:
    """A message as it goes on to another exchange: the same body, and it does not expire.

    Args:
        message: what was published.
        exchange: where it goes to.
        routing_key: what it is routed by from now on.
        headers: headers and their new values; None removes a header.
    """
    raw = edited(message.raw, headers, keep_expiration=False)
    return Message(exchange, routing_key, parse_properties(raw), message.body)


def with_headers(message: Message, headers: Mapping[str, Any]) -> Message:
    """A message that is the same but for some headers; None removes one."""
    properties = parse_properties(edited(message.raw, headers))
    return Message(message.exchange, message.routing_key, properties, message.body)


def properties_of(message: Message) -> dict[str, Any]:
    """All properties that a message has, by their names in Python."""
    decoded = msgspec.structs.asdict(decode_properties(message.raw))
    return {name: value for name, value in decoded.items() if value is not None}


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
