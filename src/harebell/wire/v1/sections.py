"""The sections of messages: decode what is asked for, and encode messages of the broker.

`harebell.kernels.sections` finds their borders and checks them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

from harebell.base.message import FAMILY_1_0
from harebell.kernels.sections import (
    APPLICATION_PROPERTIES,
    DATA,
    DELIVERY_ANNOTATIONS,
    FOOTER,
    HEADER,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    SEQUENCE,
    VALUE,
    parse_properties,
    section,
    split,
)
from harebell.wire.v1 import encoding
from harebell.wire.v1.composites import Header, Properties
from harebell.wire.v1.decoding import ValueReader
from harebell.wire.v1.performatives import composite_of
from harebell.wire.v1.values import Described, Symbol, ULong

__all__ = [
    "APPLICATION_PROPERTIES",
    "DATA",
    "DELIVERY_ANNOTATIONS",
    "FOOTER",
    "HEADER",
    "MESSAGE_ANNOTATIONS",
    "PROPERTIES",
    "SEQUENCE",
    "VALUE",
    "Section",
    "Sections",
    "body_sections",
    "data_section",
    "encode_message",
    "encode_sections",
    "parse_properties",
    "section",
    "sequence_section",
    "split",
    "value_section",
]


class Section(NamedTuple):
    """A section of a body, or a footer.

    Args:
        code: DATA, SEQUENCE, VALUE or FOOTER.
        value: bytes, list, any value or dict.
    """

    code: int
    value: Any


class Sections:
    """The sections before a body; each is decoded when it is asked for.

    Args:
        raw: as `split` returns it, of a message that `parse_properties` has checked.

    Raises:
        DecodeError: the borders of the sections are wrong. Whatever decodes a section raises it
            when the section is malformed, which one that was checked is not.
    """

    __slots__ = ("_found", "raw")

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self._found: dict[int, tuple[int, int]] = {}
        at = 0
        while at < len(raw):
            code, value, after = section(raw, at, len(raw))
            self._found[code] = (value, after)
            at = after

    def __contains__(self, code: int) -> bool:
        return code in self._found

    def _decoded(self, code: int) -> Any:
        there = self._found.get(code)
        if there is None:
            return None
        return ValueReader(self.raw, *there, lenient=True).value()

    def octets(self, code: int) -> bytes:
        """Return the encoded value of a section, without its descriptor; b"" without a section."""
        start, end = self._found.get(code, (0, 0))
        return self.raw[start:end]

    def header(self) -> Header:
        """Return the header; one with defaults if there is none."""
        fields = self._decoded(HEADER)
        if fields is None:
            return Header()
        return cast(Header, composite_of(Described(ULong(HEADER), fields)))

    def properties(self) -> Properties:
        """Return the properties; empty ones if there are none."""
        fields = self._decoded(PROPERTIES)
        if fields is None:
            return Properties()
        return cast(Properties, composite_of(Described(ULong(PROPERTIES), fields)))

    def message_annotations(self) -> dict[Any, Any]:
        """Return the message annotations, keys symbols or ulongs."""
        return self._decoded(MESSAGE_ANNOTATIONS) or {}

    def application_properties(self) -> dict[str, Any]:
        """Return the application properties."""
        return self._decoded(APPLICATION_PROPERTIES) or {}


def body_sections(message_body: bytes, family: int) -> Iterator[Section]:
    """Yield the sections of a body, and the footer.

    Args:
        message_body: of a message.
        family: of the message, FAMILY_1_0 or FAMILY_1_0_SECTIONS.

    Raises:
        DecodeError: a section is malformed.
    """
    if family == FAMILY_1_0:
        yield Section(DATA, message_body)
        return
    at = 0
    while at < len(message_body):
        code, value, after = section(message_body, at, len(message_body))
        yield Section(code, ValueReader(message_body, value, after, lenient=True).value())
        at = after


def encode_sections(
    header: Header | None = None,
    message_annotations: Mapping[Any, Any] | None = None,
    properties: Properties | None = None,
    application_properties: Mapping[str, Any] | None = None,
) -> bytes:
    """Return the sections before a body; one that is None or empty is not there.

    Annotations whose keys are strings get symbols.

    Raises:
        TypeError, ValueError: a value does not fit its type.
    """
    parts = []
    if header is not None:
        parts.append(header.encoded())
    if message_annotations:
        keyed = {
            Symbol(key) if type(key) is str else key: value
            for key, value in message_annotations.items()
        }
        parts.append(_described(MESSAGE_ANNOTATIONS, keyed))
    if properties is not None:
        parts.append(properties.encoded())
    if application_properties:
        parts.append(_described(APPLICATION_PROPERTIES, dict(application_properties)))
    return b"".join(parts)


def _described(code: int, value: Any) -> bytes:
    return bytes((0, 0x53, code)) + encoding.encode(value)


def data_section(octets: bytes) -> bytes:
    """Return a data section."""
    return bytes((0, 0x53, DATA)) + encoding.binary(octets)


def sequence_section(items: list[Any]) -> bytes:
    """Return a section with a list."""
    return _described(SEQUENCE, items)


def value_section(value: Any) -> bytes:
    """Return a section with one value."""
    return _described(VALUE, value)


def encode_message(
    body: bytes,
    header: Header | None = None,
    message_annotations: Mapping[Any, Any] | None = None,
    properties: Properties | None = None,
    application_properties: Mapping[str, Any] | None = None,
) -> bytes:
    """Return the octets of a message.

    Args:
        body: its encoded sections, as `data_section` returns one.
        header: as for `encode_sections`, like the rest.
        message_annotations: keys symbols or strings.
        properties: None for none.
        application_properties: None for none.

    Raises:
        TypeError, ValueError: a value does not fit its type.
    """
    before = encode_sections(header, message_annotations, properties, application_properties)
    return before + body
