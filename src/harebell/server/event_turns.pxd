cimport cython
from harebell.front.common.base_connection cimport BaseConnection
from harebell.front.common.connection_registry cimport ConnectionRegistry
from harebell.server.disk.flusher cimport Flusher
from harebell.server.time_source cimport BrokerClock

cdef class EventTurns:
    cdef object _loop
    cdef object _time
    cdef object _clock
    cdef object _broker
    cdef ConnectionRegistry _registry
    cdef BrokerClock _wall
    cdef object _overdue
    cdef object _log
    cdef object _periodic
    cdef object _timers
    cdef object _alarm
    cdef bint _flushing
    cdef object _ticking
    cdef double _tick_due
    cdef readonly object read_buffer
    cdef readonly object small_buffer
    cdef readonly object paced_buffer
    cdef public Flusher flusher
    cdef public object forbids_output
    cdef readonly object lag

    cpdef object buffer(self, bint is_open, bint outruns)
    @cython.locals(now=double)
    cpdef object receive(self, BaseConnection connection, Py_ssize_t byte_count)
    cpdef object flush_soon(self)
    @cython.locals(registry=ConnectionRegistry, now=double, until=double, index=Py_ssize_t)
    cpdef object flush(self)
    cdef object _look_at_commits(self)
    cpdef object run_due(self)
    @cython.locals(connection=BaseConnection)
    cpdef object _tick_connections(self, list connections, double now)
