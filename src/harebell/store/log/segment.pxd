from harebell.kernels.settled_bitmap cimport SettledBitmap
from harebell.kernels.records cimport RecordBuffer

cdef class Segment:
    cdef readonly str path
    cdef readonly long long first
    cdef readonly SettledBitmap positions
    cdef readonly RecordBuffer buffer
    cdef public bytes flying
    cdef public long long flying_at
    cdef public object large
    cdef public object recall
    cdef public object recalled
    cdef public bint fetchable
    cdef public bint fresh
    cdef public long long held
    cdef public bint made
    cdef public list messages
    cdef public long long limit
    cdef public object targets
    cdef public long long newest
    cdef public bint exact
    cdef public bint indexed
    cdef public long long ahead
    cdef public bint stretching
    cdef public object reader
    cdef public object writer

    cpdef long long end(self) except -1
