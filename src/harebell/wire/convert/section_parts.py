"""The sections of AMQP 1.0 before the body in parts, and how their octets are read.

    header                  durable priority ttl
    message-annotations     entries
    properties              thirteen fields
    application-properties  entries

What is written has the shortest encoding. What is read may have any.
"""

from __future__ import annotations

from harebell.base.c_types import C, i32, i64, isize
from harebell.wire.convert.values_1_0 import put_compound, put_uint

FIELDS = 13
"""Fields of the section properties."""


class SectionParts:
    """What is before a body.

    Attributes:
        durable: 1 or 0; -1 if the header does not say it.
        priority: 0 to 255; -1 if absent.
        ttl: milliseconds; -1 if absent.
        annotations, application: keys and values, each encoded.
        annotation_count, application_count: keys and values in them.
        fields: the encoded fields of the properties; None for those that are absent.
    """

    def __init__(self) -> None:
        self.durable: i32 = -1
        self.priority: i32 = -1
        self.ttl: i64 = -1
        self.annotations = bytearray()
        self.annotation_count: isize = 0
        self.fields: list[bytes | None] = [None] * FIELDS
        self.application = bytearray()
        self.application_count: isize = 0

    def encode(self) -> C[bytes]:
        """Return the sections; those without content are left out."""
        out = bytearray()
        if self.durable >= 0 or self.priority >= 0 or self.ttl >= 0:
            out += encoded_header(self.durable, self.priority, self.ttl)
        if self.annotation_count:
            out += b"\0\x53\x72"
            put_compound(out, 0xC1, self.annotation_count, self.annotations)
        count: isize = FIELDS
        while count and self.fields[count - 1] is None:
            count -= 1
        if count:
            content = bytearray()
            index: isize
            for index in range(count):
                field: bytes | None = self.fields[index]
                if field is None:
                    content.append(0x40)
                else:
                    content += field
            out += b"\0\x53\x73"
            put_compound(out, 0xC0, count, content)
        if self.application_count:
            out += b"\0\x53\x74"
            put_compound(out, 0xC1, self.application_count, self.application)
        return bytes(out)


def encoded_header(durable: i32, priority: i32, ttl: i64) -> C[bytes]:
    """Return a header section with these fields; -1 leaves one out."""
    content = bytearray()
    count: isize = 3 if ttl >= 0 else 2 if priority >= 0 else 1
    content.append(0x40 if durable < 0 else 0x41 if durable else 0x42)
    if count > 1:
        if priority < 0:
            content.append(0x40)
        else:
            content.append(0x50)
            content.append(priority)
    if count > 2:
        put_uint(content, ttl)
    out = bytearray(b"\0\x53\x70")
    put_compound(out, 0xC0, count, content)
    return bytes(out)


def compound_begin(data: bytes, offset: isize) -> isize:
    """Return the offset of the first value in a list or map."""
    code: i32 = data[offset]
    if code == 0x45:
        return offset + 1
    return offset + (9 if code & 0x10 else 3)
