"""The properties of the basic class, in a content header (AMQP 0-9-1 4.2.6.1).

    class-id(2) weight(2) body-size(8) | property-flags(2) value value ...

The flags tell from the highest bit down which properties are there; bits 1 and 0 are not used by this class.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from harebell.base.errors import ProtocolError
from harebell.kernels.frames import parse_properties
from harebell.wire.v09.fields import Timestamp, decode_table, encode_table

__all__ = ["BasicProperties", "decode_properties", "encode_properties", "parse_properties"]

_FIRST_BIT = 15
_SHORTSTR_MAX = 255


class BasicProperties(Struct):
    """The fourteen properties; None means absent. `timestamp` is in seconds."""

    content_type: str | None = None
    content_encoding: str | None = None
    headers: dict[str, Any] | None = None
    delivery_mode: int | None = None
    priority: int | None = None
    correlation_id: str | None = None
    reply_to: str | None = None
    expiration: str | None = None
    message_id: str | None = None
    timestamp: int | None = None
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
    (name, _FIRST_BIT - at, _KINDS.get(name, "shortstr"))
    for at, name in enumerate(BasicProperties.__struct_fields__)
)


def decode_properties(raw: bytes) -> BasicProperties:
    """The properties of an encoded list.

    Raises:
        ProtocolError: 505, the list is malformed.
    """
    parse_properties(raw)
    flags = int.from_bytes(raw[:2])
    found = BasicProperties()
    at = 2
    for name, bit, kind in _PROPERTIES:
        if flags & (1 << bit):
            value, at = _decode(raw, at, kind, name)
            setattr(found, name, value)
    return found


def _decode(raw: bytes, at: int, kind: str, name: str) -> tuple[Any, int]:
    if kind == "octet":
        return raw[at], at + 1
    if kind == "timestamp":
        return Timestamp(int.from_bytes(raw[at : at + 8])), at + 8
    try:
        if kind == "table":
            return decode_table(raw, at)
        end = at + 1 + raw[at]
        return raw[at + 1 : end].decode(), end
    except UnicodeDecodeError:
        why = "is not UTF-8"
    except ProtocolError as error:
        why = error.text
    raise ProtocolError(505, f"malformed content header: {name}: {why}", 60, 0)


def encode_properties(properties: BasicProperties) -> bytes:
    """Property flags and values.

    Raises:
        ValueError: a value does not fit; the text names the property.
        TypeError: a value is of a wrong type; the text names the property.
    """
    flags = 0
    out = bytearray(2)
    for name, bit, kind in _PROPERTIES:
        value = getattr(properties, name)
        if value is None:
            continue
        flags |= 1 << bit
        try:
            out += _encode(value, kind)
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{name}: {error}") from None
        except (TypeError, AttributeError) as error:
            raise TypeError(f"{name}: {error}") from None
    out[:2] = flags.to_bytes(2)
    return bytes(out)


def _encode(value: Any, kind: str) -> bytes:
    if kind == "octet":
        return int(value).to_bytes(1)
    if kind == "timestamp":
        return int(value).to_bytes(8)
    if kind == "table":
        return encode_table(value)
    data: bytes = value.encode()
    if len(data) > _SHORTSTR_MAX:
        raise ValueError(f"has {len(data)} octets, at most {_SHORTSTR_MAX} are possible")
    return bytes((len(data),)) + data
