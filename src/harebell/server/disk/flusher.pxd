from harebell.front.common.connection_registry cimport ConnectionRegistry
from harebell.store.commit cimport GroupCommit

cdef class Flusher:
    cdef object _loop
    cdef GroupCommit _commit
    cdef ConnectionRegistry _registry
    cdef object _gathered
    cdef object _sync_in
    cdef object _sync_timer
    cdef object _log
    cdef object _failed
    cdef object _flush
    cdef object _spare
    cdef bint _due
    cdef object _late
    cdef object _patience
    cdef long long _expected
    cdef double _worth_seconds
    cdef double _began
    cdef object _flying
    cdef int _ticks
    cdef int _slow_ticks
    cdef str _stalled
    cdef bint _low
    cdef bint _over
    cdef object _idle
    cdef object _thread
    cdef object _remote
    cdef object _upkeep
    cdef object _swift
    cdef object _direct
    cdef readonly object syncs
    cdef readonly long long writes
    cdef readonly long long written

    cpdef object look(self)
    cpdef object _hand_over(self)
    cpdef object _give(self, object batch)
    cdef bint _go_swiftly(self, object batch) except -1
    cdef bint _go_remotely(self, object batch) except -1
    cpdef object _performed(self, object batch)
    cdef object _tidy(self)
    cdef object _sync_later(self)
