cimport cython

cdef Py_ssize_t _OVERHEAD

cdef class Properties:
    cdef readonly bytes raw
    cdef readonly int delivery_mode
    cdef readonly int priority
    cdef readonly bint has_headers
    cdef readonly bint suspect
    cdef public int family

cdef class Message:
    cdef readonly str exchange
    cdef readonly str routing_key
    cdef readonly bytes raw
    cdef readonly bytes body
    # Small types: with `int` for all of them a message would take 16 bytes more.
    cdef readonly unsigned char delivery_mode
    cdef readonly unsigned char family
    cdef readonly short priority
    cdef readonly bint has_headers
    cdef public int deliveries
    cdef public int holders
    cdef public long long timestamp
    cdef public long long offset
    cdef public long long origin
    cdef public long long due
    cdef public bytes once

    cpdef Py_ssize_t footprint(self) except -1

cdef int _fill(Message message, str exchange, str routing_key, Properties properties,
               bytes body) except -1
cpdef Message new_message(str exchange, str routing_key, Properties properties, bytes body)
@cython.locals(copy=Message)
cpdef Message copy_message(Message message, str exchange, str routing_key)
