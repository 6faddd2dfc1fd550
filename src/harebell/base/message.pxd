cdef Py_ssize_t _OVERHEAD

cdef class Properties:
    cdef readonly bytes raw
    cdef readonly int delivery_mode
    cdef readonly int priority
    cdef readonly bint has_headers
    cdef readonly bint suspect
    cdef readonly int family

cdef class Message:
    cdef readonly str exchange
    cdef readonly str routing_key
    cdef readonly Properties properties
    cdef readonly bytes body

    cpdef Py_ssize_t footprint(self) except -1
