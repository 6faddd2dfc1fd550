from harebell.kernels.records cimport RecordBuffer

cdef long long _AHEAD

cdef class SettlementBuffer:
    cdef readonly long long handed
    cdef readonly long long mark
    cdef long long _marked
    cdef long long _written
    cdef long long _first
    cdef long long _next
    cdef list _runs
    cdef object _counts

    cpdef int adopt(self, long long seen) except -1
    cpdef int settled(self, long long first, long long end) except -1
    cpdef bint see(self, long long position) except -1
    cpdef long long header_mark(self) except -1
    cpdef int counted(self, long long position, int count) except -1
    cpdef int clear(self) except -1
    cpdef int write_end(self, RecordBuffer buffer, long long end, long long now) except -1
