cimport cython
from harebell.base.ports cimport Log

cdef class LeasedRanges:
    cdef Log _log
    cdef list _firsts
    cdef list _ends

    @cython.locals(index=Py_ssize_t)
    cpdef int add(self, long long first, long long end) except -1
    @cython.locals(index=Py_ssize_t)
    cpdef bint remove(self, long long first, long long end) except -1
    cpdef int settle(self, list runs) except -1
    @cython.locals(index=Py_ssize_t)
    cpdef long long behind(self, long long position) except -1
    @cython.locals(index=Py_ssize_t)
    cpdef long long ahead(self, long long position, long long end) except -1
    @cython.locals(behind="long long")
    cpdef long long skip(self, long long position) except -1

cdef class RangeClaim:
    cdef readonly list runs
    cdef Log _log
    cdef long long _messages
    cdef long long _byte_count
    cdef long long _ranges
    cdef bint _full

    cpdef bint has_room(self) except -1
    @cython.locals(reached="long long", count="long long", size="long long")
    cpdef long long add(self, long long first, long long end) except -1
