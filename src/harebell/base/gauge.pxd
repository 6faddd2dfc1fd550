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
    cdef readonly long long other
    cdef readonly long long room
    cdef public object measure
    cdef dict _bodies

    cpdef int set_high(self, long long high) except -1
    cpdef int set_resident(self, long long byte_count) except -1
    cpdef long long resident(self) except -1

    cpdef int add(self, long long byte_count) except -1
    cpdef int take(self, long long byte_count) except -1
    @cython.locals(size=Py_ssize_t, own=Py_ssize_t)
    cpdef Py_ssize_t hold(self, Message message) except -1
    @cython.locals(size=Py_ssize_t, own=Py_ssize_t)
    cpdef Py_ssize_t release(self, Message message) except -1
    @cython.locals(bodies=Py_ssize_t)
    cpdef Py_ssize_t sharing(self, Message message) except -1
    @cython.locals(count=Py_ssize_t)
    cdef bint _first(self, Message message) except -1
    @cython.locals(count=Py_ssize_t)
    cdef bint _last(self, Message message) except -1
    cpdef bint crossed(self) except -1
