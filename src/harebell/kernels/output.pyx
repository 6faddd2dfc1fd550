"""Encode frames in C into one growing buffer that is handed over without a copy.

output.py beside this file is the same in pure Python; both agree byte for byte.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF
from libc.string cimport memcpy

from harebell.base.arrivals cimport Arrivals
from harebell.base.body_frames import BodyFrames, encoded
from harebell.kernels.limits import LONG_BODY_BYTES
from harebell.base.message cimport Message, Properties
from harebell.kernels.octets cimport (
    END, HEADER, HEADER_FIXED, METHOD, OVERHEAD, PUBLISH_FIXED, framed_size, put16, put32, put64,
    put_body, put_head, put_name, put_publish, u16, u32, utf8,
)

cdef extern from "Python.h":
    PyObject* PyBytes_FromStringAndSize(const char* data, Py_ssize_t size) except NULL
    int _PyBytes_Resize(PyObject** data, Py_ssize_t size) except -1
    bytes bytes_of "PyBytes_FromStringAndSize"(const char* data, Py_ssize_t size)
    char* raw_string "PyBytes_AS_STRING"(PyObject* data)

cdef enum:
    BASIC = 60
    HEAD = 7
    IDS = 4                     # class and method, as the payload of a method frame begins
    FIRST_CAPACITY = 4096
    # A buffer starts at most this large: room for what a turn writes to a consumer
    # (OUTPUT_HIGH_BYTES in front/limits.py), and a message more.
    LAST_MAX = (1 << 20) + (1 << 16)

cdef long long UNLIMITED = 1 << 62

cdef Py_ssize_t LONG_BODY = LONG_BODY_BYTES


cdef enum:
    CONTENT_TYPE = 0x8000
    CONTENT_ENCODING = 0x4000
    HEADERS = 0x2000
    OFFSET_ENTRY = 25
    DELIVERIES_ENTRIES = 52
    TABLE_SIZE = 4


cdef Py_ssize_t find_headers(const unsigned char* raw, Py_ssize_t n, Py_ssize_t* end) noexcept:
    """Find where the header table begins and ends; -1 if the list is truncated.

    Both are the same if there is no table.
    """
    cdef Py_ssize_t at = 2
    cdef unsigned int flags
    if n < 2:
        return -1
    flags = (raw[0] << 8) | raw[1]
    if flags & CONTENT_TYPE:
        if at >= n:
            return -1
        at += 1 + raw[at]
    if flags & CONTENT_ENCODING:
        if at >= n:
            return -1
        at += 1 + raw[at]
    end[0] = at
    if flags & HEADERS:
        if at + TABLE_SIZE > n:
            return -1
        end[0] = at + TABLE_SIZE + <Py_ssize_t>u32(raw + at)
    return -1 if end[0] > n else at


cdef unsigned char* put_properties(unsigned char* p, const unsigned char* raw, Py_ssize_t n,
                                   Py_ssize_t at, Py_ssize_t end, Py_ssize_t more,
                                   Message message) noexcept:
    """Return the property list with `more` bytes of entries added to its header table."""
    cdef Py_ssize_t old = max(end - at - TABLE_SIZE, 0)
    memcpy(p, raw, at)
    # A list without a header table gets one, with these entries only.
    p[0] |= HEADERS >> 8
    p = put32(p + at, <unsigned int>(old + more))
    memcpy(p, raw + end - old, old)
    p += old
    if message.offset >= 0:
        p = put_name(p, b"x-stream-offset", 15)
        p[0] = c"l"
        p = put64(p + 1, message.offset)
    if message.deliveries > 0:
        p = put_name(p, b"x-delivery-count", 16)
        p[0] = c"l"
        p = put64(p + 1, message.deliveries)
        p = put_name(p, b"x-acquired-count", 16)
        p[0] = c"l"
        p = put64(p + 1, message.deliveries)
    memcpy(p, raw + end, n - end)
    return p + n - end


cdef inline Py_ssize_t content_size(Py_ssize_t n_raw, Py_ssize_t n_body) noexcept:
    """Return the size of the header frame and the one body frame of a content."""
    return HEADER_FIXED + n_raw + OVERHEAD + (n_body + OVERHEAD if n_body else 0)


cdef inline unsigned char* put_content(unsigned char* p, int channel, const void* raw,
                                       Py_ssize_t n_raw, const void* body,
                                       Py_ssize_t n_body) noexcept:
    """Write the frames of a content whose body fits into one."""
    p = put_head(p, HEADER, channel, HEADER_FIXED + n_raw)
    p = put64(put32(p, BASIC << 16), n_body)
    memcpy(p, raw, n_raw)
    p[n_raw] = END
    return put_body(p + n_raw + 1, channel, body, n_body, n_body)


cdef class OutBuffer:
    """The output of one connection in one turn; see the twin."""

    def __cinit__(self):
        self._bytes = NULL
        self._base = NULL
        self._capacity = 0
        self._last = FIRST_CAPACITY
        self._parts = None
        self._before = 0
        self.size = 0
        self.postpones = False

    def __dealloc__(self):
        Py_XDECREF(self._bytes)

    def __len__(self):
        return self.size

    cdef unsigned char* _room(self, Py_ssize_t more) except NULL:
        """Return the address for the next `more` bytes."""
        # The bytes in `_parts` are not in the buffer.
        cdef Py_ssize_t used = self.size - self._before
        cdef Py_ssize_t wanted = used + more
        cdef Py_ssize_t capacity
        if wanted > self._capacity:
            if self._bytes == NULL:
                # As much as lately: growing step by step copies everything once more.
                capacity = max(min(self._last, <Py_ssize_t>LAST_MAX), wanted)
                self._bytes = PyBytes_FromStringAndSize(NULL, capacity)
            else:
                capacity = max(self._capacity * 2, wanted)
                try:
                    _PyBytes_Resize(&self._bytes, capacity)
                except MemoryError:
                    # _PyBytes_Resize frees the block when it fails: its frames are lost.
                    self._base = NULL
                    self._capacity = 0
                    self.size = self._before
                    raise
            self._base = <unsigned char*>raw_string(self._bytes)
            self._capacity = capacity
        return self._base + used

    cpdef int raw(self, bytes data) except -1:
        """Append bytes that are already frames."""
        cdef Py_ssize_t n = PyBytes_GET_SIZE(data)
        if n == 0:
            # No room is NULL in an empty buffer, which would look like an error.
            return 0
        memcpy(self._room(n), PyBytes_AS_STRING(data), n)
        self.size += n
        return 0

    cpdef int frame(self, int kind, int channel, bytes payload) except -1:
        """Append one frame."""
        cdef Py_ssize_t n = PyBytes_GET_SIZE(payload)
        cdef unsigned char* p = self._room(n + OVERHEAD)
        p = put_head(p, kind, channel, n)
        memcpy(p, PyBytes_AS_STRING(payload), n)
        p[n] = END
        self.size += n + OVERHEAD
        return 0

    cpdef int deliver(self, int channel, bytes consumer_tag, unsigned long long tag,
                      bint redelivered, Message message, Py_ssize_t frame_max) except -1:
        """Append basic.deliver and the message's content."""
        cdef Py_ssize_t n_tag = PyBytes_GET_SIZE(consumer_tag), n_exchange, n_key, n, whole
        cdef Py_ssize_t n_raw = PyBytes_GET_SIZE(message.raw)
        cdef Py_ssize_t n_body = PyBytes_GET_SIZE(message.body)
        cdef const char* exchange = utf8(message.exchange, &n_exchange)
        cdef const char* key = utf8(message.routing_key, &n_key)
        # Mostly nothing is added and the body is one frame: then there is room for all at once.
        cdef bint simple = (message.offset < 0 and message.deliveries <= 0 and n_body < LONG_BODY
                            and n_body <= frame_max - OVERHEAD)
        cdef unsigned char* p
        n = 4 + n_tag + 9 + 2 + n_exchange + n_key
        whole = n + OVERHEAD
        if simple:
            whole += content_size(n_raw, n_body)
        p = self._room(whole)
        p = put_head(p, METHOD, channel, n)
        p = put32(p, 0x003C003C)
        memcpy(p, PyBytes_AS_STRING(consumer_tag), n_tag)
        p = put64(p + n_tag, tag)
        p[0] = redelivered
        p = put_name(p + 1, exchange, n_exchange)
        p = put_name(p, key, n_key)
        p[0] = END
        if simple:
            put_content(p + 1, channel, PyBytes_AS_STRING(message.raw), n_raw,
                        PyBytes_AS_STRING(message.body), n_body)
        self.size += whole
        if not simple:
            self._content_frames(channel, message, frame_max, BASIC)
        return 0

    cpdef int content(self, int channel, bytes method, Message message,
                      Py_ssize_t frame_max, unsigned int kind=BASIC) except -1:
        """Append a method that is already encoded, and the message's content."""
        self.frame(METHOD, channel, method)
        self._content_frames(channel, message, frame_max, kind)
        return 0

    cpdef int publish(self, int channel, int flags, Message message,
                      Py_ssize_t frame_max) except -1:
        """Append basic.publish and the message's content."""
        cdef Py_ssize_t n_exchange, n_key, n
        cdef const char* exchange = utf8(message.exchange, &n_exchange)
        cdef const char* key = utf8(message.routing_key, &n_key)
        cdef unsigned char* p
        if n_exchange > 255 or n_key > 255:
            raise ValueError("an exchange name or routing key has more than 255 octets")
        n = PUBLISH_FIXED + n_exchange + n_key + OVERHEAD
        put_publish(self._room(n), channel, flags, exchange, n_exchange, key, n_key)
        self.size += n
        self._content_frames(channel, message, frame_max, BASIC)
        return 0

    cdef Py_ssize_t _content_frames(self, int channel, Message message,
                                    Py_ssize_t frame_max, unsigned int kind) except -1:
        cdef bytes raw = message.raw
        cdef Py_ssize_t n = PyBytes_GET_SIZE(raw)
        cdef Py_ssize_t left = PyBytes_GET_SIZE(message.body), payload_max
        cdef const char* body = PyBytes_AS_STRING(message.body)
        cdef const unsigned char* properties = <const unsigned char*>PyBytes_AS_STRING(raw)
        cdef Py_ssize_t more = 0, at = -1, end = 0, size = n
        cdef unsigned char* p
        cdef unsigned char* start
        if message.offset >= 0 or message.deliveries > 0:
            # Only a delivery has these entries, so they are added here and not to the stored
            # message.
            at = find_headers(properties, n, &end)
            if at >= 0:
                more = OFFSET_ENTRY if message.offset >= 0 else 0
                more += DELIVERIES_ENTRIES if message.deliveries > 0 else 0
                size = n + more + (TABLE_SIZE if end == at else 0)
        payload_max = frame_max - OVERHEAD
        cdef bint later = self.postpones and left >= LONG_BODY
        # Room for all frames at once: nothing below can fail, so no part of a content is left
        # behind.
        start = p = self._room(HEADER_FIXED + size + OVERHEAD
                               + (0 if later else framed_size(left, payload_max)))
        p = put_head(p, HEADER, channel, HEADER_FIXED + size)
        p = put32(p, kind << 16)
        p = put64(p, left)
        if at < 0:
            memcpy(p, properties, n)
            p += n
        else:
            p = put_properties(p, properties, n, at, end, more, message)
        p[0] = END
        p += 1
        if later:
            self.size += p - start
            self.postpone(BodyFrames(channel, message.body, payload_max))
            return 0
        self.size += put_body(p, channel, body, left, payload_max) - start
        return 0

    cpdef int postpone(self, object frames) except -1:
        """Append frames that are encoded when they are written."""
        if self._parts is None:
            self._parts = []
        if self.size > self._before:
            # The bytes before the body are a part of their own, which keeps the order of the
            # frames.
            self._parts.append(self._take_buffer())
        self._parts.append(frames)
        self.size += <Py_ssize_t>frames.left
        self._before = self.size
        return 0

    cpdef int ack(self, int channel, unsigned long long tag, bint multiple) except -1:
        """Append basic.ack."""
        cdef unsigned char* p = self._room(21)
        p = put_head(p, METHOD, channel, 13)
        p = put32(p, 0x003C0050)
        p = put64(p, tag)
        p[0] = multiple
        p[1] = END
        self.size += 21
        return 0

    cpdef bytes take(self):
        """Return everything appended so far and empty the buffer."""
        cdef bytes taken
        if self._parts is None:
            taken = self._take_buffer()
            self.size = 0
            return taken
        return encoded(self.take_parts())

    cpdef list take_parts(self):
        """Return the parts in order: bytes, and frames of bodies that are encoded later."""
        cdef list parts = self._parts
        if self._parts is None:
            parts = []
        if self.size > self._before:
            parts.append(self._take_buffer())
        self._parts = None
        self._before = self.size = 0
        return parts

    cdef bytes _take_buffer(self):
        """Detach and return the content of the buffer; the caller sets `size`."""
        cdef PyObject* data = self._bytes
        cdef Py_ssize_t used = self.size - self._before
        if used == 0:
            return b""
        self._bytes = NULL
        self._base = NULL
        self._capacity = 0
        # Less by an eighth at most: small outputs come between large ones.
        self._last = max(used, self._last - (self._last >> 3), <Py_ssize_t>FIRST_CAPACITY)
        # No other reference to the object exists yet, so shrinking it in place is allowed.
        _PyBytes_Resize(&data, used)
        result = <bytes>data
        Py_XDECREF(data)
        return result


cdef Arrivals NO_PUBLISHER = Arrivals()


cdef class Passage:
    """The way of publishes that repeat the method of the last one; see the twin."""

    def __cinit__(self):
        self.limit = UNLIMITED

    cdef int _put(self, Properties properties, const unsigned char* body,
                  Py_ssize_t n) except -1:
        """Pass on a message; return 0 if it has to go the usual way."""
        return self.put(properties, bytes_of(<const char*>body, n))

    cpdef bint put(self, Properties properties, bytes body) except -1:
        raise NotImplementedError

    cpdef int end(self) except -1:
        raise NotImplementedError


cdef class OutputPassage(Passage):
    """The way into the output of a consumer; see the twin."""

    def __init__(self, object consumer, OutBuffer out not None, Py_ssize_t size_max,
                 Py_ssize_t output_max, bint plain):
        self.consumer = consumer
        self.count = 0
        self.out = out
        self.size_max = size_max
        self.output_max = output_max
        self.plain = plain
        self.arrivals = NO_PUBLISHER
        self.answered = False

    cpdef int open_to(self, object publisher, Arrivals arrivals, bint answered,
                      Py_ssize_t size_max, bint plain) except -1:
        """Say what the publisher adds; see the twin."""
        self._publisher = publisher
        self.arrivals = arrivals
        self.answered = answered
        self.size_max = min(self.size_max, size_max)
        self.plain = self.plain or plain
        return 0

    cpdef int end(self) except -1:
        """Have it counted what has gone this way; see the twin."""
        if self.count:
            self._publisher.passed(self)
        return 0


cdef class DeliveryPassage(OutputPassage):
    """The way into the output of a consumer of the 0-9-1 family; see the twin."""

    def __init__(self, object consumer, OutBuffer out not None, bytes frames not None,
                 Py_ssize_t consumer_tag_size, unsigned long long tag, Py_ssize_t frame_max,
                 Py_ssize_t output_max, bint plain):
        cdef const unsigned char* p = <const unsigned char*>PyBytes_AS_STRING(frames)
        # A body of several frames, and one that is encoded when it is written, goes the usual way.
        OutputPassage.__init__(self, consumer, out, min(frame_max - OVERHEAD, LONG_BODY - 1),
                               output_max, plain)
        self._method = frames[:u32(p + 3) + OVERHEAD]
        self._channel = u16(p + 1)
        self._tag_at = HEAD + IDS + consumer_tag_size
        self._tag = tag

    cpdef bint put(self, Properties properties, bytes body) except -1:
        """Deliver a message; see the twin."""
        return self._put(properties, <const unsigned char*>PyBytes_AS_STRING(body),
                         PyBytes_GET_SIZE(body))

    cdef int _put(self, Properties properties, const unsigned char* body,
                  Py_ssize_t n) except -1:
        """Deliver a message; return 0 if it has to go the usual way."""
        cdef OutBuffer out = self.out
        cdef Py_ssize_t n_method = PyBytes_GET_SIZE(self._method)
        cdef Py_ssize_t n_raw = PyBytes_GET_SIZE(properties.raw)
        cdef Py_ssize_t whole = n_method + content_size(n_raw, n)
        cdef unsigned char* p
        if (n > self.size_max or out.size >= self.output_max
                or (self.plain and properties.has_headers)):
            return 0
        p = out._room(whole)
        memcpy(p, PyBytes_AS_STRING(self._method), n_method)
        put64(p + self._tag_at, self._tag)
        put_content(p + n_method, self._channel, PyBytes_AS_STRING(properties.raw), n_raw, body, n)
        out.size += whole
        self.arrivals.count(n, 1, self.answered)
        self._tag += 1
        self.count += 1
        return 1
