"""Scan frames in C, and pass whole contents to the sink in one call.

frames.py beside this file is the same in pure Python; both agree call for call.

The fast path handles a publish or delivery whose method, header and body frames are adjacent in
the input, as clients write them. Anything else is passed to the sink frame by frame, which also
detects the errors: the fast path never raises for a bad content, it leaves it to the frame path.

    frame    type(1) channel(2) size(4) payload(size) 0xCE           AMQP 0-9-1 4.2.3
    publish  00 3C 00 28 ticket(2) exchange(shortstr) routing-key(shortstr) bits(1)
    deliver  00 3C 00 3C consumer-tag(shortstr) delivery-tag(8) bits(1) exchange routing-key
    header   00 3C 00 00 body-size(8) property-flags(2) properties   AMQP 0-9-1 4.2.6.1
    ack      00 3C 00 50 delivery-tag(8) bits(1)
"""

from cpython.buffer cimport PyBUF_SIMPLE, Py_buffer, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport (
    PyByteArray_AS_STRING, PyByteArray_FromStringAndSize, PyByteArray_GET_SIZE, PyByteArray_Resize
)
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.string cimport memcmp, memcpy

from harebell.base.message cimport Properties
from harebell.base.work cimport Work
from harebell.kernels.octets cimport (
    BASIC_PUBLISH, BODY, END, HEADER, HEADER_FIXED, METHOD, OVERHEAD, u16, u32, u64,
)
from harebell.kernels.output cimport Passage
from harebell.kernels.properties cimport read_properties

from harebell.base.errors import ProtocolError
from harebell.kernels.limits import FRAME_FUDGE_BYTES, PASSAGE_MESSAGES
from harebell.base.limits import HANDSHAKE_FRAME_BYTES, WORK_FRAME_UNITS

cdef enum:
    TICKET_SHIFT = 8            # an access ticket (0-8, 0-9) travels above the flags of a publish
    HEAD = 7                    # bytes of a frame before its payload
    # Class and method id, as the first four octets of a payload.
    BASIC_DELIVER = 0x003C003C
    BASIC_ACK = 0x003C0050
    ACK_SIZE = 13

cdef const char* HEARTBEAT = b"\x08\0\0\0\0\0\0\xce"
cdef int FUDGE = FRAME_FUDGE_BYTES
cdef int FEW = PASSAGE_MESSAGES
cdef int FRAME_UNITS = WORK_FRAME_UNITS


cdef str _text(const unsigned char* p, Py_ssize_t n):
    try:
        return PyUnicode_DecodeUTF8(<const char*>p, n, NULL)
    except UnicodeDecodeError:
        raise ProtocolError(501, "Malformed UTF-8 in shortstr") from None


cdef inline int _extend(bytearray kept, const unsigned char* data, Py_ssize_t n) except -1:
    cdef Py_ssize_t size = PyByteArray_GET_SIZE(kept)
    # It may move: take the address after, not before.
    PyByteArray_Resize(kept, size + n)
    memcpy(PyByteArray_AS_STRING(kept) + size, data, n)
    return 0


cdef class FrameSink:
    """The methods that a scanner calls; see the twin."""

    cpdef int frame(self, int kind, int channel, bytes payload) except -1:
        raise NotImplementedError

    cpdef int publish(self, int channel, int flags, str exchange, str routing_key,
                      Properties properties, bytes body) except -1:
        raise NotImplementedError

    cpdef Passage passage(self, int channel, int flags, str exchange, str routing_key):
        return None

    cpdef int ack(self, int channel, unsigned long long tag, bint multiple) except -1:
        raise NotImplementedError

    cpdef int deliver(self, int channel, str consumer_tag, unsigned long long tag,
                      bint redelivered, str exchange, str routing_key, Properties properties,
                      bytes body) except -1:
        raise NotImplementedError


cdef class FrameScanner:
    """Bytes in, calls of the sink out; see the twin."""

    def __init__(self, FrameSink sink not None):
        self._sink = sink
        self.frame_max = HANDSHAKE_FRAME_BYTES
        self.fast = False
        self.client = False
        self.tickets = False
        self.stopped = False
        self.hold = False
        self.cut = False
        self.pending = 0
        self.work = Work()
        self._rest = None
        self._held = None
        self._last_method = b""
        self._last_route = b""
        self._last_tag_raw = b""
        self._last_properties = Properties(b"\0\0")
        self._diverted = sink
        self._diverted_channel = -1
        self._gather_channel = -1

    cpdef int divert(self, int channel, FrameSink sink) except -1:
        """Pass whole deliveries of one channel to another sink; see the twin."""
        self._diverted = self._sink if sink is None else sink
        self._diverted_channel = channel
        return 0

    cpdef int gather(self, int channel, Py_ssize_t size) except -1:
        """Pass the body frames of a content as one payload; see the twin."""
        if self._gather_channel < 0 and size > 0:
            self._gathered = PyBytes_FromStringAndSize(NULL, size)
            self._gathered_bytes = 0
            self._gather_channel = channel
        return 0

    cpdef int break_cycle(self) except -1:
        """Forget the sink and the kept input; see the twin."""
        self.stopped = True
        self._gathered = None
        self._gather_channel = -1
        self._frame_left = 0
        self._sink = self._diverted = FrameSink()
        self._rest = None
        self._held = None
        return 0

    @property
    def buffered(self):
        """Return the size of the incomplete frames and contents that are kept."""
        cdef Py_ssize_t kept = 0 if self._rest is None else len(self._rest)
        kept += self._gathered_bytes if self._gather_channel >= 0 else 0
        return kept if self._held is None else kept + len(self._held)

    cpdef int feed(self, object data) except -1:
        """Scan new input."""
        cdef bytearray held = self._held
        if held is not None:
            # Kept and new input become one buffer, as a frame may be cut between them.
            held += data
        elif self.hold:
            self._held = bytearray(data)
        # While the sink still waits, input is only kept.
        if self.hold:
            return 0
        self._held = None
        self._feed(data if held is None else held, held)
        return 0

    cpdef bint is_heartbeat(self, object data) except -1:
        """Return whether new input is a heartbeat alone; see the twin."""
        cdef Py_buffer view
        cdef bint alone
        if (self.hold or self.stopped or self._frame_left or self._rest is not None
                or self._held is not None):
            return False
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        alone = view.len == OVERHEAD and memcmp(view.buf, HEARTBEAT, OVERHEAD) == 0
        PyBuffer_Release(&view)
        return alone

    cdef int _feed(self, object data, bytearray own) except -1:
        """Scan input, which is a buffer of the scanner's own or that of its caller."""
        cdef Py_buffer view
        cdef const unsigned char* start
        cdef Py_ssize_t length, used
        # While the view is held, nothing can resize the buffer that `start` points into.
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            start = <const unsigned char*>view.buf
            length = view.len
            while length and not self.hold:
                if self._frame_left:
                    used = self._gather(start, length)
                elif self._rest is not None:
                    used = self._finish_rest(start, length)
                else:
                    break
                start += used
                length -= used
            if length and not self.hold and not self.stopped:
                used = self._scan(start, length)
                start += used
                length -= used
                if length and not self.hold and not self.stopped:
                    self._rest = PyByteArray_FromStringAndSize(<char*>start, length)
                    length = 0
            if length and self.hold and (own is None or self._held is not None):
                self._keep(start, length)
                length = 0
        finally:
            PyBuffer_Release(&view)
        if length and self.hold:
            # Removing the begin of a bytearray moves no bytes. Each turn of a long input does that,
            # and a copy of the rest would cost it more than the turn.
            del own[:PyByteArray_GET_SIZE(own) - length]
            self._held = own
        return 0

    cdef bint _gathers(self, const unsigned char* p, Py_ssize_t size) noexcept:
        """True if a frame belongs to the content that is gathered, and fits into it."""
        return (p[0] == BODY and <int>u16(p + 1) == self._gather_channel
                and size <= PyBytes_GET_SIZE(self._gathered) - self._gathered_bytes)

    cdef Py_ssize_t _gather(self, const unsigned char* data, Py_ssize_t length) except -1:
        """Take more of the frame that is gathered, up to its end; return the bytes used."""
        # The last byte of a frame is the frame end, which does not belong to the body.
        cdef Py_ssize_t used = min(length, self._frame_left - 1)
        memcpy(PyBytes_AS_STRING(self._gathered) + self._gathered_bytes, data, used)
        self._gathered_bytes += used
        self._frame_left -= used
        if used == length:
            return used
        if data[used] != END:
            raise ProtocolError(
                501, f"type {BODY}, all octets = <<>>: {{invalid_frame_end_marker,{data[used]}}}")
        self._frame_left = 0
        if self._gathered_bytes == PyBytes_GET_SIZE(self._gathered):
            self._let_gathered_go()
        self._count()
        return used + 1

    cdef int _let_gathered_go(self) except -1:
        """Pass on what is gathered."""
        cdef int channel = self._gather_channel
        cdef bytes payload = self._gathered
        # Before the call: the sink may begin to gather the next content.
        self._gather_channel = -1
        self._gathered = None
        if self._gathered_bytes < PyBytes_GET_SIZE(payload):
            payload = payload[:self._gathered_bytes]
        return self._sink.frame(BODY, channel, payload)

    cdef int _keep(self, const unsigned char* data, Py_ssize_t length) except -1:
        """Keep input until the sink no longer holds it."""
        if length:
            if self._held is None:
                self._held = bytearray()
            _extend(self._held, data, length)
        return 0

    cdef Py_ssize_t _finish_rest(self, const unsigned char* data, Py_ssize_t length) except -1:
        """Complete a frame or content that was cut by the end of the input, and pass it on."""
        cdef bytearray rest = self._rest
        cdef Py_ssize_t used = 0, have = PyByteArray_GET_SIZE(rest), want, take
        while True:
            want = self._wanted(<const unsigned char*>PyByteArray_AS_STRING(rest), have,
                                used < length)
            if want <= have:
                break
            take = min(want - have, length - used)
            _extend(rest, data + used, take)
            used += take
            have += take
            if have < want:
                return used
        # Before the scan, which may raise: the same bytes must not be scanned again.
        self._rest = None
        take = self._scan(<const unsigned char*>PyByteArray_AS_STRING(rest), have)
        if take < have and not self.stopped:
            rest = rest[take:]
            if self.hold:
                self._held = rest
            else:
                self._rest = rest
        return used

    cdef Py_ssize_t _wanted(self, const unsigned char* p, Py_ssize_t have, bint more) noexcept:
        """Return how many bytes from `p` on have to arrive before they are scanned."""
        cdef Py_ssize_t size
        cdef unsigned int which
        if have < HEAD:
            return HEAD
        size = u32(p + 3)
        if size > self.frame_max - OVERHEAD + FUDGE:
            # Too large: `_scan` refuses it, and needs no more bytes for that.
            return have
        # The head is enough: the bytes of such a frame are copied to the body as they arrive.
        if self._gather_channel >= 0 and self._gathers(p, size):
            return have
        if have < size + OVERHEAD:
            return size + OVERHEAD
        if self.fast and self.pending == 0 and p[0] == METHOD and size >= 4:
            which = u32(p + HEAD)
            if which == <unsigned int>(BASIC_DELIVER if self.client else BASIC_PUBLISH):
                return self._awaited(p, have, size, more)
        return have

    cdef Py_ssize_t _awaited(self, const unsigned char* p, Py_ssize_t have, Py_ssize_t size,
                             bint more) noexcept:
        """Return how many bytes make a content whole, or show that it must be passed as frames.

        Returns `have` if that is known already. A frame that has not begun is waited for only if
        there is `more` input: a peer may wait for an answer before it continues.
        """
        cdef Py_ssize_t at = size + OVERHEAD, limit = self.frame_max - OVERHEAD + FUDGE
        cdef const unsigned char* h
        cdef const unsigned char* b
        cdef unsigned long long body_size
        if have <= at:
            return at + 1 if more else have
        h = p + at
        # Frames of other channels may come in between (AMQP 0-9-1 4.2.6): then all go one by one.
        if h[0] != HEADER:
            return have
        if have < at + HEAD:
            return at + HEAD
        size = u32(h + 3)
        if u16(h + 1) != u16(p + 1) or size > limit or size < HEADER_FIXED + 2:
            return have
        at += size + OVERHEAD
        if have < at:
            return at
        body_size = u64(h + HEAD + 4)
        # A body of several frames is gathered, and one of no bytes has no frame (4.2.6.2).
        if (u32(h + HEAD) != 0x003C0000 or body_size == 0
                or body_size > <unsigned long long>limit):
            return have
        if have == at:
            return at + 1 if more else have
        b = p + at
        if b[0] != BODY:
            return have
        if have < at + HEAD:
            return at + HEAD
        if u16(b + 1) != u16(p + 1) or u32(b + 3) != body_size:
            return have
        # `have` may be larger: then the content is whole, and more follows it.
        return max(have, at + <Py_ssize_t>body_size + OVERHEAD)

    cdef Py_ssize_t _scan(self, const unsigned char* data, Py_ssize_t length) except -1:
        cdef Py_ssize_t at = 0, size, used
        cdef const unsigned char* p
        cdef unsigned int which, content = BASIC_DELIVER if self.client else BASIC_PUBLISH
        cdef int channel
        self._looks = not self.client
        while length - at >= HEAD:
            p = data + at
            size = u32(p + 3)
            # RabbitMQ's texts. FUDGE forgives clients that forget the frame's own eight octets.
            if size > self.frame_max - OVERHEAD + FUDGE:
                raise ProtocolError(
                    501, f"type {p[0]}, all octets = <<>>: "
                    f"{{frame_too_large,{size},{self.frame_max - OVERHEAD}}}")
            if self._gather_channel >= 0 and self._gathers(p, size):
                self._frame_left = size + 1
                at += HEAD
                at += self._gather(p + HEAD, length - at)
                if self.stopped:
                    return length
                if self.hold or self._frame_left:
                    return at
                continue
            if length - at < size + OVERHEAD:
                break
            # A wrong end means that the sizes before cannot be trusted either (4.2.3).
            if p[HEAD + size] != END:
                raise ProtocolError(
                    501, f"type {p[0]}, all octets = <<>>: "
                    f"{{invalid_frame_end_marker,{p[HEAD + size]}}}")
            channel = u16(p + 1)
            if self.fast and p[0] == METHOD and size >= 4:
                which = u32(p + HEAD)
                # While the sink assembles a content from frames, it gets this one as frames, too.
                if which == content and self.pending == 0:
                    used = self._whole_content(p, length - at, channel, size, not self.client)
                    if used:
                        at += used
                        self._count()
                        # After a close the rest of the input is discarded: all of it counts as
                        # used.
                        if self.stopped:
                            return length
                        if self.hold:
                            return at
                        if (self._looks and length - at >= size + OVERHEAD
                                and memcmp(data + at, p, size + OVERHEAD) == 0):
                            at += self._pass_repeats(channel, p, data + at, length - at)
                            if self.stopped:
                                return length
                            if self.hold:
                                return at
                        continue
                    if self._awaited(p, length - at, size, False) > length - at:
                        # Cut by the end of the input: keep it until the rest arrives.
                        break
                # A consumer sends an ack for nearly each delivery, so acks have a call without a
                # payload.
                elif which == BASIC_ACK and size == ACK_SIZE:
                    self._sink.ack(channel, u64(p + 11), p[19] & 1)
                    at += size + OVERHEAD
                    self._count()
                    if self.stopped:
                        return length
                    if self.hold:
                        return at
                    continue
            if p[0] == BODY and channel == self._gather_channel:
                # It is longer than what is missing. The sink says so.
                self._let_gathered_go()
            self._sink.frame(p[0], channel,
                             PyBytes_FromStringAndSize(<const char*>p + HEAD, size))
            at += size + OVERHEAD
            self._count()
            if self.stopped:
                return length
            if self.hold:
                return at
        return at

    cdef Py_ssize_t _pass_repeats(self, int channel, const unsigned char* like,
                                  const unsigned char* p, Py_ssize_t length) except -1:
        """Pass on publishes whose method is that of `like`; return how many bytes they are."""
        cdef Py_ssize_t method = u32(like + 3) + OVERHEAD, at = 0
        cdef Content found
        cdef Properties properties
        cdef Passage passage = self._sink.passage(channel, self._last_flags, self._last_exchange,
                                                  self._last_key)
        self._looks = False
        if passage is None:
            return 0
        try:
            while (not self.hold and not self.stopped and length - at >= method
                   and memcmp(p + at, like, method) == 0
                   and self._find_content(p + at, length - at, channel, method, &found)):
                properties = self._properties(found.raw, found.raw_size)
                if (properties is None or properties.suspect
                        or not passage._put(properties, found.body, found.body_size)):
                    break
                at += found.size
                self._count()
        finally:
            passage.end()
        # Where publishes repeat each other rarely, a passage costs more than it saves.
        self._looks = passage.count >= FEW
        return at

    cdef int _count(self) except -1:
        """Count a frame; stop if the work budget of this turn is used up."""
        cdef Work work = self.work
        # What `Work.frame` does, without a call for each frame.
        work.spent += FRAME_UNITS
        if work.spent >= work.check_at and work.check():
            self.hold = self.cut = True
        return 0

    cdef Py_ssize_t _whole_content(self, const unsigned char* data, Py_ssize_t length,
                                   int channel, Py_ssize_t size, bint published) except -1:
        """Pass on adjacent method, header and body frames; return 0 if they are not adjacent."""
        cdef Content found
        cdef Properties properties
        cdef bytes body
        if not self._find_content(data, length, channel, size + OVERHEAD, &found):
            return 0
        properties = self._properties(found.raw, found.raw_size)
        if properties is None:
            return 0
        body = PyBytes_FromStringAndSize(<const char*>found.body, found.body_size)
        if published:
            if self._hand_publish(channel, data + HEAD + 4, size - 4, properties, body):
                return 0
        else:
            self._hand_delivery(channel, data + HEAD + 4, size - 4, properties, body)
        return found.size

    cdef bint _find_content(self, const unsigned char* data, Py_ssize_t length, int channel,
                            Py_ssize_t at, Content* found) noexcept:
        """Find the header and body frames behind a method of `at` bytes; False without both."""
        cdef Py_ssize_t header_size, limit = self.frame_max - OVERHEAD + FUDGE
        cdef const unsigned char* h
        cdef const unsigned char* b
        cdef unsigned long long body_size
        # At least the property flags (2) and the frame end (1) follow the fixed part.
        if length - at < HEAD + HEADER_FIXED + 3:
            return False
        h = data + at
        header_size = u32(h + 3)
        # 0x003C0000 is class 60 and the weight, which must be zero (AMQP 0-9-1 4.2.6.1).
        if (h[0] != HEADER or u16(h + 1) != <unsigned int>channel or header_size > limit
                or header_size < HEADER_FIXED + 2 or length - at < header_size + OVERHEAD
                or h[HEAD + header_size] != END or u32(h + HEAD) != 0x003C0000):
            return False
        body_size = u64(h + HEAD + 4)
        at += header_size + OVERHEAD
        b = data + at
        if body_size:
            if body_size > <unsigned long long>limit or length - at < HEAD + 1:
                return False
            if (b[0] != BODY or u16(b + 1) != <unsigned int>channel
                    or u32(b + 3) != body_size
                    or length - at < <Py_ssize_t>body_size + OVERHEAD
                    or b[HEAD + body_size] != END):
                return False
            at += <Py_ssize_t>body_size + OVERHEAD
        found.raw = h + HEAD + HEADER_FIXED
        found.raw_size = header_size - HEADER_FIXED
        found.body = b + HEAD
        found.body_size = <Py_ssize_t>body_size
        found.size = at
        return True

    cdef int _hand_publish(self, int channel, const unsigned char* p, Py_ssize_t n,
                           Properties properties, bytes body) except -1:
        """Call the sink; return 1 if the method is malformed: the frame path reports it."""
        cdef Py_ssize_t exchange_size, key_size
        cdef int flags
        # A publisher mostly sends the same exchange and routing key again. Then the texts of the
        # last publish are used again: one comparison instead of two decodings.
        if not (PyBytes_GET_SIZE(self._last_method) == n
                and memcmp(PyBytes_AS_STRING(self._last_method), p, n) == 0):
            if n < 5:
                return 1
            exchange_size = p[2]
            if n < 5 + exchange_size:
                return 1
            key_size = p[3 + exchange_size]
            if n != 5 + exchange_size + key_size:
                return 1
            if not (self._last_exchange is not None
                    and PyBytes_GET_SIZE(self._last_method) >= 3 + exchange_size
                    and memcmp(PyBytes_AS_STRING(self._last_method) + 2, p + 2,
                               exchange_size + 1) == 0):
                # Cleared first: if decoding fails, the stored bytes and texts must still agree.
                self._last_method = b""
                try:
                    self._last_exchange = _text(p + 3, exchange_size)
                except ProtocolError:
                    return 1
            self._last_method = b""
            try:
                self._last_key = _text(p + 4 + exchange_size, key_size)
            except ProtocolError:
                return 1
            # Stored last, when the texts are those of these bytes.
            self._last_method = PyBytes_FromStringAndSize(<const char*>p, n)
        flags = p[n - 1] & 3
        # Access tickets of 0-8 and 0-9; 0-9-1 has reserved the field.
        if self.tickets:
            flags |= <int>u16(p) << TICKET_SHIFT
        self._last_flags = flags
        return self._sink.publish(channel, flags, self._last_exchange, self._last_key,
                                  properties, body)

    cdef int _hand_delivery(self, int channel, const unsigned char* p, Py_ssize_t n,
                            Properties properties, bytes body) except -1:
        cdef Py_ssize_t tag_size, exchange_size, key_size, at
        cdef FrameSink sink
        if n < 1:
            raise _short_delivery()
        tag_size = p[0]
        at = 1 + tag_size + 9
        if n < at + 2:
            raise _short_delivery()
        exchange_size = p[at]
        if n < at + 2 + exchange_size:
            raise _short_delivery()
        key_size = p[at + 1 + exchange_size]
        if n != at + 2 + exchange_size + key_size:
            raise _short_delivery()
        if not (PyBytes_GET_SIZE(self._last_tag_raw) == tag_size and self._last_tag is not None
                and memcmp(PyBytes_AS_STRING(self._last_tag_raw), p + 1, tag_size) == 0):
            self._last_tag = _text(p + 1, tag_size)
            self._last_tag_raw = PyBytes_FromStringAndSize(<const char*>p + 1, tag_size)
        if not (PyBytes_GET_SIZE(self._last_route) == n - at
                and memcmp(PyBytes_AS_STRING(self._last_route), p + at, n - at) == 0):
            # Cleared first, as in `_hand_publish`: decoding may fail.
            self._last_route = b""
            self._last_exchange = _text(p + at + 1, exchange_size)
            self._last_key = _text(p + at + 2 + exchange_size, key_size)
            self._last_route = PyBytes_FromStringAndSize(<const char*>p + at, n - at)
        sink = self._diverted if channel == self._diverted_channel else self._sink
        return sink.deliver(channel, self._last_tag, u64(p + 1 + tag_size),
                            p[9 + tag_size] & 1, self._last_exchange, self._last_key,
                            properties, body)

    cdef Properties _properties(self, const unsigned char* p, Py_ssize_t n):
        cdef bytes raw = self._last_properties.raw
        # Publishers repeat their properties: equal lists share one object, and are checked once.
        if PyBytes_GET_SIZE(raw) == n and memcmp(PyBytes_AS_STRING(raw), p, n) == 0:
            return self._last_properties
        try:
            self._last_properties = read_properties(p, n)
        except ProtocolError:
            return None
        return self._last_properties


cdef object _short_delivery():
    return ProtocolError(502, "basic.deliver: arguments do not fit the frame", 60, 60)
