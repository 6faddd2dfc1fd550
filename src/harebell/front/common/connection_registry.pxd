from harebell.base.gauge cimport Gauge
from harebell.base.work cimport Work
from harebell.front.common.blocked_publishers cimport BlockedPublishers
from harebell.front.common.turns cimport Turns

cdef class ConnectionRegistry:
    cdef public Gauge gauge
    cdef readonly Work work
    cdef readonly Turns turns
    cdef public list dirty
    cdef public set connections
    cdef readonly BlockedPublishers publishers
    cdef public dict waiting
    cdef public object pending_logins
    cdef public object handshake_throttle
    cdef public dict sessions
    cdef public dict named_sessions
    cdef readonly object kept_sessions
    cdef public object tickets
    cdef public object checkpoints
    cdef public long long accepted
    cdef readonly object totals
    cdef public dict arrivals
    cdef public dict logins
