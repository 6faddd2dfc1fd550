cimport cython
from harebell.base.gauge cimport Gauge
from harebell.base.message cimport Message
from harebell.base.ports cimport Log
from harebell.base.sequence cimport Sequence

cdef class MemoryLog(Log):
    cdef Gauge _gauge
    cdef Sequence _records

    cpdef long long append(self, Message message) except -1
    cpdef Message read(self, long long position)
    @cython.locals(record=Message)
    cpdef int settle(self, long long position) except -1
    cpdef long long first(self) except -1
    cpdef long long end(self) except -1
    cpdef int delete(self) except -1
