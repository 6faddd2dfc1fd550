cimport cython
from harebell.base.gauge cimport Gauge
from harebell.base.message cimport Message
from harebell.base.ports cimport Log
from harebell.base.sequence cimport Sequence

cdef class MemoryLog(Log):
    cdef Gauge _gauge
    cdef Sequence _records
    cdef dict _counts

    cpdef long long append(self, Message message) except -1
    cpdef Message read(self, long long position)
    @cython.locals(record=Message)
    cpdef int settle(self, long long position) except -1
    cpdef int settle_range(self, long long first, long long end) except -1
    @cython.locals(end="long long")
    cpdef long long next(self, long long position) except -1
    cpdef long long live(self) except -1
    @cython.locals(message=Message)
    cpdef tuple reach(
        self, long long position, long long end, long long messages, long long byte_count
    )
    cpdef long long byte_count(self) except -1
    cpdef int see(self, long long position) except -1
    cpdef long long seen(self) except -1
    cpdef int count(self, long long position) except -1
    cpdef list counted(self)
    cpdef int set_count(self, long long position, int count) except -1
    cpdef long long time_of(self, long long position) except -1
    cpdef long long at_time(self, long long moment) except -1
    cpdef long long retain(
        self, long long byte_count, long long moment, long long below=*
    ) except -1
    cpdef int cut_at(self, long long byte_count) except -1
    cpdef int sync_soon(self) except -1
    cpdef long long first(self) except -1
    cpdef long long end(self) except -1
    cpdef int delete(self) except -1
