from harebell.base.gauge cimport Gauge
from harebell.front.common.turns cimport Turns

cdef class BlockedPublishers:
    cdef Gauge _gauge
    cdef Turns _turns
    cdef public list connections
    cdef public long long blocked_ms
    cdef public set shortages
    cdef public bint short
    cdef public dict alarms
    cdef public object finishing

    cpdef int check(self, object connection) except -1
    cpdef int finished(self, object connection) except -1
