cimport cython
from harebell.base.message cimport Message
from harebell.front.amqp_0_9_1.channel cimport Channel
from harebell.front.amqp_0_9_1.connection cimport Connection
from harebell.model.consumer cimport Consumer

cdef Py_ssize_t _OUTPUT_HIGH
cdef int _FAMILY

cdef class ChannelConsumer(Consumer):
    cdef Channel _channel
    cdef bytes _tag_field

    cpdef int released(self) except -1
    cpdef int released_some(self, long long count) except -1
    @cython.locals(connection=Connection)
    cpdef int again(self) except -1

    @cython.locals(channel=Channel, connection=Connection)
    cpdef bint ready(self) except -1
    @cython.locals(channel=Channel, connection=Connection, tag="unsigned long long")
    cpdef int deliver(self, Message message, long long position, bint redelivered) except -1
