cimport cython
from harebell.base.message cimport Message, Properties
from harebell.base.ports cimport Commit
from harebell.front.hub cimport Hub
from harebell.front.session09.port cimport ChannelPort
from harebell.kernels.frames cimport FrameScanner, FrameSink
from harebell.kernels.output cimport OutBuffer

cdef class Connection(FrameSink):
    cdef public object broker
    cdef public Commit commit
    cdef public object users
    cdef public Hub hub
    cdef public object settings
    cdef public object peer
    cdef public OutBuffer out
    cdef public FrameScanner scanner
    cdef public object state
    cdef public object vhost
    cdef public object user
    cdef public object client_properties
    cdef public object capabilities
    cdef public str mechanism
    cdef public bint announced
    cdef public bint intercepts
    cdef public long long origin
    cdef public dict channels
    cdef public list confirming
    cdef public object closed_channels
    cdef public int channel_max
    cdef public Py_ssize_t frame_max
    cdef public Py_ssize_t message_max
    cdef public int heartbeat
    cdef public bint closing
    cdef public bint paused
    cdef public bint congested
    cdef public bint starved
    cdef public bint dirty
    cdef public bint published
    cdef public bint blocked
    cdef public double connected_at
    cdef public double now
    cdef double _sent_at
    cdef public double deadline
    cdef bytes _first
    cdef public object shell
    cdef public object held

    cpdef int touch(self) except -1
    @cython.locals(opened=ChannelPort)
    cpdef int publish(self, int channel, int flags, str exchange, str routing_key,
                      Properties properties, bytes body) except -1
    @cython.locals(opened=ChannelPort)
    cpdef int ack(self, int channel, unsigned long long tag, bint multiple) except -1
    cpdef int frame(self, int kind, int channel, bytes payload) except -1
