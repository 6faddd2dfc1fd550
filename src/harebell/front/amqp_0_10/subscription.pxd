cimport cython
from harebell.base.message cimport Message
from harebell.front.amqp_0_10.session cimport Session
from harebell.front.amqp_0_10.delivery cimport Delivery, new_delivery
from harebell.model.consumer cimport Consumer

cdef int _FAMILY
cdef long long _INFINITE
cdef int _HEAD
cdef int _FRAME

cdef class Subscription(Consumer):
    cdef Session _session
    cdef bytes _command
    cdef bint _peeks
    cdef public bint accept
    cdef public bint acquire
    cdef public long long messages
    cdef public long long byte_count
    cdef public bint window

    cpdef bint ready(self) except -1
    cpdef bint fits(self, Message message) except -1
    cdef bint _next_fits(self) except -1
    cdef long long _size(self, Message message) except -1
    @cython.locals(session=Session, byte_count="long long", number="long long")
    cpdef int deliver(self, Message message, long long position, bint redelivered) except -1
    cpdef int again(self) except -1
