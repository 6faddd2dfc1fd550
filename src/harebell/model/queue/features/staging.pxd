from harebell.base.message cimport Message

cdef class OpenBatch:
    cdef readonly long long count
    cdef readonly long long byte_count
    cdef readonly bint expires

    cpdef int add(self, Message message) except -1
    cpdef int add_rows(self, long long count, long long byte_count) except -1
