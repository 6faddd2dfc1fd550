from harebell.base.message cimport Message, Properties
from harebell.front.amqp_0_9_1.channel cimport Channel

cdef int _MANDATORY
cdef int _IMMEDIATE
cdef int _AT_ONCE
cdef int _TICKET_SHIFT

cdef class LegacyChannel(Channel):
    cdef public bint stopped
    cdef public object window
    cdef public bint windowed
    cdef public bint has_requested_ticket
    cdef public int accepted_ticket
    cdef public Properties checked_properties

    cpdef int publish(self, int flags, str exchange_name, str routing_key, Properties properties,
                      bytes body) except -1
    cpdef int accept(self, Message message, tuple queues, int flags) except -1
