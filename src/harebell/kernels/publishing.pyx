"""Find the header `x-publishing-id`, in C; see publishing.py.

A property list (AMQP 0-9-1 4.2.6.1) is two octets of flags and the properties that they announce:
0x80 content-type and 0x40 content-encoding are short strings, 0x20 is the header table. Only the
properties before the table have to be skipped.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.string cimport memcmp

from harebell.kernels.octets cimport u32

from harebell.base.row_columns import PUBLISHING_ID

cdef bytes NUMBER_NAME = bytes((len(PUBLISHING_ID),)) + PUBLISHING_ID


cdef Py_ssize_t _fixed_size(unsigned char tag) noexcept:
    """Return the size of a value after its type tag; -1 if a length comes first."""
    if tag == c"V":
        return 0
    if tag == c"t" or tag == c"b" or tag == c"B":
        return 1
    if tag == c"s" or tag == c"u":
        return 2
    if tag == c"I" or tag == c"i" or tag == c"f":
        return 4
    if tag == c"l" or tag == c"L" or tag == c"d" or tag == c"T":
        return 8
    return 5 if tag == c"D" else -1


cdef long long _number(const unsigned char* p, unsigned char tag, Py_ssize_t size) noexcept:
    """Return the integer of a value; -1 for another type and for a negative number."""
    cdef unsigned long long number = 0
    cdef Py_ssize_t at
    cdef bint is_signed = tag == c"b" or tag == c"s" or tag == c"I" or tag == c"l" or tag == c"L"
    if not (is_signed or tag == c"B" or tag == c"u" or tag == c"i"):
        return -1
    for at in range(size):
        number = number << 8 | p[at]
    if is_signed and p[0] & 0x80:
        return -1
    return <long long>number


def publishing_id(bytes raw not None):
    """Return the header `x-publishing-id` of a checked property list; see the twin."""
    cdef const unsigned char* p = <const unsigned char*>PyBytes_AS_STRING(raw)
    cdef const char* wanted = PyBytes_AS_STRING(NUMBER_NAME)
    cdef Py_ssize_t n = PyBytes_GET_SIZE(raw), at = 2, end, size, name
    cdef Py_ssize_t name_size = PyBytes_GET_SIZE(NUMBER_NAME)
    cdef unsigned char tag
    if n < 6 or not p[0] & 0x20:
        return -1
    if p[0] & 0x80:             # content-type
        at += 1 + p[at]
    if p[0] & 0x40 and at < n:
        at += 1 + p[at]
    if at + 4 > n:
        return -1
    end = at + 4 + <Py_ssize_t>u32(p + at)
    at += 4
    if end > n:
        return -1
    while at < end:
        name = at
        at += 1 + p[at]
        if at >= end:
            return -1
        tag = p[at]
        at += 1
        size = _fixed_size(tag)
        if size < 0:
            # A long string, table or array: its length comes first, and what is in it is skipped.
            if at + 4 > end:
                return -1
            size = 4 + <Py_ssize_t>u32(p + at)
        # Checked although the list was checked: a wrong size must never read behind the list.
        if at + size > end:
            return -1
        # The name is compared with its length byte: names that only end alike differ in it.
        if at - 1 - name == name_size and memcmp(p + name, wanted, name_size) == 0:
            return _number(p + at, tag, size)
        at += size
    return -1


def unnumbered(bytes table not None):
    """Return a header table without every `x-publishing-id`; see the twin."""
    cdef const unsigned char* p = <const unsigned char*>PyBytes_AS_STRING(table)
    cdef const char* wanted = PyBytes_AS_STRING(NUMBER_NAME)
    cdef Py_ssize_t n = PyBytes_GET_SIZE(table), at = 0, begin, name_end, size
    cdef Py_ssize_t name_size = PyBytes_GET_SIZE(NUMBER_NAME)
    # Mostly there is no such header: one search, and no copy.
    if PUBLISHING_ID not in table:
        return table
    kept = bytearray()
    while at < n:
        begin = at
        at += 1 + p[at]
        name_end = at
        if at >= n:
            break
        size = _fixed_size(p[at])
        at += 1
        if size < 0:
            if at + 4 > n:
                break
            size = 4 + <Py_ssize_t>u32(p + at)
        at += size
        if name_end - begin != name_size or memcmp(p + begin, wanted, name_size) != 0:
            kept += table[begin:at]
    return bytes(kept)
