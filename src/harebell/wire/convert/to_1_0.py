"""Convert a property list of class basic to the sections of AMQP 1.0 before a body.

    basic                                     1.0
    content-type content-encoding             properties; in x-amqp-basic if they are not ASCII
    delivery-mode                             durable; x-basic-delivery-mode other than 1 and 2
    priority                                  priority
    expiration                                ttl; x-amqp-expiration where the texts differ
    message-id correlation-id                 the same: a uuid if it is urn:uuid:..., else a string
    reply-to                                  "/queues/" and the name, or "/exchanges/"
    timestamp                                 creation-time
    user-id app-id                            user-id, group-id
    type cluster-id                           x-basic-type, x-amqp-cluster-id
    header x-amqp-to and so on                the field of the properties
    headers CC, x-death                       x-cc, x-opt-deaths
    header x-...                              message annotation of that name
    header with a list or a table             in x-amqp-headers
    other header                              application property
    what 1.0 cannot say                       in x-amqp-basic, as a property list

`harebell.wire.convert.from_1_0` is the way back, and says what `x-amqp-sections` is.
"""

from __future__ import annotations

from harebell.base.c_types import C, Done, i32, i64, isize
from harebell.base.errors import DecodeError
from harebell.kernels.sections import (
    APPLICATION_PROPERTIES,
    FOOTER,
    PROPERTIES,
    check,
    parse_properties,
    section,
)
from harebell.wire.convert import deaths
from harebell.wire.convert import names_1_0 as names
from harebell.wire.convert.basic_parts import BasicParts
from harebell.wire.convert.from_1_0 import (
    FromSections,
    Inexact,
    exchange_address,
    queue_address,
    ttl_of,
    uuid_in,
)
from harebell.wire.convert.section_parts import SectionParts
from harebell.wire.convert.values_1_0 import (
    Inexpressible,
    is_utf8,
    number_of,
    put_compound,
    put_sized,
    put_timestamp,
    put_uint,
    put_value,
)
from harebell.wire.v09.fields import read_value

_STRING, _SYMBOL, _BINARY = 0xA1, 0xA3, 0xA0
_UINT_MAX: i64 = (1 << 32) - 1
_WIDTHS: C[dict[int, int]] = {
    **dict.fromkeys(b"tbB", 1),
    **dict.fromkeys(b"su", 2),
    **dict.fromkeys(b"Iif", 4),
    **dict.fromkeys(b"lLdT", 8),
    ord("D"): 5,
    ord("V"): 0,
}


class ToSections:
    """One conversion.

    Attributes:
        sections: what is converted so far.
        encoded: whether the type says that the body is encoded sections.
        data_sizes: the lengths of the data sections of the body, as a value of a table; None for
            one section.
        footer: the footer, an encoded section; empty without one.
    """

    def __init__(self) -> None:
        self.sections = SectionParts()
        self.encoded = False
        self.data_sizes: bytes | None = None
        self.footer = b""
        self._basic = BasicParts()
        # What 1.0 does not have.
        self._kept = BasicParts()
        self._kept_headers = bytearray()
        self._moved = bytearray()
        self._moved_count: isize = 0
        self._exact: dict[bytes, list[Inexact]] = {}
        self._expected = False

    def read(self, raw: bytes) -> Done:
        """Convert a well-formed property list."""
        basic: BasicParts = self._basic
        basic.read(raw)
        headers: bytes | None = basic.headers
        if headers:
            # A search in the octets: most messages have never been of 1.0.
            if names.SECTIONS in headers:
                self._expect(headers)
            self._read_headers(headers)
        self._properties(basic)
        return 0

    def encode(self) -> C[bytes]:
        """Return the sections."""
        sections: SectionParts = self.sections
        if self._moved_count:
            content = bytearray()
            put_compound(content, 0xC1, self._moved_count, self._moved)
            self._annotate(names.HEADERS, content)
        if self._kept_headers:
            self._kept.headers = bytes(self._kept_headers)
        kept: bytes = self._kept.encode()
        if kept != b"\0\0":
            content = bytearray()
            put_sized(content, _BINARY, kept)
            self._annotate(names.BASIC, content)
        return sections.encode()

    def _annotate(self, name: bytes, value: bytes | bytearray) -> Done:
        put_sized(self.sections.annotations, _SYMBOL, name)
        self.sections.annotations += value
        self.sections.annotation_count += 2
        return 0

    def keep_type(self) -> Done:
        """Set the type `amqp-1.0` after all: the body is no sections."""
        self.encoded = False
        self._annotated(names.TYPE, names.AMQP_1_0)
        return 0

    # --- headers --------------------------------------------------------------------------------

    def _read_headers(self, table: bytes) -> Done:
        found = []
        offset: isize = 0
        n: isize = len(table)
        while offset < n:
            begin: isize = offset
            value: isize = offset + 1 + table[offset]
            offset = _field_end(table, value)
            if self._exact and self._exactly(table[begin:offset]):
                continue
            found.append((table[begin + 1 : value], begin, value, offset))
        last = {name: begin for name, begin, _, _ in found}
        for name, begin, value, after in found:
            # A map has each key once: the entry that counts is the last one.
            if last[name] != begin:
                self._kept_headers += table[begin:after]
            else:
                self._header(table, name, begin, value, after)
        return 0

    def _header(self, table: bytes, name: bytes, begin: isize, value: isize, after: isize) -> Done:
        """Convert one header."""
        if name.startswith(b"x-") and name.isascii():
            special: bool = name in names.TO_FIELDS
            if special and self._special(table, name, value, after):
                return 0
            if special or name in names.FROM_ANNOTATIONS:
                # As an annotation it would be something else.
                self._kept_headers += table[begin:after]
            else:
                self._entry(table, begin, value, after, name, _SYMBOL)
            return 0
        tag: i32 = table[value]
        if name == names.CC_HEADER and tag == 0x41:
            self._entry(table, begin, value, after, names.CC, _SYMBOL)
        elif not is_utf8(name):
            self._kept_headers += table[begin:after]
        elif tag == 0x41 or tag == 0x46:
            self._move(table, begin, value, after, name)
        else:
            self._entry(table, begin, value, after, name, _STRING)
        return 0

    def _entry(
        self,
        table: bytes,
        begin: isize,
        value: isize,
        after: isize,
        name: bytes,
        kind: i32,
    ) -> Done:
        """Make an annotation (kind symbol) or an application property (kind string)."""
        out: bytearray = self.sections.annotations
        if kind != _SYMBOL:
            out = self.sections.application
        size: isize = len(out)
        put_sized(out, kind, name)
        try:
            put_value(out, table, value, 1)
        except Inexpressible:
            del out[size:]
            self._kept_headers += table[begin:after]
            return 0
        if kind == _SYMBOL:
            self.sections.annotation_count += 2
        else:
            self.sections.application_count += 2
        return 0

    def _move(self, table: bytes, begin: isize, value: isize, after: isize, name: bytes) -> Done:
        """Put a header with a list or a table into the annotation for them."""
        out: bytearray = self._moved
        size: isize = len(out)
        put_sized(out, _STRING, name)
        try:
            put_value(out, table, value, 2)
        except Inexpressible:
            del out[size:]
            self._kept_headers += table[begin:after]
            return 0
        self._moved_count += 2
        return 0

    def _special(self, table: bytes, name: bytes, value: isize, after: isize) -> C[bool]:
        """Set a field of the properties by a header; False if its value is not of that type."""
        tag: i32 = table[value]
        octets: bytes = table[value + 1 : after]
        if name == names.X_DEATH:
            events, _ = read_value(table, value, after, 1)
            history = deaths.to_annotation(events)
            if history is not None:
                self._annotate(names.DEATHS, history)
            return history is not None
        if name == names.SECTIONS:
            # It has been read if it is one.
            return self._expected
        if name == names.DATA_SECTIONS:
            self.data_sizes = table[value:after] if tag == 0x41 else None
            return tag == 0x41
        if name == names.GROUP_SEQUENCE:
            return self._group_sequence(tag, octets)
        if name == names.EXPIRES_AT:
            return tag == 0x54 and self._moment(8, octets)
        if tag != 0x53 and tag != 0x78:
            return False
        # Behind the size.
        return self._text(name, tag, octets[4:])

    def _text(self, name: bytes, tag: i32, text: bytes) -> C[bool]:
        """Set a field of the properties by a header with a text or octets."""
        index: i32 = _FIELD_OF.get(name, -1)
        if index >= 0:
            if tag != 0x53 or not is_utf8(text):
                return False
            self._set(index, _STRING, text)
        elif name == names.MESSAGE_ID or name == names.CORRELATION_ID:
            basic: BasicParts = self._basic
            first: bool = name == names.MESSAGE_ID
            if (basic.message_id if first else basic.correlation_id) is not None:
                return False
            index = 0 if first else 5
            if tag == 0x53:
                if not is_utf8(text):
                    return False
                self._set(index, _STRING, text)
            elif not first and is_utf8(text):
                # 0-10 has octets here, also for texts.
                self._set(index, _STRING, text)
            else:
                self._set(index, _BINARY, text)
        elif name == names.USER_ID:
            if tag != 0x78 or self._basic.user_id is not None:
                return False
            self._set(1, _BINARY, text)
        elif name == names.APP_ID:
            if not is_utf8(text) or self._basic.app_id is not None:
                return False
            self._set(10, _STRING, text)
        elif name == names.REPLY_EXCHANGE:
            key: bytes | None = self._basic.reply_to
            if tag != 0x53 or key is None or not text:
                return False
            if not is_utf8(text) or not is_utf8(key):
                return False
            self._set(4, _STRING, exchange_address(text, key))
        else:
            return False
        return True

    def _group_sequence(self, tag: i32, octets: bytes) -> C[bool]:
        if tag not in (0x49, 0x69, 0x6C):
            return False
        number = int.from_bytes(octets, signed=tag != 0x69)
        if not 0 <= number <= _UINT_MAX:
            return False
        out = bytearray()
        put_uint(out, number)
        self.sections.fields[11] = bytes(out)
        return True

    def _moment(self, index: i32, seconds: bytes) -> C[bool]:
        """Set the creation time or the absolute expiry time; False if it is too late."""
        if self.sections.fields[index] is not None:
            return True
        out = bytearray()
        try:
            put_timestamp(out, seconds)
        except Inexpressible:
            return False
        self.sections.fields[index] = bytes(out)
        return True

    def _set(self, index: i32, code: i32, octets: bytes) -> Done:
        """Set a field of the properties that is not set yet."""
        if self.sections.fields[index] is None:
            out = bytearray()
            put_sized(out, code, octets)
            self.sections.fields[index] = bytes(out)
        return 0

    # --- what was 1.0 before ----------------------------------------------------------------------

    def _expect(self, headers: bytes) -> Done:
        """Read the header with exact values, if it is there."""
        table = {}
        offset: isize = 0
        n: isize = len(headers)
        while offset < n:
            value: isize = offset + 1 + headers[offset]
            after: isize = _field_end(headers, value)
            table[headers[offset + 1 : value]] = headers[value:after]
            offset = after
        field = table.get(names.SECTIONS, b"")
        if not field.startswith(b"x"):
            return 0
        sections: bytes = field[5:]
        try:
            _check_sections(sections)
        except DecodeError:
            return 0
        before = FromSections()
        before.read(sections)
        self._expected = True
        self.footer = before.footer
        self._take(before.inexact)
        kind: bytes | None = before.basic.type
        # The type of the publisher, in the place of which there is `amqp-1.0`.
        if kind is not None:
            self._annotated(names.TYPE, kind)
        return 0

    def _take(self, inexact: list[Inexact]) -> Done:
        """Note the exact values of headers, and set those of properties."""
        for each in inexact:
            made = each.made
            if made is None:
                self._restore(each)
            elif not each.attribute:
                self._exact.setdefault(made, []).append(each)
            elif getattr(self._basic, each.attribute) == made:
                self._restore(each)
        return 0

    def _exactly(self, entry: bytes) -> C[bool]:
        """Restore the value that a header was made of; False if there is none."""
        each = self._exact.get(entry)
        if not each:
            return False
        self._restore(each.pop(0))
        return True

    def _restore(self, each: Inexact) -> Done:
        if each.section == PROPERTIES:
            self.sections.fields[each.index] = each.octets
        elif each.section == APPLICATION_PROPERTIES:
            self.sections.application += each.octets
            self.sections.application_count += 2
        else:
            self.sections.annotations += each.octets
            self.sections.annotation_count += 2
        return 0

    # --- properties -----------------------------------------------------------------------------

    def _properties(self, basic: BasicParts) -> Done:
        """Convert the properties; those that headers have set already stay."""
        kept: BasicParts = self._kept
        if basic.message_id is not None:
            self._identify(0, basic.message_id)
        if basic.correlation_id is not None:
            self._identify(5, basic.correlation_id)
        if basic.content_type is not None:
            if basic.content_type.isascii():
                self._set(6, _SYMBOL, basic.content_type)
            else:
                kept.content_type = basic.content_type
        if basic.content_encoding is not None:
            if basic.content_encoding.isascii():
                self._set(7, _SYMBOL, basic.content_encoding)
            else:
                kept.content_encoding = basic.content_encoding
        if basic.user_id is not None:
            self._set(1, _BINARY, basic.user_id)
        if basic.app_id is not None:
            if is_utf8(basic.app_id):
                self._set(10, _STRING, basic.app_id)
            else:
                kept.app_id = basic.app_id
        if basic.reply_to is not None:
            if is_utf8(basic.reply_to):
                if self.sections.fields[4] is None:
                    self._set(4, _STRING, queue_address(basic.reply_to))
            else:
                kept.reply_to = basic.reply_to
        if basic.timestamp is not None and not self._moment(9, basic.timestamp):
            kept.timestamp = basic.timestamp
        if basic.type is not None:
            if basic.type == names.AMQP_1_0:
                self.encoded = True
            elif not self._annotated(names.TYPE, basic.type):
                kept.type = basic.type
        cluster_id: bytes | None = basic.cluster_id
        if cluster_id is not None and not self._annotated(names.CLUSTER_ID, cluster_id):
            kept.cluster_id = cluster_id
        self._header_section(basic)
        return 0

    def _annotated(self, name: bytes, text: bytes) -> C[bool]:
        """Set an annotation; False if the text is no UTF-8."""
        if not is_utf8(text):
            return False
        out = bytearray()
        put_sized(out, _STRING, text)
        self._annotate(name, out)
        return True

    def _identify(self, index: i32, text: bytes) -> Done:
        """Set a message-id or correlation-id."""
        if self.sections.fields[index] is not None:
            return 0
        uuid = uuid_in(text)
        if uuid is not None:
            self.sections.fields[index] = b"\x98" + uuid.bytes
        else:
            self._set(index, _STRING if is_utf8(text) else _BINARY, text)
        return 0

    def _header_section(self, basic: BasicParts) -> Done:
        sections: SectionParts = self.sections
        sections.priority = basic.priority
        if basic.delivery_mode == 1 or basic.delivery_mode == 2:
            sections.durable = basic.delivery_mode - 1
        elif basic.delivery_mode >= 0:
            self._annotate(names.DELIVERY_MODE, bytes((0x50, basic.delivery_mode)))
        expiration: bytes | None = basic.expiration
        if expiration is not None:
            ttl = ttl_of(expiration)
            sections.ttl = ttl
            # Such as "007", or more than a uint holds: the way back restores the text.
            differs: bool = str(ttl).encode() != expiration
            if differs and not self._annotated(names.EXPIRATION, expiration):
                self._kept.expiration = expiration
        return 0


def _check_sections(sections: bytes) -> None:
    """Check the header with exact values, which may be of any client.

    Raises:
        DecodeError: it is no sections, with a footer at their end at most.
    """
    offset = 0
    while offset < len(sections):
        code, begin, after = section(sections, offset, len(sections))
        if code == FOOTER:
            check(sections, begin, after)
            if after != len(sections):
                raise DecodeError("message: sections after the footer")
            break
        offset = after
    parse_properties(sections[:offset])


def _field_end(table: bytes, offset: isize) -> isize:
    """Return the offset after the value of a well-formed table whose tag is at an offset."""
    tag: i32 = table[offset]
    width: i32 = _WIDTHS.get(tag, -1)
    if width >= 0:
        return offset + 1 + width
    return offset + 5 + number_of(table, offset + 1, 4)


_FIELD_OF = {names.TO: 2, names.SUBJECT: 3, names.REPLY_TO_GROUP_ID: 12}
