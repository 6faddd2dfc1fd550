cimport cython
from harebell.model.consumer cimport Consumer
from harebell.model.queue.contract cimport Queue

cdef class Delivery:
    cdef readonly Queue queue
    cdef readonly Consumer consumer
    cdef readonly long long position
    cdef readonly long long number
    cdef readonly bint redelivered

    cpdef int count_ack(self) except -1
    cpdef int settle(self) except -1
    cpdef int reject(self) except -1
    cpdef int requeue(self) except -1
    cpdef int time_out(self) except -1

@cython.locals(entry=Delivery)
cpdef Delivery new_delivery(Queue queue, Consumer consumer, long long position, long long number,
                            bint redelivered)
