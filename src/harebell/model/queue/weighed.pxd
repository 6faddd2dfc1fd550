cimport cython
from harebell.base.message cimport Message
from harebell.base.ports cimport Log
from harebell.model.queue.leased cimport LeasedQueue
from harebell.model.queue.overflow cimport Overflow

cdef int _COUNTED

cdef class WeighedQueue(LeasedQueue):
    cdef object _next_turns

    @cython.locals(overflow=Overflow)
    cpdef int begin_count(self) except -1
    @cython.locals(
        overflow=Overflow, message=Message, position="long long", count=int, cursors=list
    )
    cdef int _count_on(self) except -1
    @cython.locals(overflow=Overflow)
    cdef bint _counts_at(self, long long position) except -1
    cdef bint _go_on_later(self) except -1
    cdef bint _goes_on_later(self) except -1
    @cython.locals(log=Log, message=Message, position="long long")
    cdef int _send_on_all(self) except -1
