"""Write the frames of AMQP 0-10 in C.

transfers.py beside this file is the same in pure Python; both agree byte for byte.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.string cimport memcmp, memcpy

from harebell.base.body_frames import SegmentFrames
from harebell.kernels.limits import LONG_BODY_BYTES
from harebell.base.message cimport Message
from harebell.kernels.octets cimport put16, put32, put64, put_name, u16, u32, utf8
from harebell.kernels.output cimport OutBuffer

cdef enum:
    C_CONTROL = 0
    C_COMMAND = 1
    C_HEADER = 2
    C_BODY = 3
    C_FIRST_SEGMENT = 8
    C_LAST_SEGMENT = 4
    C_FIRST_FRAME = 2
    C_LAST_FRAME = 1
    HEAD = 12
    DELIVERY_CODE = 0x0401
    MESSAGE_CODE = 0x0403
    HEADERS = 0x0100
    EXCHANGE = 0x0100
    KEY = 0x0200
    STRUCT_HEAD = 8
    OFFSET_ENTRY = 25
    DELIVERIES_ENTRY = 26

cdef Py_ssize_t LONG_BODY = LONG_BODY_BYTES
cdef const unsigned char* C_NO_BODY = b"\0\0\0\x04\xff\xff\0\0"


cdef inline unsigned char* put_struct(unsigned char* p, Py_ssize_t fields, int code,
                                      unsigned int packed) noexcept:
    p = put32(p, <unsigned int>(fields + 4))
    p = put16(p, code)
    p[0] = packed & 0xFF
    p[1] = packed >> 8
    return p + 2


cdef inline Py_ssize_t before_exchange(unsigned int packed) noexcept:
    """Return the size of the delivery properties before the exchange."""
    cdef Py_ssize_t n = ((packed >> 3) & 1) + ((packed >> 4) & 1)
    if packed & 0xE0:
        n += 8 * (((packed >> 5) & 1) + ((packed >> 6) & 1) + ((packed >> 7) & 1))
    return n


cdef class SegmentBuffer(OutBuffer):
    """The output of one connection in one turn, in frames of AMQP 0-10; see the twin."""

    cpdef int segments(self, int kind, int channel, bytes payload, Py_ssize_t frame_max) except -1:
        """Append an assembly of one segment."""
        return self._segment(kind, 0 if kind == C_CONTROL else 1, channel,
                             <const unsigned char*>PyBytes_AS_STRING(payload),
                             PyBytes_GET_SIZE(payload), C_FIRST_SEGMENT | C_LAST_SEGMENT,
                             frame_max)

    cpdef int assembly(self, int channel, bytes command, bytes header, bytes body,
                       Py_ssize_t frame_max) except -1:
        """Append a command with its header and body; empty ones are left out."""
        cdef Py_ssize_t n_header = PyBytes_GET_SIZE(header), n_body = PyBytes_GET_SIZE(body)
        cdef int place = C_FIRST_SEGMENT
        if n_header == 0 and n_body == 0:
            place |= C_LAST_SEGMENT
        self._segment(C_COMMAND, 1, channel, <const unsigned char*>PyBytes_AS_STRING(command),
                      PyBytes_GET_SIZE(command), place, frame_max)
        if n_header:
            self._segment(C_HEADER, 1, channel, <const unsigned char*>PyBytes_AS_STRING(header),
                          n_header, 0 if n_body else C_LAST_SEGMENT, frame_max)
        if n_body:
            self._segment(C_BODY, 1, channel, <const unsigned char*>PyBytes_AS_STRING(body),
                          n_body, C_LAST_SEGMENT, frame_max)
        return 0

    cpdef int transfer(self, int channel, bytes command, bint redelivered, Message message,
                       Py_ssize_t frame_max) except -1:
        """Append a delivery."""
        cdef bytes raw = message.raw
        cdef Py_ssize_t n = PyBytes_GET_SIZE(raw), n_exchange, n_key, room, written
        cdef Py_ssize_t n_body = PyBytes_GET_SIZE(message.body)
        cdef const unsigned char* source = <const unsigned char*>PyBytes_AS_STRING(raw)
        cdef const char* exchange = utf8(message.exchange, &n_exchange)
        cdef const char* key = utf8(message.routing_key, &n_key)
        cdef unsigned char* p
        # Most headers fit into the stack, so that a delivery allocates nothing.
        cdef unsigned char small[512]
        cdef unsigned char* header = small
        cdef int header_place = 0
        if n_body == 0 and n >= STRUCT_HEAD and memcmp(source + n - STRUCT_HEAD, C_NO_BODY,
                                                       STRUCT_HEAD) == 0:
            # The struct that marks a transfer without a body is Harebell's own: no peer gets it.
            n -= STRUCT_HEAD
            header_place = C_LAST_SEGMENT
        self._segment(C_COMMAND, 1, channel, <const unsigned char*>PyBytes_AS_STRING(command),
                      PyBytes_GET_SIZE(command), C_FIRST_SEGMENT, frame_max)
        room = n + n_exchange + n_key + 2 + 2 * STRUCT_HEAD + 8 + OFFSET_ENTRY + DELIVERIES_ENTRY
        if room > 512:
            header = <unsigned char*>PyMem_Malloc(room)
            if header == NULL:
                raise MemoryError
        try:
            written = _put_header(header, source, n, exchange, n_exchange, key, n_key,
                                  redelivered, message)
            if written < 0:
                # A list that cannot be decoded is sent unchanged.
                self._segment(C_HEADER, 1, channel, source, n, header_place, frame_max)
            else:
                self._segment(C_HEADER, 1, channel, header, written, header_place, frame_max)
        finally:
            if header != small:
                PyMem_Free(header)
        if self.postpones and n_body >= LONG_BODY:
            self.postpone(SegmentFrames(channel, message.body, frame_max - HEAD))
            return 0
        # An empty body is sent as an empty body: clients distinguish it from no body.
        if header_place == 0:
            self._segment(C_BODY, 1, channel,
                          <const unsigned char*>PyBytes_AS_STRING(message.body), n_body,
                          C_LAST_SEGMENT, frame_max)
        return 0

    cdef int _segment(self, int kind, int track, int channel, const unsigned char* payload,
                      Py_ssize_t n, int place, Py_ssize_t frame_max) except -1:
        cdef Py_ssize_t payload_max = frame_max - HEAD, left = n, part
        cdef unsigned char* p
        cdef int flags = place | C_FIRST_FRAME
        p = self._room(n + HEAD * (1 + n // payload_max))
        # A segment without bytes is one frame too.
        while True:
            part = min(left, payload_max)
            left -= part
            if left == 0:
                flags |= C_LAST_FRAME
            p[0] = flags
            p[1] = kind
            put16(p + 2, <unsigned int>(part + HEAD))
            p[4] = 0
            p[5] = track
            put16(p + 6, channel)
            # Bytes 4 and 8 to 11 are reserved and zero (AMQP 0-10 4.2).
            put32(p + 8, 0)
            memcpy(p + HEAD, payload, part)
            p += part + HEAD
            payload += part
            self.size += part + HEAD
            if left == 0:
                return 0
            flags = place


cdef Py_ssize_t _put_header(unsigned char* header, const unsigned char* raw, Py_ssize_t n,
                            const char* exchange, Py_ssize_t n_exchange, const char* key,
                            Py_ssize_t n_key, bint redelivered, Message message) noexcept:
    """Write the header for the consumer and return its size; -1 if the source is malformed."""
    cdef bint more = message.offset >= 0 or message.deliveries > 0
    cdef bint delivery = False, properties = False
    cdef Py_ssize_t at = 0, end
    cdef unsigned int packed
    cdef unsigned char* p = header
    cdef int code
    # A publisher may leave them out; a consumer always learns exchange and routing key.
    if not _has_delivery_properties(raw, n):
        p = _put_delivery(p, raw, 0, 0, 0, exchange, n_exchange, key, n_key, redelivered)
        delivery = True
    while at < n:
        if n - at < STRUCT_HEAD:
            return -1
        end = at + 4 + <Py_ssize_t>u32(raw + at)
        if at + STRUCT_HEAD > end or end > n:
            return -1
        code = u16(raw + at + 4)
        packed = raw[at + 6] | (<unsigned int>raw[at + 7] << 8)
        # Only the first struct of its kind is changed; a second one is sent as it came.
        if code == DELIVERY_CODE and not delivery:
            delivery = True
            p = _put_delivery(p, raw, packed, at + STRUCT_HEAD, end, exchange, n_exchange, key,
                              n_key, redelivered)
        elif code == MESSAGE_CODE and more and not properties:
            properties = True
            p = _put_properties(p, raw, packed, at + STRUCT_HEAD, end, message)
        else:
            memcpy(p, raw + at, end - at)
            p += end - at
        if p == NULL:
            return -1
        at = end
    if more and not properties:
        p = _put_properties(p, raw, 0, 0, 0, message)
    return p - header


cdef bint _has_delivery_properties(const unsigned char* raw, Py_ssize_t n) noexcept:
    cdef Py_ssize_t at = 0
    while n - at >= STRUCT_HEAD:
        if u16(raw + at + 4) == DELIVERY_CODE:
            return True
        at += 4 + <Py_ssize_t>u32(raw + at)
    return False


cdef unsigned char* _put_delivery(unsigned char* p, const unsigned char* raw, unsigned int packed,
                                  Py_ssize_t at, Py_ssize_t end, const char* exchange,
                                  Py_ssize_t n_exchange, const char* key, Py_ssize_t n_key,
                                  bint redelivered) noexcept:
    """Write the delivery properties with the state of the message; NULL if they are malformed."""
    cdef Py_ssize_t middle = at + before_exchange(packed), rest = middle, fields
    cdef int bit
    # Exchange and routing key are replaced by those of this delivery, so theirs are skipped.
    for bit in range(2):
        if packed & (EXCHANGE << bit):
            if rest >= end:
                return NULL
            rest += 1 + raw[rest]
    if rest > end:
        return NULL
    # The exchange is always sent, also the default one; the publisher's redelivered flag stays.
    packed = (packed & ~<unsigned int>0x0200) | EXCHANGE
    if redelivered:
        packed |= 4
    fields = middle - at + end - rest + 1 + n_exchange
    if n_key:
        packed |= KEY
        fields += 1 + n_key
    p = put_struct(p, fields, DELIVERY_CODE, packed)
    memcpy(p, raw + at, middle - at)
    p += middle - at
    p = put_name(p, exchange, n_exchange)
    if n_key:
        p = put_name(p, key, n_key)
    memcpy(p, raw + rest, end - rest)
    return p + (end - rest)


cdef unsigned char* _put_properties(unsigned char* p, const unsigned char* raw,
                                    unsigned int packed, Py_ssize_t at, Py_ssize_t end,
                                    Message message) noexcept:
    """Write the message properties with entries added to the last field, the headers."""
    cdef Py_ssize_t more = 0, place = end, size = 0, kept
    cdef unsigned int count = 0
    if message.offset >= 0:
        more += OFFSET_ENTRY
        count += 1
    if message.deliveries > 0:
        more += DELIVERIES_ENTRY
        count += 1
    if packed & HEADERS:
        place = _headers_at(raw, packed, at, end)
        if place < 0:
            return NULL
        size = <Py_ssize_t>u32(raw + place)
        # A map is its size, and then a count of four bytes, or nothing at all when it is empty.
        if place + 4 + size != end or 0 < size < 4:
            return NULL
        if size:
            count += u32(raw + place + 4)
    kept = max(size - 4, 0)
    p = put_struct(p, place - at + 8 + kept + more, MESSAGE_CODE, packed | HEADERS)
    memcpy(p, raw + at, place - at)
    p = put32(p + place - at, <unsigned int>(4 + kept + more))
    p = put32(p, count)
    memcpy(p, raw + end - kept, kept)
    p += kept
    if message.offset >= 0:
        p = put_name(p, b"x-stream-offset", 15)
        p[0] = 0x31
        p = put64(p + 1, message.offset)
    if message.deliveries > 0:
        p = put_name(p, b"x-delivery-count", 16)
        p[0] = 0x31
        p = put64(p + 1, message.deliveries)
    return p


cdef Py_ssize_t _headers_at(const unsigned char* raw, unsigned int packed, Py_ssize_t at,
                            Py_ssize_t end) noexcept:
    """Return where the application headers begin; -1 if they are not found."""
    cdef int bit
    at += 8 * (packed & 1) + 16 * ((packed >> 1) & 1)
    for bit in range(2, 8):
        if not packed & (1 << bit):
            continue
        if bit == 4 or bit == 5:
            if at + 1 > end:
                return -1
            at += 1 + raw[at]
        else:
            if at + 2 > end:
                return -1
            at += 2 + <Py_ssize_t>u16(raw + at)
        if at > end:
            return -1
    return -1 if at + 4 > end else at
