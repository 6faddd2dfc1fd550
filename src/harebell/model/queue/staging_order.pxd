cimport cython
from harebell.base.message cimport Message
from harebell.model.queue.ready cimport ReadyOrder

cdef class StagingOrder(ReadyOrder):
    cdef long long _barrier
    cdef readonly long long hidden
    cdef list _runs
    cdef long long _first
    cdef long long _last

    cpdef long long end(self) except -1
    cpdef int keep(self, Message message) except -1
    cpdef int begin_batch(self) except -1
    @cython.locals(position="long long")
    cpdef int stage(self, Message message) except -1
    cdef int _cut(self) except -1
    @cython.locals(at="Py_ssize_t")
    cpdef bint has_row(self, long long position) except -1
    @cython.locals(behind="long long")
    cpdef long long commit_batch(self) except -1
    cpdef long long roll_back_batch(self) except -1
