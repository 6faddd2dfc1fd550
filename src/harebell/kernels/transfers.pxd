from harebell.base.message cimport Message
from harebell.kernels.output cimport OutBuffer

cdef class SegmentBuffer(OutBuffer):
    cpdef int segments(self, int kind, int channel, bytes payload, Py_ssize_t frame_max) except -1
    cpdef int assembly(self, int channel, bytes command, bytes header, bytes body,
                       Py_ssize_t frame_max) except -1
    cpdef int transfer(self, int channel, bytes command, bint redelivered, Message message,
                       Py_ssize_t frame_max) except -1
    cdef int _segment(self, int kind, int track, int channel, const unsigned char* payload,
                      Py_ssize_t n, int place, Py_ssize_t frame_max) except -1
