"""Turn Arrow column buffers into messages or frames, in C, without a Python object per value.

The pure Python twin, rows.py, has the description and draws the buffers; both must agree byte for
byte and error for error. Every byte may come from a peer: a range becomes a pointer only after it
was checked against the batch, and offsets are checked each time they are used.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t
from libc.string cimport memcmp, memcpy

from harebell.base.message cimport Message, Properties, new_message
from harebell.kernels.arrays cimport Buffer, is_utf8, put, release
from harebell.kernels.octets cimport (
    END, HEADER, HEADER_FIXED, OVERHEAD, PUBLISH_FIXED, framed_size, put16, put32, put64, put_body,
    put_head, put_publish,
)
from harebell.kernels.output cimport OutBuffer
from harebell.kernels.properties cimport read_properties, table_fits

from harebell.base.errors import BatchError, ProtocolError
from harebell.base.limits import NAME_BYTES
from harebell.kernels.limits import LARGE_RECORD_BYTES
from harebell.base.row_columns import PROPERTY_NAMES, PUBLISHING_ID, check_columns, default_name
from harebell.kernels.publishing import unnumbered

cdef enum:
    PROPERTIES = 14         # properties of class basic, in the order of their flags
    HEADERS = 2             # their numbers, counted from the highest flag (AMQP 0-9-1 4.2.6.1)
    MODE = 3
    PRIORITY = 4
    TIME = 9
    MICROS = 1000000
    BASIC_CONTENT = 0x003C0000

cdef Py_ssize_t MAX_NAME = NAME_BYTES
cdef Py_ssize_t MAX_BODY = LARGE_RECORD_BYTES
cdef tuple NAMES = PROPERTY_NAMES
cdef bytes NUMBER_NAME = PUBLISHING_ID
cdef Py_ssize_t NUMBER_SIZE = len(PUBLISHING_ID)
# An entry of a field table up to its value: the name behind its size, and the tag `l`, which is a
# number of 64 bits.
cdef bytes NUMBER_ENTRY = bytes((len(PUBLISHING_ID),)) + PUBLISHING_ID + b"l"


cdef inline bint is_null(Column* column, Py_ssize_t row) noexcept:
    # Arrow's validity bits: the lowest bit of an octet is the first row, and 1 is a value.
    return column.valid != NULL and not column.valid[row >> 3] & (1 << (row & 7))


cdef inline bint find_text(Column* column, Py_ssize_t row, const unsigned char** p,
                       Py_ssize_t* n) noexcept:
    """Find the bytes of a row; False if it has none, or offsets that run over the column."""
    cdef int first = 0, end = 0
    if not column.there or is_null(column, row):
        return False
    # memcpy is a load at any address: a peer's buffers need not be aligned.
    memcpy(&first, column.offsets + row * 4, 4)
    memcpy(&end, column.offsets + row * 4 + 4, 4)
    if first < 0 or end < first or end > column.size:
        return False
    p[0] = column.data + first
    n[0] = end - first
    return True


cdef class Rows:
    """Turns the rows of record batches into messages or frames; see the twin."""

    def __cinit__(self):
        self._raw_list.data = NULL
        self._raw_list.used = 0
        self._raw_list.room = 0

    def __dealloc__(self):
        release(&self._raw_list)

    def __init__(self, columns, fields, str exchange not None, str routing_key not None,
                 int delivery_mode):
        check_columns(columns, fields)
        self.rows = 0
        self.number_from = -1
        self.frame_max = 0
        self.properties = Properties(b"\0\0")
        self._columns = tuple(columns)
        self._fields = tuple(fields)
        self._exchange_default = default_name(exchange, "exchange")
        self._key_default = default_name(routing_key, "routing_key")
        self._exchange_octets = self._exchange_default.encode()
        self._key_octets = self._key_default.encode()
        self._mode = delivery_mode
        self._data = b""
        self._spans = []
        self._last_exchange = ""
        self._last_exchange_octets = b""
        self._last_key = ""
        self._last_key_octets = b""
        self._forget()

    cdef int _forget(self) except -1:
        cdef int number
        self._value.there = False
        self._key.there = False
        self._exchange.there = False
        self._struct.there = False
        self._map.there = False
        self._raw.there = False
        for number in range(PROPERTIES):
            self._of[number].there = False
        return 0

    cpdef int load(self, bytes data, Py_ssize_t rows, Py_ssize_t entries, object spans) except -1:
        """Set the batch, which replaces the one before."""
        cdef str name
        self.rows = 0
        self._data = data
        self._spans = list(spans)
        self._at = 0
        self._entries = entries
        self._forget()
        if rows < 0 or entries < 0:
            raise BatchError("the batch has less than no rows")
        for name in self._columns:
            if name == "properties":
                self._struct.valid = self._validity(rows, name)
                self._struct.there = True
                for field in self._fields:
                    self._load_field(field, rows)
            elif name == "headers":
                self._map.valid = self._validity(rows, name)
                self._map.offsets = self._offsets(rows, name)
                self._map.there = True
                # Arrow's map is a list of structs, and a struct has validity bits of its own.
                # Entries are never null: the bits are only passed over.
                self._validity(entries, name)
                self._load_text(&self._names, entries, name)
                self._load_text(&self._values, entries, name)
            elif name == "value":
                self._load_text(&self._value, rows, name)
            elif name == "routing_key":
                self._load_text(&self._key, rows, name)
            elif name == "exchange":
                self._load_text(&self._exchange, rows, name)
            else:
                self._load_text(&self._raw, rows, name)
        # A buffer too many: the columns are not those that were declared, and the buffers were
        # taken for other columns.
        if self._at != len(self._spans):
            raise BatchError(
                f"the batch has {len(self._spans) // 2} buffers, not {self._at // 2}")
        self.rows = rows
        return 0

    cdef const unsigned char* _span(self, str name, Py_ssize_t* size) except? NULL:
        cdef Py_ssize_t start, n, limit = PyBytes_GET_SIZE(self._data)
        if self._at + 2 > len(self._spans):
            raise BatchError(f"the batch has no buffer for {name}")
        start, n = self._spans[self._at], self._spans[self._at + 1]
        self._at += 2
        # Not `start + n > limit`: the sum of two numbers of a peer may overflow.
        if start < 0 or n < 0 or start > limit or n > limit - start:
            raise BatchError(f"a buffer of {name} runs over the end of the batch")
        size[0] = n
        return <const unsigned char*>PyBytes_AS_STRING(self._data) + start

    cdef const unsigned char* _sized(self, str name, str what, Py_ssize_t minimum) except? NULL:
        cdef Py_ssize_t size = 0
        cdef const unsigned char* p = self._span(name, &size)
        if size < minimum:
            raise BatchError(f"the {what} of {name} have {size} octets, and {minimum} are needed")
        return p

    cdef const unsigned char* _validity(self, Py_ssize_t rows, str name) except? NULL:
        cdef Py_ssize_t size = 0
        cdef const unsigned char* p = self._span(name, &size)
        if size and size < (rows + 7) >> 3:
            raise BatchError(
                f"the validity bits of {name} have {size} octets, and {(rows + 7) >> 3} are "
                "needed")
        # Arrow leaves the bits out if no row is null.
        return p if size else NULL

    cdef const unsigned char* _offsets(self, Py_ssize_t rows, str name) except? NULL:
        # One more than rows, for the end of the last. Without rows Arrow allows no offsets at all.
        return self._sized(name, "offsets", (rows + 1) * 4 if rows else 0)

    cdef int _load_text(self, Column* column, Py_ssize_t rows, str name) except -1:
        column.valid = self._validity(rows, name)
        column.offsets = self._offsets(rows, name)
        column.data = self._span(name, &column.size)
        column.there = True
        return 0

    cdef int _load_field(self, str name, Py_ssize_t rows) except -1:
        cdef int number = NAMES.index(name)
        cdef Column* column = &self._of[number]
        if number != MODE and number != PRIORITY and number != TIME:
            return self._load_text(column, rows, name)
        column.valid = self._validity(rows, name)
        column.data = self._sized(name, "values", rows * (8 if number == TIME else 4))
        column.there = True
        return 0

    cpdef Message message(self, Py_ssize_t row):
        """Return the message of a row; `properties` has its properties."""
        cdef const unsigned char* p = NULL
        cdef Py_ssize_t n = 0
        cdef str exchange, key
        cdef bytes body
        self._check(row)
        self._body(row, &p, &n)
        exchange = self._exchange_text(row)
        key = self._key_text(row)
        body = PyBytes_FromStringAndSize(<const char*>p, n)
        self._build(row)
        self._check_frame(row, self.frame_max)
        # Rows mostly have equal properties: then the object of the last row is used again.
        if (PyBytes_GET_SIZE(self.properties.raw) != self._raw_list.used
                or memcmp(PyBytes_AS_STRING(self.properties.raw), self._raw_list.data,
                          self._raw_list.used) != 0):
            self.properties = self._parsed(row)
        return new_message(exchange, key, self.properties, body)

    cdef Properties _parsed(self, Py_ssize_t row):
        try:
            return read_properties(<const unsigned char*>self._raw_list.data,
                                     self._raw_list.used)
        except ProtocolError as error:
            raise BatchError(f"row {row}: {error.text}") from None

    cpdef Py_ssize_t same_until(self, Py_ssize_t first, Py_ssize_t end) except -1:
        """Return where the rows end that differ from one in their bodies only; see the twin."""
        cdef const unsigned char* p = NULL
        cdef const unsigned char* exchange
        cdef const unsigned char* key
        cdef Py_ssize_t n = 0, n_exchange, n_key, row = first + 1
        cdef bytes like
        # Without such columns every row has the same property list, and none is built to compare
        # it.
        cdef bint varies = (self._struct.there or self._map.there or self._raw.there
                            or self.number_from >= 0)
        self._check(first)
        self._body(first, &p, &n)
        if not self._checked_name(&self._exchange, first, "exchange", &exchange, &n_exchange):
            exchange = <const unsigned char*>PyBytes_AS_STRING(self._exchange_octets)
            n_exchange = PyBytes_GET_SIZE(self._exchange_octets)
        if not self._checked_name(&self._key, first, "routing_key", &key, &n_key):
            key = <const unsigned char*>PyBytes_AS_STRING(self._key_octets)
            n_key = PyBytes_GET_SIZE(self._key_octets)
        self._build(first)
        like = PyBytes_FromStringAndSize(self._raw_list.data, self._raw_list.used)
        if n >= MAX_BODY:
            return row
        end = min(end, self.rows)
        while row < end:
            if not find_text(&self._value, row, &p, &n) or n >= MAX_BODY:
                break
            if not self._same(&self._key, row, self._key_octets, key, n_key):
                break
            if not self._same(&self._exchange, row, self._exchange_octets, exchange, n_exchange):
                break
            if varies:
                try:
                    self._build(row)
                except BatchError:
                    break
                if (self._raw_list.used != PyBytes_GET_SIZE(like)
                        or memcmp(self._raw_list.data, PyBytes_AS_STRING(like),
                                  self._raw_list.used) != 0):
                    break
            row += 1
        return row

    cdef bint _same(self, Column* column, Py_ssize_t row, bytes default, const unsigned char* p,
                    Py_ssize_t n) noexcept:
        """True if a row of a column of names has this one."""
        cdef const unsigned char* name = <const unsigned char*>PyBytes_AS_STRING(default)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(default)
        if column.there and not is_null(column, row) and not find_text(column, row, &name, &size):
            return False
        return size == n and (name == p or memcmp(name, p, n) == 0)

    cpdef long long body_bytes(self, Py_ssize_t first, Py_ssize_t end) except -1:
        """Return the size of the bodies of such rows; see the twin."""
        cdef const unsigned char* p = NULL
        cdef Py_ssize_t n = 0, row
        cdef long long size = 0
        for row in range(first, end):
            self._check(row)
            self._body(row, &p, &n)
            size += n
        return size

    cpdef Py_ssize_t publish(self, OutBuffer out, int channel, int flags, Py_ssize_t frame_max,
                             Py_ssize_t first, Py_ssize_t end) except -1:
        """Append basic.publish with its content for each row from `first` up to `end`."""
        cdef Py_ssize_t before = out.size, row
        try:
            for row in range(first, end):
                self._publish(out, channel, flags, frame_max, row)
        except:
            # All rows or none: a half of a batch must not be sent before the error is raised.
            out.size = before
            raise
        return max(end - first, 0)

    cdef int _publish(self, OutBuffer out, int channel, int flags, Py_ssize_t frame_max,
                      Py_ssize_t row) except -1:
        cdef const unsigned char* body = NULL
        cdef const unsigned char* exchange = NULL
        cdef const unsigned char* key = NULL
        cdef Py_ssize_t left = 0, n_exchange = 0, n_key = 0
        cdef Py_ssize_t limit = frame_max - OVERHEAD
        cdef unsigned char* p
        cdef unsigned char* start
        self._check(row)
        self._body(row, &body, &left)
        if not self._checked_name(&self._exchange, row, "exchange", &exchange, &n_exchange):
            exchange = <const unsigned char*>PyBytes_AS_STRING(self._exchange_octets)
            n_exchange = PyBytes_GET_SIZE(self._exchange_octets)
        if not self._checked_name(&self._key, row, "routing_key", &key, &n_key):
            key = <const unsigned char*>PyBytes_AS_STRING(self._key_octets)
            n_key = PyBytes_GET_SIZE(self._key_octets)
        self._build(row)
        self._check_frame(row, frame_max)
        start = p = out._room(PUBLISH_FIXED + n_exchange + n_key + OVERHEAD
                              + HEADER_FIXED + self._raw_list.used + OVERHEAD
                              + framed_size(left, limit))
        p = put_publish(p, channel, flags, exchange, n_exchange, key, n_key)
        p = put_head(p, HEADER, channel, HEADER_FIXED + self._raw_list.used)
        p = put32(p, BASIC_CONTENT)
        p = put64(p, left)
        memcpy(p, self._raw_list.data, self._raw_list.used)
        p += self._raw_list.used
        p[0] = END
        out.size += put_body(p + 1, channel, body, left, limit) - start
        return 0

    # --- one row --------------------------------------------------------------------------------

    cdef int _check(self, Py_ssize_t row) except -1:
        if row < 0 or row >= self.rows:
            raise BatchError(f"row {row}: the batch has {self.rows} rows")
        return 0

    cdef int _check_frame(self, Py_ssize_t row, Py_ssize_t frame_max) except -1:
        cdef Py_ssize_t size = HEADER_FIXED + self._raw_list.used + OVERHEAD
        if 0 < frame_max < size:
            raise BatchError(
                f"row {row}: its properties and headers need a frame of {size} octets, and the "
                f"most is {frame_max}")
        return 0

    cdef int _range(self, const unsigned char* offsets, Py_ssize_t row, Py_ssize_t limit, str name,
                    Py_ssize_t at, int* first, int* end) except -1:
        memcpy(first, offsets + row * 4, 4)
        memcpy(end, offsets + row * 4 + 4, 4)
        if first[0] < 0 or end[0] < first[0] or end[0] > limit:
            raise BatchError(f"row {at}: the offsets of {name} run over its octets")
        return 0

    cdef bint _text(self, Column* column, Py_ssize_t row, str name, Py_ssize_t at,
                    const unsigned char** p, Py_ssize_t* n) except -1:
        """Find the bytes of a row; False if it is null."""
        cdef int first = 0, end = 0
        if not column.there or is_null(column, row):
            return False
        self._range(column.offsets, row, column.size, name, at, &first, &end)
        p[0] = column.data + first
        n[0] = end - first
        return True

    cdef bint _short(self, Column* column, Py_ssize_t row, str name, Py_ssize_t at,
                     const unsigned char** p, Py_ssize_t* n) except -1:
        if not self._text(column, row, name, at, p, n):
            return False
        if n[0] > MAX_NAME:
            raise BatchError(f"row {at}: {name} has {n[0]} octets, and the most is {MAX_NAME}")
        return True

    cdef bint _checked_name(self, Column* column, Py_ssize_t row, str name,
                            const unsigned char** p, Py_ssize_t* n) except -1:
        if not self._short(column, row, name, row, p, n):
            return False
        if not is_utf8(p[0], n[0]):
            raise BatchError(f"row {row}: {name} is not UTF-8")
        return True

    cdef int _body(self, Py_ssize_t row, const unsigned char** p, Py_ssize_t* n) except -1:
        if not self._text(&self._value, row, "value", row, p, n):
            raise BatchError(f"row {row}: value is null, and a message needs a body")
        return 0

    cdef str _exchange_text(self, Py_ssize_t row):
        cdef const unsigned char* p = NULL
        cdef Py_ssize_t n = 0
        if not self._short(&self._exchange, row, "exchange", row, &p, &n):
            return self._exchange_default
        if (PyBytes_GET_SIZE(self._last_exchange_octets) != n
                or memcmp(PyBytes_AS_STRING(self._last_exchange_octets), p, n) != 0):
            self._last_exchange = _decoded(p, n, row, "exchange")
            self._last_exchange_octets = <bytes>p[:n]
        return self._last_exchange

    cdef str _key_text(self, Py_ssize_t row):
        cdef const unsigned char* p = NULL
        cdef Py_ssize_t n = 0
        if not self._short(&self._key, row, "routing_key", row, &p, &n):
            return self._key_default
        if (PyBytes_GET_SIZE(self._last_key_octets) != n
                or memcmp(PyBytes_AS_STRING(self._last_key_octets), p, n) != 0):
            self._last_key = _decoded(p, n, row, "routing_key")
            self._last_key_octets = <bytes>p[:n]
        return self._last_key

    cdef int _build(self, Py_ssize_t row) except -1:
        """Encode the property list of a row."""
        cdef Buffer* raw = &self._raw_list
        cdef unsigned int flags = 0
        cdef bint there = self._struct.there and not is_null(&self._struct, row)
        cdef unsigned char octet
        cdef int number
        raw.used = 0
        # The flags are written over these octets when it is known which properties the row has.
        put(raw, b"\0\0", 2)
        for number in range(PROPERTIES):
            if number == HEADERS:
                if self._put_headers(row):
                    flags |= 0x8000 >> number
            elif there and self._of[number].there and self._put_property(number, row):
                flags |= 0x8000 >> number
            # The default of all rows, for a row whose own delivery mode is null.
            elif number == MODE and self._mode:
                octet = self._mode
                put(raw, &octet, 1)
                flags |= 0x8000 >> number
        put16(<unsigned char*>raw.data, flags)
        return 0

    cdef bint _put_property(self, int number, Py_ssize_t row) except -1:
        cdef Column* column = &self._of[number]
        cdef const unsigned char* p = NULL
        cdef Py_ssize_t n = 0
        cdef int value
        cdef int64_t micros
        cdef unsigned char octets[8]
        if number == MODE or number == PRIORITY:
            if is_null(column, row):
                return False
            memcpy(&value, column.data + row * 4, 4)
            if value < 0 or value > 255:
                raise BatchError(
                    f"row {row}: {NAMES[number]} is {value}, and it is 0 to 255")
            octets[0] = <unsigned char>value
            put(&self._raw_list, octets, 1)
            return True
        if number == TIME:
            if is_null(column, row):
                return False
            memcpy(&micros, column.data + row * 8, 8)
            if micros < 0:
                raise BatchError(f"row {row}: {NAMES[number]} is before 1970")
            # Arrow has microseconds here, AMQP whole seconds (AMQP 0-9-1 4.2.5.4).
            put64(octets, <unsigned long long>(micros // MICROS))
            put(&self._raw_list, octets, 8)
            return True
        if not self._short(column, row, NAMES[number], row, &p, &n):
            return False
        octets[0] = <unsigned char>n
        put(&self._raw_list, octets, 1)
        put(&self._raw_list, p, n)
        return True

    cdef bint _put_headers(self, Py_ssize_t row) except -1:
        """Append the header table with its size; False if the row has none."""
        cdef Buffer* raw = &self._raw_list
        cdef Py_ssize_t start = raw.used
        cdef const unsigned char* p = NULL
        cdef Py_ssize_t n = 0
        cdef unsigned char octets[8]
        cdef bint there = False
        cdef bytes kept
        if not (self._map.there or self._raw.there or self.number_from >= 0):
            return False
        # The size of the table is written when it is known.
        put(raw, b"\0\0\0\0", 4)
        if self._text(&self._raw, row, "headers_raw", row, &p, &n):
            if not table_fits(p, n, 1):
                raise BatchError(f"row {row}: headers_raw is no field table")
            if self.number_from >= 0:
                # A number of another publisher, in rows that were read from its queue, would count
                # instead.
                kept = unnumbered(PyBytes_FromStringAndSize(<const char*>p, n))
                put(raw, PyBytes_AS_STRING(kept), PyBytes_GET_SIZE(kept))
            else:
                put(raw, p, n)
            there = True
        elif self._map.there and not is_null(&self._map, row):
            self._put_map(row)
            there = True
        if self.number_from >= 0:
            put(raw, PyBytes_AS_STRING(NUMBER_ENTRY), PyBytes_GET_SIZE(NUMBER_ENTRY))
            put64(octets, <unsigned long long>(self.number_from + row))
            put(raw, octets, 8)
            there = True
        if not there:
            raw.used = start
            return False
        put32(<unsigned char*>raw.data + start, <unsigned int>(raw.used - start - 4))
        return True

    cdef int _put_map(self, Py_ssize_t row) except -1:
        cdef Buffer* raw = &self._raw_list
        cdef int first = 0, end = 0, entry
        cdef const unsigned char* p = NULL
        cdef Py_ssize_t n = 0
        cdef unsigned char octets[5]
        self._range(self._map.offsets, row, self._entries, "headers", row, &first, &end)
        for entry in range(first, end):
            if not self._text(&self._names, entry, "headers", row, &p, &n):
                raise BatchError(f"row {row}: a header has no name")
            if n > MAX_NAME:
                raise BatchError(
                    f"row {row}: the name of a header has {n} octets, and the most is {MAX_NAME}")
            if (self.number_from >= 0 and n == NUMBER_SIZE
                    and memcmp(p, PyBytes_AS_STRING(NUMBER_NAME), n) == 0):
                continue
            octets[0] = <unsigned char>n
            put(raw, octets, 1)
            put(raw, p, n)
            if self._text(&self._values, entry, "headers", row, &p, &n):
                octets[0] = c"S"
                put32(octets + 1, <unsigned int>n)
                put(raw, octets, 5)
                put(raw, p, n)
            else:
                # A null in the map is a header whose value is void: to leave it out would lose it.
                put(raw, b"V", 1)
        return 0


cdef str _decoded(const unsigned char* p, Py_ssize_t n, Py_ssize_t row, str name):
    try:
        return PyUnicode_DecodeUTF8(<const char*>p, n, NULL)
    except UnicodeDecodeError:
        raise BatchError(f"row {row}: {name} is not UTF-8") from None
