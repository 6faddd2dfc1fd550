cimport cython
from harebell.base.message cimport Message, copy_message

cdef class Expiry:
    cdef object _queue
    cdef object _timer
    cdef public long long ttl
    cdef public bint active

    @cython.locals(due="long long")
    cpdef Message dated(self, Message message, long long now)
    cpdef int wake_at(self, long long due) except -1
    cpdef int stop(self) except -1
