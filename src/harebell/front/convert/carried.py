"""Properties that a content class does not have are converted to headers.

    class basic            class file             class stream
    correlation-id         x-amqp-correlation-id  x-amqp-correlation-id
    x-amqp-filename        filename               x-amqp-filename
    ...

Properties of both classes keep their names. A header `x-amqp-...` of a client with a value that the
property cannot have stays a header.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict

from harebell.base.limits import NAME_BYTES
from harebell.base.message import Message, new_message
from harebell.wire.v09.content import (
    BasicProperties,
    decode_properties,
    encode_properties,
    parse_properties,
)
from harebell.wire.v09.fields import LongString
from harebell.wire.v09.property_list import PropertyList

PREFIX = "x-amqp-"
DELIVERY_MODE = PREFIX + "delivery-mode"
USER_ID = PREFIX + "user-id"
_BASIC = BasicProperties.__struct_fields__
_OCTET_MAX = 255


def header_of(field: str) -> str:
    """Return the header for a property."""
    return PREFIX + field.replace("_", "-")


def to_basic(message: Message, listed: PropertyList, mode: int | None) -> Message:
    """Convert a message of another class to class basic.

    Args:
        message: of the family of the class.
        listed: the property list of the class.
        mode: the delivery-mode that the class implies; None for none.
    """
    values = asdict(listed.decode(message.raw))
    headers = dict(values["headers"] or {})
    before = len(headers)
    for field in _BASIC:
        if field not in values:
            _restore(headers, field, values)
    restored = before - len(headers)
    for field in [each for each in values if each not in _BASIC]:
        value = values.pop(field)
        if value is not None:
            headers[header_of(field)] = _as_header(value)
    if "delivery_mode" not in values:
        values["delivery_mode"] = mode
    elif values["delivery_mode"] == 0:
        values["delivery_mode"] = None
    # A table that only had carried properties goes; an empty one of the publisher stays.
    keeps_table = headers or (values["headers"] is not None and not restored)
    values["headers"] = headers if keeps_table else None
    raw = encode_properties(BasicProperties(**values))
    return new_message(message.exchange, message.routing_key, parse_properties(raw), message.body)


def from_basic(message: Message, listed: PropertyList, mode: int | None) -> Message:
    """Convert a message of class basic to another class."""
    values = asdict(decode_properties(message.raw))
    fields = listed.kind.__struct_fields__
    headers = dict(values["headers"] or {})
    before = len(headers)
    carried: dict[str, Any] = {field: values[field] for field in fields if field in values}
    for field in fields:
        if field not in values:
            _restore(headers, field, carried)
    restored = before - len(headers)
    # The class implies a mode: only another one has to be carried.
    if (values["delivery_mode"] or None) != mode:
        headers[DELIVERY_MODE] = values["delivery_mode"] or 0
    for field in _BASIC:
        if field not in fields and field != "delivery_mode" and values[field] is not None:
            headers[header_of(field)] = _as_header(values[field])
    keeps_table = headers or (values["headers"] is not None and not restored)
    carried["headers"] = headers if keeps_table else None
    properties = listed.made(listed.kind(**carried))
    return new_message(message.exchange, message.routing_key, properties, message.body)


def _restore(headers: dict[str, Any], field: str, values: dict[str, Any]) -> None:
    """Convert a header back to its property, if its value is valid."""
    name = header_of(field)
    value = headers.get(name)
    if field == "delivery_mode":
        fits = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _OCTET_MAX
    else:
        if isinstance(value, LongString):
            value = value.decode(errors="surrogateescape")
        fits = isinstance(value, str) and len(value.encode(errors="surrogateescape")) <= NAME_BYTES
    if fits:
        values[field] = value
        del headers[name]


def _as_header(value: str) -> str | LongString:
    """Return a text as a header value; one that is not UTF-8 stays bytes."""
    data = value.encode(errors="surrogateescape")
    try:
        data.decode()
    except UnicodeDecodeError:
        return LongString(data)
    return value
