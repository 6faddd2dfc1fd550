cimport cython
from harebell.base.message cimport Message
from harebell.kernels.records cimport parse, record_octets
from harebell.store.segment cimport Segment

cdef Py_ssize_t _FIRST
cdef Py_ssize_t _MOST

cdef class BlockReader:
    cdef object _handles
    cdef unsigned int _seed
    cdef Segment _segment
    cdef long long _base
    cdef bytes _block
    cdef Py_ssize_t _ahead

    @cython.locals(flying=bytes, at="long long")
    cpdef Message read(self, Segment segment, long long offset)
    cpdef int forget(self) except -1
    cdef bint _holds(self, Py_ssize_t at) except -1
    cdef int _load(self, Segment segment, long long offset) except -1
