"""Find the sections of a message of AMQP 1.0, check them, and read what the broker needs of them.

    00 53 70 list    header                     00 53 75 binary   data, one or several; or
    00 53 71 map     delivery annotations       00 53 76 list     sequence, one or several; or
    00 53 72 map     message annotations        00 53 77 value    value
    00 53 73 list    properties                 00 53 78 map      footer
    00 53 74 map     application properties

They come in this order, and only the body must be there (AMQP 1.0 3.2). The descriptor may have
other forms: a ulong of eight octets, or a symbol. `sections.pyx` beside this file is the same,
compiled.
"""

from __future__ import annotations

from harebell.base.errors import DecodeError
from harebell.base.message import Properties
from harebell.kernels.limits import (
    COMPOUND_BYTES,
    MESSAGE_SECTIONS,
    NESTING,
    VOID_ARRAY_ELEMENTS,
)

HEADER = 0x70
DELIVERY_ANNOTATIONS = 0x71
MESSAGE_ANNOTATIONS = 0x72
PROPERTIES = 0x73
APPLICATION_PROPERTIES = 0x74
DATA = 0x75
SEQUENCE = 0x76
VALUE = 0x77
FOOTER = 0x78

FAMILY_1_0 = 100
FAMILY_1_0_SECTIONS = 101

_NAMES = {
    HEADER: "header",
    DELIVERY_ANNOTATIONS: "delivery-annotations",
    MESSAGE_ANNOTATIONS: "message-annotations",
    PROPERTIES: "properties",
    APPLICATION_PROPERTIES: "application-properties",
    DATA: "data",
    SEQUENCE: "amqp-sequence",
    VALUE: "amqp-value",
    FOOTER: "footer",
}
_SYMBOLS = {
    b"amqp:header:list": HEADER,
    b"amqp:delivery-annotations:map": DELIVERY_ANNOTATIONS,
    b"amqp:message-annotations:map": MESSAGE_ANNOTATIONS,
    b"amqp:properties:list": PROPERTIES,
    b"amqp:application-properties:map": APPLICATION_PROPERTIES,
    b"amqp:data:binary": DATA,
    b"amqp:amqp-sequence:list": SEQUENCE,
    b"amqp:amqp-value:*": VALUE,
    b"amqp:footer:map": FOOTER,
}
_LISTS = b"\x45\xc0\xd0"
_MAPS = b"\xc1\xd1"
_BINARIES = b"\xa0\xb0"
_CONSTRUCTORS = {
    HEADER: _LISTS,
    DELIVERY_ANNOTATIONS: _MAPS,
    MESSAGE_ANNOTATIONS: _MAPS,
    PROPERTIES: _LISTS,
    APPLICATION_PROPERTIES: _MAPS,
    DATA: _BINARIES,
    SEQUENCE: _LISTS,
    FOOTER: _MAPS,
}
"""The first octet of the value of a section; a value section has any."""
_WIDTHS = {0x40: 0, 0x50: 1, 0x60: 2, 0x70: 4, 0x80: 8, 0x90: 16}
_PREFIXES = {0xA0: 1, 0xB0: 4, 0xC0: 1, 0xD0: 4, 0xE0: 1, 0xF0: 4}
_CODES = frozenset(
    b"\x40\x41\x42\x43\x44\x45\x50\x51\x52\x53\x54\x55\x56\x60\x61\x70\x71\x72\x73\x74"
    b"\x80\x81\x82\x83\x84\x94\x98\xa0\xa1\xa3\xb0\xb1\xb3\xc0\xc1\xd0\xd1\xe0\xf0"
)
_NULL = 0x40
_TEXTS = b"\xa1\xb1"
_SYMBOL_CODES = b"\xa3\xb3"
_BOOLEANS = b"\x41\x42\x56"
_UINTS = b"\x43\x52\x70"
_ULONGS = b"\x44\x53\x80"
_IDS = _ULONGS + b"\x98" + _BINARIES + _TEXTS
_HEADER_FIELDS = (
    ("durable", _BOOLEANS),
    ("priority", b"\x50"),
    ("ttl", _UINTS),
    ("first-acquirer", _BOOLEANS),
    ("delivery-count", _UINTS),
)
_PROPERTIES_FIELDS = (
    ("message-id", _IDS),
    ("user-id", _BINARIES),
    ("to", _TEXTS),
    ("subject", _TEXTS),
    ("reply-to", _TEXTS),
    ("correlation-id", _IDS),
    ("content-type", _SYMBOL_CODES),
    ("content-encoding", _SYMBOL_CODES),
    ("absolute-expiry-time", b"\x83"),
    ("creation-time", b"\x83"),
    ("group-id", _TEXTS),
    ("group-sequence", _UINTS),
    ("reply-to-group-id", _TEXTS),
)
_SUSPECT_FIELDS = ("ttl", "user-id", "absolute-expiry-time")
_SUSPECT_KEYS = (b"x-cc", b"x-bcc", b"x-opt-delivery-", b"x-qpid-")
"""Beginnings of the message annotations that decide where a message goes, and when."""


# --- values -------------------------------------------------------------------------------------


def skip(data: bytes, start: int, end: int) -> int:
    """Return where a value ends, without a look into it.

    Args:
        data: octets with the value in them.
        start: where its constructor begins.
        end: where the octets end that may belong to it.

    Raises:
        DecodeError: it does not end before `end`, or the width of its code is unknown.
    """
    offset = start
    left = 1
    while left:
        if offset >= end:
            raise DecodeError("a value without a constructor")
        code = data[offset]
        offset += 1
        if code:
            offset = _end(data, code, offset, end)
            left -= 1
            continue
        # A descriptor is a value before the value.
        left += 1
        if left > NESTING:
            raise DecodeError(f"values are nested deeper than {NESTING}")
    return offset


def _end(data: bytes, code: int, offset: int, end: int) -> int:
    """Return where the octets of a value end that begin at `offset`, after its code."""
    width = _WIDTHS.get(code & 0xF0)
    if width is None:
        prefix = _PREFIXES.get(code & 0xF0)
        if prefix is None:
            raise DecodeError(f"unknown format code {code:#04x}")
        if offset + prefix > end:
            raise DecodeError("a length that is cut off")
        width = prefix + int.from_bytes(data[offset : offset + prefix])
    if offset + width > end:
        raise DecodeError(f"a value of {width} octets, of which {end - offset} are there")
    return offset + width


def check(data: bytes, start: int, end: int, depth: int = 0) -> int:
    """Return where a value ends that can be decoded, but for equal keys in a map.

    Raises:
        DecodeError: it cannot be decoded.
    """
    if start >= end:
        raise DecodeError("a value without a constructor")
    code = data[start]
    if code == 0:
        _check_depth(depth)
        return check(data, check(data, start + 1, end, depth + 1), end, depth + 1)
    return _check_of(data, code, start + 1, end, depth)


def _check_of(data: bytes, code: int, start: int, end: int, depth: int) -> int:
    """Check a value whose constructor, a format code, was read before."""
    if code not in _CODES:
        raise DecodeError(f"unknown format code {code:#04x}")
    after = _end(data, code, start, end)
    kind = code & 0xF0
    if kind >= 0xC0:
        _check_compound(data, code, start, after, depth)
    elif code in _TEXTS:
        _check_text(data[start + _PREFIXES[kind] : after])
    elif code in _SYMBOL_CODES:
        if not data[start + _PREFIXES[kind] : after].isascii():
            raise DecodeError("a symbol that is not ASCII")
    elif code == 0x56 and data[start] > 1:
        raise DecodeError(f"a boolean {data[start]:#04x}")
    elif code == 0x73:
        number = int.from_bytes(data[start:after])
        if number > 0x10FFFF or 0xD800 <= number < 0xE000:
            raise DecodeError(f"a char {number:#x}, which is no Unicode character")
    return after


def _check_depth(depth: int) -> None:
    if depth >= NESTING:
        raise DecodeError(f"values are nested deeper than {NESTING}")


def _check_text(data: bytes) -> None:
    try:
        data.decode()
    except UnicodeDecodeError:
        raise DecodeError("a string that is not UTF-8") from None


def compound(data: bytes, code: int, start: int, end: int) -> tuple[int, int]:
    """Return the count of a list, map or array, and where what follows the count begins.

    Args:
        data: octets with it in them.
        code: its format code.
        start: where its size begins.
        end: where it ends.

    Raises:
        DecodeError: they do not fit.
    """
    prefix = _PREFIXES[code & 0xF0]
    at = start + 2 * prefix
    if at > end:
        raise DecodeError("a list, map or array whose size leaves no room for its count")
    if end - start - prefix > COMPOUND_BYTES:
        size = end - start - prefix
        raise DecodeError(f"a list, map or array of {size} octets, at most {COMPOUND_BYTES} may be")
    return int.from_bytes(data[start + prefix : at]), at


def _check_compound(data: bytes, code: int, start: int, end: int, depth: int) -> None:
    _check_depth(depth)
    count, at = compound(data, code, start, end)
    if code & 0xF0 >= 0xE0:
        _check_array(data, count, at, end, depth)
        return
    what = "map" if code & 0x0F else "list"
    if count > end - at:
        raise DecodeError(f"a {what} of {count} values in {end - at} octets")
    if what == "map" and count & 1:
        raise DecodeError(f"a map of {count} values, which are no pairs")
    for number in range(count):
        if what == "map" and not number & 1:
            _check_key(data, at, end)
        at = check(data, at, end, depth + 1)
    if at != end:
        raise DecodeError(f"{end - at} octets after the last value of a {what}")


def _check_key(data: bytes, at: int, end: int) -> None:
    """Refuse a key that has no hash in Python."""
    while at < end and data[at] == 0:
        at = skip(data, at + 1, end)
    if at < end and (data[at] >= 0xC0 or data[at] == 0x45):
        raise DecodeError("a map with a list, map or array as a key")


def _check_array(data: bytes, count: int, at: int, end: int, depth: int) -> None:
    descriptors = 0
    while at < end and data[at] == 0:
        _check_depth(depth + descriptors)
        at = check(data, at + 1, end, depth + descriptors + 1)
        descriptors += 1
    if at >= end:
        raise DecodeError("an array without a constructor of its elements")
    element = data[at]
    at += 1
    if element not in _CODES:
        raise DecodeError(f"unknown format code {element:#04x}")
    width = _WIDTHS.get(element & 0xF0, 1)
    if width == 0 and count > VOID_ARRAY_ELEMENTS:
        raise DecodeError(
            f"an array of {count} values without octets, at most {VOID_ARRAY_ELEMENTS} may be"
        )
    if count * width > end - at:
        raise DecodeError(f"an array of {count} values in {end - at} octets")
    for _ in range(count):
        at = _check_of(data, element, at, end, depth + 1)
    if at != end:
        raise DecodeError(f"{end - at} octets after the last value of an array")


# --- sections -----------------------------------------------------------------------------------


def section(data: bytes, start: int, end: int) -> tuple[int, int, int]:
    """Return the code of a section, where its value begins, and where it ends.

    Raises:
        DecodeError: what begins at `start` is no section.
    """
    if start >= end or data[start] != 0:
        raise DecodeError("message: what is no section")
    at = skip(data, start + 1, end)
    code = _code(data[start + 1 : at])
    if code not in _NAMES:
        raise DecodeError("message: a section that is not known")
    if at < end and data[at] not in _CONSTRUCTORS.get(code, data[at : at + 1]):
        raise DecodeError(f"{_NAMES[code]}: a value of format code {data[at]:#04x}")
    try:
        return code, at, skip(data, at, end)
    except DecodeError as error:
        raise DecodeError(f"{_NAMES[code]}: {error.text}") from None


def _code(descriptor: bytes) -> int:
    """Return the code that an encoded descriptor names; -1 for one of another type."""
    if descriptor[0] in (0x53, 0x80):
        return int.from_bytes(descriptor[1:])
    if descriptor[0] in _SYMBOL_CODES:
        return _SYMBOLS.get(descriptor[1 + _PREFIXES[descriptor[0] & 0xF0] :], -1)
    return -1


def split(payload: bytes) -> tuple[bytes, bytes, int]:
    """Return what a message keeps of the octets of its transfers.

    Args:
        payload: the sections.

    Returns:
        The sections before the body without delivery annotations; the body; its family.

    Raises:
        DecodeError: the order or the borders of the sections are wrong, or there is no body.
    """
    end = len(payload)
    at = 0
    last = 0
    count = 0
    dropped = (0, 0)
    body = -1
    whole = (0, 0)
    while at < end:
        code, value, after = section(payload, at, end)
        # Data and sequence may be repeated, and nothing else; a body is of one kind.
        repeated = code == last and code in (DATA, SEQUENCE)
        mixed = DATA <= last <= VALUE and DATA <= code <= VALUE
        if not repeated and (code <= last or mixed):
            raise DecodeError(f"message: {_NAMES[code]} after {_NAMES[last]}")
        if code == DELIVERY_ANNOTATIONS:
            dropped = (at, after)
        if DATA <= code <= VALUE and body < 0:
            body = at
            whole = (value, after)
        count += 1
        if count > MESSAGE_SECTIONS:
            raise DecodeError(f"message: more than {MESSAGE_SECTIONS} sections")
        last = code
        at = after
    if body < 0:
        raise DecodeError("message: there is no body")
    raw = payload[: dropped[0]] + payload[dropped[1] : body]
    value, after = whole
    if after == end and payload[body : body + 3] == b"\x00\x53\x75":
        prefix = _PREFIXES[payload[value] & 0xF0]
        size = after - value - 1 - prefix
        # Encoding it again gives the same octets only if its length is of the shortest form.
        if (prefix == 1) == (size <= 255):
            return raw, payload[after - size :], FAMILY_1_0
    return raw, payload[body:], FAMILY_1_0_SECTIONS


def parse_properties(raw: bytes, family: int = FAMILY_1_0) -> Properties:
    """Check the sections before the body, and return them with what the broker needs of them.

    The delivery mode is 2 if the header says durable, 1 if it does not, and 0 without a header. The
    message annotations count as headers, as the application properties do. What makes a message
    suspect: a time to live, an absolute expiry time, a user-id, an annotation that decides where it
    goes or when, and one whose key is no symbol beginning with "x-".

    Args:
        raw: as `split` returns it; a footer may be behind it, and is only checked.
        family: what the properties are marked with.

    Raises:
        DecodeError: a section cannot be decoded; the text names it and the field.
    """
    mode, priority, headers, suspect = 0, -1, False, False
    at = 0
    while at < len(raw):
        code, value, after = section(raw, at, len(raw))
        if DATA <= code <= VALUE:
            raise DecodeError(f"message: {_NAMES[code]} before the body")
        try:
            if code in (HEADER, PROPERTIES):
                fields = _HEADER_FIELDS if code == HEADER else _PROPERTIES_FIELDS
                there = _fields(raw, value, after, fields)
                suspect = suspect or any(name in there for name in _SUSPECT_FIELDS)
                if code == HEADER:
                    mode = 2 if _is_true(raw, there.get("durable", -1)) else 1
                    priority = raw[there["priority"] + 1] if "priority" in there else -1
            else:
                count = _pairs(raw, code, value, after)
                headers = headers or (count > 0 and code != FOOTER)
                if code == MESSAGE_ANNOTATIONS:
                    suspect = suspect or _acts(raw, value, after)
        except DecodeError as error:
            raise DecodeError(f"{_NAMES[code]}: {error.text}") from None
        at = after
    return Properties(raw, mode, priority, headers, suspect, family=family)


def _fields(
    raw: bytes, start: int, end: int, fields: tuple[tuple[str, bytes], ...]
) -> dict[str, int]:
    """Check the list of a section; return where the values of its fields begin, if not null."""
    if raw[start] == 0x45:
        return {}
    count, at = compound(raw, raw[start], start + 1, end)
    if count > len(fields):
        raise DecodeError(f"{count} fields, at most {len(fields)} may be")
    there = {}
    for name, codes in fields[:count]:
        if at >= end:
            raise DecodeError(f"{name}: a value without a constructor")
        if raw[at] != _NULL:
            if raw[at] not in codes:
                raise DecodeError(f"{name}: a value of format code {raw[at]:#04x}")
            there[name] = at
        try:
            at = check(raw, at, end)
        except DecodeError as error:
            raise DecodeError(f"{name}: {error.text}") from None
    if at != end:
        raise DecodeError(f"{end - at} octets after the last value of a list")
    return there


def _is_true(raw: bytes, at: int) -> bool:
    return at >= 0 and (raw[at] == 0x41 or (raw[at] == 0x56 and raw[at + 1] == 1))


def _pairs(raw: bytes, code: int, start: int, end: int) -> int:
    """Check the map of a section; return how many values it has."""
    check(raw, start, end)
    count, at = compound(raw, raw[start], start + 1, end)
    if code != APPLICATION_PROPERTIES:
        return count
    for number in range(count):
        if number & 1:
            if raw[at] == 0 or raw[at] == 0x45 or raw[at] >= 0xC0:
                raise DecodeError(f"a value of format code {raw[at]:#04x}")
        elif raw[at] not in _TEXTS:
            raise DecodeError(f"a key of format code {raw[at]:#04x}")
        at = skip(raw, at, end)
    return count


def _acts(raw: bytes, start: int, end: int) -> bool:
    """Return whether the broker has to look at message annotations when it publishes."""
    count, at = compound(raw, raw[start], start + 1, end)
    for _ in range(count // 2):
        if raw[at] not in _SYMBOL_CODES:
            return True
        after = skip(raw, at, end)
        key = raw[at + 1 + _PREFIXES[raw[at] & 0xF0] : after]
        if not key.startswith(b"x-") or key.startswith(_SUSPECT_KEYS):
            return True
        at = skip(raw, after, end)
    return False
