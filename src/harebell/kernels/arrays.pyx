"""Growing Arrow arrays in C: bits, texts, numbers and maps of texts, a row at a time.

The pure Python twin, arrays.py, does the same. `finish` appends an array's buffers as `bytes` and
starts a new one. Texts of a peer are checked here: Arrow's strings must be UTF-8, AMQP's need not.
"""

from binascii import b2a_base64

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, int64_t
from libc.stdio cimport snprintf
from libc.string cimport memcmp, memcpy, memset

from harebell.kernels.octets cimport u16, u32, u64, utf8

from harebell.base.errors import HarebellError
from harebell.base.row_columns import PROPERTY_NAMES
from harebell.kernels.limits import COLUMN_BYTES

cdef extern from "Python.h":
    PyObject* new_octets "PyBytes_FromStringAndSize"(const char* data, Py_ssize_t size) except NULL
    int _PyBytes_Resize(PyObject** data, Py_ssize_t size) except -1
    char* octets_of "PyBytes_AS_STRING"(PyObject* data)

cdef enum:
    LEAST_ROOM = 64

cdef Py_ssize_t MAX = COLUMN_BYTES


cdef int reserve(Buffer* buffer, Py_ssize_t more) except -1:
    cdef Py_ssize_t room
    cdef PyObject* owner = buffer.owner
    if buffer.used + more <= buffer.room:
        return 0
    # Doubling: the number of rows of a batch is not known before it is full.
    room = max(LEAST_ROOM, 2 * buffer.room, buffer.used + more)
    if owner == NULL:
        owner = new_octets(NULL, room)
    else:
        # On an error the object is gone.
        buffer.owner = NULL
        buffer.data = NULL
        buffer.room = 0
        _PyBytes_Resize(&owner, room)
    buffer.owner = owner
    buffer.data = octets_of(owner)
    buffer.room = room
    return 0


cdef inline bint is_ascii(const unsigned char* p, Py_ssize_t n) noexcept:
    cdef Py_ssize_t at = 0
    cdef unsigned long long word
    while at + 8 <= n:
        # Eight bytes at a time: all are ASCII if none has its highest bit set. memcpy is
        # a load at any address.
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
    """A bitmap with one bit per row: valid or null, or true or false."""

    def __dealloc__(self):
        release(&self._bits)

    cdef int add_more(self, bint value, Py_ssize_t more) except -1:
        """Append equal rows. As long as all rows are equal there are no bits in memory."""
        if more <= 0:
            return 0
        # Mostly nothing is null, or all of it: two numbers are enough then.
        if not self._bits.used and self.zeros == (0 if value else self.rows):
            self.rows += more
            self.zeros += 0 if value else more
            return 0
        if not self._bits.used:
            self._fill()
        while more:
            # A new byte for every eighth row, with zeros behind the last row, as Arrow wants it.
            if self.rows & 7 == 0:
                reserve(&self._bits, 1)
                self._bits.data[self._bits.used] = 0
                self._bits.used += 1
            if value:
                self._bits.data[self._bits.used - 1] |= <char>(1 << (self.rows & 7))
            else:
                self.zeros += 1
            self.rows += 1
            more -= 1
        return 0

    cdef int _fill(self) except -1:
        """Make the bits of rows that are all equal."""
        cdef Py_ssize_t size = (self.rows + 7) >> 3
        reserve(&self._bits, size)
        memset(self._bits.data, 0 if self.zeros else 0xFF, size)
        self._bits.used = size
        if self.rows & 7 and not self.zeros:
            # The bits behind the last row are zeros.
            self._bits.data[size - 1] = <char>((1 << (self.rows & 7)) - 1)
        return 0

    cdef int cut(self, Py_ssize_t rows) except -1:
        """Drop the rows from a number on."""
        if not self._bits.used:
            self.zeros = min(self.zeros, rows)
            self.rows = min(self.rows, rows)
            return 0
        while self.rows > rows:
            self.rows -= 1
            if not self._bits.data[self.rows >> 3] & (1 << (self.rows & 7)):
                self.zeros -= 1
            self._bits.data[self.rows >> 3] &= <char>~(1 << (self.rows & 7))
        self._bits.used = (rows + 7) >> 3
        return 0

    cdef object finish(self, bint optional):
        """Return the bitmap; None for an optional one without zeros."""
        cdef bint needless = optional and self.zeros == 0
        cdef bytes bits
        if not self._bits.used and not needless:
            self._fill()
        bits = taken(&self._bits)
        self.rows = 0
        self.zeros = 0
        return None if needless else bits


cdef class Text:
    """A column of strings or bytes, with nulls."""

    def __cinit__(self):
        self.valid = Bits()
        self._begin()

    def __dealloc__(self):
        release(&self._offsets)
        release(&self._data)

    cdef int _begin(self) except -1:
        cdef int32_t zero = 0
        self.rows = 0
        # Arrow's variable-size layout has one offset more than rows; the first is 0.
        put(&self._offsets, &zero, 4)
        return 0

    cdef int _too_large(self, Py_ssize_t size) except -1:
        raise HarebellError(
            f"one column of a record batch would hold {self._data.used + size} octets, "
            f"and the most is {MAX}")

    cdef int expect(self, Py_ssize_t rows, Py_ssize_t octets) except -1:
        """Reserve memory for so many rows of so many octets in all."""
        reserve(&self._offsets, rows * 4)
        return reserve(&self._data, octets)

    cdef int add(self, const void* data, Py_ssize_t size) except -1:
        cdef int32_t end
        if self._data.used + size > MAX:
            self._too_large(size)
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

    cdef int add_nulls(self, Py_ssize_t rows) except -1:
        """Append nulls until there are so many rows."""
        cdef Py_ssize_t more = rows - self.rows, row
        cdef int32_t* ends
        if more <= 0:
            return 0
        reserve(&self._offsets, more * 4)
        ends = <int32_t*>(self._offsets.data + self._offsets.used)
        for row in range(more):
            ends[row] = <int32_t>self._data.used
        self._offsets.used += more * 4
        self.valid.add_more(False, more)
        self.rows = rows
        return 0

    cdef int repeat(self, Py_ssize_t more) except -1:
        """Append the last row so many times again; it is not null."""
        cdef int32_t* ends
        cdef Py_ssize_t size, row, end = self._data.used
        cdef char* data
        if more <= 0:
            return 0
        reserve(&self._offsets, more * 4)
        ends = <int32_t*>(self._offsets.data + self._offsets.used)
        # The last row is between the last two offsets.
        size = ends[-1] - ends[-2]
        # Checked before the memory is reserved, for all rows at once.
        if end + size * more > MAX:
            self._too_large(size * more)
        reserve(&self._data, size * more)
        data = self._data.data
        for row in range(more):
            # From the row just written: source and target touch, and never overlap.
            if size:
                memcpy(data + end, data + end - size, size)
            end += size
            ends[row] = <int32_t>end
        self._data.used = end
        self._offsets.used += more * 4
        self.rows += more
        return self.valid.add_more(True, more)

    cdef int add_string(self, str text) except -1:
        cdef Py_ssize_t size
        cdef const char* data = utf8(text, &size)
        return self.add(data, size)

    cdef int add_checked(self, const unsigned char* p, Py_ssize_t n) except -1:
        """Append a peer's text; bytes that are not UTF-8 are shown in base64."""
        cdef bytes shown
        if is_utf8(p, n):
            return self.add(p, n)
        shown = b"base64:" + b2a_base64(p[:n], newline=False)
        return self.add(PyBytes_AS_STRING(shown), PyBytes_GET_SIZE(shown))

    cdef int cut(self, Py_ssize_t rows) except -1:
        """Drop the rows from a number on."""
        self.rows = rows
        self._offsets.used = (rows + 1) * 4
        # The last offset that is left is the end of the data. Memory of a bytes object is aligned
        # for 32-bit numbers.
        self._data.used = (<int32_t*>self._offsets.data)[rows]
        self.valid.cut(rows)
        return 0

    cdef int end_row(self) except -1:
        """End a row: its value is what was appended to `_data` since the last row."""
        cdef int32_t end
        if self._data.used > MAX:
            self._too_large(0)
        end = <int32_t>self._data.used
        put(&self._offsets, &end, 4)
        self.valid.add(True)
        self.rows += 1
        return 0

    cdef int finish(self, list into) except -1:
        into.append(self.valid.finish(True))
        into.append(taken(&self._offsets))
        into.append(taken(&self._data))
        self._begin()
        return 0

    cdef int end(self, list nodes, list buffers) except -1:
        """Finish with a node, which has the number of rows and nulls."""
        nodes.append((self.valid.rows, self.valid.zeros))
        return self.finish(buffers)


cdef class Texts:
    """A column of a peer's texts, of which neighbours are mostly equal; none is null.

    Equal ones are counted, and appended together.
    """

    def __cinit__(self):
        self.text = Text()

    def __dealloc__(self):
        release(&self._last)

    cdef int _other(self, const unsigned char* p, Py_ssize_t n) except -1:
        """Append a text that is not the last one."""
        self.text.repeat(self._more)
        self._more = 0
        self.text.add_checked(p, n)
        self._last.used = 0
        put(&self._last, p, n)
        return 0

    cdef int end(self, list nodes, list buffers) except -1:
        """Finish with a node, which has the number of rows and nulls."""
        self.text.repeat(self._more)
        self._more = 0
        return self.text.end(nodes, buffers)


cdef class Number:
    """A column of numbers of four or eight bytes, with nulls."""

    def __cinit__(self, int width):
        self.valid = Bits()
        self._width = width

    def __dealloc__(self):
        release(&self._data)

    cdef int expect(self, Py_ssize_t rows) except -1:
        """Reserve memory for so many rows."""
        return reserve(&self._data, rows * self._width)

    cdef int repeat(self, Py_ssize_t more) except -1:
        """Append the last row so many times again; it is not null."""
        cdef Py_ssize_t row
        cdef int32_t* small
        cdef int64_t* large
        if more <= 0:
            return 0
        reserve(&self._data, more * self._width)
        if self._width == 8:
            large = <int64_t*>(self._data.data + self._data.used)
            for row in range(more):
                large[row] = large[-1]
        else:
            small = <int32_t*>(self._data.data + self._data.used)
            for row in range(more):
                small[row] = small[-1]
        self._data.used += more * self._width
        return self.valid.add_more(True, more)

    cdef int add_null(self) except -1:
        return self.add_nulls(self.valid.rows + 1)

    cdef int add_nulls(self, Py_ssize_t rows) except -1:
        """Append nulls until there are so many rows."""
        cdef Py_ssize_t more = rows - self.valid.rows
        if more <= 0:
            return 0
        reserve(&self._data, more * self._width)
        # Arrow leaves the values of nulls undefined: zeros compress well, and old memory of the
        # process must not be sent.
        memset(self._data.data + self._data.used, 0, more * self._width)
        self._data.used += more * self._width
        return self.valid.add_more(False, more)

    cdef int finish(self, list into) except -1:
        into.append(self.valid.finish(True))
        into.append(taken(&self._data))
        return 0

    cdef int end(self, list nodes, list buffers) except -1:
        """Finish with a node, which has the number of rows and nulls."""
        nodes.append((self.valid.rows, self.valid.zeros))
        return self.finish(buffers)


cdef class Map:
    """The column of headers: a map of strings per row. Keys and values are columns of their own."""

    def __cinit__(self, headers_of):
        self.valid = Bits()
        self.keys = Text()
        self.values = Text()
        self._headers_of = headers_of
        self._begin()

    def __dealloc__(self):
        release(&self._offsets)

    cdef int _begin(self) except -1:
        cdef int32_t zero = 0
        put(&self._offsets, &zero, 4)
        return 0

    cdef int _end_row(self, bint valid) except -1:
        # A null and an empty map both end where they begin: only the validity bit differs.
        cdef int32_t end = <int32_t>self.keys.rows
        put(&self._offsets, &end, 4)
        self.valid.add(valid)
        return 0

    cdef int add(self, const unsigned char* p, Py_ssize_t n) except -1:
        """Append a table, given without its size; only a simple one is decoded in C."""
        cdef Py_ssize_t entries = self.keys.rows
        cdef bytes key
        cdef bytes value
        if not self._add_simple(p, n):
            self.keys.cut(entries)
            self.values.cut(entries)
            # What `_add_simple` has added before it gave up was cut off.
            for key, value in self._headers_of(<bytes>p[:n]):
                self.keys.add(PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key))
                if value is None:
                    self.values.add_null()
                else:
                    self.values.add(PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value))
        return self._end_row(True)

    cdef int add_null(self) except -1:
        return self._end_row(False)

    cdef int add_nulls(self, Py_ssize_t rows) except -1:
        """Append nulls until there are so many rows."""
        while self.valid.rows < rows:
            self._end_row(False)
        return 0

    cdef bint _add_simple(self, const unsigned char* p, Py_ssize_t n) except -1:
        """Decode a simple table; on False the caller cuts off what was added."""
        cdef Header headers[SIMPLE_HEADERS]
        cdef Header* one
        cdef int count = simple_headers(p, n, headers), number
        for number in range(count):
            one = &headers[number]
            if not is_utf8(one.name, one.name_size):
                return False
            if one.tag == c'S' and not is_utf8(one.text, one.size):
                return False
            self.keys.add(one.name, one.name_size)
            if one.tag == c'V':
                self.values.add_null()
            else:
                self.values.add(one.text, one.size)
        return count >= 0

    cdef int finish(self, list into) except -1:
        into.append(self.valid.finish(True))
        into.append(taken(&self._offsets))
        self.keys.finish(into)
        self.values.finish(into)
        self._begin()
        return 0

    cdef int end(self, list nodes, list buffers) except -1:
        """Finish with nodes; the entries are an array of their own, between map and keys."""
        nodes.append((self.valid.rows, self.valid.zeros))
        nodes.append((self.keys.rows, 0))
        buffers.append(self.valid.finish(True))
        buffers.append(taken(&self._offsets))
        buffers.append(None)
        self.keys.end(nodes, buffers)
        self.values.end(nodes, buffers)
        return self._begin()


cdef bint split(const unsigned char* raw, Py_ssize_t n, Spans* spans) noexcept:
    """Find each property of a list; False for a truncated list."""
    cdef unsigned int flags
    cdef Py_ssize_t at = 2, size
    cdef int number
    if n < 2:
        return False
    # The highest bit is the first property; bit 0 would announce a second word of flags, which
    # class basic does not have (AMQP 0-9-1 4.2.6.1).
    flags = u16(raw)
    for number in range(PROPERTIES):
        spans.size[number] = -1
        if not flags & (0x8000 >> number):
            continue
        if at >= n:
            return False
        # Sizes: tables have four octets, short strings one (AMQP 0-9-1 4.2.5.3, 4.2.5.5).
        if number == HEADERS:
            if at + 4 > n:
                return False
            size = u32(raw + at)
            at += 4
        elif number == MODE or number == PRIORITY:
            size = 1
        elif number == TIME:
            size = 8
        else:
            size = raw[at]
            at += 1
        # Not `at + size > n`: a size of 32 bits of a peer is only compared.
        if size > n - at:
            return False
        spans.at[number] = at
        spans.size[number] = size
        at += size
    return True


cdef int simple_headers(const unsigned char* p, Py_ssize_t n, Header* headers) noexcept:
    """Find the entries of a table of plain ones; return how many, -1 for another table.

    Plain are texts (tag S), void (V), booleans (t) and integers. Other values (floats, decimals,
    times, tables, arrays) are formatted in Python, in one place.
    """
    cdef Py_ssize_t at = 0, size
    cdef int count = 0, other
    cdef Header* one
    cdef Header* before
    while at < n:
        size = p[at]
        # At least the tag of the value is behind the name.
        if count == SIMPLE_HEADERS or at + 1 + size >= n:
            return -1
        one = &headers[count]
        one.name = p + at + 1
        one.name_size = size
        for other in range(count):
            # A name that occurs twice is for Python: maps and objects have each name once.
            before = &headers[other]
            if before.name_size == size and memcmp(before.name, one.name, size) == 0:
                return -1
        at += 1 + size
        size = simple_value(p + at, n - at, one)
        if size == 0:
            return -1
        at += size
        count += 1
    return count


cdef Py_ssize_t simple_value(const unsigned char* p, Py_ssize_t n, Header* into) noexcept:
    """Find a plain value; return its bytes with its tag, 0 for another value."""
    cdef long long number
    cdef Py_ssize_t size
    into.tag = p[0]
    if into.tag == c'S':
        if n < 5:
            return 0
        size = u32(p + 1)
        into.text = p + 5
        into.size = size
        return 5 + size if size <= n - 5 else 0
    if into.tag == c'V':
        into.text = <const unsigned char*>b"null"
        into.size = 4
        return 1
    if into.tag == c't':
        if n < 2:
            return 0
        into.size = 4 if p[1] else 5
        into.text = <const unsigned char*>b"true"
        if not p[1]:
            into.text = <const unsigned char*>b"false"
        return 2
    size = plain_integer(p, n, &number)
    if size:
        into.size = snprintf(into.digits, sizeof(into.digits), b"%lld", number)
        into.text = <const unsigned char*>into.digits
    return size


cdef Py_ssize_t plain_integer(const unsigned char* p, Py_ssize_t n, long long* number) noexcept:
    """Return the bytes used by an integer with its type; 0 for anything else."""
    cdef unsigned char tag = p[0]
    cdef Py_ssize_t width = 0
    if tag == c'b' or tag == c'B':
        width = 1
    elif tag == c's' or tag == c'u':
        width = 2
    elif tag == c'I' or tag == c'i':
        width = 4
    elif tag == c'l' or tag == c'L':
        width = 8
    if width == 0 or n < 1 + width:
        return 0
    # One statement for each sign: a conditional expression would make both sides unsigned.
    if tag == c'b':
        number[0] = <signed char>p[1]
    elif tag == c'B':
        number[0] = p[1]
    elif tag == c's':
        number[0] = <short>u16(p + 1)
    elif tag == c'u':
        number[0] = u16(p + 1)
    elif tag == c'I':
        number[0] = <int>u32(p + 1)
    elif tag == c'i':
        number[0] = u32(p + 1)
    else:
        number[0] = <long long>u64(p + 1)
    return 1 + width


cdef int choose_fields(tuple fields, list texts, list numbers, list kept) except -1:
    """Create a column per field of `properties`.

    Args:
        fields: their names.
        texts: takes the columns of texts, at the numbers of their properties.
        numbers: takes those of numbers.
        kept: takes all columns in the order of the fields.
    """
    cdef int number
    for name in fields:
        number = PROPERTY_NAMES.index(name)
        if number == MODE or number == PRIORITY or number == TIME:
            column = numbers[number] = Number(8 if number == TIME else 4)
        else:
            column = texts[number] = Text()
        kept.append(column)
    return 0
