from harebell.base.message cimport Properties

cdef class ChannelPort:
    cdef public int number
    cdef public object content

    cpdef int publish(self, int flags, str exchange_name, str routing_key, Properties properties,
                      bytes body) except -1
    cpdef int ack(self, unsigned long long tag, bint multiple) except -1
