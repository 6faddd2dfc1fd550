cimport cython
from harebell.base.message cimport Message

cdef long long _AGAIN
cdef Py_ssize_t _OVERHEAD
cdef Py_ssize_t _SHARED

cdef class Gauge:
    cdef readonly long long used
    cdef public long long unread
    cdef public long long uncommitted
    cdef readonly bint over
    cdef readonly long long high
    cdef readonly long long low
    cdef dict _bodies

    cpdef int add(self, long long byte_count) except -1
    cpdef int take(self, long long byte_count) except -1
    @cython.locals(size=Py_ssize_t, own=Py_ssize_t)
    cpdef Py_ssize_t hold(self, Message message) except -1
    @cython.locals(size=Py_ssize_t, own=Py_ssize_t)
    cpdef Py_ssize_t let_go(self, Message message) except -1
    @cython.locals(bodies=Py_ssize_t)
    cpdef Py_ssize_t sharing(self, Message message) except -1
    @cython.locals(count=Py_ssize_t)
    cdef bint _first(self, Message message) except -1
    @cython.locals(count=Py_ssize_t)
    cdef bint _last(self, Message message) except -1
    cpdef bint exceeded(self) except -1
    cpdef bint crossed(self) except -1
