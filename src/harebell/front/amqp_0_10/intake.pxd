cimport cython
from harebell.base.message cimport Properties
from harebell.front.operations.publishing_channel cimport PublishingChannel
from harebell.kernels.segments cimport SegmentSink

cdef class Intake(SegmentSink):
    cdef object _connection
    cdef dict _sessions
    cdef readonly dict assemblies

    @cython.locals(session=PublishingChannel)
    cpdef int transfer(self, int channel, int flags, str destination, str routing_key,
                       Properties properties, bytes body) except -1
    cpdef int frame(self, int flags, int kind, int track, int channel, bytes payload) except -1
