"""The property lists of the content classes beside `basic`, and one codec for all classes.

    class-id(2) weight(2) body-size(8) | property-flags(2) value value ...

As in `harebell.wire.v09.content` the flags say from the highest bit down which properties the list
has; only the properties differ from class to class.

    file     70   content-type content-encoding headers priority reply-to message-id filename
                  timestamp cluster-id
    stream   80   content-type content-encoding headers priority timestamp
    tunnel  110   headers proxy-name data-name durable broadcast
    test    120   none

These classes have no delivery-mode: a file is persistent, and a packet of a stream is transient.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct

from harebell.base.errors import ProtocolError
from harebell.base.message import (
    FAMILY_09,
    FAMILY_FILE,
    FAMILY_STREAM,
    PERSISTENT,
    Properties,
)
from harebell.wire.v09.fields import decode_table, read_timestamp
from harebell.wire.v09.property_values import write_value

_FIRST_BIT = 15
_KINDS = {
    "headers": "table",
    "delivery_mode": "octet",
    "priority": "octet",
    "durable": "octet",
    "broadcast": "octet",
    "timestamp": "timestamp",
}
_TRANSIENT = 1
_KNOWN_FLAGS = 256


class FileProperties(Struct):
    """The properties of a file; None means absent."""

    content_type: str | None = None
    content_encoding: str | None = None
    headers: dict[str, Any] | None = None
    priority: int | None = None
    reply_to: str | None = None
    message_id: str | None = None
    filename: str | None = None
    timestamp: datetime | int | None = None
    cluster_id: str | None = None


class StreamProperties(Struct):
    """The properties of a packet; None means absent."""

    content_type: str | None = None
    content_encoding: str | None = None
    headers: dict[str, Any] | None = None
    priority: int | None = None
    timestamp: datetime | int | None = None


class TunnelProperties(Struct):
    """The properties of a tunnelled block; None means absent."""

    headers: dict[str, Any] | None = None
    proxy_name: str | None = None
    data_name: str | None = None
    durable: int | None = None
    broadcast: int | None = None


class NoProperties(Struct):
    """A content of class `test` has none."""


class PropertyList:
    """The property list of one class.

    Args:
        class_id: the number of the class in the specification.
        name: of the class.
        kind: its properties, in the order of their flags.
        family: of messages that carry such a list.
        delivery_mode: that the class asks for.

    Attributes:
        class_id, name, kind, family: as given.
        empty: the list without a property.
    """

    def __init__(
        self, class_id: int, name: str, kind: type[Struct], family: int, delivery_mode: int
    ) -> None:
        self.class_id = class_id
        self.name = name
        self.kind = kind
        self.family = family
        self.empty = Properties(b"\0\0", delivery_mode, family=family)
        self._mode = delivery_mode
        self._properties = tuple(
            (field, 1 << _FIRST_BIT - index, _KINDS.get(field, "shortstr"))
            for index, field in enumerate(kind.__struct_fields__)
        )
        self._present: dict[int, list[tuple[str, int, str]]] = {}
        self._known = sum(flag for _, flag, _ in self._properties)

    def __repr__(self) -> str:
        return f"<properties of {self.name}>"

    def decode(self, raw: bytes) -> Any:
        """Return the properties of an encoded list.

        Raises:
            ProtocolError: 505, the list is malformed.
        """
        if len(raw) < 2:
            raise self._malformed("property flags are missing")
        flags = int.from_bytes(raw[:2])
        # The type of an unknown property is unknown too, so nothing after it could be read.
        if flags & ~self._known:
            raise self._malformed("unknown property flags")
        properties, end = self.values(raw, flags)
        if end != len(raw):
            raise self._malformed("octets after the last property")
        return properties

    def values(self, raw: bytes, flags: int) -> tuple[Any, int]:
        """Return the properties that the flags name, and the offset behind them."""
        offset = 2
        properties = self.kind()
        present = self._present.get(flags)
        # Messages of one publisher have the same few properties.
        if present is None:
            present = [each for each in self._properties if flags & each[1]]
            if len(self._present) >= _KNOWN_FLAGS:
                self._present.clear()
            self._present[flags] = present
        for field, _, kind in present:
            value, offset = self._read(raw, offset, field, kind)
            setattr(properties, field, value)
        return properties, offset

    def parse(self, raw: bytes) -> Properties:
        """Check an encoded list, and return the properties that the broker itself needs.

        Raises:
            ProtocolError: 505, the list is malformed.
        """
        text = self.decode(raw)
        priority = getattr(text, "priority", None)
        return Properties(
            raw,
            self._mode,
            -1 if priority is None else priority,
            getattr(text, "headers", None) is not None,
            family=self.family,
        )

    def encode(self, properties: Struct) -> bytes:
        """Return property flags and values, which follow the body size in a content header.

        Raises:
            ValueError: a value does not fit; the text names the property.
            TypeError: a value is of a wrong type; the text names the property.
        """
        if type(properties) is not self.kind:
            kind = type(properties).__name__
            raise TypeError(f"a content of class {self.name} has no {kind}")
        flags = 0
        out = bytearray(2)
        for field, flag, kind in self._properties:
            value = getattr(properties, field)
            if value is not None:
                flags |= flag
                out += write_value(field, kind, value)
        out[:2] = flags.to_bytes(2)
        return bytes(out)

    def made(self, properties: Struct) -> Properties:
        """Return properties in the form that messages have."""
        return self.parse(self.encode(properties))

    def header(self, size: int, raw: bytes) -> bytes:
        """Return the payload of a content header for a body of that size."""
        return self.class_id.to_bytes(2) + b"\0\0" + size.to_bytes(8) + raw

    def _malformed(self, why: str) -> ProtocolError:
        return ProtocolError(505, f"malformed content header: {why}", self.class_id)

    def _read(self, raw: bytes, offset: int, field: str, kind: str) -> tuple[Any, int]:
        if kind == "shortstr":
            # Without the length octet the comparison below fails, as `end` is behind it.
            end = offset + 1 + (raw[offset] if offset < len(raw) else 0)
        elif kind == "table":
            try:
                return decode_table(raw, offset)
            except ProtocolError as error:
                raise self._malformed(error.text) from None
        else:
            end = offset + (1 if kind == "octet" else 8)
        if end > len(raw):
            raise self._malformed(f"{field.replace('_', '-')} runs over the end")
        if kind == "shortstr":
            return raw[offset + 1 : end].decode(errors="surrogateescape"), end
        if kind == "octet":
            return raw[offset], end
        return read_timestamp(int.from_bytes(raw[offset:end])), end


FILE = PropertyList(70, "file", FileProperties, FAMILY_FILE, PERSISTENT)
STREAM = PropertyList(80, "stream", StreamProperties, FAMILY_STREAM, _TRANSIENT)
TUNNEL = PropertyList(110, "tunnel", TunnelProperties, FAMILY_09, 0)
TEST = PropertyList(120, "test", NoProperties, FAMILY_09, 0)

OTHER_LISTS = {each.class_id: each for each in (FILE, STREAM, TUNNEL, TEST)}
"""The property lists by the numbers of their classes."""
