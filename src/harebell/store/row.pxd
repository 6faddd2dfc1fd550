cimport cython
from harebell.base.ports cimport Log
from harebell.kernels.positions cimport Positions
from harebell.store.segment cimport Segment

cdef class Row(Log):
    cdef public list segments
    cdef Segment _near
    cdef long long _end
    cdef long long _live

    @cython.locals(segment=Segment, found="long long")
    cpdef long long next(self, long long position) except -1
    cpdef long long first(self) except -1
    cpdef long long end(self) except -1
    cpdef long long live(self) except -1
    @cython.locals(
        segment=Segment,
        reached="long long",
        count="long long",
        total="long long",
        left="long long",
        there="long long",
        more="long long",
        size="long long",
    )
    cpdef tuple reach(
        self, long long position, long long end, long long messages, long long octets
    )
    cpdef long long octets(self) except -1
    @cython.locals(near=Segment, found=Segment, index="long long", at=Py_ssize_t)
    cdef Segment _find(self, long long position)
    cdef Py_ssize_t _index(self, long long position) except -1
