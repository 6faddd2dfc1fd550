"""Convert messages between class basic and AMQP 1.0, with their bodies.

    1.0                                       basic
    one data section                          its content is the body
    several data sections                     joined; header x-amqp-data-sections has their lengths
    sequences, or a value                     the encoded sections, and the type amqp-1.0
    footer                                    in the header x-amqp-sections

`harebell.wire.convert.from_1_0` and `to_1_0` convert the properties, and `kernels/conversion.py`
the plain ones.
"""

from __future__ import annotations

from harebell.base.errors import DecodeError
from harebell.base.message import (
    FAMILY_1_0,
    FAMILY_1_0_SECTIONS,
    Message,
    Properties,
    new_message,
)
from harebell.kernels.conversion import listed, sectioned
from harebell.kernels.sections import DATA, FOOTER, section, split
from harebell.wire.convert import names_1_0 as names
from harebell.wire.convert.from_1_0 import FromSections
from harebell.wire.convert.to_1_0 import ToSections
from harebell.wire.convert.values_1_0 import put_sized
from harebell.wire.v09.content import parse_properties
from harebell.wire.v09.fields import encode_entry, read_value

_BINARY8 = 0xA0
_DATA_HEAD = b"\0\x53\x75"


def to_basic(message: Message) -> Message:
    """Convert a message of 1.0 to class basic."""
    body = message.body
    if message.family == FAMILY_1_0_SECTIONS:
        converter = FromSections()
        converter.read(message.raw)
        body = _read_body(converter, body)
        raw = converter.encode()
    else:
        raw = listed(message.raw) or exact_list(message.raw)
    return new_message(message.exchange, message.routing_key, parse_properties(raw), body)


def exact_list(raw: bytes) -> bytes:
    """Convert the sections before a body to a property list, plain ones or not."""
    converter = FromSections()
    converter.read(raw)
    return converter.encode()


def _read_body(converter: FromSections, body: bytes) -> bytes:
    """Return the body of basic; note in the properties what it is."""
    found = _sections(body)
    end = len(body)
    if found[-1][0] == FOOTER:
        end = found.pop()[1]
        converter.footer = body[end:]
    if found[0][0] != DATA:
        converter.retype()
        return body[:end]
    contents = [_content(body, begin, after) for _, begin, after in found]
    if len(contents) > 1:
        sizes = [len(each) for each in contents]
        converter.header(encode_entry(names.DATA_SECTIONS.decode(), sizes))
    return b"".join(contents)


def _sections(body: bytes) -> list[tuple[int, int, int]]:
    """Return code, begin and end of each section of a body.

    Raises:
        DecodeError: a section is malformed.
    """
    found: list[tuple[int, int, int]] = []
    offset = 0
    while offset < len(body):
        code, _, after = section(body, offset, len(body))
        found.append((code, offset, after))
        offset = after
    return found


def _content(body: bytes, offset: int, end: int) -> bytes:
    """Return the content of a data section."""
    _, begin, after = section(body, offset, end)
    return body[begin + (2 if body[begin] == _BINARY8 else 5) : after]


def from_basic(message: Message) -> Message:
    """Convert a message of class basic to 1.0; the family of the result is one of the two."""
    properties = sectioned(message.raw)
    body: bytes | None = None
    if properties is None:
        converter = ToSections()
        converter.read(message.raw)
        body = _written_body(converter, message.body)
        family = FAMILY_1_0 if body is None else FAMILY_1_0_SECTIONS
        properties = _properties(converter, message, family)
    if body is None:
        body = message.body
    return new_message(message.exchange, message.routing_key, properties, body)


def properties_from_basic(message: Message) -> Message:
    """Convert the properties alone, for a body that does not change.

    Returns:
        The message with the same body; if it is of the family `FAMILY_1_0_SECTIONS`, its body may
        have to change, and `from_basic` has to convert it.
    """
    properties = sectioned(message.raw) or exact_sections(message)
    return new_message(message.exchange, message.routing_key, properties, message.body)


def exact_sections(message: Message) -> Properties:
    """Convert a property list to sections, a plain one or not."""
    converter = ToSections()
    converter.read(message.raw)
    changes = converter.encoded or converter.footer or converter.data_sizes is not None
    return _properties(converter, message, FAMILY_1_0_SECTIONS if changes else FAMILY_1_0)


def _properties(converter: ToSections, message: Message, family: int) -> Properties:
    raw = converter.encode()
    parts = converter.sections
    has_headers = bool(parts.annotation_count or parts.application_count)
    return Properties(raw, message.delivery_mode, message.priority, has_headers, family=family)


def _written_body(converter: ToSections, body: bytes) -> bytes | None:
    """Return the encoded sections of a body; None if it is the content of one data section."""
    if converter.encoded:
        if _is_sections(body):
            return body + converter.footer
        # The type is one of the application.
        converter.keep_type()
    sizes = None if converter.data_sizes is None else _sizes(converter.data_sizes)
    # A body of no sections is none.
    if sizes and sum(sizes) == len(body):
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


def _is_sections(body: bytes) -> bool:
    """True if a body is sections without a footer, and with nothing before the body."""
    try:
        before, _, _ = split(body)
    except DecodeError:
        return False
    return not before and _sections(body)[-1][0] != FOOTER


def _put_data(out: bytearray, content: bytes) -> None:
    out += _DATA_HEAD
    put_sized(out, _BINARY8, content)


def _sizes(value: bytes) -> list[int] | None:
    """Return the lengths in the value of the header; None if they are no lengths."""
    sizes, _ = read_value(value, 0, len(value), 1)
    fits = all(isinstance(size, int) and not isinstance(size, bool) and size >= 0 for size in sizes)
    return list(sizes) if fits else None
