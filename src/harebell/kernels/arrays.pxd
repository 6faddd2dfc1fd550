"""Declare the fields and C functions of `arrays.pyx` for `columns.pyx` and `batches.pyx`."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t
from libc.string cimport memcpy


cdef struct Buffer:
    char* data
    Py_ssize_t used
    Py_ssize_t room


cdef Py_ssize_t plain_integer(const unsigned char* p, Py_ssize_t n, long long* number) noexcept
cdef int reserve(Buffer* buffer, Py_ssize_t more) except -1
cdef bint is_utf8(const unsigned char* p, Py_ssize_t n) except -1


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


cdef class Bits:
    cdef Buffer _bits
    cdef Py_ssize_t rows
    cdef Py_ssize_t zeros

    cdef inline int add(self, bint value) except -1:
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
    cdef int add(self, const void* data, Py_ssize_t size) except -1
    cdef int add_null(self) except -1
    cdef int add_nulls(self, Py_ssize_t rows) except -1
    cdef int add_string(self, str text) except -1
    cdef int end_row(self) except -1
    cdef int add_checked(self, const unsigned char* p, Py_ssize_t n) except -1
    cdef int cut(self, Py_ssize_t rows) except -1
    cdef int finish(self, list into) except -1
    cdef int end(self, list nodes, list buffers) except -1


cdef class Number:
    cdef Bits valid
    cdef Buffer _data
    cdef int _width

    cdef int add(self, int64_t value) except -1
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
    cdef Py_ssize_t _add_value(self, const unsigned char* p, Py_ssize_t n) except -1
    cdef int finish(self, list into) except -1
    cdef int end(self, list nodes, list buffers) except -1
