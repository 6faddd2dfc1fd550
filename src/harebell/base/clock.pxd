cdef class Clock:
    cdef public long long ms
