"""Turn deliveries into Arrow column buffers, in C, without a Python object per message.

The pure Python twin, columns.py, has the description and draws the buffers; both must agree byte
for byte. This module does not use pyarrow: a chunk is a list of `bytes` in Arrow's layout
(little-endian values, 32-bit offsets, validity bits with the least significant first), which
harebell.spark.reading.rows.arrow_batches assembles into record batches.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t
from libc.stdlib cimport free

from harebell.base.message cimport Properties
from harebell.kernels.arrays cimport (
    HEADERS, PROPERTIES, TIME, Bits, Buffer, Map, Number, Spans, Text, choose_fields, put, release,
    split, taken
)
from harebell.kernels.frames cimport FrameSink
from harebell.kernels.octets cimport u64

from harebell.base.errors import HarebellError, ProtocolError

cdef extern from "string.h":
    void* memmem(const void* hay, size_t hay_size, const void* needle, size_t needle_size) nogil

cdef int64_t MICROS = 1000000
# The last second whose microseconds fit into 63 bits; later times of a peer are null.
cdef unsigned long long _LAST_SECOND = 9223372036854ULL
cdef bytes COUNT_NAME = b"\x10x-delivery-count"


cdef class ColumnSink(FrameSink):
    """Deliveries in, chunks of Arrow buffers out; see the twin."""

    cdef readonly Py_ssize_t rows
    cdef readonly Py_ssize_t pending_rows
    cdef readonly long long position
    cdef readonly unsigned long long last_tag
    cdef tuple _columns
    cdef tuple _fields
    cdef str _queue
    cdef Py_ssize_t _max_rows
    cdef Py_ssize_t _max_bytes
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
    cdef Text _raw
    cdef bint _timed
    cdef bint _reads_properties
    cdef list _texts
    cdef list _numbers
    cdef list _kept
    cdef Py_ssize_t _time_at

    def __init__(self, columns, fields, str queue not None, long long position,
                 Py_ssize_t max_rows, Py_ssize_t max_bytes, headers_of, count_of):
        self._columns = tuple(columns)
        self._fields = tuple(fields)
        self._queue = queue
        self.position = position
        self._max_rows = max_rows
        self._max_bytes = max_bytes
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
        self._raw = Text() if "headers_raw" in columns else None
        self._timed = "timestamp" in columns
        choose_fields(self._fields, self._texts, self._numbers, self._kept)
        self._reads_properties = (bool(self._fields) or self._headers is not None
                                  or self._raw is not None or self._count is not None)

    cpdef int deliver(self, int channel, str consumer_tag, unsigned long long tag,
                      bint redelivered, str exchange, str routing_key, Properties properties,
                      bytes body) except -1:
        # A chunk is acknowledged by its last delivery tag with the bit `multiple`, so tags must not
        # have a gap.
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
        if self.rows >= self._max_rows or self._bytes >= self._max_bytes:
            self._close()
        return 0

    cdef int _add_properties(self, bint redelivered, bytes raw) except -1:
        cdef Text text
        cdef Number numbers
        cdef const unsigned char* p = <const unsigned char*>PyBytes_AS_STRING(raw)
        cdef Py_ssize_t n = PyBytes_GET_SIZE(raw)
        cdef Spans spans
        cdef Py_ssize_t at, size
        cdef int number
        # A peer's list: nothing is read before all sizes were compared with its end.
        if not split(p, n, &spans):
            raise ProtocolError(
                502, "malformed content header: properties run over the end", 60, 0)
        for number in range(PROPERTIES):
            at = spans.at[number]
            size = spans.size[number]
            text = self._texts[number]
            numbers = self._numbers[number]
            if size < 0:
                self._add_absent(number, redelivered)
            elif number == HEADERS:
                self._add_table(p + at, size, redelivered)
            elif text is not None:
                text.add_checked(p + at, size)
            elif number == TIME:
                self._add_time(u64(p + at))
            elif numbers is not None:
                numbers.add(p[at])
        return 0

    cdef int _add_absent(self, int number, bint redelivered) except -1:
        cdef Text text = self._texts[number]
        cdef Number numbers = self._numbers[number]
        if number == HEADERS:
            if self._headers is not None:
                self._headers.add_null()
            if self._raw is not None:
                self._raw.add_null()
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
        if self._raw is not None:
            self._raw.add(p, n)
        if self._count is not None:
            # A search in C: the table is decoded only if the name is somewhere in it.
            if memmem(p, n, name, PyBytes_GET_SIZE(COUNT_NAME)) == NULL:
                self._count.add(redelivered)
            else:
                self._count.add(self._count_of(<bytes>p[:n], redelivered))
        return 0

    def stamp(self, long long micros):
        """Set the arrival time of the deliveries since the last call."""
        for chunk in self._closed:
            _cover(chunk[2], chunk[1], micros)
        _cover(self._runs, self.rows, micros)

    def take(self, bint everything):
        """Return the finished chunks; with `everything` the unfinished one too."""
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
        times.owner = NULL
        times.data = NULL
        times.used = 0
        times.room = 0
        try:
            # Deliveries of one read have the same arrival time: runs of equal times, and not a time
            # each.
            for end, micros in runs:
                while row < end:
                    put(&times, &micros, 8)
                    row += 1
            while row < rows:
                put(&times, &micros, 8)
                row += 1
            buffers[self._time_at] = taken(&times)
        finally:
            release(&times)
        return buffers

    cdef int _close(self) except -1:
        """Finish the present chunk and begin a new one."""
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
            elif name == "headers_raw":
                self._raw.finish(buffers)
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
    """Append a run of equal times up to a row, unless the runs reach it already."""
    # A run is (row behind its last, time).
    cdef Py_ssize_t last = len(runs) - 1
    if rows and (last < 0 or <Py_ssize_t>runs[last][0] < rows):
        runs.append((rows, micros))
    return 0
