cimport cython
from harebell.base.message cimport Message
from harebell.front.amqp_0_9_1.consumer cimport ChannelConsumer
from harebell.front.amqp_0_9_1.legacy_channel cimport LegacyChannel

cdef int _FAMILY
cdef int _TOO_LONG
cdef int _UNKNOWN

@cython.locals(fits=int)
cpdef bint window_admits(ChannelConsumer consumer, LegacyChannel channel) except -1

cdef class LegacyConsumer(ChannelConsumer):
    @cython.locals(channel=LegacyChannel)
    cpdef bint ready(self) except -1
    @cython.locals(channel=LegacyChannel, tag="unsigned long long")
    cpdef int deliver(self, Message message, long long position, bint redelivered) except -1
