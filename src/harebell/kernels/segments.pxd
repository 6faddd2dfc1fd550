from harebell.base.message cimport Properties
from harebell.base.work cimport Work

cdef class SegmentSink:
    cpdef int frame(self, int flags, int kind, int track, int channel, bytes payload) except -1
    cpdef int transfer(self, int channel, int flags, str destination, str routing_key,
                       Properties properties, bytes body) except -1

cdef class SegmentScanner:
    cdef SegmentSink _sink
    cdef public Py_ssize_t frame_max
    cdef public bint fast
    cdef public bint stopped
    cdef public bint hold
    cdef public bint cut
    cdef public int pending
    cdef public Work work
    cdef bytes _rest
    cdef bytes _last_raw
    cdef Properties _last_properties
    cdef str _last_key
    cdef int _last_flags
    cdef bytes _last_command
    cdef str _last_destination
    cdef int _last_modes
    cdef int _mode
    cdef int _priority

    cpdef int break_cycle(self) except -1
    cpdef int feed(self, object data) except -1
    cdef Py_ssize_t _scan(self, const unsigned char* data, Py_ssize_t length) except -1
    cdef Py_ssize_t _whole_transfer(self, const unsigned char* data, Py_ssize_t length,
                                    Py_ssize_t size, int channel) except -1
    cdef bint _read_transfer(self, const unsigned char* p, Py_ssize_t n) except -1
    cdef bint _read_header(self, const unsigned char* p, Py_ssize_t n) except -1
    cdef bint _read_delivery(self, const unsigned char* raw, unsigned int packed,
                             Py_ssize_t at, Py_ssize_t end) except -1
