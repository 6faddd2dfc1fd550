from harebell.base.message cimport Properties
from harebell.front.session010.layer cimport SessionLayer

cdef class Session(SessionLayer):
    cpdef int publish(self, int flags, str destination, str routing_key, Properties properties,
                      bytes body) except -1
