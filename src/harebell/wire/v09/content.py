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

from harebell.base.message import FAMILY_09
from harebell.kernels.properties import parse_properties
from harebell.wire.v09.property_list import PropertyList

__all__ = ["BasicProperties", "decode_properties", "encode_properties", "parse_properties"]


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


BASIC = PropertyList(60, "basic", BasicProperties, FAMILY_09, 0)


def decode_properties(raw: bytes) -> BasicProperties:
    """Return the properties of an encoded list.

    Raises:
        ProtocolError: 505, the list is malformed.
    """
    # It checks that every value is complete, so nothing below can run over the end.
    parse_properties(raw)
    properties: BasicProperties = BASIC.values(raw, int.from_bytes(raw[:2]))[0]
    return properties


encode_properties = BASIC.encode
