"""Declare the fields and C functions of `arrays.pyx` for `columns.pyx` and `batches.pyx`."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcmp, memcpy

cdef extern from "Python.h":
    int _PyBytes_Resize(PyObject** data, Py_ssize_t size) except -1

cdef enum:
    PROPERTIES = 14         # properties of class basic, in the order of their flags
    SIMPLE_HEADERS = 16     # a longer table, or one with other values, is decoded in Python
    HEADERS = 2             # their numbers, counted from the highest flag (AMQP 0-9-1 4.2.6.1)
    MODE = 3
    PRIORITY = 4
    TIME = 9


# Octets that grow in an object of `bytes`, so that they are handed over without a copy.
cdef struct Buffer:
    PyObject* owner
    char* data
    Py_ssize_t used
    Py_ssize_t room


# Where the properties of a list are, without their sizes; a size of -1 stands for none.
cdef struct Spans:
    Py_ssize_t at[PROPERTIES]
    Py_ssize_t size[PROPERTIES]


# An entry of a header table whose value reads the same in JSON and as a text.
cdef struct Header:
    const unsigned char* name
    Py_ssize_t name_size
    unsigned char tag           # of the value, see `simple_headers`
    const unsigned char* text
    Py_ssize_t size
    char digits[24]             # of an integer: 20, a sign, and the end that snprintf writes


cdef bint split(const unsigned char* raw, Py_ssize_t n, Spans* spans) noexcept
cdef int simple_headers(const unsigned char* p, Py_ssize_t n, Header* headers) noexcept
cdef int choose_fields(tuple fields, list texts, list numbers, list kept) except -1
cdef int reserve(Buffer* buffer, Py_ssize_t more) except -1
cdef bint is_utf8(const unsigned char* p, Py_ssize_t n) except -1


cdef inline int put(Buffer* buffer, const void* data, Py_ssize_t size) except -1:
    if buffer.used + size > buffer.room:
        reserve(buffer, size)
    memcpy(buffer.data + buffer.used, data, size)
    buffer.used += size
    return 0


cdef inline bytes taken(Buffer* buffer):
    cdef PyObject* owner = buffer.owner
    cdef bytes data
    if buffer.used == 0:
        return b""
    # Before the resize, which frees the object when it fails.
    buffer.owner = NULL
    buffer.data = NULL
    _PyBytes_Resize(&owner, buffer.used)
    buffer.used = buffer.room = 0
    data = <bytes>owner
    Py_XDECREF(owner)
    return data


cdef inline void release(Buffer* buffer) noexcept:
    Py_XDECREF(buffer.owner)
    buffer.owner = NULL


cdef class Bits:
    cdef Buffer _bits
    cdef Py_ssize_t rows
    cdef Py_ssize_t zeros

    cdef inline int add(self, bint value) except -1:
        # True while all rows are equal to the new one: then two numbers stand for the bitmap.
        if not self._bits.used and self.zeros == (0 if value else self.rows):
            self.rows += 1
            self.zeros += not value
            return 0
        return self.add_more(value, 1)

    cdef int add_more(self, bint value, Py_ssize_t more) except -1
    cdef int _fill(self) except -1
    cdef int cut(self, Py_ssize_t rows) except -1
    cdef object finish(self, bint optional)


cdef class Text:
    cdef Bits valid
    cdef Buffer _offsets
    cdef Buffer _data
    cdef Py_ssize_t rows

    cdef int _begin(self) except -1
    cdef int _too_large(self, Py_ssize_t size) except -1
    cdef int expect(self, Py_ssize_t rows, Py_ssize_t octets) except -1
    cdef int add(self, const void* data, Py_ssize_t size) except -1
    cdef int add_null(self) except -1
    cdef int add_nulls(self, Py_ssize_t rows) except -1
    cdef int repeat(self, Py_ssize_t more) except -1
    cdef int add_string(self, str text) except -1
    cdef int end_row(self) except -1
    cdef int add_checked(self, const unsigned char* p, Py_ssize_t n) except -1
    cdef int cut(self, Py_ssize_t rows) except -1
    cdef int finish(self, list into) except -1
    cdef int end(self, list nodes, list buffers) except -1


cdef class Texts:
    cdef Text text
    cdef Buffer _last
    cdef Py_ssize_t _more

    cdef inline int add(self, const unsigned char* p, Py_ssize_t n) except -1:
        if (n == self._last.used and self.text.rows
                and (n == 0 or memcmp(p, self._last.data, n) == 0)):
            self._more += 1
            return 0
        return self._other(p, n)

    cdef int _other(self, const unsigned char* p, Py_ssize_t n) except -1
    cdef int end(self, list nodes, list buffers) except -1


cdef class Number:
    cdef Bits valid
    cdef Buffer _data
    cdef int _width

    cdef inline int add(self, int64_t value) except -1:
        # The machine is little-endian, so the low bytes come first in memory. A copy of a constant
        # size is one store.
        if self._width == 8:
            put(&self._data, &value, 8)
        else:
            put(&self._data, &value, 4)
        return self.valid.add(True)

    cdef int expect(self, Py_ssize_t rows) except -1
    cdef int repeat(self, Py_ssize_t more) except -1
    cdef int add_null(self) except -1
    cdef int add_nulls(self, Py_ssize_t rows) except -1
    cdef int finish(self, list into) except -1
    cdef int end(self, list nodes, list buffers) except -1


cdef class Map:
    cdef Bits valid
    cdef Buffer _offsets
    cdef Text keys
    cdef Text values
    cdef object _headers_of

    cdef int _begin(self) except -1
    cdef int _end_row(self, bint valid) except -1
    cdef int add_nulls(self, Py_ssize_t rows) except -1
    cdef int add(self, const unsigned char* p, Py_ssize_t n) except -1
    cdef int add_null(self) except -1
    cdef bint _add_simple(self, const unsigned char* p, Py_ssize_t n) except -1
    cdef int finish(self, list into) except -1
    cdef int end(self, list nodes, list buffers) except -1
