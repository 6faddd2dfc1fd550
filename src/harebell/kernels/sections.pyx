"""Find and check the sections of a message of AMQP 1.0 in C.

sections.py beside this file draws them and is the same in pure Python; both agree call for call.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.string cimport memcmp, memcpy

from harebell.base.message cimport Properties
from harebell.kernels.octets cimport u32, u64

from harebell.base.errors import DecodeError
from harebell.kernels.limits import (
    COMPOUND_BYTES, MESSAGE_SECTIONS, NESTING, VOID_ARRAY_ELEMENTS,
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

cdef enum:
    C_HEADER = 0x70
    C_DELIVERY_ANNOTATIONS = 0x71
    C_MESSAGE_ANNOTATIONS = 0x72
    C_PROPERTIES = 0x73
    C_APPLICATION_PROPERTIES = 0x74
    C_DATA = 0x75
    C_SEQUENCE = 0x76
    C_VALUE = 0x77
    C_FOOTER = 0x78
    C_FAMILY = 100
    C_FAMILY_SECTIONS = 101
    # Kinds of values, by their constructors.
    NONE = 0
    BOOLEAN = 1
    UBYTE = 2
    UINT = 4
    ULONG = 8
    UUID = 16
    BINARY = 32
    TEXT = 64
    SYMBOL = 128
    TIMESTAMP = 256
    LIST = 512
    MAP = 1024
    OTHER = 2048
    ID = 8 | 16 | 32 | 64

cdef int MAX_NESTING = NESTING
cdef Py_ssize_t MAX_COMPOUND = COMPOUND_BYTES
cdef Py_ssize_t MAX_SECTIONS = MESSAGE_SECTIONS
cdef Py_ssize_t MAX_VOID = VOID_ARRAY_ELEMENTS

_NAMES = (
    "header", "delivery-annotations", "message-annotations", "properties",
    "application-properties", "data", "amqp-sequence", "amqp-value", "footer",
)
_HEADER_FIELDS = ("durable", "priority", "ttl", "first-acquirer", "delivery-count")
_PROPERTIES_FIELDS = (
    "message-id", "user-id", "to", "subject", "reply-to", "correlation-id", "content-type",
    "content-encoding", "absolute-expiry-time", "creation-time", "group-id", "group-sequence",
    "reply-to-group-id",
)
_SYMBOLS = {
    b"amqp:header:list": C_HEADER,
    b"amqp:delivery-annotations:map": C_DELIVERY_ANNOTATIONS,
    b"amqp:message-annotations:map": C_MESSAGE_ANNOTATIONS,
    b"amqp:properties:list": C_PROPERTIES,
    b"amqp:application-properties:map": C_APPLICATION_PROPERTIES,
    b"amqp:data:binary": C_DATA,
    b"amqp:amqp-sequence:list": C_SEQUENCE,
    b"amqp:amqp-value:*": C_VALUE,
    b"amqp:footer:map": C_FOOTER,
}

cdef int[5] HEADER_KINDS
HEADER_KINDS[:] = [BOOLEAN, UBYTE, UINT, BOOLEAN, UINT]
cdef int[13] PROPERTIES_KINDS
PROPERTIES_KINDS[:] = [
    ID, BINARY, TEXT, TEXT, TEXT, ID, SYMBOL, SYMBOL, TIMESTAMP, TIMESTAMP, TEXT, UINT, TEXT,
]
cdef int[9] SECTION_KINDS
SECTION_KINDS[:] = [LIST, MAP, MAP, LIST, MAP, BINARY, LIST, 0, MAP]

# What each format code is: 0 for those that are unknown. Of a code that is unknown only the width
# may be asked for.
cdef int[256] KINDS


cdef int _fill_kinds() except -1:
    cdef int code
    for code in range(256):
        KINDS[code] = NONE
    for code in b"\x40\x51\x54\x55\x61\x71\x72\x73\x74\x81\x82\x84\x94\x60\xe0\xf0":
        KINDS[code] = OTHER
    for code in b"\x41\x42\x56":
        KINDS[code] = BOOLEAN
    for code in b"\x43\x52\x70":
        KINDS[code] = UINT
    for code in b"\x44\x53\x80":
        KINDS[code] = ULONG
    for code in b"\xa0\xb0":
        KINDS[code] = BINARY
    for code in b"\xa1\xb1":
        KINDS[code] = TEXT
    for code in b"\xa3\xb3":
        KINDS[code] = SYMBOL
    for code in b"\x45\xc0\xd0":
        KINDS[code] = LIST
    for code in b"\xc1\xd1":
        KINDS[code] = MAP
    KINDS[0x50] = UBYTE
    KINDS[0x83] = TIMESTAMP
    KINDS[0x98] = UUID
    return 0


_fill_kinds()


cdef inline int _width(int code) noexcept:
    """Return the octets of a value with this code; -1 if a length says it, or nothing does."""
    cdef int kind = code >> 4
    if kind == 4:
        return 0
    return 1 << (kind - 5) if 5 <= kind <= 9 else -1


cdef inline int _prefix(int code) noexcept:
    """Return the octets of a length or size; 0 for a code that has none."""
    if code < 0xA0:
        return 0
    return 4 if code & 0x10 else 1


cdef inline Py_ssize_t _length(const unsigned char* p, int prefix) noexcept:
    return p[0] if prefix == 1 else <Py_ssize_t>u32(p)


# --- values --------------------------------------------------------------------------------------


cdef inline Py_ssize_t _end(const unsigned char* data, int code, Py_ssize_t at,
                            Py_ssize_t end) except -1:
    """Return where the octets of a value end that begin at `at`, after its code."""
    cdef Py_ssize_t width = _width(code)
    cdef int prefix
    if width < 0:
        prefix = _prefix(code)
        if prefix == 0:
            raise DecodeError(f"unknown format code {code:#04x}")
        if at + prefix > end:
            raise DecodeError("a length that is cut off")
        width = prefix + _length(data + at, prefix)
    if at + width > end:
        raise DecodeError(f"a value of {width} octets, of which {end - at} are there")
    return at + width


cdef Py_ssize_t skip_value(const unsigned char* data, Py_ssize_t at, Py_ssize_t end) except -1:
    """Return where a value ends, without a look into it."""
    cdef int left = 1, code
    while left:
        if at >= end:
            raise DecodeError("a value without a constructor")
        code = data[at]
        at += 1
        if code:
            at = _end(data, code, at, end)
            left -= 1
            continue
        # A descriptor is a value before the value.
        left += 1
        if left > MAX_NESTING:
            raise DecodeError(f"values are nested deeper than {MAX_NESTING}")
    return at


cdef Py_ssize_t _check(const unsigned char* data, Py_ssize_t start, Py_ssize_t end,
                       int depth) except -1:
    """Return where a value ends that can be decoded; see the twin."""
    if start >= end:
        raise DecodeError("a value without a constructor")
    cdef int code = data[start]
    if code == 0:
        _check_depth(depth)
        return _check(data, _check(data, start + 1, end, depth + 1), end, depth + 1)
    return _check_of(data, code, start + 1, end, depth)


cdef Py_ssize_t _check_of(const unsigned char* data, int code, Py_ssize_t start, Py_ssize_t end,
                          int depth) except -1:
    """Check a value whose constructor, a format code, was read before."""
    cdef int kind = KINDS[code]
    cdef Py_ssize_t after, at
    cdef unsigned int number
    if kind == NONE:
        raise DecodeError(f"unknown format code {code:#04x}")
    after = _end(data, code, start, end)
    if code >= 0xC0:
        _check_compound(data, code, start, after, depth)
    elif kind == TEXT:
        _check_text(data + start + _prefix(code), after - start - _prefix(code))
    elif kind == SYMBOL:
        if not _is_ascii(data + start + _prefix(code), after - start - _prefix(code)):
            raise DecodeError("a symbol that is not ASCII")
    elif code == 0x56:
        if data[start] > 1:
            raise DecodeError(f"a boolean {data[start]:#04x}")
    elif code == 0x73:
        number = u32(data + start)
        if number > 0x10FFFF or 0xD800 <= number < 0xE000:
            raise DecodeError(f"a char {number:#x}, which is no Unicode character")
    return after


cdef inline int _check_depth(int depth) except -1:
    if depth >= MAX_NESTING:
        raise DecodeError(f"values are nested deeper than {MAX_NESTING}")
    return 0


cdef inline bint _is_ascii(const unsigned char* p, Py_ssize_t n) noexcept:
    cdef unsigned char all_bits = 0
    cdef Py_ssize_t at
    for at in range(n):
        all_bits |= p[at]
    return all_bits < 0x80


cdef int _check_text(const unsigned char* p, Py_ssize_t n) except -1:
    if _is_ascii(p, n):
        return 0
    try:
        PyUnicode_DecodeUTF8(<const char*>p, n, NULL)
    except UnicodeDecodeError:
        raise DecodeError("a string that is not UTF-8") from None
    return 0


cdef Py_ssize_t count_of(const unsigned char* data, int code, Py_ssize_t start, Py_ssize_t end,
                         Py_ssize_t* at) except -1:
    """Return the count of a list, map or array, and where what follows it begins."""
    cdef int prefix = _prefix(code)
    cdef Py_ssize_t size = end - start - prefix
    at[0] = start + 2 * prefix
    if at[0] > end:
        raise DecodeError("a list, map or array whose size leaves no room for its count")
    if size > MAX_COMPOUND:
        raise DecodeError(f"a list, map or array of {size} octets, at most {MAX_COMPOUND} may be")
    return _length(data + start + prefix, prefix)


cdef int _check_compound(const unsigned char* data, int code, Py_ssize_t start, Py_ssize_t end,
                         int depth) except -1:
    cdef Py_ssize_t at, count, number
    cdef bint is_map
    _check_depth(depth)
    count = count_of(data, code, start, end, &at)
    if code >= 0xE0:
        return _check_array(data, count, at, end, depth)
    is_map = code & 0x0F
    what = "map" if is_map else "list"
    if count > end - at:
        raise DecodeError(f"a {what} of {count} values in {end - at} octets")
    if is_map and count & 1:
        raise DecodeError(f"a map of {count} values, which are no pairs")
    for number in range(count):
        if is_map and not number & 1:
            _check_key(data, at, end)
        at = _check(data, at, end, depth + 1)
    if at != end:
        raise DecodeError(f"{end - at} octets after the last value of a {what}")
    return 0


cdef int _check_key(const unsigned char* data, Py_ssize_t at, Py_ssize_t end) except -1:
    """Refuse a key that has no hash in Python."""
    while at < end and data[at] == 0:
        at = skip_value(data, at + 1, end)
    if at < end and (data[at] >= 0xC0 or data[at] == 0x45):
        raise DecodeError("a map with a list, map or array as a key")
    return 0


cdef int _check_array(const unsigned char* data, Py_ssize_t count, Py_ssize_t at, Py_ssize_t end,
                      int depth) except -1:
    cdef int descriptors = 0, element, width
    cdef Py_ssize_t number
    while at < end and data[at] == 0:
        _check_depth(depth + descriptors)
        at = _check(data, at + 1, end, depth + descriptors + 1)
        descriptors += 1
    if at >= end:
        raise DecodeError("an array without a constructor of its elements")
    element = data[at]
    at += 1
    if KINDS[element] == NONE:
        raise DecodeError(f"unknown format code {element:#04x}")
    width = _width(element)
    if width < 0:
        width = 1
    if width == 0 and count > MAX_VOID:
        raise DecodeError(
            f"an array of {count} values without octets, at most {MAX_VOID} may be"
        )
    if count * width > end - at:
        raise DecodeError(f"an array of {count} values in {end - at} octets")
    for number in range(count):
        at = _check_of(data, element, at, end, depth + 1)
    if at != end:
        raise DecodeError(f"{end - at} octets after the last value of an array")
    return 0


def skip(bytes data not None, Py_ssize_t start, Py_ssize_t end):
    """Return where a value ends, without a look into it; see the twin."""
    return skip_value(<const unsigned char*>PyBytes_AS_STRING(data), start,
                      min(end, PyBytes_GET_SIZE(data)))


def check(bytes data not None, Py_ssize_t start, Py_ssize_t end, int depth=0):
    """Return where a value ends that can be decoded; see the twin."""
    return _check(<const unsigned char*>PyBytes_AS_STRING(data), start,
                  min(end, PyBytes_GET_SIZE(data)), depth)


# --- sections ------------------------------------------------------------------------------------


cdef object _name(int code):
    return _NAMES[code - C_HEADER]


cdef int section_at(const unsigned char* data, Py_ssize_t start, Py_ssize_t end,
                    Py_ssize_t* value, Py_ssize_t* after) except -1:
    """Return the code of a section, where its value begins, and where it ends."""
    cdef Py_ssize_t at
    cdef long long code
    cdef int kinds
    if start >= end or data[start] != 0:
        raise DecodeError("message: what is no section")
    if end - start > 3 and data[start + 1] == 0x53:
        code = data[start + 2]
        at = start + 3
    else:
        at = skip_value(data, start + 1, end)
        code = _code(data + start + 1, at - start - 1)
    if not C_HEADER <= code <= C_FOOTER:
        raise DecodeError("message: a section that is not known")
    kinds = SECTION_KINDS[code - C_HEADER]
    if at < end and kinds and not KINDS[data[at]] & kinds:
        raise DecodeError(f"{_name(<int>code)}: a value of format code {data[at]:#04x}")
    value[0] = at
    try:
        after[0] = skip_value(data, at, end)
    except DecodeError as error:
        raise DecodeError(f"{_name(<int>code)}: {error.text}") from None
    return <int>code


cdef long long _code(const unsigned char* descriptor, Py_ssize_t n) except -2:
    """Return the code that an encoded descriptor names; -1 for one of another type."""
    cdef unsigned long long code
    if descriptor[0] == 0x53:
        return descriptor[1]
    if descriptor[0] == 0x80:
        code = u64(descriptor + 1)
        return <long long>code if code <= C_FOOTER else -1
    if KINDS[descriptor[0]] == SYMBOL:
        n -= 1 + _prefix(descriptor[0])
        name = PyBytes_FromStringAndSize(<const char*>descriptor + 1 + _prefix(descriptor[0]), n)
        return _SYMBOLS.get(name, -1)
    return -1


def section(bytes data not None, Py_ssize_t start, Py_ssize_t end):
    """Return the code of a section, where its value begins, and where it ends; see the twin."""
    cdef Py_ssize_t value, after
    cdef int code = section_at(<const unsigned char*>PyBytes_AS_STRING(data), start,
                               min(end, PyBytes_GET_SIZE(data)), &value, &after)
    return code, value, after


cdef int find_borders(const unsigned char* data, Py_ssize_t end, Borders* found) except -1:
    """Find what a message keeps of the octets of its transfers; `split` of the twin."""
    cdef Py_ssize_t at = 0, value, after, body = -1, whole = 0, whole_end = 0, size
    cdef Py_ssize_t count = 0
    cdef int last = 0, code, prefix
    cdef bint repeated, mixed
    found.dropped = found.kept = 0
    while at < end:
        code = section_at(data, at, end, &value, &after)
        # Data and sequence may be repeated, and nothing else; a body is of one kind.
        repeated = code == last and (code == C_DATA or code == C_SEQUENCE)
        mixed = C_DATA <= last <= C_VALUE and C_DATA <= code <= C_VALUE
        if not repeated and (code <= last or mixed):
            raise DecodeError(f"message: {_name(code)} after {_name(last)}")
        if code == C_DELIVERY_ANNOTATIONS:
            found.dropped = at
            found.kept = after
        if C_DATA <= code <= C_VALUE and body < 0:
            body = at
            whole = value
            whole_end = after
        count += 1
        if count > MAX_SECTIONS:
            raise DecodeError(f"message: more than {MAX_SECTIONS} sections")
        last = code
        at = after
    if body < 0:
        raise DecodeError("message: there is no body")
    found.body = body
    found.content = body
    found.family = C_FAMILY_SECTIONS
    if whole_end == end and memcmp(data + body, b"\0\x53\x75", 3) == 0:
        prefix = _prefix(data[whole])
        size = whole_end - whole - 1 - prefix
        # Encoding it again gives the same octets only if its length is of the shortest form.
        if (prefix == 1) == (size <= 255):
            found.content = end - size
            found.family = C_FAMILY
    return 0


cdef Py_ssize_t data_at(const unsigned char* data, Py_ssize_t start, Py_ssize_t end) noexcept:
    """Return where the content begins of the data section that is all the rest.

    Returns -1 if the rest is anything else, or a data section that was not encoded as short as can
    be.
    """
    cdef Py_ssize_t size = end - start - 5
    if size < 0 or memcmp(data + start, b"\0\x53\x75", 3):
        return -1
    data += start + 3
    if data[0] == 0xA0 and data[1] == size:
        return start + 5
    size -= 3
    if data[0] == 0xB0 and size > 255 and <Py_ssize_t>u32(data + 1) == size:
        return start + 8
    return -1


def split(bytes payload not None):
    """Return what a message keeps of the octets of its transfers; see the twin."""
    cdef Borders found
    cdef Py_ssize_t n = PyBytes_GET_SIZE(payload)
    cdef const char* data = PyBytes_AS_STRING(payload)
    find_borders(<const unsigned char*>data, n, &found)
    raw = joined(<const unsigned char*>data, &found)
    return raw, PyBytes_FromStringAndSize(data + found.content, n - found.content), found.family


cdef bytes joined(const unsigned char* data, Borders* found):
    """Return the sections before the body, without the delivery annotations."""
    cdef Py_ssize_t size = found.body - (found.kept - found.dropped)
    cdef bytes raw = PyBytes_FromStringAndSize(NULL, size)
    cdef char* into = PyBytes_AS_STRING(raw)
    memcpy(into, data, found.dropped)
    memcpy(into + found.dropped, data + found.kept, found.body - found.kept)
    return raw


def parse_properties(bytes raw not None, int family=C_FAMILY):
    """Check the sections before the body, and return what the broker needs; see the twin."""
    return read_properties(raw, family)


cdef Properties read_properties(bytes raw, int family):
    """Check the sections before the body, and return what the broker needs of them."""
    cdef const unsigned char* data = <const unsigned char*>PyBytes_AS_STRING(raw)
    cdef Py_ssize_t at = 0, end = PyBytes_GET_SIZE(raw), value, after, place
    cdef Py_ssize_t[13] there
    cdef int code, mode = 0, priority = -1
    cdef bint headers = False, suspect = False
    cdef Properties properties
    while at < end:
        code = section_at(data, at, end, &value, &after)
        if C_DATA <= code <= C_VALUE:
            raise DecodeError(f"message: {_name(code)} before the body")
        try:
            if code == C_HEADER:
                _fields(data, value, after, HEADER_KINDS, 5, _HEADER_FIELDS, there)
                mode = 2 if _is_true(data, there[0]) else 1
                priority = data[there[1] + 1] if there[1] >= 0 else -1
                suspect = suspect or there[2] >= 0
            elif code == C_PROPERTIES:
                _fields(data, value, after, PROPERTIES_KINDS, 13, _PROPERTIES_FIELDS, there)
                suspect = suspect or there[1] >= 0 or there[8] >= 0
            else:
                if _pairs(data, code, value, after) > 0 and code != C_FOOTER:
                    headers = True
                if code == C_MESSAGE_ANNOTATIONS and _acts(data, value, after):
                    suspect = True
        except DecodeError as error:
            raise DecodeError(f"{_name(code)}: {error.text}") from None
        at = after
    properties = Properties(raw, mode, priority, headers, suspect)
    properties.family = family
    return properties


cdef int _fields(const unsigned char* raw, Py_ssize_t start, Py_ssize_t end, const int* kinds,
                 int n, tuple names, Py_ssize_t* there) except -1:
    """Check the list of a section; find where the values of its fields begin, -1 for null."""
    cdef Py_ssize_t at, count
    cdef int number
    for number in range(n):
        there[number] = -1
    if raw[start] == 0x45:
        return 0
    count = count_of(raw, raw[start], start + 1, end, &at)
    if count > n:
        raise DecodeError(f"{count} fields, at most {n} may be")
    for number in range(count):
        if at >= end:
            raise DecodeError(f"{names[number]}: a value without a constructor")
        if raw[at] != 0x40:
            if raw[at] == 0 or not KINDS[raw[at]] & kinds[number]:
                raise DecodeError(f"{names[number]}: a value of format code {raw[at]:#04x}")
            there[number] = at
        try:
            at = _check(raw, at, end, 0)
        except DecodeError as error:
            raise DecodeError(f"{names[number]}: {error.text}") from None
    if at != end:
        raise DecodeError(f"{end - at} octets after the last value of a list")
    return 0


cdef inline bint _is_true(const unsigned char* raw, Py_ssize_t at) noexcept:
    return at >= 0 and (raw[at] == 0x41 or (raw[at] == 0x56 and raw[at + 1] == 1))


cdef Py_ssize_t _pairs(const unsigned char* raw, int code, Py_ssize_t start,
                       Py_ssize_t end) except -1:
    """Check the map of a section; return how many values it has."""
    cdef Py_ssize_t at, count, number
    _check(raw, start, end, 0)
    count = count_of(raw, raw[start], start + 1, end, &at)
    if code != C_APPLICATION_PROPERTIES:
        return count
    for number in range(count):
        if number & 1:
            if raw[at] == 0 or raw[at] == 0x45 or raw[at] >= 0xC0:
                raise DecodeError(f"a value of format code {raw[at]:#04x}")
        elif KINDS[raw[at]] != TEXT:
            raise DecodeError(f"a key of format code {raw[at]:#04x}")
        at = skip_value(raw, at, end)
    return count


cdef bint _acts(const unsigned char* raw, Py_ssize_t start, Py_ssize_t end) except -1:
    """Return whether the broker has to look at message annotations when it publishes."""
    cdef Py_ssize_t at, count, number, after, n
    cdef const unsigned char* key
    count = count_of(raw, raw[start], start + 1, end, &at)
    for number in range(count // 2):
        if KINDS[raw[at]] != SYMBOL:
            return True
        after = skip_value(raw, at, end)
        n = 1 + _prefix(raw[at])
        key = raw + at + n
        n = after - at - n
        if n < 2 or memcmp(key, b"x-", 2):
            return True
        if (_begins(key, n, b"x-cc", 4) or _begins(key, n, b"x-bcc", 5)
                or _begins(key, n, b"x-opt-delivery-", 15) or _begins(key, n, b"x-qpid-", 7)):
            return True
        at = skip_value(raw, after, end)
    return False


cdef inline bint _begins(const unsigned char* p, Py_ssize_t n, const char* name,
                         Py_ssize_t size) noexcept:
    return n >= size and memcmp(p, name, size) == 0


def compound(bytes data not None, int code, Py_ssize_t start, Py_ssize_t end):
    """Return the count of a list, map or array, and where what follows it begins; see the twin."""
    cdef Py_ssize_t at, count
    count = count_of(<const unsigned char*>PyBytes_AS_STRING(data), code, start, end, &at)
    return count, at
