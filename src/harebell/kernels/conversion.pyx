"""Convert property lists of class basic and sections of AMQP 1.0 in C, the plain ones.

conversion.py beside this file is the same in pure Python, and says which ones those are.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport memcmp, memcpy, memset

from harebell.base.message cimport Properties
from harebell.kernels.octets cimport put32, put64, u16, u32, u64

from harebell.kernels.limits import PLAIN_LIST_BYTES

cdef enum:
    FAMILY = 100                # FAMILY_1_0
    MOST = 1_024                # PLAIN_LIST_BYTES
    SPACE = 8_192               # one octet becomes five at most, and heads are 300
    NAMES = 24                  # most headers whose names are compared with each other
    SHORT = 255
    HEADER = 0x70
    ANNOTATIONS = 0x72
    FIELDS = 0x73
    APPLICATION = 0x74

assert MOST == PLAIN_LIST_BYTES

cdef unsigned long long LATEST = 0x7FFFFFFFFFFFFFFF // 1000
cdef unsigned char[256] UNRESERVED
cdef const char* LETTERS = (
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
)


cdef unsigned char[256] WIDTHS      # octets behind a tag; of a size for S and x


cdef void _fill() noexcept:
    cdef const unsigned char* p = <const unsigned char*>LETTERS
    cdef int at
    memset(UNRESERVED, 0, 256)
    memset(WIDTHS, 0, 256)
    while p[0]:
        UNRESERVED[p[0]] = 1
        p += 1
    p = b"tbBsuIifSxlLdT"
    for at in range(14):
        WIDTHS[p[at]] = 1 if at < 3 else 2 if at < 5 else 4 if at < 10 else 8


_fill()


cdef struct Text:
    const unsigned char* p      # NULL for none
    Py_ssize_t n


cdef inline bint _ascii(const unsigned char* p, Py_ssize_t n) noexcept:
    cdef Py_ssize_t at
    cdef unsigned char any = 0
    for at in range(n):
        any |= p[at]
    return any < 0x80


cdef inline bint _plain_address(const unsigned char* p, Py_ssize_t n) noexcept:
    cdef Py_ssize_t at
    for at in range(n):
        if not UNRESERVED[p[at]]:
            return False
    return True


cdef inline bint _begins(const unsigned char* p, Py_ssize_t n, const char* start,
                         Py_ssize_t size) noexcept:
    return n >= size and memcmp(p, start, size) == 0


cdef inline bint _reserved(const unsigned char* p, Py_ssize_t n) noexcept:
    """True for names beginning with x- that may be something else on the other side."""
    return (_begins(p, n, b"x-amqp-", 7) or _begins(p, n, b"x-basic-", 8)
            or _begins(p, n, b"x-cc", 4) or _begins(p, n, b"x-death", 7)
            or _begins(p, n, b"x-opt-deaths", 12) or _begins(p, n, b"x-exchange", 10)
            or _begins(p, n, b"x-routing-key", 13))


cdef inline bint _routes(const unsigned char* p, Py_ssize_t n) noexcept:
    return (n == 2 and memcmp(p, b"CC", 2) == 0) or (n == 3 and memcmp(p, b"BCC", 3) == 0)


cdef inline unsigned char* _put_sized(unsigned char* p, int code, const unsigned char* octets,
                                      Py_ssize_t n) noexcept:
    if n <= SHORT:
        p[0] = code
        p[1] = n
        p += 2
    else:
        p[0] = code | 0x10
        p = put32(p + 1, n)
    memcpy(p, octets, n)
    return p + n


cdef inline unsigned char* _put_compound(unsigned char* p, int section, int code, Py_ssize_t count,
                                         const unsigned char* content, Py_ssize_t n) noexcept:
    p[0] = 0
    p[1] = 0x53
    p[2] = section
    if n < SHORT and count <= SHORT:
        p[3] = code
        p[4] = n + 1
        p[5] = count
        p += 6
    else:
        p[3] = code | 0x10
        put32(p + 4, n + 4)
        put32(p + 8, count)
        p += 12
    memcpy(p, content, n)
    return p + n


# --- to basic -----------------------------------------------------------------------------------


cdef unsigned char* _put_field(unsigned char* out, const unsigned char* p,
                               const unsigned char* after) noexcept:
    """Write the value at `p` as one of a table; NULL if it is not plain."""
    cdef int code = p[0]
    cdef Py_ssize_t n
    cdef long long ms
    p += 1
    if code == 0xA1 or code == 0xB1 or code == 0xA0 or code == 0xB0:
        p += 1 if code < 0xB0 else 4
        n = after - p
        out[0] = 0x53 if code & 1 else 0x78
        out = put32(out + 1, n)
        memcpy(out, p, n)
        return out + n
    if code == 0x41 or code == 0x42:
        out[0] = 0x74
        out[1] = code == 0x41
        return out + 2
    if code == 0x54:
        out[0] = 0x49
        return put32(out + 1, <unsigned int><int><signed char>p[0])
    if code == 0x55:
        out[0] = 0x6C
        return put64(out + 1, <unsigned long long><long long><signed char>p[0])
    if code == 0x43 or code == 0x52:
        out[0] = 0x69
        return put32(out + 1, 0 if code == 0x43 else p[0])
    if code == 0x83:
        ms = <long long>u64(p)
        if ms < 0 or ms % 1000:
            return NULL
        out[0] = 0x54
        return put64(out + 1, ms // 1000)
    if code == 0x40:
        out[0] = 0x56
    elif code == 0x50:
        out[0] = 0x42
    elif code == 0x51:
        out[0] = 0x62
    elif code == 0x60:
        out[0] = 0x75
    elif code == 0x61:
        out[0] = 0x73
    elif code == 0x70:
        out[0] = 0x69
    elif code == 0x71:
        out[0] = 0x49
    elif code == 0x72:
        out[0] = 0x66
    elif code == 0x81:
        out[0] = 0x6C
    elif code == 0x82:
        out[0] = 0x64
    else:
        return NULL
    n = after - p
    memcpy(out + 1, p, n)
    return out + 1 + n


cdef inline const unsigned char* _after(const unsigned char* p,
                                        const unsigned char* end) noexcept:
    """Return where a value ends; NULL for a described one, or one that runs over the end."""
    cdef int kind
    cdef Py_ssize_t n
    if p >= end:
        return NULL
    kind = p[0] >> 4
    if kind == 4:
        n = 0
    elif kind < 4:
        return NULL
    elif kind < 10:
        n = 1 << (kind - 5)
    elif kind & 1:
        if end - p < 5:
            return NULL
        n = 4 + <Py_ssize_t>u32(p + 1)
    else:
        if end - p < 2:
            return NULL
        n = 1 + p[1]
    return p + 1 + n if n < end - p else NULL


cdef inline bint _text(const unsigned char* p, const unsigned char* after, int code,
                       Text* text) noexcept:
    """Take a value of that code, a string or the like, with one octet or four of length."""
    if p[0] == code:
        text.p = p + 2
    elif p[0] == code | 0x10:
        text.p = p + 5
    else:
        return False
    text.n = after - text.p
    return True


cdef inline bint _is(const Text* text, const char* name, Py_ssize_t n) noexcept:
    return text.n == n and memcmp(text.p, name, n) == 0


cdef inline unsigned char* _put_header(unsigned char* out, const char* name, Py_ssize_t n,
                                       const Text* text) noexcept:
    out[0] = n
    memcpy(out + 1, name, n)
    out += 1 + n
    out[0] = 0x53
    out = put32(out + 1, text.n)
    memcpy(out, text.p, text.n)
    return out + text.n


cdef inline unsigned char* _put_short(unsigned char* out, const Text* text, unsigned int* flags,
                                      int bit) noexcept:
    if text.p == NULL:
        return out
    flags[0] |= 1 << bit
    out[0] = text.n
    memcpy(out + 1, text.p, text.n)
    return out + 1 + text.n


cdef unsigned char* _put_exact(unsigned char* out, const unsigned char* expires,
                               const unsigned char* created) noexcept:
    """Write the header with the times that are no whole seconds, as fields 8 and 9 of a list."""
    cdef int count = 10 if created != NULL else 9
    cdef int n = 8 + (9 if expires != NULL else 1) + (9 if created != NULL else 0)
    memcpy(out, b"\x0fx-amqp-sectionsx", 17)
    out = put32(out + 17, 6 + n)
    memcpy(out, b"\0\x53\x73\xc0", 4)
    out[4] = n + 1
    out[5] = count
    memset(out + 6, 0x40, 9)
    out += 14
    if expires != NULL:
        memcpy(out, expires, 9)
        out += 9
    else:
        out += 1
    if created != NULL:
        memcpy(out, created, 9)
        out += 9
    return out


cpdef bytes listed(bytes raw):
    """Convert sections to a property list; None if they are not plain. See the twin."""
    cdef const unsigned char* p = <const unsigned char*>PyBytes_AS_STRING(raw)
    cdef const unsigned char* end = p + PyBytes_GET_SIZE(raw)
    cdef const unsigned char* value
    cdef const unsigned char* after
    cdef const unsigned char* next
    cdef const unsigned char* expires = NULL
    cdef const unsigned char* exact[2]      # times that are no whole seconds
    cdef unsigned char[SPACE] table
    cdef unsigned char[SPACE] out
    cdef unsigned char* headers = table
    cdef unsigned char* to
    cdef Text[13] fields
    cdef Text[2] more           # type and cluster-id
    cdef Text name
    cdef Text ttl
    cdef char[24] digits
    cdef long long number = -1
    cdef unsigned long long seconds = 0
    cdef unsigned int flags = 0
    cdef int section, index, mode = -1, priority = -1
    cdef bint timed = False
    if PyBytes_GET_SIZE(raw) > MOST:
        return None
    memset(fields, 0, sizeof(fields))
    memset(more, 0, sizeof(more))
    exact[0] = exact[1] = NULL
    while p < end:
        # The input was checked when it was received: what is said here of ends is for the C.
        if end - p < 4 or p[1] != 0x53:
            return None
        section = p[2]
        value = p + 3
        if value[0] == 0x45:
            p = value + 1
            continue
        after = _after(value, end)
        if after == NULL or value[0] < 0xC0:
            return None
        p = value + (9 if value[0] & 0x10 else 3)
        if section == HEADER:
            index = 0
            while p < after and index < 3:
                next = _after(p, after)
                if next == NULL or index == 13:
                    return None
                if p[0] != 0x40:
                    if index == 0:
                        mode = 2 if p[0] == 0x41 or (p[0] == 0x56 and p[1]) else 1
                    elif index == 1 and p[0] == 0x50:
                        priority = p[1]
                    elif p[0] == 0x43:
                        number = 0
                    elif p[0] == 0x52:
                        number = p[1]
                    elif p[0] == 0x70:
                        number = u32(p + 1)
                    else:
                        return None
                p = next
                index += 1
        elif section == FIELDS:
            index = 0
            while p < after:
                next = _after(p, after)
                if next == NULL or index == 13:
                    return None
                if p[0] != 0x40:
                    if index == 8 or index == 9:
                        if p[0] != 0x83 or <long long>u64(p + 1) < 0:
                            return None
                        if index == 8:
                            expires = p
                        else:
                            seconds = u64(p + 1) // 1000
                            timed = True
                        if u64(p + 1) % 1000:
                            exact[index - 8] = p
                    elif index == 11:
                        return None
                    elif not _text(p, next, 0xA0 if index == 1 else 0xA3 if 6 <= index <= 7 else
                                   0xA1, &fields[index]):
                        return None
                    elif fields[index].n > SHORT:
                        return None
                p = next
                index += 1
            for index in (0, 5):
                if fields[index].p != NULL and _begins(fields[index].p, fields[index].n,
                                                       b"urn:uuid:", 9):
                    return None
            if fields[4].p != NULL:
                if not _begins(fields[4].p, fields[4].n, b"/queues/", 8):
                    return None
                fields[4].p += 8
                fields[4].n -= 8
                if not _plain_address(fields[4].p, fields[4].n):
                    return None
            if fields[2].p != NULL:
                headers = _put_header(headers, b"x-amqp-to", 9, &fields[2])
            if fields[3].p != NULL:
                headers = _put_header(headers, b"x-amqp-subject", 14, &fields[3])
            if expires != NULL:
                memcpy(headers, b"\x11x-amqp-expires-atT", 19)
                headers = put64(headers + 19, u64(expires + 1) // 1000)
            if fields[12].p != NULL:
                headers = _put_header(headers, b"x-amqp-reply-to-group-id", 24, &fields[12])
        else:
            while p < after:
                next = _after(p, after)
                index = 0xA3 if section == ANNOTATIONS else 0xA1
                if next == NULL or not _text(p, next, index, &name):
                    return None
                if name.n > SHORT or name.n == 0:
                    return None
                if _begins(name.p, name.n, b"x-", 2):
                    if section != ANNOTATIONS:
                        return None
                    if _reserved(name.p, name.n):
                        index = 0 if _is(&name, b"x-basic-type", 12) else 1 if _is(
                            &name, b"x-amqp-cluster-id", 17) else 2
                        p = next
                        next = _after(p, after)
                        if next == NULL or index == 2 or not _text(p, next, 0xA1, &more[index]):
                            return None
                        if more[index].n > SHORT:
                            return None
                        p = next
                        continue
                elif section == ANNOTATIONS or _routes(name.p, name.n):
                    return None
                headers[0] = name.n
                memcpy(headers + 1, name.p, name.n)
                headers += 1 + name.n
                p = next
                next = _after(p, after)
                if next == NULL:
                    return None
                headers = _put_field(headers, p, next)
                if headers == NULL:
                    return None
                p = next
        p = after
    if exact[0] != NULL or exact[1] != NULL:
        headers = _put_exact(headers, exact[0], exact[1])
    to = out + 2
    to = _put_short(to, &fields[6], &flags, 15)
    to = _put_short(to, &fields[7], &flags, 14)
    if headers > table:
        flags |= 1 << 13
        to = put32(to, headers - table)
        memcpy(to, table, headers - table)
        to += headers - table
    if mode >= 0:
        flags |= 1 << 12
        to[0] = mode
        to += 1
    if priority >= 0:
        flags |= 1 << 11
        to[0] = priority
        to += 1
    to = _put_short(to, &fields[5], &flags, 10)
    to = _put_short(to, &fields[4], &flags, 9)
    if number >= 0:
        index = 24
        while True:
            index -= 1
            digits[index] = 48 + number % 10
            number //= 10
            if number == 0:
                break
        ttl.p = <const unsigned char*>digits + index
        ttl.n = 24 - index
        to = _put_short(to, &ttl, &flags, 8)
    to = _put_short(to, &fields[0], &flags, 7)
    if timed:
        flags |= 1 << 6
        to = put64(to, seconds)
    to = _put_short(to, &more[0], &flags, 5)
    to = _put_short(to, &fields[1], &flags, 4)
    to = _put_short(to, &fields[10], &flags, 3)
    to = _put_short(to, &more[1], &flags, 2)
    out[0] = flags >> 8
    out[1] = flags & 0xFF
    return PyBytes_FromStringAndSize(<const char*>out, to - out)


# --- to 1.0 -------------------------------------------------------------------------------------


cdef unsigned char* _put_value(unsigned char* out, const unsigned char** at,
                               const unsigned char* end) noexcept:
    """Write the value of a table at a tag as one of 1.0; NULL if it is not plain."""
    cdef const unsigned char* p = at[0]
    cdef Py_ssize_t n, left = end - p - 1
    cdef int tag
    cdef long long number
    if left < 0:
        return NULL
    tag = p[0]
    p += 1
    if left < WIDTHS[tag]:
        return NULL
    if tag == 0x53 or tag == 0x78:
        n = u32(p)
        p += 4
        if n > left - 4:
            return NULL
        if tag == 0x53 and not _ascii(p, n):
            return NULL
        at[0] = p + n
        return _put_sized(out, 0xA1 if tag == 0x53 else 0xA0, p, n)
    if tag == 0x74:
        at[0] = p + 1
        out[0] = 0x41 if p[0] else 0x42
        return out + 1
    if tag == 0x49:
        number = <int>u32(p)
        at[0] = p + 4
        if -128 <= number <= 127:
            out[0] = 0x54
            out[1] = p[3]
            return out + 2
        out[0] = 0x71
        return put32(out + 1, u32(p))
    if tag == 0x6C or tag == 0x4C:
        number = <long long>u64(p)
        at[0] = p + 8
        if -128 <= number <= 127:
            out[0] = 0x55
            out[1] = p[7]
            return out + 2
        out[0] = 0x81
        return put64(out + 1, u64(p))
    if tag == 0x69:
        at[0] = p + 4
        if u32(p) == 0:
            out[0] = 0x43
            return out + 1
        if u32(p) <= 255:
            out[0] = 0x52
            out[1] = p[3]
            return out + 2
        out[0] = 0x70
        return put32(out + 1, u32(p))
    if tag == 0x54:
        if u64(p) > LATEST:
            return NULL
        at[0] = p + 8
        out[0] = 0x83
        return put64(out + 1, u64(p) * 1000)
    if tag == 0x56:
        at[0] = p
        out[0] = 0x40
        return out + 1
    if tag == 0x64:
        out[0], n = 0x82, 8
    elif tag == 0x66:
        out[0], n = 0x72, 4
    elif tag == 0x62:
        out[0], n = 0x51, 1
    elif tag == 0x42:
        out[0], n = 0x50, 1
    elif tag == 0x73:
        out[0], n = 0x61, 2
    elif tag == 0x75:
        out[0], n = 0x60, 2
    else:
        return NULL
    at[0] = p + n
    memcpy(out + 1, p, n)
    return out + 1 + n


cdef inline unsigned char* _put_text(unsigned char* out, int code, const Text* text) noexcept:
    if text.p == NULL:
        out[0] = 0x40
        return out + 1
    return _put_sized(out, code, text.p, text.n)


cpdef Properties sectioned(bytes raw):
    """Convert a property list to sections; None if it is not plain. See the twin."""
    cdef const unsigned char* p = <const unsigned char*>PyBytes_AS_STRING(raw)
    cdef const unsigned char* limit = p + PyBytes_GET_SIZE(raw)
    cdef const unsigned char* end
    cdef unsigned int flags
    cdef unsigned char[SPACE] annotations
    cdef unsigned char[SPACE] application
    cdef unsigned char[SPACE] out
    cdef unsigned char* notes = annotations
    cdef unsigned char* mine = application
    cdef unsigned char* to = out
    cdef unsigned char* begin
    cdef Text[16] texts
    cdef Text[NAMES] seen
    cdef Text reply
    cdef unsigned char[300] address
    cdef int bit, index, count = 0, of_notes = 0, of_mine = 0, mode = -1, priority = -1
    cdef long long ttl = -1
    cdef unsigned long long seconds = 0
    cdef bint timed = False
    cdef Py_ssize_t n, last
    cdef Properties properties
    if not 2 <= PyBytes_GET_SIZE(raw) <= MOST:
        return None
    memset(texts, 0, sizeof(texts))
    flags = u16(p)
    p += 2
    for bit in range(15, 1, -1):
        if not flags & (1 << bit):
            continue
        # Each but the table and the timestamp begins with an octet.
        if limit - p < (4 if bit == 13 else 8 if bit == 6 else 1):
            return None
        if bit == 13:
            n = u32(p)
            p += 4
            if n > limit - p:
                return None
            end = p + n
            while p < end:
                n = p[0]
                p += 1
                if n > end - p:
                    return None
                if count == NAMES or n == 0 or not _ascii(p, n):
                    return None
                for index in range(count):
                    # A map has each key once.
                    if seen[index].n == n and memcmp(seen[index].p, p, n) == 0:
                        return None
                seen[count].p = p
                seen[count].n = n
                count += 1
                if _begins(p, n, b"x-", 2):
                    if _reserved(p, n):
                        return None
                    notes = _put_sized(notes, 0xA3, p, n)
                    p += n
                    notes = _put_value(notes, &p, end)
                    if notes == NULL:
                        return None
                    of_notes += 2
                else:
                    if _routes(p, n):
                        return None
                    mine = _put_sized(mine, 0xA1, p, n)
                    p += n
                    mine = _put_value(mine, &p, end)
                    if mine == NULL:
                        return None
                    of_mine += 2
        elif bit == 12:
            mode = p[0]
            if mode != 1 and mode != 2:
                return None
            p += 1
        elif bit == 11:
            priority = p[0]
            p += 1
        elif bit == 6:
            seconds = u64(p)
            if seconds > LATEST:
                return None
            timed = True
            p += 8
        else:
            texts[bit].p = p + 1
            texts[bit].n = p[0]
            if p[0] >= limit - p:
                return None
            if bit != 4 and not _ascii(p + 1, p[0]):
                return None
            p += 1 + p[0]
    for bit in (7, 10):
        if texts[bit].p != NULL and _begins(texts[bit].p, texts[bit].n, b"urn:uuid:", 9):
            return None
    if texts[9].p != NULL:
        if not _plain_address(texts[9].p, texts[9].n):
            return None
        memcpy(address, b"/queues/", 8)
        memcpy(address + 8, texts[9].p, texts[9].n)
        reply.p = address
        reply.n = 8 + texts[9].n
    else:
        reply.p = NULL
        reply.n = 0
    if texts[8].p != NULL:
        n = texts[8].n
        if n == 0 or n > 10 or (n > 1 and texts[8].p[0] == 48):
            return None
        ttl = 0
        for index in range(n):
            if not 48 <= texts[8].p[index] <= 57:
                return None
            ttl = ttl * 10 + texts[8].p[index] - 48
        if ttl > 0xFFFFFFFF:
            return None
    if texts[5].p != NULL:
        if texts[5].n == 8 and memcmp(texts[5].p, b"amqp-1.0", 8) == 0:
            return None
        notes = _put_sized(notes, 0xA3, b"x-basic-type", 12)
        notes = _put_sized(notes, 0xA1, texts[5].p, texts[5].n)
        of_notes += 2
    if texts[2].p != NULL:
        notes = _put_sized(notes, 0xA3, b"x-amqp-cluster-id", 17)
        notes = _put_sized(notes, 0xA1, texts[2].p, texts[2].n)
        of_notes += 2
    if mode >= 0 or priority >= 0 or ttl >= 0:
        begin = to + 6
        to = begin
        to[0] = 0x40 if mode < 0 else 0x41 if mode == 2 else 0x42
        to += 1
        index = 1
        if priority >= 0 or ttl >= 0:
            index = 2
            if priority < 0:
                to[0] = 0x40
                to += 1
            else:
                to[0] = 0x50
                to[1] = priority
                to += 2
        if ttl >= 0:
            index = 3
            if ttl == 0:
                to[0] = 0x43
                to += 1
            elif ttl <= 255:
                to[0] = 0x52
                to[1] = ttl
                to += 2
            else:
                to[0] = 0x70
                to = put32(to + 1, <unsigned int>ttl)
        memcpy(begin - 6, b"\0\x53\x70\xc0", 4)
        begin[-2] = to - begin + 1
        begin[-1] = index
    if of_notes:
        to = _put_compound(to, ANNOTATIONS, 0xC1, of_notes, annotations, notes - annotations)
    # Up to the last field that is there.
    last = 0
    if texts[3].p != NULL:
        last = 11
    elif timed:
        last = 10
    elif texts[14].p != NULL:
        last = 8
    elif texts[15].p != NULL:
        last = 7
    elif texts[10].p != NULL:
        last = 6
    elif texts[9].p != NULL:
        last = 5
    elif texts[4].p != NULL:
        last = 2
    elif texts[7].p != NULL:
        last = 1
    if last:
        # The annotations are written: their space is free.
        notes = _put_text(annotations, 0xA1, &texts[7])
        if last > 1:
            notes = _put_text(notes, 0xA0, &texts[4])
        if last > 2:
            notes[0] = notes[1] = 0x40
            notes = _put_text(notes + 2, 0xA1, &reply)
        if last > 5:
            notes = _put_text(notes, 0xA1, &texts[10])
        if last > 6:
            notes = _put_text(notes, 0xA3, &texts[15])
        if last > 7:
            notes = _put_text(notes, 0xA3, &texts[14])
        if last > 8:
            notes[0] = 0x40
            notes += 1
            if timed:
                notes[0] = 0x83
                notes = put64(notes + 1, seconds * 1000)
            else:
                notes[0] = 0x40
                notes += 1
        if last > 10:
            notes = _put_text(notes, 0xA1, &texts[3])
        to = _put_compound(to, FIELDS, 0xC0, last, annotations, notes - annotations)
    if of_mine:
        to = _put_compound(to, APPLICATION, 0xC1, of_mine, application, mine - application)
    properties = Properties(
        PyBytes_FromStringAndSize(<const char*>out, to - out), 0 if mode < 0 else mode, priority,
        of_notes > 0 or of_mine > 0,
    )
    properties.family = FAMILY
    return properties
