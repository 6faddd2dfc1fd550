cimport cython
from harebell.base.message cimport Message
from harebell.base.ports cimport Commit
from harebell.model.queue.features.queue_internals cimport QueueInternals
from harebell.model.queue.order.contract cimport MessageOrder

cdef int _FAILURES

cdef class Quorum:
    cdef QueueInternals _queue
    cdef MessageOrder _order
    cdef Commit _commit
    cdef long long _limit
    cdef bint _at_least_once
    cdef object _leaving
    cdef object _stuck

    @cython.locals(queue=QueueInternals, count=int, failures=int)
    cpdef int requeue(self, long long position, bint failed) except -1
    @cython.locals(queue=QueueInternals, message=Message)
    cpdef int dead_letter(self, long long position, str reason) except -1
    @cython.locals(queue=QueueInternals, message=Message, outcome=int)
    cdef int _send(self, long long position, str reason, set taken, long long ticket) except -1
