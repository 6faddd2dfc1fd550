"""Check property lists and field tables in C, without building their values.

properties.py beside this file is the same in pure Python.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport memcmp

from harebell.base.message cimport Properties
from harebell.kernels.octets cimport u16, u32

from harebell.base.errors import ProtocolError
from harebell.base.limits import TABLE_DEPTH

cdef int DEPTH = TABLE_DEPTH


cdef object _malformed(str why):
    return ProtocolError(505, f"malformed content header: {why}", 60, 0)


def parse_properties(bytes raw not None):
    """Check an encoded property list and return the values that the broker needs; see the twin."""
    return read_properties(<const unsigned char*>PyBytes_AS_STRING(raw), PyBytes_GET_SIZE(raw))


cdef Properties read_properties(const unsigned char* p, Py_ssize_t n):
    cdef unsigned int flags
    cdef Py_ssize_t at = 2, size
    cdef int bit, mode = 0, priority = -1
    cdef bytes raw
    cdef bint suspect
    if n < 2:
        raise _malformed("property flags are missing")
    flags = u16(p)
    # Bit 0 announces another word of flags and bit 1 a 15th property; class basic has neither (AMQP
    # 0-9-1 4.2.6.1).
    if flags & 3:
        raise _malformed("unknown property flags")
    for bit in range(15, 1, -1):
        if not flags & (1 << bit):
            continue
        # Delivery mode and priority are octets, bit 6 is the timestamp, bit 13 the headers; all
        # others of class basic are short strings.
        if bit == 12 or bit == 11:
            if at + 1 > n:
                raise _malformed("properties run over the end")
            if bit == 12:
                mode = p[at]
            else:
                priority = p[at]
            at += 1
        elif bit == 6:
            if at + 8 > n:
                raise _malformed("properties run over the end")
            at += 8
        elif bit == 13:
            if at + 4 > n:
                raise _malformed("properties run over the end")
            size = u32(p + at)
            if size > n - at - 4:
                raise _malformed("headers run over the end")
            if not table_fits(p + at + 4, size, 1):
                raise _malformed("headers are not a field table")
            at += 4 + size
        else:
            if at + 1 > n or at + 1 + p[at] > n:
                raise _malformed("properties run over the end")
            at += 1 + p[at]
    if at != n:
        raise _malformed("octets after the last property")
    raw = PyBytes_FromStringAndSize(<const char*>p, n)
    # The flags of reply-to, expiration and user-id; or perhaps a header CC or BCC. Only then the
    # broker decodes the properties before it routes the message.
    suspect = (flags & 0x0310) != 0 or (flags & 0x2000 and b"CC" in raw)
    return Properties(raw, mode, priority, (flags >> 13) & 1, suspect)


def find_header(bytes raw not None, bytes name not None):
    """Return the offset of the value of a header with its tag; see the twin."""
    cdef const unsigned char* p = <const unsigned char*>PyBytes_AS_STRING(raw)
    cdef const unsigned char* wanted = <const unsigned char*>PyBytes_AS_STRING(name)
    cdef Py_ssize_t n = PyBytes_GET_SIZE(raw), size = PyBytes_GET_SIZE(name)
    cdef Py_ssize_t at = 2, end, used, place = -1
    if n < 2 or not p[0] & 0x20:
        return -1
    if p[0] & 0x80:
        at += 1 + p[at] if at < n else n
    if p[0] & 0x40:
        at += 1 + p[at] if at < n else n
    if at + 4 > n or u32(p + at) > n - at - 4:
        return -1
    end = at + 4 + u32(p + at)
    at += 4
    while at < end:
        used = at + 1 + p[at]
        if used >= end:
            return -1
        if p[at] == size and memcmp(p + at + 1, wanted, size) == 0:
            place = used
        at = used
        used = _value_size(p + at, end - at, 1)
        if used < 0:
            return -1
        at += used
    return place


cdef bint table_fits(const unsigned char* p, Py_ssize_t n, int depth) noexcept:
    """True if `n` bytes are name-value pairs that exactly fill the table."""
    cdef Py_ssize_t at = 0, used
    while at < n:
        at += 1 + p[at]
        # A name at the very end has no value, so that is no field table either.
        if at >= n:
            return False
        used = _value_size(p + at, n - at, depth)
        if used < 0:
            return False
        at += used
    return at == n


cdef Py_ssize_t _value_size(const unsigned char* p, Py_ssize_t n, int depth) noexcept:
    """Return the size of a tagged value with its tag; -1 if it does not fit or is unknown."""
    cdef Py_ssize_t size
    cdef Py_ssize_t at
    cdef Py_ssize_t used
    cdef unsigned char tag = p[0]
    if tag == c'V':
        return 1
    if tag == c't' or tag == c'b' or tag == c'B':
        return 2 if n >= 2 else -1
    if tag == c's' or tag == c'u':
        return 3 if n >= 3 else -1
    if tag == c'I' or tag == c'i' or tag == c'f':
        return 5 if n >= 5 else -1
    if tag == c'l' or tag == c'L' or tag == c'd' or tag == c'T':
        return 9 if n >= 9 else -1
    if tag == c'D':
        return 6 if n >= 6 else -1
    if tag == c'S' or tag == c'x' or tag == c'F' or tag == c'A':
        if n < 5:
            return -1
        # Compared with the rest and not added to it: a peer's size of 4 GiB must not overflow.
        size = u32(p + 1)
        if size > n - 5:
            return -1
        if tag == c'F':
            # Tables within tables are checked by recursion: the limit keeps a peer from exhausting
            # the stack.
            if depth >= DEPTH or not table_fits(p + 5, size, depth + 1):
                return -1
        elif tag == c'A':
            if depth >= DEPTH:
                return -1
            at = 0
            while at < size:
                used = _value_size(p + 5 + at, size - at, depth + 1)
                if used < 0:
                    return -1
                at += used
        return 5 + size
    return -1
