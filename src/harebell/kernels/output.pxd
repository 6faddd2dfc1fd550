from cpython.object cimport PyObject
from harebell.base.arrivals cimport Arrivals
from harebell.base.message cimport Message, Properties

cdef class OutBuffer:
    cdef PyObject* _bytes
    cdef unsigned char* _base
    cdef Py_ssize_t _capacity
    cdef Py_ssize_t _last
    cdef list _parts
    cdef Py_ssize_t _before
    cdef readonly Py_ssize_t size
    cdef public bint postpones

    cdef unsigned char* _room(self, Py_ssize_t more) except NULL
    cdef Py_ssize_t _content_frames(self, int channel, Message message,
                                    Py_ssize_t frame_max, unsigned int kind) except -1
    cpdef int raw(self, bytes data) except -1
    cpdef int frame(self, int kind, int channel, bytes payload) except -1
    cpdef int deliver(self, int channel, bytes consumer_tag, unsigned long long tag,
                      bint redelivered, Message message, Py_ssize_t frame_max) except -1
    cpdef int content(self, int channel, bytes method, Message message,
                      Py_ssize_t frame_max, unsigned int kind=*) except -1
    cpdef int publish(self, int channel, int flags, Message message,
                      Py_ssize_t frame_max) except -1
    cpdef int ack(self, int channel, unsigned long long tag, bint multiple) except -1
    cpdef int postpone(self, object frames) except -1
    cpdef bytes take(self)
    cpdef list take_parts(self)
    cdef bytes _take_buffer(self)

cdef class Passage:
    cdef public long long count
    cdef public long long limit

    cdef int _put(self, Properties properties, const unsigned char* body,
                  Py_ssize_t n) except -1
    cpdef bint put(self, Properties properties, bytes body) except -1
    cpdef int end(self) except -1

cdef class OutputPassage(Passage):
    cdef readonly object consumer
    cdef object _publisher
    cdef readonly OutBuffer out
    cdef readonly Py_ssize_t size_max
    cdef readonly Py_ssize_t output_max
    cdef readonly bint plain
    cdef readonly Arrivals arrivals
    cdef readonly bint answered

    cpdef int open_to(self, object publisher, Arrivals arrivals, bint answered,
                      Py_ssize_t size_max, bint plain) except -1

cdef class DeliveryPassage(OutputPassage):
    cdef bytes _method
    cdef int _channel
    cdef Py_ssize_t _tag_at
    cdef unsigned long long _tag
