from harebell.base.message cimport Message

cdef class Log:
    cpdef long long append(self, Message message) except -1
    cpdef Message read(self, long long position)
    cpdef int settle(self, long long position) except -1
    cpdef long long first(self) except -1
    cpdef long long end(self) except -1
    cpdef int delete(self) except -1
