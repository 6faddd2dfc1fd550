cimport cython

cdef class Incoming:
    cdef readonly long long count
    cdef readonly long long octets
    cdef readonly long long last

    cpdef int add(self, long long octets) except -1

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
    @cython.locals(count="long long", octets="long long")
    cpdef bint has_room(self, long long ready, Incoming incoming, bint one_more) except -1
    cpdef bint over(self, long long ready) except -1
    cpdef bint low(self, long long ready) except -1

cpdef long long four_fifths(long long most) except -1
