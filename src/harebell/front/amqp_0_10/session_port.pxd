from harebell.base.message cimport Properties

cdef class SessionPort:
    cdef public int number

    cpdef int transfer(self, int flags, str destination, str routing_key, Properties properties,
                       bytes body) except -1
