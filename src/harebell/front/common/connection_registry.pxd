from harebell.base.gauge cimport Gauge
from harebell.base.work cimport Work
from harebell.front.common.turns cimport Turns

cdef class ConnectionRegistry:
    cdef public Gauge gauge
    cdef readonly Work work
    cdef readonly Turns turns
    cdef public list dirty
    cdef public set connections
    cdef public list blocked
    cdef public dict waiting
    cdef public set shortages
    cdef public bint short
    cdef public object finishing
    cdef public object pending_logins
    cdef public object handshake_throttle
    cdef public dict sessions
    cdef public dict named_sessions
    cdef public object tickets
    cdef public object checkpoints
    cdef public long long accepted
    cdef readonly object totals
    cdef public dict arrivals
    cdef public dict logins
    cdef public long long blocked_ms
