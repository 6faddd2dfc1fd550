"""Convert messages between class basic and AMQP 1.0, with their bodies.

    1.0                                       basic
    one data section                          its content is the body
    several data sections                     joined; header x-amqp-data-sections has their lengths
    sequences, or a value                     the encoded sections, and the type amqp-1.0
    footer                                    in the header x-amqp-sections

`harebell.wire.convert.from_1_0` and `to_1_0` convert the properties.
"""

from __future__ import annotations

from harebell.base.message import (
    FAMILY_1_0,
    FAMILY_1_0_SECTIONS,
    Message,
    Properties,
    new_message,
)
from harebell.wire.convert import names_1_0 as names
from harebell.wire.convert.basic_parts import BasicParts
from harebell.wire.convert.from_1_0 import FromSections, entry
from harebell.wire.convert.section_parts import (
    DATA,
    FOOTER,
    VALUE,
    section_code,
    section_value,
)
from harebell.wire.convert.to_1_0 import ToSections
from harebell.wire.convert.values_1_0 import MalformedValue, put_sized, value_end
from harebell.wire.v09.content import parse_properties
from harebell.wire.v09.fields import encode_entry, read_value

_BINARY8, _BINARY32 = 0xA0, 0xB0
_DATA_HEAD = b"\0\x53\x75"


def to_basic(message: Message) -> Message:
    """Convert a message of 1.0 to class basic."""
    converter = FromSections()
    body = message.body
    sections = message.family == FAMILY_1_0_SECTIONS
    try:
        converter.read(message.raw)
    except MalformedValue:
        converter = _unreadable(message)
    if sections:
        body = _read_body(converter, body)
    properties = parse_properties(converter.encode())
    return new_message(message.exchange, message.routing_key, properties, body)


def _unreadable(message: Message) -> FromSections:
    """Return the conversion of malformed sections: a header that peers need not parse has them."""
    converter = FromSections()
    basic = BasicParts()
    basic.delivery_mode = message.delivery_mode or -1
    basic.priority = message.priority
    converter.basic = basic
    converter.header(entry(names.UNREADABLE, ord("x"), message.raw))
    return converter


def _read_body(converter: FromSections, body: bytes) -> bytes:
    """Return the body of basic; note in the properties what it is."""
    try:
        found = _sections(body)
    except MalformedValue:
        converter.retype()
        return body
    end = len(body)
    if found and found[-1][0] == FOOTER:
        end = found[-1][1]
        converter.footer = body[end:]
        found.pop()
    if any(code != DATA for code, _, _ in found):
        converter.retype()
        return body[:end]
    contents = [_content(body, begin, after) for _, begin, after in found]
    if len(contents) != 1:
        sizes = [len(each) for each in contents]
        converter.header(encode_entry(names.DATA_SECTIONS.decode(), sizes))
    return b"".join(contents)


def _sections(body: bytes) -> list[tuple[int, int, int]]:
    """Return code, begin and end of each section of a body.

    Raises:
        MalformedValue: the octets are not what follows the properties of a message.
    """
    found: list[tuple[int, int, int]] = []
    offset = 0
    while offset < len(body):
        code = section_code(body, offset)
        begin = section_value(body, offset)
        after = value_end(body, begin, len(body), 0)
        last = found[-1][0] if found else code
        # One kind of body, and at most one value and one footer, at the end.
        if code < DATA or last == FOOTER or (code != last and code != FOOTER):
            raise MalformedValue("the sections of the body are in a wrong order")
        if (code == VALUE and found) or (code == DATA and body[begin] & 0xEF != _BINARY8):
            raise MalformedValue("a section of the body has the wrong type")
        found.append((code, offset, after))
        offset = after
    return found


def _content(body: bytes, offset: int, after: int) -> bytes:
    """Return the content of a data section."""
    begin = section_value(body, offset)
    return body[begin + (2 if body[begin] == _BINARY8 else 5) : after]


def from_basic(message: Message) -> Message:
    """Convert a message of class basic to 1.0; the family of the result is one of the two."""
    converter = ToSections()
    converter.read(message.raw)
    body = _written_body(converter, message.body)
    family = FAMILY_1_0
    if body is None:
        body = message.body
    else:
        family = FAMILY_1_0_SECTIONS
    return new_message(
        message.exchange, message.routing_key, _properties(converter, message, family), body
    )


def properties_from_basic(message: Message) -> Message:
    """Convert the properties alone, for a body that does not change.

    Returns:
        The message with the same body; if it is of the family `FAMILY_1_0_SECTIONS`, its body may
        have to change, and `from_basic` has to convert it.
    """
    converter = ToSections()
    converter.read(message.raw)
    changes = converter.encoded or converter.footer or converter.data_sizes is not None
    family = FAMILY_1_0_SECTIONS if changes else FAMILY_1_0
    return new_message(
        message.exchange, message.routing_key, _properties(converter, message, family), message.body
    )


def _properties(converter: ToSections, message: Message, family: int) -> Properties:
    raw = converter.encode()
    parts = converter.sections
    has_headers = bool(parts.annotation_count or parts.application_count)
    return Properties(raw, message.delivery_mode, message.priority, has_headers, family=family)


def _written_body(converter: ToSections, body: bytes) -> bytes | None:
    """Return the encoded sections of a body; None if it is the content of one data section."""
    if converter.encoded:
        try:
            found = _sections(body)
        except MalformedValue:
            found = []
        if found and found[-1][0] != FOOTER:
            return body + converter.footer
        # The type is one of the application.
        converter.keep_type()
    sizes = None if converter.data_sizes is None else _sizes(converter.data_sizes)
    if sizes is not None and sum(sizes) == len(body):
        out = bytearray()
        offset = 0
        for size in sizes:
            _put_data(out, body[offset : offset + size])
            offset += size
        return bytes(out) + converter.footer
    if converter.footer:
        out = bytearray()
        _put_data(out, body)
        return bytes(out) + converter.footer
    return None


def _put_data(out: bytearray, content: bytes) -> None:
    out += _DATA_HEAD
    put_sized(out, _BINARY8, content)


def _sizes(value: bytes) -> list[int] | None:
    """Return the lengths in the value of the header; None if they are no lengths."""
    sizes, _ = read_value(value, 0, len(value), 1)
    fits = all(isinstance(size, int) and not isinstance(size, bool) and size >= 0 for size in sizes)
    return list(sizes) if fits else None
