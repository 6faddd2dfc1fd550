cdef class Clock:
    cdef public long long ms
    cdef public long long steady
