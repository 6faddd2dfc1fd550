"""Turn records of a log into the buffers of an Arrow record batch, in C.

The pure Python twin, batches.py, has the description; both must agree byte for byte.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t
from libc.string cimport memcmp

from harebell.base.message cimport Message
from harebell.kernels.arrays cimport (
    HEADERS, PROPERTIES, SIMPLE_HEADERS, TIME, Bits, Buffer, Header, Map, Number, Text, Texts,
    choose_fields, put, release, simple_headers, split
)
from harebell.kernels.octets cimport u64, utf8

from harebell.base.errors import ProtocolError

cdef extern from "string.h":
    void* memmem(const void* hay, size_t hay_size, const void* needle, size_t needle_size) nogil

cdef enum:
    FAMILY = 9
    ROW_BYTES = 32         # overhead that is counted for a row
    # A batch that stays small must not cost the memory of a full one.
    EXPECTED_ROWS = 16384   # for so many rows, and octets of them, memory is reserved at most
    EXPECTED_BYTES = 2097152

cdef int64_t MICROS = 1000000
cdef int64_t MILLIS = 1000
cdef int64_t LAST_MILLISECOND = 9223372036854775LL
# The last second whose microseconds fit into 63 bits; later times of a peer are null.
cdef unsigned long long _LAST_SECOND = 9223372036854ULL
cdef bytes COUNT_NAME = b"\x10x-delivery-count"


cdef class BatchBuilder:
    """Records in, the buffers of a record batch out; see the twin."""

    def __dealloc__(self):
        release(&self._last)

    def __init__(self, columns, fields, str queue not None, headers_of, json_of, count_of,
                 convert):
        self._columns = tuple(columns)
        self._fields = tuple(fields)
        self._queue = queue.encode()
        self._headers_of = headers_of
        self._json_of = json_of
        self._count_of = count_of
        self._convert = convert
        self._texts = [None] * PROPERTIES
        self._numbers = [None] * PROPERTIES
        self._kept = []
        self._value = Text() if "value" in columns else None
        self._key = Texts() if "routing_key" in columns else None
        self._exchange = Texts() if "exchange" in columns else None
        self._queues = Text() if "queue" in columns else None
        self._offset = Number(8) if "offset" in columns else None
        self._time = Number(8) if "timestamp" in columns else None
        self._redelivered = Bits() if "redelivered" in columns else None
        self._counts = Number(4) if "delivery_count" in columns else None
        self._headers = Map(headers_of) if "headers" in columns else None
        self._json = Text() if "headers_json" in columns else None
        self._raw = Text() if "headers_raw" in columns else None
        self._reads_headers = (self._headers is not None or self._json is not None
                               or self._raw is not None)
        choose_fields(self._fields, self._texts, self._numbers, self._kept)
        self._reads_properties = (bool(self._fields) or self._reads_headers
                                  or self._counts is not None)
        self.limit(1, 1, 1)
        self.filter(None, False, 0, 0)
        self.where(None)
        self.marks(0, 0, None, None, None)
        self.at_level(0, 0)
        self._begin()

    def _begin(self):
        self.rows = 0
        self.full = False
        self.count = 0
        self._carried = 0
        self.bad = -1
        self.lost = 0
        self._byte_count = 0
        self._scanned = 0
        self._alike = 0

    def limit(self, Py_ssize_t rows, Py_ssize_t byte_count, Py_ssize_t scanned):
        """Set when the batch is full."""
        self._max_rows = rows
        self._max_bytes = byte_count
        self._max_scanned = scanned

    def filter(self, bytes key, bint prefix, long long since, long long until):
        """Set which records become rows."""
        self._wanted_key = key
        self._prefix = prefix
        self._since = since
        self._until = until

    def where(self, test):
        """Set the test of records that pass the filter."""
        self._test = test

    def marks(self, long long cursor, long long seen, held, fresh, ask):
        """Set which positions count as delivered before."""
        self._cursor = cursor
        self._seen = seen
        self._held = held
        self._fresh = fresh
        self._ask = ask

    def at_level(self, int shift, int level):
        """Set the level of the positions: the column `offset` has both."""
        self._shift = shift
        self._level = level

    cpdef int message(self, Message message, long long position) except -1:
        cdef Py_ssize_t exchange_size = 0
        cdef Py_ssize_t key_size = 0
        cdef const char* exchange
        cdef const char* key
        self._carried = message.deliveries
        try:
            if message.family != FAMILY:
                message = self._convert(message)
            exchange = utf8(message.exchange, &exchange_size)
            key = utf8(message.routing_key, &key_size)
            return self.row(
                position, message.timestamp,
                <const unsigned char*>exchange, exchange_size,
                <const unsigned char*>key, key_size,
                <const unsigned char*>PyBytes_AS_STRING(message.raw),
                PyBytes_GET_SIZE(message.raw),
                <const unsigned char*>PyBytes_AS_STRING(message.body),
                PyBytes_GET_SIZE(message.body))
        finally:
            self._carried = 0

    cpdef bint damaged(self, long long position) except -1:
        if self.skip:
            self.lost += 1
            return True
        self.bad = position
        self.full = True
        return False

    def gone(self, long long positions):
        """Count positions that no longer exist."""
        self.lost += positions

    cdef bint _passes(self, long long time, const unsigned char* key, Py_ssize_t size) noexcept:
        cdef Py_ssize_t wanted
        if time < self._since or (self._until and time >= self._until):
            return False
        if self._wanted_key is None:
            return True
        wanted = PyBytes_GET_SIZE(self._wanted_key)
        if size < wanted or (size > wanted and not self._prefix):
            return False
        return memcmp(key, PyBytes_AS_STRING(self._wanted_key), wanted) == 0

    cdef int row(self, long long position, long long time,
                 const unsigned char* exchange, Py_ssize_t exchange_size,
                 const unsigned char* key, Py_ssize_t key_size,
                 const unsigned char* raw, Py_ssize_t raw_size,
                 const unsigned char* body, Py_ssize_t body_size) except -1:
        cdef bint again = False
        # Counted before the filter: a filter that nothing passes must end the turn as well.
        self._scanned += ROW_BYTES + exchange_size + key_size + raw_size + body_size
        if self._scanned >= self._max_scanned:
            self.full = True
        if not self._passes(time, key, key_size):
            return 0
        # After the cheap filter: the test is a call of Python, with copies of all its arguments.
        if self._test is not None and not self._test(
            exchange[:exchange_size], key[:key_size], raw[:raw_size], body[:body_size],
            time, position << self._shift | self._level, self.count + self._carried,
            self._again(position)
        ):
            return 0
        # Nothing of the row is added before this line: a test that raises leaves the columns equal.
        if self.rows == 0:
            self._expect(body_size)
        self._byte_count += ROW_BYTES
        if self._value is not None:
            self._value.add(body, body_size)
            self._byte_count += body_size
        if self._key is not None:
            self._key.add(key, key_size)
            self._byte_count += key_size
        if self._exchange is not None:
            self._exchange.add(exchange, exchange_size)
            self._byte_count += exchange_size
        if self._offset is not None:
            self._offset.add(position << self._shift | self._level)
        if self._time is not None:
            # Microseconds of a later time would not fit into 63 bits; 0 stands for no time.
            if 0 < time <= LAST_MILLISECOND:
                self._time.add(time * MILLIS)
            else:
                self._time.add_null()
        if self._redelivered is not None or self._counts is not None:
            again = self._again(position)
        if self._redelivered is not None:
            self._redelivered.add(again)
        if self._reads_properties:
            self._add_properties(raw, raw_size, again)
            self._byte_count += raw_size
        self.rows += 1
        if self.rows >= self._max_rows or self._byte_count >= self._max_bytes:
            self.full = True
        return 0

    cdef int _expect(self, Py_ssize_t body_size) except -1:
        """Reserve memory for a full batch of bodies of this size: mostly all are alike."""
        cdef Py_ssize_t rows = min(self._max_rows, EXPECTED_ROWS, self._max_bytes // ROW_BYTES)
        if self._value is not None:
            rows = min(rows, self._max_bytes // (ROW_BYTES + body_size) + 1)
            self._value.expect(rows, min(rows * body_size, EXPECTED_BYTES))
        for numbers in (self._offset, self._time, self._counts):
            if numbers is not None:
                (<Number>numbers).expect(rows)
        return 0

    cdef bint _again(self, long long position) except -1:
        """True if a message counts as delivered before."""
        if self.count > 0:
            return True
        if self._ask is not None:
            return self._ask(position)
        if position < self._cursor or (self._held is not None and position in self._held):
            return self._fresh is None or position not in self._fresh
        return position < self._seen

    cdef int _failed(self, bint again) noexcept:
        """Return the column `delivery_count` of a row."""
        cdef int count = self.count + self._carried
        return count if count > 0 else again

    cdef int _add_properties(self, const unsigned char* raw, Py_ssize_t n, bint again) except -1:
        """Add the properties of a row. Columns that get nothing are filled up with nulls later."""
        cdef Text text
        cdef Number numbers
        cdef Py_ssize_t at, size
        cdef int which, number
        cdef unsigned long long seconds
        # The rows of a publisher mostly have equal property lists: such rows are counted, and their
        # columns are filled in one loop by `_settle`.
        if n != self._last.used or memcmp(raw, self._last.data, n) != 0:
            self._settle()
            self._look(raw, n)
        elif self.rows and not self._has_table:
            self._alike += 1
            if self._counts is not None:
                self._counts.add(self._failed(again))
            return 0
        for which in range(self._found_count):
            number = self._found[which]
            at = self._spans.at[number]
            size = self._spans.size[number]
            text = self._texts[number]
            if text is not None:
                text.add_nulls(self.rows)
                text.add_checked(raw + at, size)
                continue
            numbers = self._numbers[number]
            numbers.add_nulls(self.rows)
            if number != TIME:
                numbers.add(raw[at])
                continue
            seconds = u64(raw + at)
            if seconds <= _LAST_SECOND:
                numbers.add(<int64_t>seconds * MICROS)
        if self._has_table:
            self._add_table(raw + self._spans.at[HEADERS], self._spans.size[HEADERS], again)
        elif self._counts is not None:
            self._counts.add(self._failed(again))
        return 0

    cdef int _settle(self) except -1:
        """Append the properties of the last rows that are like those of the row before them."""
        cdef Py_ssize_t before = self.rows - self._alike
        cdef int which
        if not self._alike:
            return 0
        for which in range(self._found_count):
            column = self._texts[self._found[which]]
            if column is not None:
                (<Text>column).repeat(self._alike)
                continue
            column = self._numbers[self._found[which]]
            # A time that is too late is null.
            if (<Number>column).valid.rows == before:
                (<Number>column).repeat(self._alike)
        self._alike = 0
        return 0

    cdef int _look(self, const unsigned char* raw, Py_ssize_t n) except -1:
        """Find the requested properties of a list. The next row mostly has the same list."""
        cdef bint well = split(raw, n, &self._spans)
        cdef int number
        self._found_count = 0
        for number in range(PROPERTIES):
            if (well and self._spans.size[number] >= 0
                    and (self._texts[number] is not None or self._numbers[number] is not None)):
                self._found[self._found_count] = number
                self._found_count += 1
        self._has_table = well and self._spans.size[HEADERS] >= 0
        self._last.used = 0
        put(&self._last, raw, n)
        return 0

    cdef int _add_table(self, const unsigned char* p, Py_ssize_t n, bint again) except -1:
        cdef const char* name = PyBytes_AS_STRING(COUNT_NAME)
        cdef int count = self._failed(again)
        if self._headers is not None:
            self._headers.add_nulls(self.rows)
            try:
                self._headers.add(p, n)
            except ProtocolError:
                self._headers.add_null()
        if self._json is not None:
            self._json.add_nulls(self.rows)
            self._add_json(p, n)
        if self._raw is not None:
            self._raw.add_nulls(self.rows)
            self._raw.add(p, n)
        if self._counts is not None:
            # A search in C: the table is decoded only if the name is somewhere in it.
            if (self.count + self._carried == 0
                    and memmem(p, n, name, PyBytes_GET_SIZE(COUNT_NAME)) != NULL):
                try:
                    count = self._count_of(<bytes>p[:n], again)
                except ProtocolError:
                    count = again
            self._counts.add(count)
        return 0

    cdef int _add_json(self, const unsigned char* p, Py_ssize_t n) except -1:
        """Append the table as JSON; only a simple one is encoded in C."""
        cdef Text column = self._json
        cdef Py_ssize_t begin = column._data.used
        cdef bytes made
        # Written into the column itself, without a copy; what is left of a table that turns out
        # not to be simple is cut off by setting the size back.
        if simple_json(p, n, &column._data):
            return column.end_row()
        column._data.used = begin
        try:
            made = self._json_of(<bytes>p[:n])
        except ProtocolError:
            return column.add_null()
        return column.add(PyBytes_AS_STRING(made), PyBytes_GET_SIZE(made))

    def finish(self):
        """Return the batch so far (rows, nodes, buffers) and start a new one; see the twin."""
        cdef Py_ssize_t rows = self.rows
        cdef list nodes = []
        cdef list buffers = []
        self._settle()
        for name in self._columns:
            if name == "value":
                self._value.end(nodes, buffers)
            elif name == "routing_key":
                self._key.end(nodes, buffers)
            elif name == "exchange":
                self._exchange.end(nodes, buffers)
            elif name == "queue":
                # All rows have the same value: it is written now, and not with each row.
                if rows:
                    self._queues.add(PyBytes_AS_STRING(self._queue), PyBytes_GET_SIZE(self._queue))
                    self._queues.repeat(rows - 1)
                self._queues.end(nodes, buffers)
            elif name == "offset":
                self._offset.end(nodes, buffers)
            elif name == "timestamp":
                self._time.end(nodes, buffers)
            elif name == "redelivered":
                nodes.append((rows, 0))
                buffers.append(None)
                buffers.append(self._redelivered.finish(False))
            elif name == "delivery_count":
                self._counts.end(nodes, buffers)
            elif name == "headers":
                self._headers.add_nulls(rows)
                self._headers.end(nodes, buffers)
            elif name == "headers_json":
                self._json.add_nulls(rows)
                self._json.end(nodes, buffers)
            elif name == "headers_raw":
                self._raw.add_nulls(rows)
                self._raw.end(nodes, buffers)
            elif name == "properties":
                nodes.append((rows, 0))
                buffers.append(None)
                for column in self._kept:
                    if isinstance(column, Text):
                        (<Text>column).add_nulls(rows)
                        (<Text>column).end(nodes, buffers)
                    else:
                        (<Number>column).add_nulls(rows)
                        (<Number>column).end(nodes, buffers)
        self._begin()
        return rows, nodes, buffers


cdef bint plain(const unsigned char* p, Py_ssize_t n) noexcept:
    """True if text is ASCII without characters that JSON escapes."""
    cdef Py_ssize_t at
    for at in range(n):
        # RFC 8259, 7: control characters, quotes and backslashes are escaped. Others than ASCII are
        # left to Python, which checks that they are UTF-8.
        if p[at] < 0x20 or p[at] >= 0x80 or p[at] == c'"' or p[at] == c'\\':
            return False
    return True


cdef bint simple_json(const unsigned char* p, Py_ssize_t n, Buffer* into) except -1:
    """Write a table of plain entries; False otherwise: the caller cuts off what was added."""
    cdef Header headers[SIMPLE_HEADERS]
    cdef Header* one
    cdef int count = simple_headers(p, n, headers), number
    put(into, b"{", 1)
    for number in range(count):
        one = &headers[number]
        if not plain(one.name, one.name_size) or one.tag == c'S' and not plain(one.text, one.size):
            return False
        if number:
            put(into, b",", 1)
        put(into, b'"', 1)
        put(into, one.name, one.name_size)
        # The third octet begins a text.
        put(into, b'":"', 3 if one.tag == c'S' else 2)
        put(into, one.text, one.size)
        if one.tag == c'S':
            put(into, b'"', 1)
    put(into, b"}", 1)
    return count >= 0
