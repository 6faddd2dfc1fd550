cimport cython

cdef long long _CHECK_UNITS
cdef long long _FRAME_UNITS

cdef double _UNITS_PER_SECOND

cdef class Work:
    cdef object _clock
    cdef double _since
    cdef long long _begun
    cdef long long _stop_at
    cdef public long long spent
    cdef public long long check_at
    cdef public object ahead
    cdef public object later

    cpdef int begin(self, long long units) except -1
    cpdef long long end(self) except -1
    cpdef bint charge(self, long long units) except -1
    cpdef bint frame(self) except -1
    cpdef bint check(self) except -1
    @cython.locals(passed=double)
    cdef int _correct(self) except -1
