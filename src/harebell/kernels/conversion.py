"""Convert property lists of class basic and sections of AMQP 1.0, the plain ones.

`harebell.wire.convert` converts all of them. This kernel gives the same octets for most messages,
and nothing for the others: whatever is not exactly the same on both sides, or takes more than a
look at its octets. Plain is

    texts and names in ASCII, identifiers that are no UUID, a reply-to that needs no quotes
    headers of the types t b B s u I i l f d S x T V, none of a special name
    of 1.0, descriptors and values in the encodings that this broker writes

The input is well-formed. `conversion.pyx` beside this file is the same, compiled.
"""

from __future__ import annotations

from harebell.base.message import Properties
from harebell.kernels.limits import PLAIN_LIST_BYTES

_FAMILY = 100
_NAMES = 24
_SHORT = 255
_MS = 1000
_LATEST = (2**63 - 1) // _MS
_UINT_MAX = 2**32 - 1
_HEADER, _ANNOTATIONS, _FIELDS, _APPLICATION = 0x70, 0x72, 0x73, 0x74
_UNRESERVED = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
_RESERVED = (
    *(b"x-amqp-", b"x-basic-", b"x-cc", b"x-death"),
    *(b"x-opt-deaths", b"x-exchange", b"x-routing-key"),
)
"""Beginnings of names that may be something else on the other side."""
_ROUTING = (b"CC", b"BCC")
_URN = b"urn:uuid:"
_QUEUES = b"/queues/"
_AMQP_1_0 = b"amqp-1.0"
_SECTIONS = b"x-amqp-sections"
_TYPE = b"x-basic-type"
_CLUSTER_ID = b"x-amqp-cluster-id"

_TAGS = {
    0x40: b"V",
    0x50: b"B",
    0x51: b"b",
    0x60: b"u",
    0x61: b"s",
    0x70: b"i",
    0x71: b"I",
    0x72: b"f",
    0x81: b"l",
    0x82: b"d",
}
"""Codes of values with the same octets in tables."""
_CODES = {tag[0]: code for code, tag in _TAGS.items() if tag in b"Bbusfd"}
_WIDTHS = {ord("B"): 1, ord("b"): 1, ord("u"): 2, ord("s"): 2, ord("f"): 4, ord("d"): 8}


class _NotPlainError(Exception):
    """The list or the sections need the general conversion."""


# --- to basic -----------------------------------------------------------------------------------


def listed(raw: bytes) -> bytes | None:
    """Convert sections of 1.0 to a property list; None if they are not plain."""
    if len(raw) > PLAIN_LIST_BYTES:
        return None
    try:
        return _listed(raw)
    except _NotPlainError:
        return None


def _listed(raw: bytes) -> bytes:
    header: list[bytes] = []
    fields: list[bytes] = []
    headers = b""
    more: dict[bytes, bytes] = {}
    at = 0
    while at < len(raw):
        if raw[at + 1] != 0x53:
            raise _NotPlainError
        section, at = raw[at + 2], at + 3
        values = _values(raw, at)
        at = _after(raw, at)
        if section == _HEADER:
            header = values
        elif section == _FIELDS:
            fields = values
            headers += _described(values)
        else:
            headers += _headers(values, section, more)
    headers += _exact(fields)
    texts = [_field(index, value) for index, value in enumerate(fields)]
    texts += [None] * (13 - len(texts))
    durable, priority, ttl = [*header[:3], *[b"\x40"] * 3][:3]
    parts = {
        15: _short(texts[6]),
        14: _short(texts[7]),
        13: len(headers).to_bytes(4) + headers if headers else None,
        12: None if durable == b"\x40" else b"\2" if durable in (b"\x41", b"\x56\1") else b"\1",
        11: None if priority == b"\x40" else priority[1:],
        10: _short(texts[5]),
        9: _short(texts[4]),
        8: None if ttl == b"\x40" else _short(str(int.from_bytes(ttl[1:])).encode()),
        7: _short(texts[0]),
        6: texts[9],
        5: _short(more.get(_TYPE)),
        4: _short(texts[1]),
        3: _short(texts[10]),
        2: _short(more.get(_CLUSTER_ID)),
    }
    there = {bit: part for bit, part in parts.items() if part is not None}
    return sum(1 << bit for bit in there).to_bytes(2) + b"".join(there.values())


def _short(text: bytes | None) -> bytes | None:
    return None if text is None else bytes((len(text),)) + text


def _after(raw: bytes, at: int) -> int:
    """Return where a value ends that is no described one."""
    kind = raw[at] >> 4
    if kind == 0:
        raise _NotPlainError
    if kind == 4:
        return at + 1
    if kind < 10:
        return at + 1 + (1 << kind - 5)
    return at + 5 + int.from_bytes(raw[at + 1 : at + 5]) if kind & 1 else at + 2 + raw[at + 1]


def _values(raw: bytes, at: int) -> list[bytes]:
    """Return the encoded values of a list or map."""
    if raw[at] == 0x45:
        return []
    end = _after(raw, at)
    at += 9 if raw[at] & 0x10 else 3
    values = []
    while at < end:
        after = _after(raw, at)
        values.append(raw[at:after])
        at = after
    return values


def _text(value: bytes, code: int) -> bytes:
    """Return the octets of a value of that code, with a length of one octet or four."""
    if value[0] & 0xEF != code:
        raise _NotPlainError
    return value[2 if value[0] == code else 5 :]


def _field(index: int, value: bytes) -> bytes | None:
    """Return a field of the properties as it stands in a property list."""
    if value[0] == 0x40:
        return None
    if index == 9:
        return _seconds(value)
    if index == 8:
        return None  # a header
    if index == 11:
        raise _NotPlainError
    text = _text(value, 0xA0 if index == 1 else 0xA3 if index in (6, 7) else 0xA1)
    if len(text) > _SHORT or (index in (0, 5) and text.startswith(_URN)):
        raise _NotPlainError
    if index == 4:
        if not text.startswith(_QUEUES) or text[len(_QUEUES) :].translate(None, _UNRESERVED):
            raise _NotPlainError
        return text[len(_QUEUES) :]
    return text


def _seconds(value: bytes) -> bytes:
    """Return a timestamp in whole seconds."""
    moment = int.from_bytes(value[1:], signed=True)
    if moment < 0:
        raise _NotPlainError
    return (moment // _MS).to_bytes(8)


def _described(fields: list[bytes]) -> bytes:
    """Return the headers for fields that basic does not have."""
    out = b""
    for index, name in (
        (2, b"x-amqp-to"),
        (3, b"x-amqp-subject"),
        (8, b"x-amqp-expires-at"),
        (12, b"x-amqp-reply-to-group-id"),
    ):
        value = fields[index] if index < len(fields) else b"\x40"
        text = _field(index, value)
        if index == 8 and value != b"\x40":
            out += bytes((len(name),)) + name + b"T" + _seconds(value)
        elif text is not None:
            out += bytes((len(name),)) + name + b"S" + len(text).to_bytes(4) + text
    return out


def _exact(fields: list[bytes]) -> bytes:
    """Return the header with the times that are no whole seconds; nothing without one."""
    values = [
        value if index in (8, 9) and value != b"\x40" and _in_parts(value) else b"\x40"
        for index, value in enumerate(fields[:10])
    ]
    while values and values[-1] == b"\x40":
        values.pop()
    if not values:
        return b""
    data = _compound(_FIELDS, 0xC0, values)
    return bytes((len(_SECTIONS),)) + _SECTIONS + b"x" + len(data).to_bytes(4) + data


def _in_parts(value: bytes) -> bool:
    return int.from_bytes(value[1:]) % _MS != 0


def _headers(values: list[bytes], section: int, more: dict[bytes, bytes]) -> bytes:
    """Return the headers for annotations or application properties; take properties out of them."""
    out = b""
    for key, value in zip(values[::2], values[1::2], strict=True):
        name = _text(key, 0xA3 if section == _ANNOTATIONS else 0xA1)
        if not 0 < len(name) <= _SHORT or name in _ROUTING:
            raise _NotPlainError
        if name.startswith(b"x-") != (section == _ANNOTATIONS):
            raise _NotPlainError
        if name in (_TYPE, _CLUSTER_ID):
            more[name] = _text(value, 0xA1)
            if len(more[name]) > _SHORT:
                raise _NotPlainError
        elif name.startswith(_RESERVED):
            raise _NotPlainError
        else:
            out += bytes((len(name),)) + name + _to_table(value)
    return out


def _to_table(value: bytes) -> bytes:
    """Return a value with its tag."""
    code, data = value[0], value[1:]
    if code in (0xA0, 0xA1, 0xB0, 0xB1):
        text = data[1 if code < 0xB0 else 4 :]
        return (b"S" if code & 1 else b"x") + len(text).to_bytes(4) + text
    if code in (0x41, 0x42):
        return b"t\1" if code == 0x41 else b"t\0"
    if code in (0x54, 0x55):
        width = 4 if code == 0x54 else 8
        number = int.from_bytes(data, signed=True)
        return (b"I" if code == 0x54 else b"l") + number.to_bytes(width, signed=True)
    if code in (0x43, 0x52):
        return b"i" + int.from_bytes(data).to_bytes(4)
    if code == 0x83:
        moment = int.from_bytes(data, signed=True)
        if moment < 0 or moment % _MS:
            raise _NotPlainError
        return b"T" + (moment // _MS).to_bytes(8)
    if code not in _TAGS:
        raise _NotPlainError
    return _TAGS[code] + data


# --- to 1.0 -------------------------------------------------------------------------------------


def sectioned(raw: bytes) -> Properties | None:
    """Convert a property list to sections of 1.0; None if it is not plain."""
    if len(raw) > PLAIN_LIST_BYTES:
        return None
    try:
        return _sectioned(raw)
    except _NotPlainError:
        return None


def _sectioned(raw: bytes) -> Properties:
    flags = int.from_bytes(raw[:2])
    texts: dict[int, bytes] = {}
    table = b""
    mode = priority = -1
    moment: int | None = None
    at = 2
    for bit in range(15, 1, -1):
        if not flags & 1 << bit:
            continue
        if bit == 13:
            size = int.from_bytes(raw[at : at + 4])
            table, at = raw[at + 4 : at + 4 + size], at + 4 + size
        elif bit == 12:
            mode, at = raw[at], at + 1
        elif bit == 11:
            priority, at = raw[at], at + 1
        elif bit == 6:
            moment, at = int.from_bytes(raw[at : at + 8]), at + 8
        else:
            texts[bit], at = raw[at + 1 : at + 1 + raw[at]], at + 1 + raw[at]
    plain = all(text.isascii() for bit, text in texts.items() if bit != 4)
    if not plain or mode not in (-1, 1, 2) or (moment or 0) > _LATEST:
        raise _NotPlainError
    annotations, application = _maps(table)
    if texts.get(5) == _AMQP_1_0:
        raise _NotPlainError
    for bit, name in ((5, _TYPE), (2, _CLUSTER_ID)):
        if bit in texts:
            annotations += [_sized(0xA3, name), _sized(0xA1, texts[bit])]
    out = _header(mode, priority, texts.get(8))
    if annotations:
        out += _compound(_ANNOTATIONS, 0xC1, annotations)
    fields = _fields(texts, moment)
    if fields:
        out += _compound(_FIELDS, 0xC0, fields)
    if application:
        out += _compound(_APPLICATION, 0xC1, application)
    has_headers = bool(annotations or application)
    return Properties(out, max(mode, 0), priority, has_headers, family=_FAMILY)


def _maps(table: bytes) -> tuple[list[bytes], list[bytes]]:
    """Return the keys and values of annotations and application properties for headers."""
    annotations: list[bytes] = []
    application: list[bytes] = []
    names: set[bytes] = set()
    at = 0
    while at < len(table):
        begin, at = at + 1, at + 1 + table[at]
        name = table[begin:at]
        # A map has each key once.
        if not name or not name.isascii() or name in names or len(names) == _NAMES:
            raise _NotPlainError
        if name.startswith(_RESERVED) or name in _ROUTING:
            raise _NotPlainError
        names.add(name)
        value, at = _to_value(table, at)
        if name.startswith(b"x-"):
            annotations += [_sized(0xA3, name), value]
        else:
            application += [_sized(0xA1, name), value]
    return annotations, application


def _to_value(table: bytes, at: int) -> tuple[bytes, int]:
    """Return the value at a tag, and where it ends."""
    tag, at = table[at], at + 1
    if tag in b"Sx":
        size, at = int.from_bytes(table[at : at + 4]), at + 4
        text = table[at : at + size]
        if tag == ord("S") and not text.isascii():
            raise _NotPlainError
        return _sized(0xA1 if tag == ord("S") else 0xA0, text), at + size
    if tag == ord("t"):
        return b"\x41" if table[at] else b"\x42", at + 1
    if tag in b"IlL":
        width, short, code = (4, 0x54, 0x71) if tag == ord("I") else (8, 0x55, 0x81)
        data = table[at : at + width]
        small = -128 <= int.from_bytes(data, signed=True) <= 127
        return bytes((short, data[-1])) if small else bytes((code,)) + data, at + width
    if tag == ord("i"):
        return _uint(int.from_bytes(table[at : at + 4])), at + 4
    if tag == ord("T"):
        moment = int.from_bytes(table[at : at + 8])
        if moment > _LATEST:
            raise _NotPlainError
        return b"\x83" + (moment * _MS).to_bytes(8), at + 8
    if tag == ord("V"):
        return b"\x40", at
    if tag not in _WIDTHS:
        raise _NotPlainError
    return bytes((_CODES[tag],)) + table[at : at + _WIDTHS[tag]], at + _WIDTHS[tag]


def _sized(code: int, data: bytes) -> bytes:
    if len(data) <= _SHORT:
        return bytes((code, len(data))) + data
    return bytes((code | 0x10,)) + len(data).to_bytes(4) + data


def _uint(number: int) -> bytes:
    if number == 0:
        return b"\x43"
    return bytes((0x52, number)) if number <= _SHORT else b"\x70" + number.to_bytes(4)


def _compound(section: int, code: int, values: list[bytes]) -> bytes:
    """Return a section with a list or a map."""
    content, count = b"".join(values), len(values)
    head = bytes((0, 0x53, section))
    if len(content) < _SHORT and count <= _SHORT:
        return head + bytes((code, len(content) + 1, count)) + content
    return (
        head + bytes((code | 0x10,)) + (len(content) + 4).to_bytes(4) + count.to_bytes(4) + content
    )


def _header(mode: int, priority: int, expiration: bytes | None) -> bytes:
    """Return the section header; nothing if it would say nothing."""
    values = [b"\x40" if mode < 0 else b"\x41" if mode == 2 else b"\x42"]
    if priority >= 0 or expiration is not None:
        values.append(b"\x40" if priority < 0 else bytes((0x50, priority)))
    if expiration is not None:
        if not expiration.isdigit() or int(expiration) > _UINT_MAX:
            raise _NotPlainError
        if str(int(expiration)).encode() != expiration:
            raise _NotPlainError
        values.append(_uint(int(expiration)))
    return _compound(_HEADER, 0xC0, values) if mode >= 0 or len(values) > 1 else b""


def _fields(texts: dict[int, bytes], moment: int | None) -> list[bytes]:
    """Return the fields of the properties."""
    if texts.get(7, b"").startswith(_URN) or texts.get(10, b"").startswith(_URN):
        raise _NotPlainError
    if texts.get(9, b"").translate(None, _UNRESERVED):
        raise _NotPlainError
    fields = [b"\x40"] * 11
    for index, bit, code in (
        (0, 7, 0xA1),
        (1, 4, 0xA0),
        (5, 10, 0xA1),
        (6, 15, 0xA3),
        (7, 14, 0xA3),
        (10, 3, 0xA1),
    ):
        if bit in texts:
            fields[index] = _sized(code, texts[bit])
    if 9 in texts:
        fields[4] = _sized(0xA1, _QUEUES + texts[9])
    if moment is not None:
        fields[9] = b"\x83" + (moment * _MS).to_bytes(8)
    while fields and fields[-1] == b"\x40":
        fields.pop()
    return fields
