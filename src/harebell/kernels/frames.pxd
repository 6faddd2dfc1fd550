from harebell.base.message cimport Properties
from harebell.base.work cimport Work
from harebell.kernels.output cimport Passage

# A content in the input: its property list and its body, and the bytes from its method to its end.
cdef struct Content:
    const unsigned char* raw
    Py_ssize_t raw_size
    const unsigned char* body
    Py_ssize_t body_size
    Py_ssize_t size

cdef class FrameSink:
    cpdef int frame(self, int kind, int channel, bytes payload) except -1
    cpdef int publish(self, int channel, int flags, str exchange, str routing_key,
                      Properties properties, bytes body) except -1
    cpdef Passage passage(self, int channel, int flags, str exchange, str routing_key)
    cpdef int ack(self, int channel, unsigned long long tag, bint multiple) except -1
    cpdef int deliver(self, int channel, str consumer_tag, unsigned long long tag,
                      bint redelivered, str exchange, str routing_key, Properties properties,
                      bytes body) except -1

cdef class FrameScanner:
    cdef FrameSink _sink
    cdef public Py_ssize_t frame_max
    cdef public bint fast
    cdef public bint client
    cdef public bint tickets
    cdef public bint stopped
    cdef public bint hold
    cdef public bint cut
    cdef public int pending
    cdef public Work work
    cdef bytearray _rest
    cdef bytearray _held
    cdef bytes _last_method
    cdef str _last_exchange
    cdef str _last_key
    cdef str _last_tag
    cdef bytes _last_tag_raw
    cdef bytes _last_route
    cdef Properties _last_properties
    cdef int _last_flags
    cdef bint _looks
    cdef FrameSink _diverted
    cdef int _diverted_channel
    cdef int _gather_channel
    cdef bytes _gathered
    cdef Py_ssize_t _gathered_bytes
    cdef Py_ssize_t _frame_left

    cpdef int break_cycle(self) except -1
    cpdef int feed(self, object data) except -1
    cpdef bint is_heartbeat(self, object data) except -1
    cdef int _feed(self, object data, bytearray own) except -1
    cdef Py_ssize_t _scan(self, const unsigned char* data, Py_ssize_t length) except -1
    cdef Py_ssize_t _pass_repeats(self, int channel, const unsigned char* like,
                                  const unsigned char* p, Py_ssize_t length) except -1
    cdef int _count(self) except -1
    cdef Py_ssize_t _finish_rest(self, const unsigned char* data, Py_ssize_t length) except -1
    cdef int _keep(self, const unsigned char* data, Py_ssize_t length) except -1
    cdef Py_ssize_t _wanted(self, const unsigned char* p, Py_ssize_t have, bint more) noexcept
    cdef Py_ssize_t _awaited(self, const unsigned char* p, Py_ssize_t have, Py_ssize_t size,
                             bint more) noexcept
    cdef Py_ssize_t _whole_content(self, const unsigned char* data, Py_ssize_t length,
                                   int channel, Py_ssize_t size, bint published) except -1
    cdef bint _find_content(self, const unsigned char* data, Py_ssize_t length, int channel,
                            Py_ssize_t at, Content* found) noexcept
    cdef int _hand_publish(self, int channel, const unsigned char* p, Py_ssize_t n,
                           Properties properties, bytes body) except -1
    cdef int _hand_delivery(self, int channel, const unsigned char* p, Py_ssize_t n,
                            Properties properties, bytes body) except -1
    cdef Properties _properties(self, const unsigned char* p, Py_ssize_t n)
    cpdef int divert(self, int channel, FrameSink sink) except -1
    cpdef int gather(self, int channel, Py_ssize_t size) except -1
    cdef bint _gathers(self, const unsigned char* p, Py_ssize_t size) noexcept
    cdef Py_ssize_t _gather(self, const unsigned char* data, Py_ssize_t length) except -1
    cdef int _let_gathered_go(self) except -1
