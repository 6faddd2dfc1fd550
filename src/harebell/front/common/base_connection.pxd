cimport cython
from harebell.base.arrivals cimport Arrivals
from harebell.base.counters cimport Traffic
from harebell.base.ports cimport Commit
from harebell.base.work cimport Work
from harebell.front.common.connection_registry cimport ConnectionRegistry
from harebell.front.common.turns cimport Account, Turns
from harebell.kernels.frames cimport FrameSink
from harebell.kernels.output cimport OutBuffer

cdef class BaseConnection(FrameSink):
    cdef public object broker
    cdef public Commit commit
    cdef public object users
    cdef public ConnectionRegistry registry
    cdef public object settings
    cdef public object peer
    cdef public str version
    cdef public OutBuffer out
    cdef public object state
    cdef public object vhost
    cdef public object user
    cdef public object client_properties
    cdef public object capabilities
    cdef public str mechanism
    cdef public bint announced
    cdef public str handed_over
    cdef public bytes entropy
    cdef public long long origin
    cdef public dict channels
    cdef public int channel_max
    cdef public Py_ssize_t frame_max
    cdef public Py_ssize_t message_max
    cdef public int heartbeat
    cdef public bint closing
    cdef public bint paused
    cdef public bint congested
    cdef public bint outruns
    cdef object _pace
    cdef public bint starved
    cdef public bint dirty
    cdef public bint published
    cdef public bint intercepts
    cdef public bint blocked
    cdef public long long blocked_since
    cdef public str end_reason
    cdef public long long blocked_ms
    cdef public double connected_at
    cdef public double now
    cdef public double _sent_at
    cdef public double deadline
    cdef public long long kept
    cdef public object transport
    cdef public object held
    cdef public Account account
    cdef public object shared
    cdef public Traffic traffic
    cdef public Arrivals arrivals
    cdef public object scanner
    cdef public bint deferred
    cdef public bint departed
    cdef public bint deciding
    cdef public list tasks

    @cython.locals(turns=Turns, byte_count=Py_ssize_t)
    cpdef object receive(self, object data, double now)
    @cython.locals(work=Work)
    cpdef int _take(self, object data) except -1
    cpdef int _put_off(self) except -1
    cpdef int tick(self, double now) except -1
    cdef int _check_heartbeats(self, double now) except -1
    cpdef int touch(self) except -1
    @cython.locals(byte_count="long long")
    cpdef list take_parts(self, double now)
