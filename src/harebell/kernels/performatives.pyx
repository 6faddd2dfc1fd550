"""Scan the frames of AMQP 1.0 in C, and pass what every message needs to the sink by field.

performatives.py beside this file draws the layouts and is the same in pure Python; both agree call
for call.
"""

from cpython.buffer cimport PyBUF_SIMPLE, Py_buffer, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport (
    PyByteArray_AS_STRING, PyByteArray_FromStringAndSize, PyByteArray_GET_SIZE, PyByteArray_Resize
)
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport memcmp, memcpy

from harebell.base.message cimport Properties
from harebell.base.work cimport Work
from harebell.kernels.octets cimport u16, u32
from harebell.kernels.output cimport Passage
from harebell.kernels.sections cimport (
    Borders, count_of, data_at, find_borders, joined, read_properties, skip_value,
)

from harebell.base.errors import DecodeError, FramingError
from harebell.base.limits import HANDSHAKE_FRAME_BYTES, WORK_FRAME_UNITS
from harebell.kernels.limits import PASSAGE_MESSAGES

AMQP = 0
SASL = 1
HEAD = 8
SETTLED = 1
SETTLED_GIVEN = 2
MORE = 4
RESUME = 8
ABORTED = 16
BATCHABLE = 32
SECOND = 64
SECOND_GIVEN = 128
DRAIN = 1
ECHO = 2
ACCEPTED = 0x24
REJECTED = 0x25
RELEASED = 0x26
MODIFIED = 0x27

cdef enum:
    C_HEAD = 8
    C_SETTLED = 1
    C_SETTLED_GIVEN = 2
    C_MORE = 4
    C_RESUME = 8
    C_ABORTED = 16
    C_BATCHABLE = 32
    C_SECOND = 64
    C_SECOND_GIVEN = 128
    C_DRAIN = 1
    C_ECHO = 2
    C_FLOW = 0x13
    C_TRANSFER = 0x14
    C_DISPOSITION = 0x15
    C_NULL = 0x40
    C_FAMILY = 100
    TAG_BYTES = 32
    HEAD_FIELDS = 3
    PLAIN_HEAD = 0x02000000     # doff and type of a frame without an extended header

cdef int FEW = PASSAGE_MESSAGES
cdef int FRAME_UNITS = WORK_FRAME_UNITS


cdef struct Fields:
    const unsigned char* data
    Py_ssize_t left
    Py_ssize_t at
    Py_ssize_t end
    bint readable


cdef int _open(Fields* fields, const unsigned char* data, Py_ssize_t start,
               Py_ssize_t n) except -1:
    """Begin to read the fields of a list; those that were left out are null."""
    cdef int code = data[start]
    fields.data = data
    fields.left = 0
    fields.at = fields.end = start + 1
    fields.readable = True
    if code == 0xC0 or code == 0xD0:
        fields.end = skip_value(data, start, n)
        fields.left = count_of(data, code, start + 1, fields.end, &fields.at)
    elif code != 0x45:
        fields.readable = False
    return 0


# A field that cannot be read leaves `readable` false: the general reader names the fault.
cdef inline int _code(Fields* fields) noexcept:
    """Return the constructor of the next field; that of null if there is none."""
    if fields.left == 0:
        return C_NULL
    if fields.at >= fields.end:
        fields.readable = False
        return C_NULL
    fields.left -= 1
    fields.at += 1
    return fields.data[fields.at - 1]


cdef inline const unsigned char* _take(Fields* fields, Py_ssize_t width) noexcept:
    cdef const unsigned char* p = fields.data + fields.at
    if fields.end - fields.at < width:
        fields.readable = False
        return NULL
    fields.at += width
    return p


cdef inline long long _uint(Fields* fields, bint mandatory) noexcept:
    """Read a uint; -1 for null."""
    cdef int code = _code(fields)
    cdef const unsigned char* p
    if code == 0x43:
        return 0
    if code == 0x52:
        p = _take(fields, 1)
        return p[0] if p != NULL else -1
    if code == 0x70:
        p = _take(fields, 4)
        return <long long>u32(p) if p != NULL else -1
    if code != C_NULL or mandatory:
        fields.readable = False
    return -1


cdef inline int _ubyte(Fields* fields) noexcept:
    """Read a ubyte; -1 for null."""
    cdef int code = _code(fields)
    cdef const unsigned char* p
    if code == 0x50:
        p = _take(fields, 1)
        return p[0] if p != NULL else -1
    if code != C_NULL:
        fields.readable = False
    return -1


cdef inline int _boolean(Fields* fields) noexcept:
    """Read a boolean: 1, 0, or -1 for null."""
    cdef int code = _code(fields)
    cdef const unsigned char* p
    if code == 0x41:
        return 1
    if code == 0x42:
        return 0
    if code == 0x56:
        p = _take(fields, 1)
        if p != NULL and p[0] <= 1:
            return p[0]
        fields.readable = False
    elif code != C_NULL:
        fields.readable = False
    return -1


cdef bytes _tag(Fields* fields):
    """Read a delivery tag; None for null."""
    cdef int code = _code(fields)
    cdef const unsigned char* p
    cdef Py_ssize_t size
    if code == C_NULL:
        return None
    if code == 0xA0:
        p = _take(fields, 1)
        size = p[0] if p != NULL else 0
    elif code == 0xB0:
        p = _take(fields, 4)
        size = <Py_ssize_t>u32(p) if p != NULL else 0
    else:
        fields.readable = False
        return None
    p = _take(fields, size)
    if p == NULL or size > TAG_BYTES:
        fields.readable = False
        return None
    return PyBytes_FromStringAndSize(<const char*>p, size)


cdef bytes _any(Fields* fields):
    """Read the octets of any value; b"" for null."""
    cdef Py_ssize_t start = fields.at
    if fields.left == 0 or not fields.readable:
        return b""
    fields.left -= 1
    fields.at = skip_value(fields.data, start, fields.end)
    if fields.data[start] == C_NULL:
        return b""
    return PyBytes_FromStringAndSize(<const char*>fields.data + start, fields.at - start)


cdef inline bint _closed(Fields* fields) noexcept:
    """True if every field could be read, and nothing is behind the last one."""
    return fields.readable and fields.left == 0 and fields.at == fields.end


cdef class PerformativeSink:
    """The methods that a scanner calls; see the twin."""

    cpdef int frame(self, int channel, int kind, bytes body) except -1:
        raise NotImplementedError

    cpdef int transfer(self, int channel, long long handle, long long delivery_id, bytes tag,
                       long long message_format, int flags, Properties properties,
                       bytes body) except -1:
        raise NotImplementedError

    cpdef Passage passage(self, int channel, long long handle, int flags):
        return None

    cpdef int partial(self, int channel, long long handle, long long delivery_id, bytes tag,
                      long long message_format, int flags, bytes state, bytes payload) except -1:
        raise NotImplementedError

    cpdef int disposition(self, int channel, bint role, long long first, long long last,
                          bint settled, int outcome, bytes state) except -1:
        raise NotImplementedError

    cpdef int flow(self, int channel, long long next_incoming_id, long long incoming_window,
                   long long next_outgoing_id, long long outgoing_window, long long handle,
                   long long delivery_count, long long link_credit, long long available,
                   int flags) except -1:
        raise NotImplementedError


cdef class PerformativeScanner:
    """Bytes in, calls of the sink out; see the twin."""

    def __init__(self, PerformativeSink sink not None):
        self._sink = sink
        self.frame_max = HANDSHAKE_FRAME_BYTES
        self.fast = False
        self.stopped = False
        self.hold = False
        self.cut = False
        self.pending = 0
        self.work = Work()
        self._rest = None
        self._alike.size = self._alike.flags = 0
        self._last_properties = Properties(b"")
        self._last_properties.family = -1

    cpdef int break_cycle(self) except -1:
        """Forget the sink and the kept input; see the twin."""
        self.stopped = True
        self._sink = PerformativeSink()
        self._rest = None
        return 0

    @property
    def buffered(self):
        """Return the number of bytes that are kept until the rest of their frame arrives."""
        return 0 if self._rest is None else len(self._rest)

    cpdef int feed(self, object data) except -1:
        """Scan new input."""
        cdef bytearray rest = self._rest
        if self.stopped:
            self._rest = None
            return 0
        if self.hold:
            if rest is None:
                self._rest = bytearray(data)
            else:
                rest += data
            return 0
        if rest is None or PyByteArray_GET_SIZE(rest) < self._wanted(rest):
            self._feed(data, None)
            return 0
        # What was held begins with a whole frame: it and the new input become one buffer.
        rest += data
        self._rest = None
        self._feed(rest, rest)
        return 0

    cdef int _feed(self, object data, bytearray own) except -1:
        """Scan input, which is a buffer of the scanner's own or that of its caller."""
        cdef Py_buffer view
        cdef const unsigned char* start
        cdef Py_ssize_t length, used = 0
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            start = <const unsigned char*>view.buf
            length = view.len
            if self._rest is not None:
                used = self._finish_rest(start, length)
            if self._rest is None and not self.stopped and not self.hold:
                used += self._scan(start + used, length - used)
            if used < length and not self.stopped and own is None:
                self._keep(start + used, length - used)
        finally:
            PyBuffer_Release(&view)
        if used < length and not self.stopped and own is not None:
            # Removing the begin of a bytearray moves no bytes. Each turn of a long input does that,
            # and a copy of the rest would cost it more than the turn.
            del own[:used]
            self._rest = own
        return 0

    cdef Py_ssize_t _wanted(self, bytearray rest) except -1:
        """Return how many bytes the first frame has; those of a head if that is cut."""
        cdef Py_ssize_t have = PyByteArray_GET_SIZE(rest), size
        cdef const unsigned char* p = <const unsigned char*>PyByteArray_AS_STRING(rest)
        if have < C_HEAD:
            return C_HEAD
        size = <Py_ssize_t>u32(p)
        # A wrong head is refused by `_scan`, which needs no more bytes for that.
        return size if C_HEAD <= 4 * p[4] <= size <= self.frame_max else have

    cdef int _keep(self, const unsigned char* data, Py_ssize_t n) except -1:
        """Keep input behind what is kept."""
        cdef Py_ssize_t size
        if self._rest is None:
            self._rest = PyByteArray_FromStringAndSize(<const char*>data, n)
            return 0
        size = PyByteArray_GET_SIZE(self._rest)
        PyByteArray_Resize(self._rest, size + n)
        memcpy(PyByteArray_AS_STRING(self._rest) + size, data, n)
        return 0

    cdef Py_ssize_t _finish_rest(self, const unsigned char* data, Py_ssize_t length) except -1:
        """Complete a frame that was cut by the end of the input, and pass it on."""
        cdef bytearray rest = self._rest
        cdef Py_ssize_t used = 0, take
        while (take := self._wanted(rest) - PyByteArray_GET_SIZE(rest)) > 0:
            take = min(take, length - used)
            if take == 0:
                return used
            self._keep(data + used, take)
            used += take
        # Before the scan, which may raise: the same bytes must not be scanned again.
        self._rest = None
        self._scan(<const unsigned char*>PyByteArray_AS_STRING(rest), PyByteArray_GET_SIZE(rest))
        return used

    cdef Py_ssize_t _scan(self, const unsigned char* data, Py_ssize_t length) except -1:
        cdef Py_ssize_t at = 0, size, start
        cdef const unsigned char* p
        cdef int channel
        self._looks = True
        while length - at >= C_HEAD:
            if self._looks and self.pending == 0 and self._alike.flags & C_SETTLED:
                at += self._pass_repeats(data + at, length - at)
                if self.stopped or self.hold or length - at < C_HEAD:
                    break
            p = data + at
            size = <Py_ssize_t>u32(p)
            start = 4 * p[4]
            if size < C_HEAD or size > self.frame_max or start < C_HEAD or start > size:
                _bad_frame(size, start, self.frame_max)
            if length - at < size:
                break
            channel = u16(p + 6)
            if not (self.fast and p[5] == 0
                    and self._by_field(channel, p + start, size - start)):
                # It may begin or end links: what repeats is looked at behind a transfer only.
                self._alike.size = self._alike.flags = 0
                self._sink.frame(channel, p[5],
                                 PyBytes_FromStringAndSize(<const char*>p + start, size - start))
            at += size
            self._count()
            if self.stopped or self.hold:
                break
        return at

    cdef Py_ssize_t _pass_repeats(self, const unsigned char* data, Py_ssize_t length) except -1:
        """Pass on settled transfers that are like the last one; return how many bytes they are."""
        cdef Alike* alike = &self._alike
        cdef unsigned int head = PLAIN_HEAD | alike.channel
        cdef Py_ssize_t at = 0, size, before = C_HEAD + alike.size, content
        cdef const unsigned char* p
        cdef Properties properties
        cdef Passage passage = None
        try:
            while not self.hold and not self.stopped and length - at >= before:
                p = data + at
                size = <Py_ssize_t>u32(p)
                if (size > self.frame_max or length - at < size or u32(p + 4) != head
                        or not self._is_alike(p + C_HEAD, size - C_HEAD)):
                    break
                if passage is None:
                    self._looks = False
                    passage = self._sink.passage(alike.channel, alike.handle, alike.flags)
                    if passage is None:
                        break
                if passage.count >= passage.limit:
                    break
                p += before
                properties = self._sections(p, size - before, &content)
                if (properties is None or properties.suspect
                        or not passage._put(properties, p + content, size - before - content)):
                    break
                at += size
                self._count()
        finally:
            if passage is not None:
                passage.end()
                # Where transfers repeat each other rarely, a passage costs more than it saves.
                self._looks = passage.count >= FEW
        return at

    cdef int _count(self) except -1:
        """Count a frame; stop if the work budget of this turn is used up."""
        cdef Work work = self.work
        # What `Work.frame` does, without a call for each frame. The rest of the input is kept until
        # the caller goes on.
        work.spent += FRAME_UNITS
        if work.spent >= work.check_at and work.check():
            self.hold = self.cut = True
        return 0

    cdef bint _by_field(self, int channel, const unsigned char* body, Py_ssize_t n) except -1:
        """Pass a performative on; False if it is not one that is passed on by field."""
        if n < 4 or body[0] or body[1] != 0x53:
            return False
        if body[2] == C_TRANSFER:
            return self._transfer(channel, body, n)
        if body[2] == C_DISPOSITION:
            return self._disposition(channel, body, n)
        if body[2] == C_FLOW:
            return self._flow(channel, body, n)
        return False

    cdef bint _transfer(self, int channel, const unsigned char* body, Py_ssize_t n) except -1:
        cdef Fields fields
        cdef long long handle, delivery_id, message_format
        cdef int flags = 0, given, id_at
        cdef bytes tag, state
        if self.pending == 0 and self._is_alike(body, n):
            return self._transfer_alike(channel, body, n)
        # Only the reading may fail: what the sink raises is for the caller of `feed`.
        try:
            _open(&fields, body, HEAD_FIELDS, n)
            handle = _uint(&fields, True)
            id_at = <int>fields.at
            delivery_id = _uint(&fields, False)
            tag = _tag(&fields)
            message_format = _uint(&fields, False)
            given = _boolean(&fields)
            if given >= 0:
                flags = C_SETTLED_GIVEN | (C_SETTLED if given else 0)
            if _boolean(&fields) == 1:
                flags |= C_MORE
            given = _ubyte(&fields)
            if given > 1:
                return False
            if given >= 0:
                flags |= C_SECOND_GIVEN | (C_SECOND if given else 0)
            state = _any(&fields)
        except DecodeError:
            return False
        if _boolean(&fields) == 1:
            flags |= C_RESUME
        if _boolean(&fields) == 1:
            flags |= C_ABORTED
        if _boolean(&fields) == 1:
            flags |= C_BATCHABLE
        if not _closed(&fields):
            return False
        if PyBytes_GET_SIZE(state) == 0 and not flags & (C_MORE | C_RESUME | C_ABORTED):
            if self.pending == 0:
                self._remember(channel, body, fields.end, id_at, handle, message_format, flags)
                if self._whole(channel, handle, delivery_id, tag, message_format, flags,
                               body + fields.end, n - fields.end):
                    return True
        self._sink.partial(
            channel, handle, delivery_id, tag, message_format, flags, state,
            PyBytes_FromStringAndSize(<const char*>body + fields.end, n - fields.end))
        return True

    # A sender writes transfers that differ in delivery-id and tag only, and those of equal sizes.
    # What such a performative says is known when its other octets are those of the last one.
    cdef int _remember(self, int channel, const unsigned char* body, Py_ssize_t n, int id_at,
                       long long handle, long long message_format, int flags) except -1:
        """Note a performative for `_is_alike`, if it has a delivery-id and a short tag."""
        cdef Alike* alike = &self._alike
        cdef int at = id_at + 1
        alike.size = alike.flags = 0
        if n > ALIKE_BYTES or id_at >= n or (body[id_at] != 0x52 and body[id_at] != 0x70):
            return 0
        at += 1 if body[id_at] == 0x52 else 4
        if at >= n or body[at] != 0xA0:
            return 0
        memcpy(alike.data, body, n)
        alike.size = <int>n
        alike.id_at = id_at
        alike.tag_at = at
        alike.channel = channel
        alike.handle = handle
        alike.message_format = message_format
        alike.flags = flags
        return 0

    cdef bint _is_alike(self, const unsigned char* body, Py_ssize_t n) noexcept:
        """True if a performative differs from the one before in delivery-id and tag only."""
        cdef Alike* alike = &self._alike
        cdef int tag_at = alike.tag_at, after
        if alike.size == 0 or n < alike.size:
            return False
        # The size of the tag is one of the equal octets.
        after = tag_at + 2 + alike.data[tag_at + 1]
        return (memcmp(body, alike.data, alike.id_at + 1) == 0
                and body[tag_at] == alike.data[tag_at]
                and body[tag_at + 1] == alike.data[tag_at + 1]
                and memcmp(body + after, alike.data + after, alike.size - after) == 0)

    cdef bint _transfer_alike(self, int channel, const unsigned char* body,
                              Py_ssize_t n) except -1:
        """Pass a transfer on whose performative is like the one before."""
        cdef Alike* alike = &self._alike
        cdef const unsigned char* p = body + alike.id_at
        cdef long long delivery_id = u32(p + 1) if p[0] == 0x70 else p[1]
        cdef bytes tag
        alike.channel = channel
        p = body + alike.tag_at
        tag = PyBytes_FromStringAndSize(<const char*>p + 2, p[1])
        p = body + alike.size
        n -= alike.size
        if not self._whole(channel, alike.handle, delivery_id, tag, alike.message_format,
                           alike.flags, p, n):
            self._sink.partial(channel, alike.handle, delivery_id, tag, alike.message_format,
                               alike.flags, b"", PyBytes_FromStringAndSize(<const char*>p, n))
        return True

    cdef bint _whole(self, int channel, long long handle, long long delivery_id, bytes tag,
                     long long message_format, int flags, const unsigned char* payload,
                     Py_ssize_t n) except -1:
        """Pass a whole message on; False if it is malformed, which the sink is to name."""
        cdef Py_ssize_t content
        cdef Properties properties = self._sections(payload, n, &content)
        if properties is None:
            return False
        self._sink.transfer(
            channel, handle, delivery_id, tag, message_format, flags, properties,
            PyBytes_FromStringAndSize(<const char*>payload + content, n - content),
        )
        return True

    cdef Properties _sections(self, const unsigned char* payload, Py_ssize_t n,
                              Py_ssize_t* content):
        """Return the properties of a message, and where its body begins; None if malformed."""
        cdef Borders found
        cdef Properties properties = self._last_properties
        cdef bytes raw = properties.raw
        cdef Py_ssize_t size = PyBytes_GET_SIZE(raw)
        found.content = -1
        # Equal sections in a row are one object, and need not be looked at again.
        if properties.family == C_FAMILY and n > size and (
                memcmp(PyBytes_AS_STRING(raw), payload, size) == 0):
            found.content = data_at(payload, size, n)
        if found.content < 0:
            try:
                find_borders(payload, n, &found)
                if (properties.family != found.family or found.dropped != found.kept
                        or size != found.body
                        or memcmp(PyBytes_AS_STRING(raw), payload, size) != 0):
                    raw = joined(payload, &found)
                    if properties.family != found.family or raw != properties.raw:
                        properties = read_properties(raw, found.family)
                        self._last_properties = properties
            except DecodeError:
                return None
        content[0] = found.content
        return properties

    cdef bint _disposition(self, int channel, const unsigned char* body, Py_ssize_t n) except -1:
        cdef Fields fields
        cdef int role, settled, outcome = 0
        cdef long long first, last
        cdef bytes state
        cdef Py_ssize_t size
        cdef const unsigned char* p
        try:
            _open(&fields, body, HEAD_FIELDS, n)
            role = _boolean(&fields)
            first = _uint(&fields, True)
            last = _uint(&fields, False)
            settled = _boolean(&fields)
            p = body + fields.at
            size = fields.at
            # Nearly all outcomes are accepted with an empty list, which needs no object.
            if (fields.left and fields.end - fields.at >= 4 and p[0] == 0 and p[1] == 0x53
                    and p[3] == 0x45):
                fields.at += 4
                fields.left -= 1
                outcome = p[2]
                state = b""
            else:
                state = _any(&fields)
        except DecodeError:
            return False
        _boolean(&fields)
        if not _closed(&fields) or role < 0:
            return False
        size = PyBytes_GET_SIZE(state)
        if size:
            # Another form of descriptor is decoded by the reader of `frame`.
            p = <const unsigned char*>PyBytes_AS_STRING(state)
            if size < 4 or p[0] or p[1] != 0x53:
                return False
            outcome = p[2]
            if _is_empty(p + 3, size - 3):
                state = b""
        self._sink.disposition(channel, role == 1, first, first if last < 0 else last,
                               settled == 1, outcome, state)
        return True

    cdef bint _flow(self, int channel, const unsigned char* body, Py_ssize_t n) except -1:
        cdef Fields fields
        cdef long long[8] numbers
        cdef int number, flags = 0
        cdef bytes properties
        try:
            _open(&fields, body, HEAD_FIELDS, n)
            for number in range(8):
                # Incoming window, next outgoing id and outgoing window are mandatory.
                numbers[number] = _uint(&fields, 1 <= number <= 3)
            if _boolean(&fields) == 1:
                flags = C_DRAIN
            if _boolean(&fields) == 1:
                flags |= C_ECHO
            properties = _any(&fields)
        except DecodeError:
            return False
        if not _closed(&fields) or PyBytes_GET_SIZE(properties):
            return False
        self._sink.flow(channel, numbers[0], numbers[1], numbers[2], numbers[3], numbers[4],
                        numbers[5], numbers[6], numbers[7], flags)
        return True


cdef bint _is_empty(const unsigned char* p, Py_ssize_t n) noexcept:
    """True if the list of a state has no fields."""
    if n == 1:
        return p[0] == 0x45
    if n == 3:
        return memcmp(p, b"\xc0\x01\0", 3) == 0
    return n == 9 and memcmp(p, b"\xd0\0\0\0\x04\0\0\0\0", 9) == 0


cdef int _bad_frame(Py_ssize_t size, Py_ssize_t start, Py_ssize_t limit) except -1:
    # The texts are RabbitMQ's.
    if size < C_HEAD:
        raise FramingError(f"frame size ({size} bytes) < minimum frame size ({C_HEAD} bytes)")
    if size > limit:
        raise FramingError(f"frame size ({size} bytes) > maximum frame size ({limit} bytes)")
    if start < C_HEAD:
        raise FramingError(f"data offset ({start // 4}) < minimum data offset (2)")
    raise FramingError(f"data offset ({start} bytes) > frame size ({size} bytes)")
