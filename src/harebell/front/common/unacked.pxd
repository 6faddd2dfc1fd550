cimport cython
from harebell.base.counters cimport Counters
from harebell.base.sequence cimport Sequence
from harebell.model.consumer cimport Consumer
from harebell.model.queue.contract cimport Queue

cdef class Unacked:
    cdef readonly Queue queue
    cdef readonly Consumer consumer
    cdef readonly long long position
    cdef readonly unsigned long long tag

    cpdef int count_ack(self) except -1
    cpdef int settle(self) except -1
    cpdef int settle_some(self, unsigned long long tag, long long count) except -1
    cpdef Unacked entry(self, unsigned long long tag)
    cpdef int reject(self) except -1
    cpdef int requeue(self) except -1
    cpdef int requeue_returned(self) except -1
    cpdef int time_out(self) except -1

cdef class UnackedGet(Unacked):
    cdef readonly Counters details

@cython.locals(entry=Unacked)
cpdef Unacked new_unacked(Queue queue, Consumer consumer, long long position,
                          unsigned long long tag)

cdef class UnackedRun(Unacked):
    cdef readonly long long step

    @cython.locals(consumer=Consumer, queue=Queue)
    cpdef int settle_some(self, unsigned long long tag, long long count) except -1

cdef class UnackedDeliveries(Sequence):
    cdef UnackedRun _run

    @cython.locals(run=UnackedRun)
    cpdef int deliver(
        self, Consumer consumer, long long position, unsigned long long tag
    ) except -1
    @cython.locals(member=Unacked)
    cpdef object get(self, long long number)
    cpdef Unacked member(self, long long number)
    @cython.locals(member=Unacked)
    cpdef object take(self, long long number)
    @cython.locals(member=Unacked)
    cpdef Unacked take_member(self, long long number)
    @cython.locals(count="long long")
    cpdef long long take_run(self, long long number, long long last) except -1
