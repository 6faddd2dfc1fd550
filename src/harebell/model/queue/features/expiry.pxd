cimport cython
from harebell.base.message cimport Message, copy_message

cdef class Expiry:
    cdef object _queue
    cdef object _timer
    cdef public long long ttl
    cdef public bint active
    cdef public bint mixed

    cpdef int found(self) except -1
    cpdef int use_ttl(self, long long ttl) except -1
    @cython.locals(due="long long")
    cpdef Message dated(self, Message message, long long now)
    cpdef int came_back(self) except -1
    cpdef int kept(self) except -1
    cpdef int wake_at(self, long long due) except -1
    cpdef bint sees_head(self) except -1
    cpdef int stop(self) except -1
