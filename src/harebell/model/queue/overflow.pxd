cdef class Overflow:
    cdef readonly long long most
    cdef readonly long long most_octets
    cdef readonly bint drops
    cdef readonly bint letters
    cdef readonly bint counts
    cdef public long long octets
    cdef public object counting
    cdef public bint refusing
    cdef public bint promised

    cpdef bint full(self, long long ready, long long octets) except -1
    cpdef bint over(self, long long ready) except -1
    cpdef bint low(self, long long ready) except -1

cpdef long long four_fifths(long long most) except -1
