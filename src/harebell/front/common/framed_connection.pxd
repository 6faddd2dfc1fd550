cimport cython
from harebell.front.common.base_connection cimport BaseConnection
from harebell.front.common.turns cimport Turns

cdef class FramedConnection(BaseConnection):
    cdef public object scanner
    cdef public bint deferred
    cdef public bint departed
    cdef public object tasks

    @cython.locals(turns=Turns, byte_count=Py_ssize_t)
    cpdef object receive(self, object data, double now)
    cpdef int _take(self, object data) except -1
    cpdef int _put_off(self) except -1
