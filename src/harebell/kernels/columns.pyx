"""Turn deliveries into Arrow column buffers, in C, without a Python object per message.

The pure Python twin, columns.py, says what this does and draws the buffers; both must
agree octet for octet. Nothing here knows pyarrow: a chunk is a list of `bytes` in Arrow's layout
(little-endian values, 32-bit offsets, validity bits with the least significant first), which
harebell.spark.batches assembles into record batches.
"""

from binascii import b2a_base64

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, int64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free, realloc
from libc.string cimport memcmp, memcpy, memset

from harebell.base.message cimport Properties
from harebell.kernels.frames cimport FrameSink

from harebell.base.errors import HarebellError, ProtocolError
from harebell.base.limits import COLUMN_BYTES

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL

cdef extern from "string.h":
    void* memmem(const void* hay, size_t hay_size, const void* needle, size_t needle_size) nogil

cdef enum:
    PROPERTIES = 14         # properties of class basic, in the order of their flags
    HEADERS = 2             # their numbers, counted from the highest flag (AMQP 0-9-1 4.2.6.1)
    MODE = 3
    PRIORITY = 4
    TIME = 9
    SIMPLE_HEADERS = 16     # a longer table, or one with a difficult value, goes to Python

cdef int64_t MICROS = 1000000
cdef unsigned long long _LAST_SECOND = 9223372036854ULL
cdef Py_ssize_t MOST = COLUMN_BYTES
cdef bytes COUNT_NAME = b"\x10x-delivery-count"

_NAMES = (
    "content_type", "content_encoding", "headers", "delivery_mode", "priority",
    "correlation_id", "reply_to", "expiration", "message_id", "timestamp", "type", "user_id",
    "app_id", "cluster_id",
)


cdef inline unsigned int u16(const unsigned char* p) noexcept:
    return (p[0] << 8) | p[1]


cdef inline unsigned int u32(const unsigned char* p) noexcept:
    return (<unsigned int>p[0] << 24) | (p[1] << 16) | (p[2] << 8) | p[3]


cdef inline unsigned long long u64(const unsigned char* p) noexcept:
    return (<unsigned long long>u32(p) << 32) | u32(p + 4)


cdef struct Buffer:
    char* data
    Py_ssize_t used
    Py_ssize_t room


cdef int reserve(Buffer* buffer, Py_ssize_t more) except -1:
    cdef Py_ssize_t room
    cdef char* data
    if buffer.used + more <= buffer.room:
        return 0
    room = max(4096, buffer.room)
    while room < buffer.used + more:
        room *= 2
    data = <char*>realloc(buffer.data, room)
    if data == NULL:
        raise MemoryError(f"no memory for a column of {room} octets")
    buffer.data = data
    buffer.room = room
    return 0


cdef inline int put(Buffer* buffer, const void* data, Py_ssize_t size) except -1:
    if buffer.used + size > buffer.room:
        reserve(buffer, size)
    memcpy(buffer.data + buffer.used, data, size)
    buffer.used += size
    return 0


cdef inline bytes taken(Buffer* buffer):
    cdef bytes data = PyBytes_FromStringAndSize(buffer.data, buffer.used)
    buffer.used = 0
    return data


cdef inline bint is_ascii(const unsigned char* p, Py_ssize_t n) noexcept:
    cdef Py_ssize_t at = 0
    cdef unsigned long long word
    while at + 8 <= n:
        memcpy(&word, p + at, 8)
        if word & 0x8080808080808080ULL:
            return False
        at += 8
    while at < n:
        if p[at] & 0x80:
            return False
        at += 1
    return True


cdef bint is_utf8(const unsigned char* p, Py_ssize_t n) except -1:
    if is_ascii(p, n):
        return True
    try:
        PyUnicode_DecodeUTF8(<const char*>p, n, NULL)
    except UnicodeDecodeError:
        return False
    return True


cdef class Bits:
    """A bitmap: whether each row is valid, or true."""

    cdef Buffer _bits
    cdef Py_ssize_t rows
    cdef Py_ssize_t zeros

    def __dealloc__(self):
        free(self._bits.data)

    cdef int add(self, bint value) except -1:
        if self.rows & 7 == 0:
            reserve(&self._bits, 1)
            self._bits.data[self._bits.used] = 0
            self._bits.used += 1
        if value:
            self._bits.data[self._bits.used - 1] |= <char>(1 << (self.rows & 7))
        else:
            self.zeros += 1
        self.rows += 1
        return 0

    cdef int cut(self, Py_ssize_t rows) except -1:
        """Forget what came after so many rows."""
        while self.rows > rows:
            self.rows -= 1
            if not self._bits.data[self.rows >> 3] & (1 << (self.rows & 7)):
                self.zeros -= 1
            self._bits.data[self.rows >> 3] &= <char>~(1 << (self.rows & 7))
        self._bits.used = (rows + 7) >> 3
        return 0

    cdef object finish(self, bint optional):
        """The bitmap; None for one that is optional and all ones."""
        cdef bint needless = optional and self.zeros == 0
        cdef bytes bits = taken(&self._bits)
        self.rows = 0
        self.zeros = 0
        return None if needless else bits


cdef class Text:
    """A column of strings or octets, any of them null."""

    cdef Bits valid
    cdef Buffer _offsets
    cdef Buffer _data
    cdef Py_ssize_t rows

    def __cinit__(self):
        self.valid = Bits()
        self._begin()

    def __dealloc__(self):
        free(self._offsets.data)
        free(self._data.data)

    cdef int _begin(self) except -1:
        cdef int32_t zero = 0
        self.rows = 0
        put(&self._offsets, &zero, 4)
        return 0

    cdef int add(self, const void* data, Py_ssize_t size) except -1:
        cdef int32_t end
        if self._data.used + size > MOST:
            raise HarebellError(
                f"one column of a record batch would hold {self._data.used + size} octets, "
                f"and the most is {MOST}")
        put(&self._data, data, size)
        end = <int32_t>self._data.used
        put(&self._offsets, &end, 4)
        self.valid.add(True)
        self.rows += 1
        return 0

    cdef int add_null(self) except -1:
        cdef int32_t end = <int32_t>self._data.used
        put(&self._offsets, &end, 4)
        self.valid.add(False)
        self.rows += 1
        return 0

    cdef int add_string(self, str text) except -1:
        cdef Py_ssize_t size
        cdef const char* data = PyUnicode_AsUTF8AndSize(text, &size)
        return self.add(data, size)

    cdef int add_checked(self, const unsigned char* p, Py_ssize_t n) except -1:
        """Text as a peer sent it; octets that are no UTF-8 are shown in base64."""
        cdef bytes shown
        if is_utf8(p, n):
            return self.add(p, n)
        shown = b"base64:" + b2a_base64(p[:n], newline=False)
        return self.add(PyBytes_AS_STRING(shown), PyBytes_GET_SIZE(shown))

    cdef int cut(self, Py_ssize_t rows) except -1:
        """Forget what came after so many rows."""
        self.rows = rows
        self._offsets.used = (rows + 1) * 4
        self._data.used = (<int32_t*>self._offsets.data)[rows]
        self.valid.cut(rows)
        return 0

    cdef int finish(self, list into) except -1:
        into.append(self.valid.finish(True))
        into.append(taken(&self._offsets))
        into.append(taken(&self._data))
        self._begin()
        return 0


cdef class Number:
    """A column of numbers, four or eight octets wide, any of them null."""

    cdef Bits valid
    cdef Buffer _data
    cdef int _width

    def __cinit__(self, int width):
        self.valid = Bits()
        self._width = width

    def __dealloc__(self):
        free(self._data.data)

    cdef int add(self, int64_t value) except -1:
        # The machine is little-endian, so the low octets come first in memory.
        put(&self._data, &value, self._width)
        self.valid.add(True)
        return 0

    cdef int add_null(self) except -1:
        cdef int64_t zero = 0
        put(&self._data, &zero, self._width)
        self.valid.add(False)
        return 0

    cdef int finish(self, list into) except -1:
        into.append(self.valid.finish(True))
        into.append(taken(&self._data))
        return 0


cdef class Map:
    """The headers: a map of strings per row; its keys and values are columns of their own."""

    cdef Bits valid
    cdef Buffer _offsets
    cdef Text keys
    cdef Text values
    cdef object _headers_of

    def __cinit__(self, headers_of):
        self.valid = Bits()
        self.keys = Text()
        self.values = Text()
        self._headers_of = headers_of
        self._begin()

    def __dealloc__(self):
        free(self._offsets.data)

    cdef int _begin(self) except -1:
        cdef int32_t zero = 0
        put(&self._offsets, &zero, 4)
        return 0

    cdef int _end_row(self, bint valid) except -1:
        cdef int32_t end = <int32_t>self.keys.rows
        put(&self._offsets, &end, 4)
        self.valid.add(valid)
        return 0

    cdef int add(self, const unsigned char* p, Py_ssize_t n) except -1:
        """A table without its size; a simple one is read here, any other in Python."""
        cdef Py_ssize_t entries = self.keys.rows
        cdef bytes key
        cdef bytes value
        if not self._add_simple(p, n):
            self.keys.cut(entries)
            self.values.cut(entries)
            for key, value in self._headers_of(<bytes>p[:n]):
                self.keys.add(PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key))
                if value is None:
                    self.values.add_null()
                else:
                    self.values.add(PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value))
        return self._end_row(True)

    cdef int add_null(self) except -1:
        return self._end_row(False)

    cdef bint _add_simple(self, const unsigned char* p, Py_ssize_t n) except -1:
        """True when every entry was plain; False leaves rubbish behind, to be cut off."""
        cdef const unsigned char* names[SIMPLE_HEADERS]
        cdef Py_ssize_t at = 0, used, size
        cdef int count = 0, other
        while at < n:
            size = p[at]
            if count == SIMPLE_HEADERS or at + 1 + size >= n or not is_utf8(p + at + 1, size):
                return False
            for other in range(count):
                if names[other][0] == size and memcmp(names[other] + 1, p + at + 1, size) == 0:
                    return False
            names[count] = p + at
            count += 1
            self.keys.add(p + at + 1, size)
            at += 1 + size
            used = self._add_value(p + at, n - at)
            if used == 0:
                return False
            at += used
        return True

    cdef Py_ssize_t _add_value(self, const unsigned char* p, Py_ssize_t n) except -1:
        """Octets used by a plain value with its type; 0 for one that is not plain."""
        cdef char digits[24]
        cdef long long number
        cdef Py_ssize_t size
        cdef unsigned char tag = p[0]
        if tag == c'S':
            if n < 5:
                return 0
            size = u32(p + 1)
            if size > n - 5 or not is_utf8(p + 5, size):
                return 0
            self.values.add(p + 5, size)
            return 5 + size
        if tag == c'V':
            self.values.add_null()
            return 1
        if tag == c't':
            if n < 2:
                return 0
            if p[1]:
                self.values.add(b"true", 4)
            else:
                self.values.add(b"false", 5)
            return 2
        size = _integer(p, n, &number)
        if size:
            self.values.add(digits, snprintf(digits, sizeof(digits), b"%lld", number))
        return size

    cdef int finish(self, list into) except -1:
        into.append(self.valid.finish(True))
        into.append(taken(&self._offsets))
        self.keys.finish(into)
        self.values.finish(into)
        self._begin()
        return 0


cdef Py_ssize_t _integer(const unsigned char* p, Py_ssize_t n, long long* number) noexcept:
    """Octets used by an integer with its type; 0 for anything else."""
    cdef unsigned char tag = p[0]
    if tag == c'b' or tag == c'B':
        if n < 2:
            return 0
        number[0] = <signed char>p[1] if tag == c'b' else p[1]
        return 2
    if tag == c's' or tag == c'u':
        if n < 3:
            return 0
        number[0] = <short>u16(p + 1) if tag == c's' else u16(p + 1)
        return 3
    if tag == c'I' or tag == c'i':
        if n < 5:
            return 0
        number[0] = <int>u32(p + 1) if tag == c'I' else u32(p + 1)
        return 5
    if tag == c'l' or tag == c'L':
        if n < 9:
            return 0
        number[0] = <long long>u64(p + 1)
        return 9
    return 0


cdef class ColumnSink(FrameSink):
    """Deliveries in, chunks of Arrow buffers out; see the twin."""

    cdef readonly Py_ssize_t rows
    cdef readonly Py_ssize_t pending_rows
    cdef readonly long long position
    cdef readonly unsigned long long last_tag
    cdef tuple _columns
    cdef tuple _fields
    cdef str _queue
    cdef Py_ssize_t _most_rows
    cdef Py_ssize_t _most_bytes
    cdef Py_ssize_t _bytes
    cdef list _closed
    cdef list _runs
    cdef object _count_of
    cdef Text _value
    cdef Text _key
    cdef Text _exchange
    cdef Text _queues
    cdef Number _offset
    cdef Bits _redelivered
    cdef Number _count
    cdef Map _headers
    cdef bint _timed
    cdef bint _reads_properties
    cdef list _texts
    cdef list _numbers
    cdef list _kept
    cdef Py_ssize_t _time_at

    def __init__(self, columns, fields, str queue not None, long long position,
                 Py_ssize_t most_rows, Py_ssize_t most_bytes, headers_of, count_of):
        self._columns = tuple(columns)
        self._fields = tuple(fields)
        self._queue = queue
        self.position = position
        self._most_rows = most_rows
        self._most_bytes = most_bytes
        self._count_of = count_of
        self._closed = []
        self._runs = []
        self._kept = []
        self._texts = [None] * PROPERTIES
        self._numbers = [None] * PROPERTIES
        self._value = Text() if "value" in columns else None
        self._key = Text() if "routing_key" in columns else None
        self._exchange = Text() if "exchange" in columns else None
        self._queues = Text() if "queue" in columns else None
        self._offset = Number(8) if "offset" in columns else None
        self._redelivered = Bits() if "redelivered" in columns else None
        self._count = Number(4) if "delivery_count" in columns else None
        self._headers = Map(headers_of) if "headers" in columns else None
        self._timed = "timestamp" in columns
        self._choose_fields()

    cdef int _choose_fields(self) except -1:
        """One column per wanted property, found by its number."""
        cdef int number
        for name in self._fields:
            number = _NAMES.index(name)
            if number == MODE or number == PRIORITY or number == TIME:
                column = Number(8 if number == TIME else 4)
                self._numbers[number] = column
            else:
                column = Text()
                self._texts[number] = column
            self._kept.append(column)
        self._reads_properties = (bool(self._fields) or self._headers is not None
                                  or self._count is not None)
        return 0

    cpdef int deliver(self, int channel, str consumer_tag, unsigned long long tag,
                      bint redelivered, str exchange, str routing_key, Properties properties,
                      bytes body) except -1:
        if tag != self.last_tag + 1:
            raise HarebellError(
                f"delivery tag {tag} came after {self.last_tag}: deliveries of channel {channel} "
                "went elsewhere, so they cannot be acknowledged together")
        if self._value is not None:
            self._value.add(PyBytes_AS_STRING(body), PyBytes_GET_SIZE(body))
        if self._key is not None:
            self._key.add_string(routing_key)
        if self._exchange is not None:
            self._exchange.add_string(exchange)
        if self._queues is not None:
            self._queues.add_string(self._queue)
        if self._offset is not None:
            self._offset.add(self.position)
        if self._redelivered is not None:
            self._redelivered.add(redelivered)
        if self._reads_properties:
            self._add_properties(redelivered, properties.raw)
        self.last_tag = tag
        self.position += 1
        self.rows += 1
        self.pending_rows += 1
        self._bytes += PyBytes_GET_SIZE(body) + PyBytes_GET_SIZE(properties.raw)
        if self.rows >= self._most_rows or self._bytes >= self._most_bytes:
            self._close()
        return 0

    cdef int _add_properties(self, bint redelivered, bytes raw) except -1:
        cdef Text text
        cdef Number numbers
        cdef const unsigned char* p = <const unsigned char*>PyBytes_AS_STRING(raw)
        cdef Py_ssize_t n = PyBytes_GET_SIZE(raw)
        cdef unsigned int flags
        cdef Py_ssize_t at = 2, size
        cdef int number
        if n < 2:
            raise _cut_off()
        flags = u16(p)
        for number in range(PROPERTIES):
            if not flags & (0x8000 >> number):
                self._add_absent(number, redelivered)
                continue
            if at >= n:
                raise _cut_off()
            if number == HEADERS:
                if at + 4 > n or u32(p + at) > n - at - 4:
                    raise _cut_off()
                size = u32(p + at)
                self._add_table(p + at + 4, size, redelivered)
                at += 4 + size
            elif number == MODE or number == PRIORITY:
                numbers = self._numbers[number]
                if numbers is not None:
                    numbers.add(p[at])
                at += 1
            elif number == TIME:
                if at + 8 > n:
                    raise _cut_off()
                self._add_time(u64(p + at))
                at += 8
            else:
                size = p[at]
                if at + 1 + size > n:
                    raise _cut_off()
                text = self._texts[number]
                if text is not None:
                    text.add_checked(p + at + 1, size)
                at += 1 + size
        return 0

    cdef int _add_absent(self, int number, bint redelivered) except -1:
        cdef Text text = self._texts[number]
        cdef Number numbers = self._numbers[number]
        if number == HEADERS:
            if self._headers is not None:
                self._headers.add_null()
            if self._count is not None:
                self._count.add(redelivered)
        elif text is not None:
            text.add_null()
        elif numbers is not None:
            numbers.add_null()
        return 0

    cdef int _add_time(self, unsigned long long seconds) except -1:
        cdef Number times = self._numbers[TIME]
        if times is None:
            return 0
        if seconds > _LAST_SECOND:
            return times.add_null()
        return times.add(<int64_t>seconds * MICROS)

    cdef int _add_table(self, const unsigned char* p, Py_ssize_t n, bint redelivered) except -1:
        cdef const char* name = PyBytes_AS_STRING(COUNT_NAME)
        if self._headers is not None:
            self._headers.add(p, n)
        if self._count is not None:
            if memmem(p, n, name, PyBytes_GET_SIZE(COUNT_NAME)) == NULL:
                self._count.add(redelivered)
            else:
                self._count.add(self._count_of(<bytes>p[:n], redelivered))
        return 0

    def stamp(self, long long micros):
        """Say when the deliveries arrived that came since the last time."""
        for chunk in self._closed:
            _cover(chunk[2], chunk[1], micros)
        _cover(self._runs, self.rows, micros)

    def take(self, bint everything):
        """The finished chunks; with `everything` the unfinished one too."""
        if everything and self.rows:
            self._close()
        closed, self._closed = self._closed, []
        self.pending_rows = self.rows
        return [(first, rows, self._timed_buffers(rows, runs, buffers))
                for first, rows, runs, buffers in closed]

    cdef list _timed_buffers(self, Py_ssize_t rows, list runs, list buffers):
        cdef Buffer times
        cdef Py_ssize_t row = 0, end
        cdef int64_t micros = 0
        if not self._timed:
            return buffers
        times.data = NULL
        times.used = 0
        times.room = 0
        try:
            for end, micros in runs:
                while row < end:
                    put(&times, &micros, 8)
                    row += 1
            while row < rows:
                put(&times, &micros, 8)
                row += 1
            buffers[self._time_at] = PyBytes_FromStringAndSize(times.data, times.used)
        finally:
            free(times.data)
        return buffers

    cdef int _close(self) except -1:
        """Turn the rows so far into a chunk and begin a new one."""
        cdef list buffers = []
        for name in self._columns:
            if name == "value":
                self._value.finish(buffers)
            elif name == "routing_key":
                self._key.finish(buffers)
            elif name == "exchange":
                self._exchange.finish(buffers)
            elif name == "queue":
                self._queues.finish(buffers)
            elif name == "offset":
                self._offset.finish(buffers)
            elif name == "timestamp":
                # Filled in when the chunk is taken: the times are not known yet.
                buffers.append(None)
                self._time_at = len(buffers)
                buffers.append(None)
            elif name == "redelivered":
                buffers.append(None)
                buffers.append(self._redelivered.finish(False))
            elif name == "delivery_count":
                self._count.finish(buffers)
            elif name == "headers":
                self._headers.finish(buffers)
            elif name == "properties":
                for column in self._kept:
                    if isinstance(column, Text):
                        (<Text>column).finish(buffers)
                    else:
                        (<Number>column).finish(buffers)
        self._closed.append((self.position - self.rows, self.rows, self._runs, buffers))
        self._runs = []
        self.rows = 0
        self._bytes = 0
        return 0


cdef int _cover(list runs, Py_ssize_t rows, long long micros) except -1:
    """Append a run of equal times up to that row, unless it is reached already."""
    cdef Py_ssize_t last = len(runs) - 1
    if rows and (last < 0 or <Py_ssize_t>runs[last][0] < rows):
        runs.append((rows, micros))
    return 0


cdef object _cut_off():
    return ProtocolError(502, "malformed content header: properties run over the end", 60, 0)
