cimport cython
from harebell.base.message cimport Message, Properties
from harebell.front.common.base_connection cimport BaseConnection
from harebell.front.operations.publishing_channel cimport PublishingChannel

cdef class Connection(BaseConnection):
    cdef public object profile
    cdef public object spec
    cdef public object layer
    cdef public bint stamps
    cdef public bint qpid
    cdef public object known
    cdef public list confirming
    cdef public object closed_channels
    cdef public object bulk

    @cython.locals(opened=PublishingChannel)
    cpdef int publish(self, int channel, int flags, str exchange, str routing_key,
                      Properties properties, bytes body) except -1
    @cython.locals(opened=PublishingChannel)
    cpdef int ack(self, int channel, unsigned long long tag, bint multiple) except -1
    cpdef int frame(self, int kind, int channel, bytes payload) except -1
