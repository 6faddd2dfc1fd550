from harebell.base.counters cimport Counters
from harebell.base.message cimport Message

cdef class Consumer:
    cdef public object queue
    cdef public str tag
    cdef public bint no_ack
    cdef public bint exclusive
    cdef public int priority
    cdef public int prefetch
    cdef public object arguments
    cdef public long long excluded
    cdef public int unacked
    cdef public long long kept
    cdef public bint waits
    cdef public Counters counters
    cdef public Counters details
    cdef public Consumer before
    cdef public Consumer after

    cpdef bint ready(self) except -1
    cpdef bint fits(self, Message message) except -1
    cpdef int released(self) except -1
    cpdef int released_some(self, long long count) except -1
    cpdef int again(self) except -1
    cpdef int deliver(self, Message message, long long position, bint redelivered) except -1
