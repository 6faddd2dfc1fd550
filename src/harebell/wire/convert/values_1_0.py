"""Convert between values of field tables (0-8 to 0-9-1) and values of AMQP 1.0, in octets.

    table  tag           1.0                          comes back from 1.0
    t                    boolean                      the same
    b B s u I i l        byte ubyte short ushort int uint long
    L                    long                         l, which is the same
    f d                  float double
    D                    decimal64
    S                    string; binary if no UTF-8   S; x if it was no UTF-8
    x                    binary
    T                    timestamp, in milliseconds
    A                    list
    F                    map; the keys are symbols if they are ASCII, and else strings
    V                    null
    l, or S in digits    ulong                        S from 2**63 on
    D, or S in digits    decimal32, decimal128        S when it has more than 31 bits
    T, in whole seconds  timestamp                    l, in milliseconds, before 1970
    S                    symbol, char, uuid           a uuid in its usual form
    A                    array
    the value            described value

`FieldMaker.exact` says whether the way back leads to the same type and value; the last seven rows
do not. Input is well-formed on both sides, because it was checked when the message was received.
"""

from __future__ import annotations

from decimal import Decimal
from uuid import UUID

from harebell.base.c_types import C, Done, i32, i64, isize
from harebell.base.limits import NAME_BYTES, TABLE_DEPTH
from harebell.kernels.sections import skip

_DEPTH: i32 = TABLE_DEPTH
_NAME: i32 = NAME_BYTES
_INT64_MAX = (1 << 63) - 1
_INT32 = 1 << 31
_MS = 1000
_TIMESTAMP_MAX = _INT64_MAX // _MS
_DECIMAL_BIAS = {4: 101, 8: 398, 16: 6176}
_COEFFICIENT_BITS = {4: 23, 8: 53, 16: 113}
_EXPONENT_BITS = {4: 8, 8: 10, 16: 14}
_MAX_SCALE = 255
_NEGATIVE = 1 << 63
"""The sign of a decimal64."""


class Inexpressible(ValueError):
    """A value of a field table that AMQP 1.0 does not have."""


# --- octets -------------------------------------------------------------------------------------


def number_of(data: bytes, offset: isize, width: i32) -> i64:
    """Return an unsigned number of at most four octets."""
    number: i64 = 0
    index: i32
    for index in range(width):
        number = number << 8 | data[offset + index]
    return number


def put_sized(out: bytearray, code: i32, octets: bytes | bytearray) -> Done:
    """Append a variable value: binary (0xa0), string (0xa1) or symbol (0xa3)."""
    size: isize = len(octets)
    if size <= 255:
        out.append(code)
        out.append(size)
    else:
        out.append(code | 0x10)
        out += size.to_bytes(4)
    out += octets
    return 0


def put_compound(out: bytearray, code: i32, count: isize, content: bytearray) -> Done:
    """Append a list (0xc0) or a map (0xc1) of encoded values."""
    size: isize = len(content)
    if size < 255 and count <= 255:
        out.append(code)
        out.append(size + 1)
        out.append(count)
    else:
        out.append(code | 0x10)
        out += (size + 4).to_bytes(4)
        out += count.to_bytes(4)
    out += content
    return 0


def is_utf8(octets: bytes) -> C[bool]:
    """True if octets are UTF-8."""
    if octets.isascii():
        return True
    try:
        octets.decode()
    except UnicodeDecodeError:
        return False
    return True


# --- from tables --------------------------------------------------------------------------------


def put_value(out: bytearray, table: bytes, offset: isize, depth: i32) -> isize:
    """Append the value of a well-formed table as a value of 1.0.

    Args:
        out: the octets so far.
        table: octets that contain the value.
        offset: of its tag.
        depth: how many maps and lists it is nested in.

    Returns:
        The offset after the value.

    Raises:
        Inexpressible: 1.0 has no such value.
    """
    tag: i32 = table[offset]
    offset += 1
    if tag == 0x53 or tag == 0x78:  # S x
        return _put_octets(out, table, offset, tag)
    if tag == 0x49:  # I
        return _put_int(out, table, offset)
    if tag == 0x74:  # t
        out.append(0x41 if table[offset] else 0x42)
        return offset + 1
    if tag == 0x6C or tag == 0x4C:  # l L
        return _put_long(out, table, offset)
    if tag == 0x64:  # d
        return _put_fixed(out, 0x82, table, offset, 8)
    if tag == 0x54:  # T
        put_timestamp(out, table[offset : offset + 8])
        return offset + 8
    if tag == 0x56:  # V
        out.append(0x40)
        return offset
    if tag == 0x69:  # i
        put_uint(out, number_of(table, offset, 4))
        return offset + 4
    if tag == 0x62 or tag == 0x42:  # b B
        return _put_fixed(out, 0x51 if tag == 0x62 else 0x50, table, offset, 1)
    if tag == 0x73 or tag == 0x75:  # s u
        return _put_fixed(out, 0x61 if tag == 0x73 else 0x60, table, offset, 2)
    if tag == 0x66:  # f
        return _put_fixed(out, 0x72, table, offset, 4)
    if tag == 0x44:  # D
        out.append(0x84)
        out += _decimal64(table[offset], _signed(table, offset + 1))
        return offset + 5
    size: isize = number_of(table, offset, 4)
    offset += 4
    if depth >= _DEPTH:
        raise Inexpressible("the value is nested too deeply")
    if tag == 0x41:  # A
        return _put_list(out, table, offset, offset + size, depth + 1)
    if tag == 0x46:  # F
        return _put_map(out, table, offset, offset + size, depth + 1)
    raise Inexpressible(f"no value has the tag {tag:#04x}")


def _put_octets(out: bytearray, table: bytes, offset: isize, tag: i32) -> isize:
    """Append a string (S), or binary if it is no UTF-8 or has the tag x."""
    size: isize = number_of(table, offset, 4)
    offset += 4
    octets: bytes = table[offset : offset + size]
    put_sized(out, 0xA1 if tag == 0x53 and is_utf8(octets) else 0xA0, octets)
    return offset + size


def _put_fixed(out: bytearray, code: i32, table: bytes, offset: isize, width: isize) -> isize:
    """Append a value whose octets are the same in 1.0."""
    out.append(code)
    out += table[offset : offset + width]
    return offset + width


def _put_int(out: bytearray, table: bytes, offset: isize) -> isize:
    """Append an int, in one octet if it fits."""
    if -128 <= _signed(table, offset) <= 127:
        out.append(0x54)
        out.append(table[offset + 3])
    else:
        out.append(0x71)
        out += table[offset : offset + 4]
    return offset + 4


def _signed(data: bytes, offset: isize) -> C[int]:
    """Return a signed number of four octets."""
    number: i64 = number_of(data, offset, 4)
    return number - (1 << 32) if number >= 1 << 31 else number


def _put_long(out: bytearray, table: bytes, offset: isize) -> isize:
    """Append a long, in one octet if it fits."""
    octets: bytes = table[offset : offset + 8]
    number = int.from_bytes(octets, signed=True)
    if -128 <= number <= 127:
        out.append(0x55)
        out.append(octets[7])
    else:
        out.append(0x81)
        out += octets
    return offset + 8


def put_uint(out: bytearray, number: i64) -> Done:
    """Append a uint, in as few octets as it needs."""
    if number == 0:
        out.append(0x43)
    elif number <= 255:
        out.append(0x52)
        out.append(number)
    else:
        out.append(0x70)
        out += number.to_bytes(4)
    return 0


def put_timestamp(out: bytearray, seconds: bytes) -> Done:
    """Append a timestamp of seconds since 1970, given as eight octets.

    Raises:
        Inexpressible: it is too late for 64 bits of milliseconds.
    """
    number = int.from_bytes(seconds)
    if number > _TIMESTAMP_MAX:
        raise Inexpressible("the time is too late")
    out.append(0x83)
    out += (number * _MS).to_bytes(8)
    return 0


def _decimal64(scale: i32, digits: int) -> C[bytes]:
    """Encode a decimal number with that many places, as IEEE 754 does in binary."""
    bits = (_DECIMAL_BIAS[8] - int(scale) << _COEFFICIENT_BITS[8]) | abs(digits)
    return (bits | _NEGATIVE if digits < 0 else bits).to_bytes(8)


def _put_list(out: bytearray, table: bytes, offset: isize, end: isize, depth: i32) -> isize:
    content = bytearray()
    count: isize = 0
    while offset < end:
        offset = put_value(content, table, offset, depth)
        count += 1
    if count:
        put_compound(out, 0xC0, count, content)
    else:
        out.append(0x45)
    return offset


def _put_map(out: bytearray, table: bytes, offset: isize, end: isize, depth: i32) -> isize:
    content = bytearray()
    names = set()
    while offset < end:
        begin: isize = offset + 1
        offset = begin + table[offset]
        name: bytes = table[begin:offset]
        # A map has each key once, and a table may have it twice.
        if name in names or not is_utf8(name):
            raise Inexpressible("a map has no such key")
        names.add(name)
        put_sized(content, 0xA3 if name.isascii() else 0xA1, name)
        offset = put_value(content, table, offset, depth)
    put_compound(out, 0xC1, 2 * len(names), content)
    return offset


# --- to tables ----------------------------------------------------------------------------------


class LongName(Exception):
    """A key is longer than a field table allows."""


class FieldMaker:
    """Converts values of 1.0 to values of field tables.

    Attributes:
        exact: whether all values so far come back as the same type and value; callers set it to
            True.
    """

    def __init__(self) -> None:
        self.exact = True

    def put(self, out: bytearray, data: bytes, offset: isize, end: isize) -> isize:
        """Append a value with its tag.

        Args:
            out: the octets so far.
            data: octets that contain the value.
            offset: of its constructor.
            end: of the octets that may belong to it.

        Returns:
            The offset after the value.

        Raises:
            LongName: it is or holds a map with a key that tables do not have.
        """
        after: isize = skip(data, offset, end)
        while data[offset] == 0:
            self.exact = False
            offset = skip(data, offset + 1, after)
        self._content(out, data[offset], data, offset + 1, after)
        return after

    def _content(self, out: bytearray, code: i32, data: bytes, begin: isize, after: isize) -> Done:
        """Append a value whose constructor is known, such as an element of an array."""
        kind: i32 = code >> 4
        if kind == 0xA or kind == 0xB:
            begin += 4 if kind == 0xB else 1
            low: i32 = code & 15
            if low == 3:
                self.exact = False
            out.append(0x53 if low else 0x78)
            out += (after - begin).to_bytes(4)
            out += data[begin:after]
        elif code in _SAME:
            tag, width = _SAME[code]
            out.append(tag)
            out += data[begin : begin + width]
        elif code in _SHORTENED:
            tag, width, signed = _SHORTENED[code]
            out.append(tag)
            octets: bytes = data[begin:after]
            out += int.from_bytes(octets, signed=signed).to_bytes(width, signed=signed)
        elif code == 0x45:
            out += b"A\0\0\0\0"
        elif kind >= 0xC:
            self._compound(out, code, data, begin, after)
        else:
            self._special(out, code, data[begin:after])
        return 0

    def _special(self, out: bytearray, code: i32, octets: bytes) -> Done:
        """Append a value that no tag is the same as."""
        number = int.from_bytes(octets, signed=code == 0x83)
        if code == 0x41 or code == 0x42:
            out += b"t\1" if code == 0x41 else b"t\0"
        elif code == 0x56:
            out += b"t\1" if number else b"t\0"
        elif code == 0x83:
            if number % _MS or number < 0:
                self.exact = False
            out += b"T" + (number // _MS).to_bytes(8) if number >= 0 else b"l" + octets
        elif code in (0x74, 0x84, 0x94):
            self._decimal(out, octets)
        else:
            self.exact = False
            if code == 0x98:
                self._text(out, str(UUID(bytes=octets)))
            elif code == 0x73:
                self._text(out, chr(number))
            elif number <= _INT64_MAX:
                out += b"l" + number.to_bytes(8)
            else:
                self._text(out, str(number))
        return 0

    def _text(self, out: bytearray, text: str) -> Done:
        octets = text.encode()
        out += b"S" + len(octets).to_bytes(4) + octets
        return 0

    def _decimal(self, out: bytearray, octets: bytes) -> Done:
        value = decimal_of(octets)
        sign, digits, exponent = value.as_tuple()
        number = int("".join(map(str, digits)) or "0") * (-1 if sign else 1)
        places: i32 = -exponent if isinstance(exponent, int) else -1
        if 0 <= places <= _MAX_SCALE and -_INT32 <= number < _INT32:
            out += b"D" + bytes((places,)) + number.to_bytes(4, signed=True)
            if _decimal64(places, number) != octets:
                self.exact = False
            return 0
        self.exact = False
        self._text(out, str(value))
        return 0

    def _compound(self, out: bytearray, code: i32, data: bytes, begin: isize, after: isize) -> Done:
        """Append a list, a map or an array, which begins with its size and count."""
        width: i32 = 4 if code & 0x10 else 1
        count: i64 = number_of(data, begin + width, width)
        offset: isize = begin + 2 * width
        content = bytearray()
        if code >= 0xE0:
            self.exact = False
            self._elements(content, data, offset, after, count)
        elif code & 1:
            while offset < after:
                offset = self._name(content, data, offset, after)
                offset = self.put(content, data, offset, after)
        else:
            while offset < after:
                offset = self.put(content, data, offset, after)
        out.append(0x46 if code & 0xEF == 0xC1 else 0x41)
        out += len(content).to_bytes(4)
        out += content
        return 0

    def _name(self, out: bytearray, data: bytes, offset: isize, end: isize) -> isize:
        """Append the key of a map as the name of an entry; return the offset after it."""
        after: isize = skip(data, offset, end)
        name: bytes | None = text_of(data, offset, after)
        if name is None:
            # A number by its digits, and anything else by its octets in hexadecimal.
            self.exact = False
            made = bytearray()
            self.put(made, data, offset, after)
            if made[0] in _WHOLE:
                number = int.from_bytes(made[1:], signed=made[0] in _SIGNED)
                name = str(number).encode()
            else:
                name = made.hex().encode()
        elif (data[offset] & 15 == 3) != name.isascii():
            self.exact = False
        if len(name) > _NAME:
            raise LongName
        out.append(len(name))
        out += name
        return after

    def _elements(
        self, out: bytearray, data: bytes, offset: isize, after: isize, count: i64
    ) -> Done:
        """Append the elements of an array, which share one constructor."""
        while data[offset] == 0:
            offset = skip(data, offset + 1, after)
        code: i32 = data[offset]
        kind: i32 = code >> 4
        offset += 1
        for _ in range(count):
            end: isize = offset
            if kind >= 10:
                width: i32 = 4 if kind & 1 else 1
                end += width + number_of(data, offset, width)
            elif kind > 4:
                end += 1 << (kind - 5)
            self._content(out, code, data, offset, end)
            offset = end
        return 0


def text_of(data: bytes, offset: isize, after: isize) -> C[bytes | None]:
    """Return the octets of a string or symbol; None for other values."""
    code: i32 = data[offset]
    if code == 0xA1 or code == 0xA3:
        return data[offset + 2 : after]
    if code == 0xB1 or code == 0xB3:
        return data[offset + 5 : after]
    return None


def decimal_of(octets: bytes) -> Decimal:
    """Return a decimal number of IEEE 754, encoded in binary, of 4, 8 or 16 octets."""
    size = len(octets)
    bits = int.from_bytes(octets)
    top = 8 * size - 1
    sign = bits >> top
    if bits >> (top - 4) & 15 == 15:
        return (
            Decimal("NaN")
            if bits >> (top - 5) & 1
            else Decimal("-Infinity" if sign else "Infinity")
        )
    width, exponent_bits = _COEFFICIENT_BITS[size], _EXPONENT_BITS[size]
    if bits >> (top - 2) & 3 == 3:
        # The long form: two bits moved, and a coefficient that begins with 100 in binary.
        exponent = bits >> (width - 2) & (1 << exponent_bits) - 1
        number = 1 << width | bits & (1 << width - 2) - 1
    else:
        exponent = bits >> width & (1 << exponent_bits) - 1
        number = bits & (1 << width) - 1
    digits = tuple(int(digit) for digit in str(number))
    return Decimal((sign, digits, exponent - _DECIMAL_BIAS[size]))


_SAME = {
    0x40: (0x56, 0),
    0x50: (0x42, 1),
    0x51: (0x62, 1),
    0x60: (0x75, 2),
    0x61: (0x73, 2),
    0x70: (0x69, 4),
    0x71: (0x49, 4),
    0x72: (0x66, 4),
    0x81: (0x6C, 8),
    0x82: (0x64, 8),
}
"""Constructors whose values have the same octets in tables: tag and width."""
_SHORTENED = {
    0x43: (0x69, 4, False),
    0x52: (0x69, 4, False),
    0x54: (0x49, 4, True),
    0x55: (0x6C, 8, True),
}
"""Constructors of short forms: tag, width there, and whether they are signed."""
_WHOLE = b"bBsuIil"
_SIGNED = b"bsIl"
"""Tags of whole numbers."""
