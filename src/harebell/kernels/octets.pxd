"""Define inline functions for numbers and names in network byte order, and for frame heads.

A frame of AMQP 0-9-1 (4.2.3):

    kind 1 | channel 2 | size 4 | payload | 0xCE
"""

from libc.string cimport memcpy

cdef extern from *:
    """
    /* The UTF-8 octets of a text, owned by the text. Nearly all names are ASCII, and CPython stores
       those as their own UTF-8. PyUnicode_AsUTF8AndSize would answer the same, by a call. */
    static inline const char* harebell_utf8(PyObject* text, Py_ssize_t* size) {
        if (PyUnicode_CheckExact(text) && PyUnicode_IS_COMPACT_ASCII(text)) {
            *size = PyUnicode_GET_LENGTH(text);
            return (const char*)PyUnicode_1BYTE_DATA(text);
        }
        return PyUnicode_AsUTF8AndSize(text, size);
    }
    """
    const char* utf8 "harebell_utf8"(object text, Py_ssize_t* size) except NULL

cdef enum:
    METHOD = 1
    HEADER = 2
    BODY = 3
    END = 0xCE
    OVERHEAD = 8
    HEADER_FIXED = 12       # octets of a content header before its property list
    BASIC_PUBLISH = 0x003C0028
    PUBLISH_FIXED = 9       # octets of its payload beside the names


cdef inline unsigned int u16(const unsigned char* p) noexcept:
    return (p[0] << 8) | p[1]


cdef inline unsigned int u32(const unsigned char* p) noexcept:
    return (<unsigned int>p[0] << 24) | (p[1] << 16) | (p[2] << 8) | p[3]


cdef inline unsigned long long u64(const unsigned char* p) noexcept:
    return (<unsigned long long>u32(p) << 32) | u32(p + 4)


# Each `put` returns the address behind the written bytes, so that calls can be chained.
cdef inline unsigned char* put16(unsigned char* p, unsigned int v) noexcept:
    p[0] = (v >> 8) & 0xFF
    p[1] = v & 0xFF
    return p + 2


cdef inline unsigned char* put32(unsigned char* p, unsigned int v) noexcept:
    p[0] = (v >> 24) & 0xFF
    p[1] = (v >> 16) & 0xFF
    p[2] = (v >> 8) & 0xFF
    p[3] = v & 0xFF
    return p + 4


cdef inline unsigned char* put64(unsigned char* p, unsigned long long v) noexcept:
    put32(p, <unsigned int>(v >> 32))
    return put32(p + 4, <unsigned int>(v & 0xFFFFFFFFU))


cdef inline unsigned char* put_head(unsigned char* p, int kind, int channel,
                                    Py_ssize_t size) noexcept:
    p[0] = kind
    put16(p + 1, channel)
    return put32(p + 3, <unsigned int>size)


cdef inline unsigned char* put_name(unsigned char* p, const void* name, Py_ssize_t n) noexcept:
    # The caller has checked that the size fits into one octet (AMQP 0-9-1 4.2.5.3).
    p[0] = <unsigned char>n
    memcpy(p + 1, name, n)
    return p + 1 + n


cdef inline unsigned char* put_publish(unsigned char* p, int channel, int flags,
                                       const void* exchange, Py_ssize_t n_exchange,
                                       const void* key, Py_ssize_t n_key) noexcept:
    """Write the frame of basic.publish; both names have at most 255 octets."""
    p = put_head(p, METHOD, channel, PUBLISH_FIXED + n_exchange + n_key)
    p = put32(p, BASIC_PUBLISH)
    # The ticket, which 0-9-1 reserves.
    p = put16(p, 0)
    p = put_name(p, exchange, n_exchange)
    p = put_name(p, key, n_key)
    p[0] = flags
    p[1] = END
    return p + 2


cdef inline Py_ssize_t framed_size(Py_ssize_t size, Py_ssize_t limit) noexcept:
    """Return the size of a body in frames of at most `limit` octets of payload."""
    return size + OVERHEAD * ((size + limit - 1) // limit)


cdef inline unsigned char* put_body(unsigned char* p, int channel, const void* body,
                                    Py_ssize_t left, Py_ssize_t limit) noexcept:
    """Write the frames of a body. One without octets has no frame (AMQP 0-9-1 4.2.6.2)."""
    cdef const char* octets = <const char*>body
    cdef Py_ssize_t part
    while left > 0:
        part = min(left, limit)
        p = put_head(p, BODY, channel, part)
        memcpy(p, octets, part)
        p[part] = END
        p += part + 1
        octets += part
        left -= part
    return p
