cdef class Arrivals:
    cdef public long long routed
    cdef public long long wanting_confirm
    cdef public long long byte_count
    cdef public long long to_100
    cdef public long long to_1k
    cdef public long long to_10k
    cdef public long long to_100k
    cdef public long long to_1m
    cdef public long long to_10m
    cdef public long long to_50m
    cdef public long long to_100m
    cdef public long long above

    cpdef int count(self, Py_ssize_t size, Py_ssize_t queues, bint confirms) except -1
