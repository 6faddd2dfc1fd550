"""Convert the sections of AMQP 1.0 before a body to a property list of class basic.

    header                                    basic
    durable priority ttl                      delivery-mode priority expiration

    message-annotations
    x-basic-type, x-amqp-cluster-id           type, cluster-id
    x-cc, x-opt-deaths                        headers CC, x-death
    x-amqp-headers                            headers of the names in it
    x-...                                     the header of that name

    properties
    message-id correlation-id                 the same, as text; longer and binary ones are headers
    user-id content-type content-encoding     the same
    reply-to                                  reply-to, without its "/queues/"
    creation-time                             timestamp
    group-id                                  app-id
    to subject group-sequence                 headers x-amqp-...
    absolute-expiry-time reply-to-group-id

    application-properties                    headers of the same names

What basic does not say exactly, such as a ulong or an annotation of another name, goes along a
second time in the header `x-amqp-sections`, in sections of 1.0. The way back takes each of them in
the place of the property or header that was made of it, if that is still the same.
"""

from __future__ import annotations

from urllib.parse import quote, unquote_to_bytes
from uuid import UUID

from harebell.base.c_types import C, Done, i32, i64, isize
from harebell.base.errors import ProtocolError
from harebell.base.expiration import ttl_in
from harebell.base.limits import NAME_BYTES
from harebell.kernels.sections import (
    APPLICATION_PROPERTIES,
    FOOTER,
    HEADER,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    section,
    skip,
)
from harebell.wire.convert import deaths
from harebell.wire.convert import names_1_0 as names
from harebell.wire.convert.basic_parts import BasicParts
from harebell.wire.convert.section_parts import SectionParts, compound_begin
from harebell.wire.convert.values_1_0 import (
    FieldMaker,
    LongName,
    is_utf8,
    put_sized,
    text_of,
)
from harebell.wire.v09.content import parse_properties
from harebell.wire.v09.fields import entries

_SHORT: i32 = NAME_BYTES
_MS = 1000
_UINT_MAX: i64 = (1 << 32) - 1
_ARRAY = 0x41
_UNRESERVED = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
"""Octets that stand for themselves in an address (RFC 3986)."""
_QUEUES = b"/queues/"
_EXCHANGES = b"/exchanges/"
_MAPS = (MESSAGE_ANNOTATIONS, APPLICATION_PROPERTIES)
URN = b"urn:uuid:"


class Inexact:
    """A value of 1.0 that basic does not say exactly.

    Args:
        section: the code of its section.
        index: of the field, in the section properties.
        octets: the encoded field, or key and value.
        attribute: of `BasicParts` that was made of it; "" for a header.
        made: the value of this attribute, or the entry of the header; None if nothing was made.
    """

    def __init__(
        self,
        section: int,
        index: int,
        octets: bytes,
        attribute: str,
        made: bytes | None,
    ) -> None:
        self.section = section
        self.index = index
        self.octets = octets
        self.attribute = attribute
        self.made = made


class FromSections:
    """One conversion.

    Attributes:
        basic: the properties so far; its headers are set at the end.
        inexact: what basic does not say exactly.
        footer: the footer, an encoded section; empty without one.
    """

    def __init__(self) -> None:
        self.basic = BasicParts()
        self.inexact: list[Inexact] = []
        self.footer = b""
        self._headers = bytearray()
        self._maker = FieldMaker()
        self._ttl: i64 = -1
        self._expiration: bytes | None = None

    def read(self, raw: bytes) -> Done:
        """Convert well-formed sections."""
        offset: isize = 0
        n: isize = len(raw)
        while offset < n:
            code, begin, after = section(raw, offset, n)
            if code == HEADER:
                self._header(raw, begin, after)
            elif code in _MAPS:
                self._map(raw, begin, after, code)
            elif code == PROPERTIES:
                self._properties(raw, begin, after)
            elif code == FOOTER:
                self.footer = raw[offset:after]
            offset = after
        self._expire()
        return 0

    def header(self, made: bytes) -> Done:
        """Add an entry to the headers."""
        self._headers += made
        return 0

    def retype(self) -> Done:
        """Set the type that says that the body is sections; a type of the publisher stays exact."""
        before: bytes | None = self.basic.type
        if before is not None:
            octets = bytearray()
            put_sized(octets, 0xA3, names.TYPE)
            put_sized(octets, 0xA1, before)
            self._lose(MESSAGE_ANNOTATIONS, bytes(octets), "", None)
        self.basic.type = names.AMQP_1_0
        return 0

    def encode(self) -> C[bytes]:
        """Return the property list."""
        if self.inexact or self.footer:
            sections = _encoded(self.inexact) + self.footer
            self._headers += entry(names.SECTIONS, 0x78, sections)
        if self._headers:
            self.basic.headers = bytes(self._headers)
        return self.basic.encode()

    def _header(self, raw: bytes, begin: isize, after: isize) -> Done:
        offset: isize = compound_begin(raw, begin)
        index: i32 = 0
        while offset < after and index < 3:
            end: isize = skip(raw, offset, after)
            code: i32 = raw[offset]
            if code != 0x40:
                if index == 0:
                    true: bool = code == 0x41 or (code == 0x56 and raw[offset + 1] != 0)
                    self.basic.delivery_mode = 2 if true else 1
                elif index == 1:
                    self.basic.priority = raw[offset + 1]
                else:
                    self._ttl = int.from_bytes(raw[offset + 1 : end])
            offset = end
            index += 1
        return 0

    def _expire(self) -> Done:
        """Set the expiration, now that ttl and annotations are known."""
        if self._expiration is not None:
            number = ttl_of(self._expiration)
            if number == self._ttl:
                self.basic.expiration = self._expiration
                return 0
        if self._ttl >= 0:
            self.basic.expiration = str(self._ttl).encode()
        return 0

    # --- maps -----------------------------------------------------------------------------------

    def _map(self, raw: bytes, begin: isize, after: isize, section_code: i32) -> Done:
        key: isize = compound_begin(raw, begin)
        while key < after:
            value: isize = skip(raw, key, after)
            end: isize = skip(raw, value, after)
            name: bytes | None = text_of(raw, key, value)
            if name is None or len(name) > _SHORT:
                # Such as a ulong: the specification reserves them.
                self._lose(section_code, raw[key:end], "", None)
            elif section_code == APPLICATION_PROPERTIES:
                self._application(raw, key, value, end, name)
            elif name in names.FROM_ANNOTATIONS:
                self._known(raw, key, value, end, name)
            elif name == names.CC_HEADER or name == names.BCC_HEADER:
                # Annotations of these names would route in basic.
                self._lose(section_code, raw[key:end], "", None)
            else:
                exact: bool = name.startswith(b"x-") and name.isascii() and raw[key] & 15 == 3
                self._to_header(
                    raw, key, value, end, name, section_code, exact and name not in names.TO_FIELDS
                )
            key = end
        return 0

    def _application(self, raw: bytes, key: isize, value: isize, end: isize, name: bytes) -> Done:
        code: i32 = raw[value]
        # Application properties have simple values; the way back makes an annotation of another.
        simple: bool = code < 0xC0 and code != 0x45
        if not simple and (name == names.CC_HEADER or name == names.BCC_HEADER):
            self._lose(APPLICATION_PROPERTIES, raw[key:end], "", None)
            return 0
        place: bool = not (name.startswith(b"x-") and name.isascii())
        exact: bool = simple and place and raw[key] & 15 == 1
        self._to_header(raw, key, value, end, name, APPLICATION_PROPERTIES, exact)
        return 0

    def _to_header(
        self,
        raw: bytes,
        key: isize,
        value: isize,
        end: isize,
        name: bytes,
        section_code: i32,
        exact: bool,
    ) -> Done:
        """Make a header of an entry."""
        made = bytearray()
        made.append(len(name))
        made += name
        self._maker.exact = True
        try:
            self._maker.put(made, raw, value, end)
        except LongName:
            self._lose(section_code, raw[key:end], "", None)
            return 0
        self._headers += made
        if not exact or not self._maker.exact or not is_utf8(name):
            self._lose(section_code, raw[key:end], "", bytes(made))
        return 0

    def _lose(self, section_code: i32, octets: bytes, attribute: str, made: bytes | None) -> Done:
        self.inexact.append(Inexact(section_code, 0, octets, attribute, made))
        return 0

    def _known(self, raw: bytes, key: isize, value: isize, end: isize, name: bytes) -> Done:
        """Convert an annotation that is something else in basic."""
        octets: bytes = raw[value:end]
        if name == names.EXCHANGE or name == names.ROUTING_KEY:
            # The broker sets them anew on each delivery.
            return 0
        if name == names.CC and octets[0] in (0x45, 0xC0, 0xD0):
            self._to_header(
                raw, key, value, end, names.CC_HEADER, MESSAGE_ANNOTATIONS, raw[key] & 15 == 3
            )
            return 0
        if name == names.DEATHS:
            history = deaths.to_header(raw, value, end)
            if history is not None:
                made, exact = history
                self._headers += made
                if not exact:
                    self._lose(MESSAGE_ANNOTATIONS, raw[key:end], "", made)
                return 0
        elif name != names.CC and self._attribute(name, octets):
            return 0
        if name in (names.TYPE, names.DELIVERY_MODE, names.CC, names.EXPIRATION):
            self._lose(MESSAGE_ANNOTATIONS, raw[key:end], "", None)
        else:
            self._to_header(raw, key, value, end, name, MESSAGE_ANNOTATIONS, False)
        return 0

    def _attribute(self, name: bytes, octets: bytes) -> C[bool]:
        """Set a property by its annotation; False if its value is no such property."""
        basic: BasicParts = self.basic
        if name == names.DELIVERY_MODE:
            fits: bool = octets[0] == 0x50 and basic.delivery_mode < 0 and octets[1] not in (1, 2)
            if fits:
                basic.delivery_mode = octets[1]
            return fits
        if name == names.HEADERS:
            return self._moved(octets)
        if name == names.BASIC:
            return self._restored(octets)
        if octets[0] not in (0xA1, 0xB1):
            return False
        text: bytes | None = text_of(octets, 0, len(octets))
        if text is None or len(text) > _SHORT or not is_utf8(text):
            return False
        if name == names.TYPE:
            basic.type = text
        elif name == names.CLUSTER_ID:
            basic.cluster_id = text
        else:
            self._expiration = text
        return True

    def _moved(self, octets: bytes) -> C[bool]:
        """Take headers that application properties cannot have; False if it is something else."""
        n: isize = len(octets)
        moved = bytearray()
        if octets[0] & 0xEF != 0xC1:
            return False
        key: isize = compound_begin(octets, 0)
        self._maker.exact = True
        try:
            while key < n:
                value: isize = skip(octets, key, n)
                name: bytes | None = text_of(octets, key, value)
                if name is None or len(name) > _SHORT or octets[key] & 15 != 1:
                    return False
                if not is_utf8(name) or (name.startswith(b"x-") and name.isascii()):
                    return False
                if octets[value] < 0xC0 and octets[value] != 0x45:
                    return False
                copies: bool = name == names.CC_HEADER or name == names.BCC_HEADER
                # Routing keys are those of the annotation for them, which publishing checks.
                if copies and octets[value] & 15 != 1:
                    return False
                moved.append(len(name))
                moved += name
                key = self._maker.put(moved, octets, value, n)
        except LongName:
            return False
        if not self._maker.exact or not moved:
            return False
        self._headers += moved
        return True

    def _restored(self, octets: bytes) -> C[bool]:
        """Take properties that 1.0 does not have; False if the value is no property list."""
        if octets[0] not in (0xA0, 0xB0):
            return False
        raw: bytes = octets[2 if octets[0] == 0xA0 else 5 :]
        try:
            parse_properties(raw)
        except ProtocolError:
            return False
        kept = BasicParts()
        kept.read(raw)
        if kept.headers is not None and routes(kept.headers):
            return False
        basic: BasicParts = self.basic
        for attribute in _TEXTS:
            text = getattr(kept, attribute)
            # One that is there is newer.
            if text is not None and getattr(basic, attribute) is None:
                setattr(basic, attribute, text)
        if kept.headers is not None:
            # First, as of equal names the last one counts.
            self._headers[:0] = kept.headers
        return True

    # --- properties -----------------------------------------------------------------------------

    def _properties(self, raw: bytes, begin: isize, after: isize) -> Done:
        offset: isize = compound_begin(raw, begin)
        index: i32 = 0
        while offset < after:
            end: isize = skip(raw, offset, after)
            if raw[offset] != 0x40:
                self._field(index, raw[offset:end])
            offset = end
            index += 1
        return 0

    def _field(self, index: i32, octets: bytes) -> Done:
        """Convert one field of the properties."""
        code: i32 = octets[0]
        if index == 0 or index == 5:
            self._identifier(index, octets)
            return 0
        if index == 8 or index == 9:
            self._moment(index, octets)
            return 0
        if index == 11:
            number: i64 = _uint(octets, 0, len(octets))
            if number >= 0:
                self._headers += entry_of(names.GROUP_SEQUENCE, b"i" + number.to_bytes(4))
            else:
                self._lose_field(index, octets, "", None)
            return 0
        if index == 1:
            self._user(octets, code)
            return 0
        text: bytes | None = text_of(octets, 0, len(octets))
        symbolic: bool = index == 6 or index == 7
        # Another type, or a text that is no UTF-8, is not what the specification allows.
        if text is None or (code & 15 == 3) != symbolic or not is_utf8(text):
            self._lose_field(index, octets, "", None)
        elif index == 4:
            self._reply_to(octets, text)
        elif symbolic:
            attribute = "content_type" if index == 6 else "content_encoding"
            if len(text) > _SHORT or not text.isascii():
                self._lose_field(index, octets, "", None)
            else:
                setattr(self.basic, attribute, text)
        elif index == 10:
            if len(text) <= _SHORT:
                self.basic.app_id = text
            else:
                self._headers += entry(names.APP_ID, 0x78, text)
        else:
            self._headers += entry(_TEXT_HEADERS[index], 0x53, text)
        return 0

    def _identifier(self, index: i32, octets: bytes) -> Done:
        """Convert a message-id or correlation-id."""
        code: i32 = octets[0]
        attribute = "message_id" if index == 0 else "correlation_id"
        header = names.MESSAGE_ID if index == 0 else names.CORRELATION_ID
        if code == 0xA1 or code == 0xB1 or code == 0xA0 or code == 0xB0:
            text: bytes = octets[2 if code < 0xB0 else 5 :]
            is_text: bool = code & 15 == 1
            if not is_utf8(text):
                # In basic it would be a text that some clients cannot read.
                self._headers += entry(header, 0x78, text)
                if is_text:
                    self._lose_field(index, octets, "", entry(header, 0x78, text))
            elif len(text) > _SHORT:
                # Octets of a correlation-id are what 0-10 has.
                tag: i32 = 0x78 if index or not is_text else 0x53
                self._headers += entry(header, tag, text)
                if index and not is_text:
                    self._lose_field(index, octets, "", entry(header, tag, text))
            else:
                setattr(self.basic, attribute, text)
                if not is_text or uuid_in(text) is not None:
                    self._lose_field(index, octets, attribute, text)
        elif code == 0x98:
            setattr(self.basic, attribute, URN + str(UUID(bytes=octets[1:])).encode())
        elif code in (0x44, 0x53, 0x80):
            digits = str(int.from_bytes(octets[1:])).encode()
            setattr(self.basic, attribute, digits)
            self._lose_field(index, octets, attribute, digits)
        else:
            self._lose_field(index, octets, "", None)
        return 0

    def _moment(self, index: i32, octets: bytes) -> Done:
        """Convert the creation time or the absolute expiry time."""
        number = int.from_bytes(octets[1:], signed=True)
        if octets[0] != 0x83 or number < 0:
            self._lose_field(index, octets, "", None)
            return 0
        seconds: bytes = (number // _MS).to_bytes(8)
        if index == 9:
            self.basic.timestamp = seconds
            if number % _MS:
                self._lose_field(index, octets, "timestamp", seconds)
        else:
            made: bytes = entry_of(names.EXPIRES_AT, b"T" + seconds)
            self._headers += made
            if number % _MS:
                self._lose_field(index, octets, "", made)
        return 0

    def _user(self, octets: bytes, code: i32) -> Done:
        if code != 0xA0 and code != 0xB0:
            self._lose_field(1, octets, "", None)
            return 0
        user: bytes = octets[2 if code == 0xA0 else 5 :]
        if len(user) <= _SHORT:
            self.basic.user_id = user
        else:
            self._headers += entry(names.USER_ID, 0x78, user)
        return 0

    def _reply_to(self, octets: bytes, address: bytes) -> Done:
        """Convert the address of replies to a queue, or to a routing key and its exchange."""
        if address.startswith(_QUEUES):
            queue: bytes = unquote_to_bytes(address[len(_QUEUES) :])
            if len(queue) <= _SHORT and is_utf8(queue):
                self.basic.reply_to = queue
                if _QUEUES + quoted(queue) != address:
                    self._lose_field(4, octets, "reply_to", queue)
                return 0
        elif address.startswith(_EXCHANGES):
            quoted_exchange, _, quoted_key = address[len(_EXCHANGES) :].partition(b"/")
            exchange: bytes = unquote_to_bytes(quoted_exchange)
            key: bytes = unquote_to_bytes(quoted_key)
            fits: bool = 0 < len(exchange) <= _SHORT and len(key) <= _SHORT
            if fits and is_utf8(exchange) and is_utf8(key):
                self._headers += entry(names.REPLY_EXCHANGE, 0x53, exchange)
                self.basic.reply_to = key
                if exchange_address(exchange, key) != address:
                    self._lose_field(4, octets, "reply_to", key)
                return 0
        if len(address) <= _SHORT:
            self.basic.reply_to = address
            self._lose_field(4, octets, "reply_to", address)
        else:
            self._lose_field(4, octets, "", None)
        return 0

    def _lose_field(self, index: i32, octets: bytes, attribute: str, made: bytes | None) -> Done:
        self.inexact.append(Inexact(PROPERTIES, index, octets, attribute, made))
        return 0


_TEXTS = (
    *("content_type", "content_encoding", "correlation_id", "reply_to", "expiration"),
    *("message_id", "timestamp", "type", "user_id", "app_id", "cluster_id"),
)
_TEXT_HEADERS = {2: names.TO, 3: names.SUBJECT, 12: names.REPLY_TO_GROUP_ID}


def routes(headers: bytes) -> bool:
    """True if a header table has routing keys."""
    sized = len(headers).to_bytes(4) + headers
    return any(
        name in (names.CC_HEADER, names.BCC_HEADER) and sized[begin + 1 + len(name)] == _ARRAY
        for name, begin, _ in entries(sized, 0)
    )


def ttl_of(expiration: bytes) -> C[int]:
    """Return the ttl for an expiration: at most what a uint holds; -1 if it is no number."""
    ttl = ttl_in(expiration.decode("latin-1"), _UINT_MAX)
    return -1 if ttl is None else ttl


def uuid_in(text: bytes) -> UUID | None:
    """Return the UUID in a text of the form that the conversion of a UUID makes; None in others."""
    if len(text) != 45 or not text.startswith(URN):
        return None
    try:
        uuid = UUID(text[len(URN) :].decode("ascii"))
    except ValueError:
        return None
    return uuid if str(uuid).encode() == text[len(URN) :] else None


def quoted(name: bytes) -> bytes:
    """Return a name as it stands in an address."""
    # Most names need no quotes, which `quote` takes microseconds to find out.
    return quote(name, safe="").encode() if name.translate(None, _UNRESERVED) else name


def exchange_address(exchange: bytes, key: bytes) -> bytes:
    """Return the address of an exchange and a routing key."""
    address = _EXCHANGES + quoted(exchange)
    return address + b"/" + quoted(key) if key else address


def queue_address(queue: bytes) -> bytes:
    """Return the address of a queue."""
    return _QUEUES + quoted(queue)


def _uint(data: bytes, offset: isize, after: isize) -> C[int]:
    """Return the value of a uint; -1 for another type."""
    code: i32 = data[offset]
    if code == 0x43:
        return 0
    if code == 0x52 or code == 0x70:
        return int.from_bytes(data[offset + 1 : after])
    return -1


def entry(name: bytes, tag: int, octets: bytes) -> bytes:
    """Return an entry of a header table with a text or octets."""
    return entry_of(name, bytes((tag,)) + len(octets).to_bytes(4) + octets)


def entry_of(name: bytes, value: bytes) -> bytes:
    """Return an entry of a header table."""
    return bytes((len(name),)) + name + value


def _encoded(inexact: list[Inexact]) -> bytes:
    """Return sections with these values."""
    parts = SectionParts()
    for each in inexact:
        if each.section == PROPERTIES:
            parts.fields[each.index] = each.octets
        elif each.section == MESSAGE_ANNOTATIONS:
            parts.annotations += each.octets
            parts.annotation_count += 2
        else:
            parts.application += each.octets
            parts.application_count += 2
    return parts.encode()
