"""The properties of a message, in the header of its content (AMQP 0-9-1 4.2.6.1).

    class-id(2) weight(2) body-size(8) | property-flags(2) value value ...

The flags say, from the highest bit down, which of the fourteen properties the list has. Bits 1 and
0 are not used by this class: it has no further properties that a second flag word could name.

The broker does not judge the values of applications: texts that are no UTF-8 keep their octets by
`surrogateescape`, and a timestamp that no datetime can hold stays a number.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct

from harebell.base.errors import ProtocolError
from harebell.kernels.properties import parse_properties
from harebell.wire.v09.fields import decode_table, read_timestamp
from harebell.wire.v09.property_values import write_value

__all__ = ["BasicProperties", "decode_properties", "encode_properties", "parse_properties"]

_FIRST_BIT = 15


class BasicProperties(Struct):
    """The fourteen properties; None means absent."""

    content_type: str | None = None
    content_encoding: str | None = None
    headers: dict[str, Any] | None = None
    delivery_mode: int | None = None
    priority: int | None = None
    correlation_id: str | None = None
    reply_to: str | None = None
    expiration: str | None = None
    message_id: str | None = None
    timestamp: datetime | int | None = None
    type: str | None = None
    user_id: str | None = None
    app_id: str | None = None
    cluster_id: str | None = None


_KINDS = {
    "headers": "table",
    "delivery_mode": "octet",
    "priority": "octet",
    "timestamp": "timestamp",
}
_PROPERTIES = tuple(
    (name, 1 << _FIRST_BIT - index, _KINDS.get(name, "shortstr"))
    for index, name in enumerate(BasicProperties.__struct_fields__)
)


def decode_properties(raw: bytes) -> BasicProperties:
    """Return the properties of an encoded list.

    Raises:
        ProtocolError: 505, the list is malformed.
    """
    # It checks that every value is complete, so nothing below can run over the end.
    parse_properties(raw)
    flags = int.from_bytes(raw[:2])
    offset = 2
    properties = BasicProperties()
    for name, flag, kind in _PROPERTIES:
        if flags & flag:
            value, offset = _read(raw, offset, kind)
            setattr(properties, name, value)
    return properties


def _read(raw: bytes, offset: int, kind: str) -> tuple[Any, int]:
    if kind == "octet":
        return raw[offset], offset + 1
    if kind == "timestamp":
        return read_timestamp(int.from_bytes(raw[offset : offset + 8])), offset + 8
    if kind == "table":
        try:
            return decode_table(raw, offset)
        except ProtocolError as error:
            raise ProtocolError(505, f"malformed content header: {error.text}", 60) from None
    end = offset + 1 + raw[offset]
    return raw[offset + 1 : end].decode(errors="surrogateescape"), end


def encode_properties(properties: BasicProperties) -> bytes:
    """Return property flags and values, which follow the body size in a content header.

    Raises:
        ValueError: a value does not fit; the text names the property.
        TypeError: a value is of a wrong type; the text names the property.
    """
    flags = 0
    out = bytearray(2)
    for name, flag, kind in _PROPERTIES:
        value = getattr(properties, name)
        if value is not None:
            flags |= flag
            out += write_value(name, kind, value)
    out[:2] = flags.to_bytes(2)
    return bytes(out)
