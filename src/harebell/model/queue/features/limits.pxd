cimport cython

cdef class Incoming:
    cdef readonly long long count
    cdef readonly long long byte_count
    cdef readonly long long last

    cpdef int add(self, long long byte_count) except -1
    cpdef int add_rows(self, long long count, long long byte_count, long long last) except -1

cdef class Limits:
    cdef readonly long long max_length
    cdef readonly long long max_bytes
    cdef readonly bint drops
    cdef readonly bint letters
    cdef readonly bint counts
    cdef readonly bint takes_one_more
    cdef public long long byte_count
    cdef public object counting
    cdef public object turn
    cdef public bint refusing
    cdef public bint reserved

    cpdef bint refuses(self, long long ready, long long byte_count) except -1
    cpdef bint full(self, long long ready, long long byte_count) except -1
    @cython.locals(count="long long", byte_count="long long")
    cpdef bint has_room(self, long long ready, Incoming incoming) except -1
    cpdef bint over(self, long long ready) except -1
    cpdef bint low(self, long long ready) except -1
    cpdef int clear(self) except -1

cpdef long long four_fifths(long long limit) except -1
