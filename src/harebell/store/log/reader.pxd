cimport cython
from harebell.base.message cimport Message
from harebell.kernels.batches cimport BatchBuilder
from harebell.kernels.records cimport parse, append_to, record_size
from harebell.store.log.segment cimport Segment

cdef Py_ssize_t _FIRST
cdef Py_ssize_t _MAX
cdef Py_ssize_t _LARGE

cdef class Block:
    cdef readonly Segment segment
    cdef readonly long long base
    cdef readonly bytes data
    cdef readonly bint large
    cdef Py_ssize_t _ahead

    @cython.locals(index="long long", size=Py_ssize_t)
    cpdef bint has(self, Segment segment, long long offset) except -1
    cpdef bint near(self, Segment segment, long long offset) except -1
    cpdef int load(self, object handles, Segment segment, long long offset) except -1
    cpdef int empty(self) except -1

cdef class Reader:
    cdef object _handles
    cdef unsigned int _seed
    cdef Block _current
    cdef list _blocks

    @cython.locals(flying=bytes, block=Block)
    cpdef Message read(self, Segment segment, long long offset)
    cdef Message _read_large(self, Segment segment, long long offset, Block block)
    @cython.locals(flying=bytes, block=Block, message=Message)
    cpdef bint append_to(self, Segment segment, long long offset, long long position,
                    BatchBuilder into) except -1
    @cython.locals(block=Block)
    cdef Block _block(self, Segment segment, long long offset)
    @cython.locals(block=Block)
    cpdef int forget(self) except -1
    @cython.locals(block=Block)
    cdef Block _find(self, Segment segment, long long offset)
