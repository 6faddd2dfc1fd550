"""Write the frames of AMQP 1.0 in C.

transfers_1_0.py beside this file is the same in pure Python; both agree byte for byte.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.string cimport memcmp, memcpy, memmove, memset

from harebell.base.body_frames import TransferFrames
from harebell.kernels.limits import LONG_BODY_BYTES, PLAIN_LIST_BYTES
from harebell.base.message cimport Message, Properties, new_message
from harebell.kernels.octets cimport put16, put32, put64, u32, utf8
from harebell.kernels.output cimport OutBuffer, OutputPassage
from harebell.kernels.sections cimport count_of, section_at, skip_value

cdef enum:
    FRAME_HEAD = 8
    MORE_HEAD = 24          # octets before the payload in a frame that goes on with a delivery
    TAG_BYTES = 32
    TRANSFER_HEAD = 56      # most octets of the performative that begins a delivery
    DATA_HEAD = 8           # most octets of a data section before its content
    REMEMBERED = 512        # most octets of sections that are remembered
    ADDED = 200             # most octets that a delivery adds to `raw`, beside two names
    C_HEADER = 0x70
    C_MESSAGE_ANNOTATIONS = 0x72
    C_FAMILY = 100
    PERSISTENT = 2

cdef Py_ssize_t LONG_BODY = LONG_BODY_BYTES
cdef Py_ssize_t RAW_MAX = PLAIN_LIST_BYTES
cdef const char* DEATHS = b"\xa3\x0cx-opt-deaths"


cdef inline unsigned char* _put_uint(unsigned char* p, unsigned int number) noexcept:
    if number == 0:
        p[0] = 0x43
        return p + 1
    if number <= 255:
        p[0] = 0x52
        p[1] = <unsigned char>number
        return p + 2
    p[0] = 0x70
    return put32(p + 1, number)


cdef inline unsigned char* _put_boolean(unsigned char* p, bint value) noexcept:
    p[0] = 0x41 if value else 0x42
    return p + 1


cdef inline unsigned char* _put_key(unsigned char* p, const char* name, int n) noexcept:
    p[0] = 0xA3
    p[1] = n
    memcpy(p + 2, name, n)
    return p + 2 + n


cdef inline unsigned char* _put_long(unsigned char* p, long long number) noexcept:
    if number < 128:
        p[0] = 0x55
        p[1] = <unsigned char>number
        return p + 2
    p[0] = 0x81
    return put64(p + 1, number)


cdef inline unsigned char* _put_text(unsigned char* p, const char* text, Py_ssize_t n) noexcept:
    p[0] = 0xA1
    p[1] = <unsigned char>n
    memcpy(p + 2, text, n)
    return p + 2 + n


cdef inline unsigned char* _put_frame_head(unsigned char* p, int channel,
                                           Py_ssize_t size) noexcept:
    put32(p, <unsigned int>size)
    p[4] = 2
    p[5] = 0
    return put16(p + 6, channel)


cdef inline unsigned char* _put_more_head(unsigned char* p, int channel, unsigned int handle,
                                          Py_ssize_t size, bint more) noexcept:
    """Write what is before the payload in a frame that goes on with a delivery."""
    p = _put_frame_head(p, channel, size + MORE_HEAD)
    memcpy(p, b"\0\x53\x14\xc0\x0b\x06\x70", 7)
    p = put32(p + 7, handle)
    memset(p, 0x40, 4)
    return _put_boolean(p + 4, more)


cdef class TransferBuffer(OutBuffer):
    """The output of one connection in one turn, in frames of AMQP 1.0; see the twin."""

    cpdef int performative(self, int channel, bytes body) except -1:
        """Append a frame with a performative that is encoded, and its payload."""
        cdef Py_ssize_t n = PyBytes_GET_SIZE(body)
        cdef unsigned char* p = self._room(n + FRAME_HEAD)
        memcpy(_put_frame_head(p, channel, n + FRAME_HEAD), PyBytes_AS_STRING(body), n)
        self.size += n + FRAME_HEAD
        return 0

    cpdef Py_ssize_t transfer(self, int channel, unsigned int handle, unsigned int delivery_id,
                              bytes tag, bint settled, bint first_acquirer,
                              unsigned int delivery_count, long long ttl, Message message,
                              Py_ssize_t frame_max, Py_ssize_t window) except -1:
        """Append a delivery, if its frames are no more than the window; return their number."""
        cdef unsigned char[TRANSFER_HEAD] head
        cdef unsigned char* before
        cdef const unsigned char* body = <const unsigned char*>PyBytes_AS_STRING(message.body)
        cdef Py_ssize_t n_head, n_before, n_body = PyBytes_GET_SIZE(message.body), first
        cdef Py_ssize_t limit = frame_max - MORE_HEAD, left, payload, count
        cdef bint later = self.postpones and n_body >= LONG_BODY
        if tag is not None and PyBytes_GET_SIZE(tag) > TAG_BYTES:
            raise ValueError(f"a delivery tag of {len(tag)} octets, at most {TAG_BYTES} may be")
        if window > 0 and not later and self._single(
                channel, handle, delivery_id, tag, settled, first_acquirer, delivery_count, ttl,
                message, body, n_body, frame_max):
            return 1
        n_head = _put_transfer(head, handle, delivery_id, tag, settled) - head
        before = <unsigned char*>PyMem_Malloc(_bound(message))
        if before == NULL:
            raise MemoryError
        try:
            n_before = _put_before_data(before, message, first_acquirer, delivery_count,
                                        ttl) - before
            first = frame_max - FRAME_HEAD - n_head - 1
            payload = n_before if later else n_before + n_body
            left = max(payload - first, 0)
            count = 1 + (left + limit - 1) // limit
            if later:
                count += (n_body + limit - 1) // limit
            if count > window:
                return 0
            self._in_frames(channel, handle, head, n_head, before, n_before, body,
                            payload - n_before, frame_max, later)
        finally:
            PyMem_Free(before)
        if later:
            self.postpone(TransferFrames(channel, handle, message.body, limit))
        return count

    cdef int _single(self, int channel, unsigned int handle, unsigned int delivery_id, bytes tag,
                     bint settled, bint first_acquirer, unsigned int delivery_count,
                     long long ttl, Message message, const unsigned char* body,
                     Py_ssize_t n_body, Py_ssize_t frame_max) except -1:
        """Append a delivery in one frame; return 0 if it takes several: nothing is written.

        The body is given by itself; that of `message` is not used.
        """
        cdef unsigned char* start
        cdef unsigned char* p
        cdef Py_ssize_t size
        cdef bint remembered
        if n_body >= frame_max:
            return 0
        remembered = self._is_remembered(message, first_acquirer, delivery_count, ttl)
        size = PyBytes_GET_SIZE(self._sections) + DATA_HEAD if remembered else _bound(message)
        start = self._room(FRAME_HEAD + TRANSFER_HEAD + size + n_body)
        p = _put_transfer(start + FRAME_HEAD, handle, delivery_id, tag, settled)
        p = _put_boolean(p, False)
        if remembered:
            memcpy(p, PyBytes_AS_STRING(self._sections), PyBytes_GET_SIZE(self._sections))
            p += PyBytes_GET_SIZE(self._sections)
        else:
            p += self._put_sections(p, message, first_acquirer, delivery_count, ttl)
        if message.family == C_FAMILY:
            p = _put_data_head(p, n_body)
        size = p - start + n_body
        if size > frame_max:
            return 0
        memcpy(p, body, n_body)
        _put_frame_head(start, channel, size)
        self.size += size
        return 1

    # Messages of a publisher mostly have equal sections, which are one object then, and are sent
    # with the same octets before the body each time. A second one in a row has them remembered.
    cdef bint _is_remembered(self, Message message, bint first_acquirer,
                             unsigned int delivery_count, long long ttl) noexcept:
        """True if the sections before the body are those that are remembered."""
        return (message.raw is self._raw and self._sections is not None and ttl < 0
                and message.deliveries == 0 and message.offset < 0 and message.family == C_FAMILY
                and message.exchange is self._exchange and message.routing_key is self._key
                and message.delivery_mode == self._mode and message.priority == self._priority
                and first_acquirer == self._first and delivery_count == self._count)

    cdef Py_ssize_t _put_sections(self, unsigned char* p, Message message, bint first_acquirer,
                                  unsigned int delivery_count, long long ttl) except -1:
        """Write the sections before the body; remember them if others may have the same."""
        cdef Py_ssize_t n
        cdef bint again = message.raw is self._raw
        n = _put_before_body(p, message, first_acquirer, delivery_count, ttl) - p
        # Large ones would stay in memory for as long as the connection sends nothing else.
        self._raw = message.raw if PyBytes_GET_SIZE(message.raw) <= REMEMBERED else None
        self._sections = None
        if (again and ttl < 0 and message.deliveries == 0 and message.offset < 0
                and message.family == C_FAMILY and n <= REMEMBERED):
            self._sections = PyBytes_FromStringAndSize(<const char*>p, n)
            self._exchange = message.exchange
            self._key = message.routing_key
            self._mode = message.delivery_mode
            self._priority = message.priority
            self._first = first_acquirer
            self._count = delivery_count
        return n

    cdef int _in_frames(self, int channel, unsigned int handle, const unsigned char* head,
                        Py_ssize_t n_head, const unsigned char* before, Py_ssize_t n_before,
                        const unsigned char* body, Py_ssize_t n_body, Py_ssize_t frame_max,
                        bint later) except -1:
        cdef Py_ssize_t left = n_before + n_body, part, piece
        cdef Py_ssize_t limit = frame_max - MORE_HEAD
        cdef unsigned char* p
        cdef unsigned char* start
        start = p = self._room(left + FRAME_HEAD + n_head + 1 + MORE_HEAD * (2 + left // limit))
        part = min(left, frame_max - FRAME_HEAD - n_head - 1)
        p = _put_frame_head(p, channel, FRAME_HEAD + n_head + 1 + part)
        memcpy(p, head, n_head)
        p = _put_boolean(p + n_head, True)
        while True:
            left -= part
            # A part may begin in what is before the body and end in the body.
            piece = min(part, n_before)
            memcpy(p, before, piece)
            before += piece
            n_before -= piece
            memcpy(p + piece, body, part - piece)
            body += part - piece
            p += part
            if left == 0:
                break
            part = min(left, limit)
            p = _put_more_head(p, channel, handle, part, later or part < left)
        self.size += p - start
        return 0

    cpdef int disposition(self, int channel, bint role, unsigned int first, unsigned int last,
                          bint settled, bytes state) except -1:
        """Append a disposition."""
        cdef Py_ssize_t n = PyBytes_GET_SIZE(state)
        cdef unsigned char* start = self._room(FRAME_HEAD + 32 + n)
        cdef unsigned char* p = start + FRAME_HEAD
        cdef unsigned char* fields
        cdef unsigned char[16] numbers
        cdef Py_ssize_t n_numbers
        fields = _put_boolean(numbers, role)
        fields = _put_uint(fields, first)
        fields = _put_uint(fields, last)
        n_numbers = _put_boolean(fields, settled) - numbers
        p[0] = 0
        p[1] = 0x53
        p[2] = 0x15
        p = _put_list_head(p + 3, 5, n_numbers + (n if n else 1))
        memcpy(p, numbers, n_numbers)
        p += n_numbers
        if n:
            memcpy(p, PyBytes_AS_STRING(state), n)
            p += n
        else:
            p[0] = 0x40
            p += 1
        _put_frame_head(start, channel, p - start)
        self.size += p - start
        return 0

    cpdef int flow(self, int channel, long long next_incoming_id, long long incoming_window,
                   long long next_outgoing_id, long long outgoing_window, long long handle,
                   long long delivery_count, long long link_credit, long long available,
                   bint drain, bint echo) except -1:
        """Append a flow; numbers of -1 are left out, which is null."""
        cdef unsigned char* start = self._room(FRAME_HEAD + 64)
        cdef unsigned char* fields = start + FRAME_HEAD + 6
        cdef unsigned char* p = fields
        cdef int number
        cdef long long[8] numbers
        numbers[:] = [next_incoming_id, incoming_window, next_outgoing_id, outgoing_window,
                      handle, delivery_count, link_credit, available]
        for number in range(8):
            if numbers[number] < 0:
                p[0] = 0x40
                p += 1
            else:
                p = _put_uint(p, <unsigned int>numbers[number])
        p = _put_boolean(p, drain)
        p = _put_boolean(p, echo)
        memcpy(fields - 6, b"\0\x53\x13", 3)
        _put_list_head(fields - 3, 10, p - fields)
        _put_frame_head(start, channel, p - start)
        self.size += p - start
        return 0


cdef inline unsigned char* _put_list_head(unsigned char* p, int count,
                                          Py_ssize_t fields) noexcept:
    """Write what is before the fields of a list."""
    if fields < 255:
        p[0] = 0xC0
        p[1] = <unsigned char>(fields + 1)
        p[2] = count
        return p + 3
    p[0] = 0xD0
    return put32(put32(p + 1, <unsigned int>(fields + 4)), count)


cdef inline unsigned char* _put_transfer(unsigned char* p, unsigned int handle,
                                         unsigned int delivery_id, bytes tag,
                                         bint settled) noexcept:
    """Write the performative that begins a delivery, but for its last field, more."""
    cdef unsigned char* start = p
    memcpy(p, b"\0\x53\x14\xc0", 4)
    p = _put_uint(p + 6, handle)
    p = _put_uint(p, delivery_id)
    p[0] = 0xA0
    if tag is None:
        p[1] = 4
        p = put32(p + 2, delivery_id)
    else:
        p[1] = <unsigned char>PyBytes_GET_SIZE(tag)
        memcpy(p + 2, PyBytes_AS_STRING(tag), PyBytes_GET_SIZE(tag))
        p += 2 + PyBytes_GET_SIZE(tag)
    p[0] = 0x43
    p = _put_boolean(p + 1, settled)
    # The size counts the count and the field that is still to come.
    start[4] = <unsigned char>(p - start - 6 + 2)
    start[5] = 6
    return p


cdef Py_ssize_t _bound(Message message) except -1:
    """Return an upper limit of the octets before the body of a delivery, without the transfer."""
    cdef Py_ssize_t n_exchange, n_key
    utf8(message.exchange, &n_exchange)
    utf8(message.routing_key, &n_key)
    if n_exchange > 255 or n_key > 255:
        raise ValueError("an exchange name or routing key has more than 255 octets")
    return PyBytes_GET_SIZE(message.raw) + n_exchange + n_key + ADDED


cdef unsigned char* _put_before_data(unsigned char* p, Message message, bint first_acquirer,
                                     unsigned int delivery_count, long long ttl) except NULL:
    """Write the sections before the body, and what is before the octets of a data section."""
    p = _put_before_body(p, message, first_acquirer, delivery_count, ttl)
    return _put_data_head(p, PyBytes_GET_SIZE(message.body)) if message.family == C_FAMILY else p


cdef unsigned char* _put_before_body(unsigned char* p, Message message, bint first_acquirer,
                                     unsigned int delivery_count, long long ttl) except NULL:
    """Write the sections before the body."""
    cdef const unsigned char* raw = <const unsigned char*>PyBytes_AS_STRING(message.raw)
    cdef Py_ssize_t n = PyBytes_GET_SIZE(message.raw), at = 0, value = 0, after = 0
    cdef Py_ssize_t annotations = -1, annotations_end = 0
    cdef long long published = -1
    cdef unsigned char* first
    cdef int code
    while at < n:
        code = section_at(raw, at, n, &value, &after)
        if code == C_HEADER:
            published = _ttl(raw, value, after)
        elif code == C_MESSAGE_ANNOTATIONS:
            annotations = value
            annotations_end = after
        else:
            break
        at = after
    if published >= 0 and ttl >= 0:
        published = min(published, ttl)
    # Not of a dead letter either, which shows among its annotations.
    p = _put_header(p, message, first_acquirer, delivery_count, published, &first)
    p = _put_annotations(p, message, raw, annotations, annotations_end, first)
    memcpy(p, raw + at, n - at)
    return p + n - at


cdef inline unsigned char* _put_data_head(unsigned char* p, Py_ssize_t size) noexcept:
    """Write what is before the content of a data section."""
    memcpy(p, b"\0\x53\x75", 3)
    if size <= 255:
        p[3] = 0xA0
        p[4] = <unsigned char>size
        return p + 5
    p[3] = 0xB0
    return put32(p + 4, <unsigned int>size)


cdef long long _ttl(const unsigned char* raw, Py_ssize_t start, Py_ssize_t end) except -2:
    """Return the time to live in the list of a header; -1 without one."""
    cdef Py_ssize_t at, count
    if raw[start] == 0x45:
        return -1
    count = count_of(raw, raw[start], start + 1, end, &at)
    if count < 3:
        return -1
    at = skip_value(raw, skip_value(raw, at, end), end)
    if at >= end:
        return -1
    if raw[at] == 0x43:
        return 0
    if raw[at] == 0x52 and at + 2 <= end:
        return raw[at + 1]
    return <long long>u32(raw + at + 1) if raw[at] == 0x70 and at + 5 <= end else -1


cdef unsigned char* _put_header(unsigned char* p, Message message, bint first_acquirer,
                                unsigned int delivery_count, long long ttl,
                                unsigned char** first) noexcept:
    cdef unsigned char* start = p
    p = _put_boolean(p + 6, message.delivery_mode == PERSISTENT)
    if message.priority < 0:
        p[0] = 0x40
        p += 1
    else:
        p[0] = 0x50
        p[1] = <unsigned char>message.priority
        p += 2
    if ttl < 0:
        p[0] = 0x40
        p += 1
    else:
        p = _put_uint(p, <unsigned int>ttl)
    first[0] = p
    p = _put_boolean(p, first_acquirer)
    p = _put_uint(p, delivery_count)
    memcpy(start, b"\0\x53\x70", 3)
    _put_list_head(start + 3, 5, p - start - 6)
    return p


cdef unsigned char* _put_annotations(unsigned char* p, Message message, const unsigned char* raw,
                                     Py_ssize_t start, Py_ssize_t end,
                                     unsigned char* first) except NULL:
    """Write the message annotations, with those that only a delivery has."""
    # The size is known at last: the pairs are written where they are behind the long head, and
    # move if the short one is enough.
    cdef unsigned char* pairs = p + 12
    cdef unsigned char* q = pairs
    cdef Py_ssize_t at, count = 0, number, have, value, after, n_exchange, n_key, size
    cdef const char* exchange = utf8(message.exchange, &n_exchange)
    cdef const char* key = utf8(message.routing_key, &n_key)
    if start >= 0:
        have = count_of(raw, raw[start], start + 1, end, &at)
        for number in range(have // 2):
            value = skip_value(raw, at, end)
            after = skip_value(raw, value, end)
            if not _is_added(raw + at, value - at):
                if value - at == 14 and memcmp(raw + at, DEATHS, 14) == 0:
                    _put_boolean(first, False)
                memcpy(q, raw + at, after - at)
                q += after - at
                count += 2
            at = after
    q = _put_text(_put_key(q, b"x-exchange", 10), exchange, n_exchange)
    q = _put_text(_put_key(q, b"x-routing-key", 13), key, n_key)
    count += 4
    if message.offset >= 0:
        q = _put_long(_put_key(q, b"x-stream-offset", 15), message.offset)
        count += 2
    if message.deliveries > 0:
        q = _put_long(_put_key(q, b"x-delivery-count", 16), message.deliveries)
        q = _put_long(_put_key(q, b"x-acquired-count", 16), message.deliveries)
        count += 4
    memcpy(p, b"\0\x53\x72", 3)
    size = q - pairs
    if size < 255 and count <= 255:
        p[3] = 0xC1
        p[4] = <unsigned char>(size + 1)
        p[5] = <unsigned char>count
        memmove(p + 6, pairs, size)
        return p + 6 + size
    p[3] = 0xD1
    put32(p + 4, <unsigned int>(size + 4))
    put32(p + 8, <unsigned int>count)
    return q


cdef bint _is_added(const unsigned char* key, Py_ssize_t n) noexcept:
    """True if an encoded key is one of those that a delivery adds."""
    cdef const unsigned char* name
    if key[0] == 0xA3:
        name = key + 2
        n -= 2
    elif key[0] == 0xB3:
        name = key + 5
        n -= 5
    else:
        return False
    if n == 10:
        return memcmp(name, b"x-exchange", 10) == 0
    if n == 13:
        return memcmp(name, b"x-routing-key", 13) == 0
    if n == 15:
        return memcmp(name, b"x-stream-offset", 15) == 0
    if n == 16:
        return (memcmp(name, b"x-delivery-count", 16) == 0
                or memcmp(name, b"x-acquired-count", 16) == 0)
    return False


def delivered_payload(Message message not None, bint first_acquirer, unsigned int delivery_count,
                      long long ttl):
    """Return the whole payload of a delivery; see the twin."""
    cdef Py_ssize_t n_body = PyBytes_GET_SIZE(message.body), n
    cdef unsigned char* before = <unsigned char*>PyMem_Malloc(_bound(message))
    cdef bytes payload
    if before == NULL:
        raise MemoryError
    try:
        n = _put_before_data(before, message, first_acquirer, delivery_count, ttl) - before
        payload = PyBytes_FromStringAndSize(NULL, n + n_body)
        memcpy(PyBytes_AS_STRING(payload), before, n)
        memcpy(PyBytes_AS_STRING(payload) + n, PyBytes_AS_STRING(message.body), n_body)
    finally:
        PyMem_Free(before)
    return payload


cdef class TransferPassage(OutputPassage):
    """The way into the output of a link that settles what it sends; see the twin."""

    def __init__(self, object consumer, TransferBuffer out not None, int channel,
                 unsigned int handle, long long number, str exchange, str routing_key,
                 Py_ssize_t frame_max, Py_ssize_t output_max):
        OutputPassage.__init__(self, consumer, out, LONG_BODY - 1, output_max, False)
        self._frames = out
        self._channel = channel
        self._handle = handle
        self._number = number
        self._exchange = exchange
        self._routing_key = routing_key
        self._frame_max = frame_max

    cpdef bint put(self, Properties properties, bytes body) except -1:
        """Deliver a message; see the twin."""
        return self._put(properties, <const unsigned char*>PyBytes_AS_STRING(body),
                         PyBytes_GET_SIZE(body))

    cdef int _put(self, Properties properties, const unsigned char* body,
                  Py_ssize_t n) except -1:
        """Deliver a message; return 0 if it has to go the usual way."""
        cdef Py_ssize_t n_raw = PyBytes_GET_SIZE(properties.raw)
        if (n_raw > RAW_MAX or n_raw + n > self.size_max
                or self._frames.size >= self.output_max):
            return 0
        if properties is not self._properties:
            self._properties = properties
            self._like = new_message(self._exchange, self._routing_key, properties, b"")
        if not self._frames._single(
                self._channel, self._handle, <unsigned int>self._number, b"", True, True, 0, -1,
                self._like, body, n, self._frame_max):
            return 0
        self.arrivals.count(n, 1, self.answered)
        self._number += 1
        self.count += 1
        return 1
