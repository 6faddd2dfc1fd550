cimport cython
from harebell.base.message cimport Message
from harebell.base.ports cimport Log
from harebell.kernels.rows cimport Rows

cdef class StagedRows:
    cdef Log _log
    cdef readonly long long barrier
    cdef public long long hidden
    cdef list _closed
    cdef long long _first
    cdef long long _end

    cpdef int append(self, Message message) except -1
    cpdef int append_rows(
        self, Rows rows, Py_ssize_t first, Py_ssize_t end, Message like
    ) except -1
    cdef int _add(self, long long first, long long count) except -1
    cdef int _close(self) except -1
    @cython.locals(index=Py_ssize_t)
    cpdef bint has(self, long long position) except -1
    cpdef long long settle(self) except -1
