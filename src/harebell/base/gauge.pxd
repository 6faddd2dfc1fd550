cdef class Gauge:
    cdef readonly long long used
    cdef public long long unread
    cdef public long long uncommitted
    cdef readonly bint over
    cdef readonly long long high
    cdef readonly long long low

    cpdef int add(self, long long octets) except -1
    cpdef int take(self, long long octets) except -1
    cpdef bint exceeded(self) except -1
    cpdef bint crossed(self) except -1
