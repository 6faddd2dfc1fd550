cimport cython
from harebell.base.counters cimport Counters
from harebell.model.consumer cimport Consumer
from harebell.model.queue.contract cimport Queue

cdef class Unacked:
    cdef readonly Queue queue
    cdef readonly Consumer consumer
    cdef readonly long long position
    cdef readonly unsigned long long tag

    cpdef int count_ack(self) except -1
    cpdef int settle(self) except -1
    cpdef int reject(self) except -1
    cpdef int requeue(self) except -1
    cpdef int requeue_returned(self) except -1
    cpdef int time_out(self) except -1

cdef class UnackedGet(Unacked):
    cdef readonly Counters details

@cython.locals(entry=Unacked)
cpdef Unacked new_unacked(Queue queue, Consumer consumer, long long position,
                          unsigned long long tag)
