cimport cython
from harebell.base.message cimport Message, Properties
from harebell.front.link cimport Link
from harebell.front.session09.port cimport ChannelPort
from harebell.kernels.frames cimport FrameScanner

cdef class Connection(Link):
    cdef public object profile
    cdef public object spec
    cdef public FrameScanner scanner
    cdef public bint intercepts
    cdef public bint stamps
    cdef public bint qpid
    cdef public list confirming
    cdef public object closed_channels
    cdef public object bulk

    @cython.locals(opened=ChannelPort)
    cpdef int publish(self, int channel, int flags, str exchange, str routing_key,
                      Properties properties, bytes body) except -1
    @cython.locals(opened=ChannelPort)
    cpdef int ack(self, int channel, unsigned long long tag, bint multiple) except -1
    cpdef int frame(self, int kind, int channel, bytes payload) except -1
