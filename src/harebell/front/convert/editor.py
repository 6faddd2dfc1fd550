"""The message editor of the model: headers, properties, and copies with other headers.

The model reads properties of class basic from messages of every family: one of another family is
converted first, once. A message that is forwarded with other headers is forwarded as basic; the
headers `x-amqp-...` of docs/protocols/conversion.md restore the properties that basic does not have
when it is converted back. One of 1.0 stays of 1.0: only its header and annotations change.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from harebell.base.message import FAMILY_09, Message
from harebell.base.values import SectionValue
from harebell.front.convert.dispatch import FAMILIES_1_0, converted, described
from harebell.kernels.properties import find_header
from harebell.model.editor import Editor
from harebell.wire.v09.content import (
    BasicProperties,
    decode_properties,
    encode_properties,
    parse_properties,
)
from harebell.wire.v09.edit import edited, header_octets, without_headers
from harebell.wire.v09.fields import EncodedTable, read_value


def basic_of(message: Message) -> Message:
    """Return a message as class basic has it, with its body; the same object if it is one."""
    return converted(message, FAMILY_09)


def headers_of(message: Message) -> Mapping[str, Any]:
    """Return the decoded header table; empty if there is none."""
    return decode_properties(described(message).raw).headers or {}


def header_of(message: Message, name: str) -> Any:
    """Return the value of one header, without decoding the others; None if there is none."""
    raw = described(message).raw
    offset = find_header(raw, name.encode(errors="surrogateescape"))
    return None if offset < 0 else read_value(raw, offset, len(raw), 1)[0]


def expiration_of(message: Message) -> str | None:
    """Return the property expiration; None if there is none."""
    return _properties_of(message).expiration


def property_of(message: Message, name: str) -> Any:
    """Return a property by its name in Python, but not the headers; None if there is none."""
    return getattr(_properties_of(message), name)


def _properties_of(message: Message) -> BasicProperties:
    """Decode the properties without the headers, which may take longer than all else."""
    return decode_properties(without_headers(described(message).raw))


def forwarded(
    message: Message,
    exchange: str,
    routing_key: str,
    headers: Mapping[str, Any],
    died: datetime | None = None,
) -> Message:
    """Make the copy of a message that goes to another exchange: the same body, without expiration.

    Args:
        message: the published message.
        exchange: its new exchange.
        routing_key: its new routing key.
        headers: headers and their new values; None removes a header.
        died: the time of the last event in its new history, which only 1.0 has a place for.
    """
    if message.family in FAMILIES_1_0:
        from harebell.front.convert.amqp_1_0 import edited_message

        return edited_message(message, exchange, routing_key, headers, keep_ttl=False, died=died)
    basic = basic_of(message)
    raw = edited(basic.raw, _fields(headers), keep_expiration=False)
    return Message(exchange, routing_key, parse_properties(raw), basic.body)


def with_headers(message: Message, headers: Mapping[str, Any]) -> Message:
    """Copy a message with other headers; None removes one."""
    if message.family in FAMILIES_1_0:
        from harebell.front.convert.amqp_1_0 import edited_message

        return edited_message(message, message.exchange, message.routing_key, headers)
    basic = basic_of(message)
    properties = parse_properties(edited(basic.raw, _fields(headers)))
    return Message(message.exchange, message.routing_key, properties, basic.body)


def _fields(headers: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return headers as fields of a table, those as well that came as values of 1.0."""
    if not any(isinstance(value, SectionValue) for value in headers.values()):
        return headers
    return {
        name: _field(value) if isinstance(value, SectionValue) else value
        for name, value in headers.items()
    }


def _field(value: SectionValue) -> Any:
    from harebell.wire.convert.values_1_0 import FieldMaker, LongName

    field, data = bytearray(), bytes(value)
    try:
        FieldMaker().put(field, data, 0, len(data))
    except LongName:
        return data
    return read_value(bytes(field), 0, len(field), 1)[0]


def properties_of(message: Message) -> dict[str, Any]:
    """Return the properties of a message by their names in Python, with encoded headers."""
    raw = described(message).raw
    decoded = msgspec.structs.asdict(decode_properties(raw))
    properties = {name: value for name, value in decoded.items() if value is not None}
    if "headers" in properties:
        # Encoded as they are: decoding would lose the widths of numbers and second equal names.
        properties["headers"] = EncodedTable(header_octets(raw), _depth(properties["headers"]))
    return properties


def exact_of(message: Message) -> dict[str, Any]:
    """Return the properties of a message by name, without headers; those of 1.0 as they are."""
    decoded = msgspec.structs.asdict(_properties_of(message))
    del decoded["headers"]
    if message.family in FAMILIES_1_0:
        from harebell.front.convert.amqp_1_0 import fields_of

        decoded.update(fields_of(message))
    return decoded


def _depth(value: Any) -> int:
    """Return the nesting depth of tables and arrays in a value; 0 for other values."""
    if isinstance(value, Mapping):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list | tuple):
        return 1 + max(map(_depth, value), default=0)
    return 0


def composed(
    exchange: str, routing_key: str, body: bytes, properties: Mapping[str, Any]
) -> Message:
    """Make a message of the broker.

    Args:
        exchange: the name of the exchange that it counts as published to.
        routing_key: the key that it counts as published with.
        body: the bytes after the properties.
        properties: by their names in Python.
    """
    raw = encode_properties(BasicProperties(**properties))
    return Message(exchange, routing_key, parse_properties(raw), body)


EDITOR = Editor(
    headers_of,
    expiration_of,
    forwarded,
    property_of,
    properties_of,
    composed,
    with_headers,
    basic_of,
    header_of,
    exact_of,
)
"""The functions of this module, as the model gets them."""
