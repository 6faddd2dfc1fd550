"""Scan the frames of AMQP 0-10 in C, and pass whole transfers to the sink in one call.

segments.py beside this file draws the layouts and is the same in pure Python; both agree call for
call.
"""

from cpython.buffer cimport PyBUF_SIMPLE, Py_buffer, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.string cimport memcmp, memcpy

from harebell.base.message cimport Properties
from harebell.base.work cimport Work
from harebell.kernels.octets cimport u16, u32

from harebell.base.errors import ProtocolError
from harebell.base.limits import HANDSHAKE_FRAME_BYTES

CONTROL = 0
COMMAND = 1
HEADER = 2
BODY = 3
FIRST_SEGMENT = 8
LAST_SEGMENT = 4
FIRST_FRAME = 2
LAST_FRAME = 1
WHOLE = 15
SYNC = 1
DISCARD_UNROUTABLE = 2
IMMEDIATE = 4
ACCEPT_NONE = 8
NOT_ACQUIRED = 16
REDELIVERED = 32
ACCEPT_EXPLICIT = 64

cdef enum:
    C_COMMAND = 1
    C_HEADER = 2
    C_BODY = 3
    C_LAST_SEGMENT = 4
    C_FIRST_FRAME = 2
    C_LAST_FRAME = 1
    C_DISCARD = 2
    C_IMMEDIATE = 4
    C_ACCEPT_NONE = 8
    C_NOT_ACQUIRED = 16
    C_REDELIVERED = 32
    C_ACCEPT_EXPLICIT = 64
    HEAD = 12
    FAMILY = 10
    DELIVERY_CODE = 0x0401
    MESSAGE_CODE = 0x0403
    HEADERS = 0x0100
    EXCHANGE = 0x0100
    KEY = 0x0200
    SUSPECT_MESSAGE = 0x0048
    SUSPECT_DELIVERY = 0x00A0
    STRUCT_HEAD = 8


cdef str _text(const unsigned char* p, Py_ssize_t n):
    """Return the text; None if it is not UTF-8."""
    try:
        return PyUnicode_DecodeUTF8(<const char*>p, n, NULL)
    except UnicodeDecodeError:
        return None


cdef inline Py_ssize_t before_exchange(unsigned int packed) noexcept:
    """Return the size of the delivery properties before the exchange."""
    # Priority and delivery mode have an octet each; ttl, timestamp and expiration eight. The three
    # flags before them are bits without a value (AMQP 0-10 message.delivery-properties).
    cdef Py_ssize_t n = ((packed >> 3) & 1) + ((packed >> 4) & 1)
    if packed & 0xE0:
        n += 8 * (((packed >> 5) & 1) + ((packed >> 6) & 1) + ((packed >> 7) & 1))
    return n


cdef class SegmentSink:
    """The methods that a scanner calls; see the twin."""

    cpdef int frame(self, int flags, int kind, int track, int channel, bytes payload) except -1:
        raise NotImplementedError

    cpdef int transfer(self, int channel, int flags, str destination, str routing_key,
                       Properties properties, bytes body) except -1:
        raise NotImplementedError


cdef class SegmentScanner:
    """Bytes in, calls of the sink out; see the twin."""

    def __init__(self, SegmentSink sink not None):
        self._sink = sink
        self.frame_max = HANDSHAKE_FRAME_BYTES
        self.fast = False
        self.stopped = False
        self.hold = False
        self.cut = False
        self.pending = 0
        self.work = Work()
        self._rest = b""
        self._last_raw = None
        self._last_properties = Properties(b"")
        self._last_key = ""
        self._last_flags = 0
        self._last_command = None
        self._last_destination = ""
        self._last_modes = 0

    cpdef int break_cycle(self) except -1:
        """Forget the sink and the kept input; see the twin."""
        self.stopped = True
        self._sink = SegmentSink()
        self._rest = b""
        return 0

    @property
    def buffered(self):
        """Return the number of bytes that are kept until the rest of their frame arrives."""
        return len(self._rest)

    cpdef int feed(self, object data) except -1:
        """Scan new input."""
        cdef Py_buffer view
        cdef const unsigned char* start
        cdef Py_ssize_t length, used
        if PyBytes_GET_SIZE(self._rest):
            data = self._rest + bytes(data)
            self._rest = b""
        if self.hold or self.stopped:
            self._rest = b"" if self.stopped else bytes(data)
            return 0
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            start = <const unsigned char*>view.buf
            length = view.len
            used = self._scan(start, length)
            if used < length and not self.stopped:
                self._rest = PyBytes_FromStringAndSize(<const char*>start + used, length - used)
        finally:
            PyBuffer_Release(&view)
        return 0

    cdef Py_ssize_t _scan(self, const unsigned char* data, Py_ssize_t length) except -1:
        cdef Py_ssize_t at = 0, size, used
        cdef const unsigned char* p
        cdef int channel
        cdef Work work = self.work
        while length - at >= HEAD:
            p = data + at
            size = u16(p + 2)
            # The upper bits of the flags are those of the frame format, zero in 0-10 (AMQP 0-10
            # 4.2).
            if p[0] & 0xF0 or p[1] > C_BODY or size < HEAD or size > self.frame_max:
                _bad_frame(p[0], p[1], size, self.frame_max)
            if length - at < size:
                break
            channel = u16(p + 6)
            used = 0
            # A command on track 1, in one frame that is its whole first segment. message.transfer
            # is class 4, command 1; the third byte is the size of the session header. `pending`:
            # while the sink assembles a command from frames, this one may belong to it.
            if (self.fast and self.pending == 0 and p[1] == C_COMMAND and p[5] & 0x0F == 1
                    and p[0] & 0x0B == 0x0B and size >= HEAD + 3
                    and p[HEAD] == 4 and p[HEAD + 1] == 1 and p[HEAD + 2] == 1):
                used = self._whole_transfer(p, length - at, size, channel)
            if used == 0:
                self._sink.frame(p[0], p[1], p[5] & 0x0F, channel,
                                 PyBytes_FromStringAndSize(<const char*>p + HEAD, size - HEAD))
                used = size
            at += used
            # Enough for one turn: the rest of the input is kept until the caller goes on.
            if work.frame():
                self.hold = self.cut = True
            if self.stopped or self.hold:
                break
        return at

    cdef Py_ssize_t _whole_transfer(self, const unsigned char* data, Py_ssize_t length,
                                    Py_ssize_t size, int channel) except -1:
        """Pass on the adjacent frames of a transfer; return 0 if they are not adjacent."""
        cdef bint last = (data[0] & C_LAST_SEGMENT) != 0
        cdef Py_ssize_t at = size, part, raw_size = 0, body_size = 0, first_body = 0
        cdef const unsigned char* p
        cdef const unsigned char* raw = data
        cdef int kind = C_COMMAND, flags
        cdef bytes body
        cdef char* into
        while not last:
            # The rest of the transfer comes with a later read: until then the sink assembles the
            # frames one by one, and none is scanned twice.
            if length - at < HEAD:
                return 0
            p = data + at
            flags = p[0]
            part = u16(p + 2)
            if part < HEAD or part > self.frame_max or length - at < part:
                return 0
            # Frames of other channels, and controls, may come in between (AMQP 0-10 4.2).
            if <int>u16(p + 6) != channel or p[5] & 0x0F != 1:
                return 0
            # A header segment of one frame, not the first segment and perhaps (0x04) the last.
            if p[1] == C_HEADER and kind == C_COMMAND and flags & 0xFB == 3:
                raw = p + HEAD
                raw_size = part - HEAD
            elif p[1] == C_BODY and flags & 0xFC == C_LAST_SEGMENT:
                # Only the first frame of the body has this flag; a second one would begin another
                # body.
                if ((flags & C_FIRST_FRAME) != 0) != (kind != C_BODY):
                    return 0
                if kind != C_BODY:
                    first_body = at
                body_size += part - HEAD
                if not flags & C_LAST_FRAME:
                    kind = C_BODY
                    at += part
                    continue
            else:
                return 0
            kind = p[1]
            last = (flags & C_LAST_SEGMENT) != 0
            at += part
        if kind != C_BODY:
            # Rare, and stored with the message: the general path handles it.
            return 0
        if not self._read_transfer(data + HEAD, size - HEAD):
            return 0
        if not self._read_header(raw, raw_size):
            return 0
        if body_size == 0:
            body = b""
        else:
            body = PyBytes_FromStringAndSize(NULL, body_size)
            into = PyBytes_AS_STRING(body)
            p = data + first_body
            while p < data + at:
                part = u16(p + 2)
                memcpy(into, p + HEAD, part - HEAD)
                into += part - HEAD
                p += part
        self._sink.transfer(channel, self._last_modes | self._last_flags, self._last_destination,
                            self._last_key, self._last_properties, body)
        return at

    cdef bint _read_transfer(self, const unsigned char* p, Py_ssize_t n) except -1:
        """Read the flags and the destination of a transfer; False if it is malformed."""
        cdef Py_ssize_t at = 6, end
        cdef int flags, packed
        cdef str destination = ""
        # A publisher repeats its command byte for byte: nothing in it depends on the message.
        if (self._last_command is not None and PyBytes_GET_SIZE(self._last_command) == n
                and memcmp(PyBytes_AS_STRING(self._last_command), p, n) == 0):
            return True
        self._last_command = None
        # Sync is a bit, and of 16 packing flags only those of the three fields may be set.
        if n < 6 or p[3] > 1 or p[4] & 0xF8 or p[5]:
            return False
        flags = p[3]
        packed = p[4]
        if packed & 1:
            if at >= n:
                return False
            end = at + 1 + p[at]
            if end > n:
                return False
            destination = _text(p + at + 1, p[at])
            if destination is None:
                return False
            at = end
        if packed & 2:
            if at >= n or p[at] > 1:
                return False
            if p[at]:
                flags |= C_ACCEPT_NONE
            else:
                # The default is 0 as well, but only a peer that writes it gets an accept.
                flags |= C_ACCEPT_EXPLICIT
            at += 1
        if packed & 4:
            if at >= n or p[at] > 1:
                return False
            if p[at]:
                flags |= C_NOT_ACQUIRED
            at += 1
        if at != n:
            return False
        self._last_destination = destination
        self._last_modes = flags
        self._last_command = PyBytes_FromStringAndSize(<const char*>p, n)
        return True

    cdef bint _read_header(self, const unsigned char* raw, Py_ssize_t n) except -1:
        """Read the values of a header that the broker needs; an equal one in a row is read once."""
        cdef Py_ssize_t at = 0, start, end
        cdef unsigned int packed
        cdef int code
        cdef bint suspect = False, headers = False
        if (self._last_raw is not None and PyBytes_GET_SIZE(self._last_raw) == n
                and memcmp(PyBytes_AS_STRING(self._last_raw), raw, n) == 0):
            return True
        # Cleared first: if the header is malformed, the stored bytes and values must still agree.
        self._last_raw = None
        self._last_flags = 0
        self._last_key = ""
        self._mode = 0
        self._priority = -1
        while at < n:
            if n - at < STRUCT_HEAD:
                return False
            end = at + 4 + <Py_ssize_t>u32(raw + at)
            start = at + STRUCT_HEAD
            if start > end or end > n:
                return False
            code = u16(raw + at + 4)
            packed = raw[at + 6] | (<unsigned int>raw[at + 7] << 8)
            if code == DELIVERY_CODE:
                if not self._read_delivery(raw, packed, start, end):
                    return False
                suspect = suspect or (packed & SUSPECT_DELIVERY) != 0
            elif code == MESSAGE_CODE:
                headers = (packed & HEADERS) != 0
                suspect = (suspect or (packed & SUSPECT_MESSAGE) != 0
                           or (headers and _carbon(raw + start, end - start)))
            else:
                # An unknown struct: the slow path decodes it before the broker acts on the message.
                suspect = True
            at = end
        body = PyBytes_FromStringAndSize(<const char*>raw, n)
        self._last_properties = Properties(body, self._mode, self._priority, headers, suspect)
        self._last_properties.family = FAMILY
        self._last_raw = body
        return True

    cdef bint _read_delivery(self, const unsigned char* raw, unsigned int packed,
                             Py_ssize_t at, Py_ssize_t end) except -1:
        """Read the delivery properties; False if they are malformed."""
        cdef Py_ssize_t place = at
        cdef int flags = C_DISCARD if packed & 1 else 0
        if packed & 2:
            flags |= C_IMMEDIATE
        if packed & 4:
            flags |= C_REDELIVERED
        if packed & 0x18:
            self._mode = 0
            self._priority = -1
        if packed & 8:
            if place >= end:
                return False
            self._priority = raw[place]
            place += 1
        if packed & 16:
            if place >= end:
                return False
            self._mode = raw[place]
        place = at + before_exchange(packed)
        if packed & EXCHANGE:
            if place >= end:
                return False
            place += 1 + raw[place]
            if place > end:
                return False
        self._last_key = ""
        if packed & KEY:
            if place >= end or place + 1 + raw[place] > end:
                return False
            self._last_key = _text(raw + place + 1, raw[place])
            if self._last_key is None:
                return False
            place += 1 + raw[place]
        self._last_flags = flags
        # Delivery properties have twelve fields: the highest four flags stand for none.
        return not (packed & 0xF000 or place > end)


cdef bint _carbon(const unsigned char* p, Py_ssize_t n) noexcept:
    """True if the bytes contain CC, as do the names of both headers that add routing keys."""
    cdef Py_ssize_t at
    for at in range(n - 1):
        if p[at] == c"C" and p[at + 1] == c"C":
            return True
    return False


cdef int _bad_frame(int flags, int kind, Py_ssize_t size, Py_ssize_t limit) except -1:
    if flags & 0xF0:
        raise ProtocolError(501, f"frame flags {flags:#04x} are of another version")
    if kind > C_BODY:
        raise ProtocolError(501, f"unknown segment type {kind}")
    if size < HEAD:
        raise ProtocolError(501, f"a frame of {size} octets has no head")
    raise ProtocolError(501, f"a frame of {size} octets, at most {limit} may be")
