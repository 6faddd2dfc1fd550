from harebell.base.message cimport Properties
from harebell.base.work cimport Work
from harebell.kernels.output cimport Passage

cdef enum:
    ALIKE_BYTES = 64

# The last transfer that a following one may be like; its size is 0 if there is none.
cdef struct Alike:
    unsigned char data[ALIKE_BYTES]
    int size
    int id_at                   # where the constructor of the delivery-id is
    int tag_at                  # where that of the tag is
    int flags
    int channel
    long long handle
    long long message_format

cdef class PerformativeSink:
    cpdef int frame(self, int channel, int kind, bytes body) except -1
    cpdef int transfer(self, int channel, long long handle, long long delivery_id, bytes tag,
                       long long message_format, int flags, Properties properties,
                       bytes body) except -1
    cpdef Passage passage(self, int channel, long long handle, int flags)
    cpdef int partial(self, int channel, long long handle, long long delivery_id, bytes tag,
                      long long message_format, int flags, bytes state, bytes payload) except -1
    cpdef int disposition(self, int channel, bint role, long long first, long long last,
                          bint settled, int outcome, bytes state) except -1
    cpdef int flow(self, int channel, long long next_incoming_id, long long incoming_window,
                   long long next_outgoing_id, long long outgoing_window, long long handle,
                   long long delivery_count, long long link_credit, long long available,
                   int flags) except -1

cdef class PerformativeScanner:
    cdef PerformativeSink _sink
    cdef public Py_ssize_t frame_max
    cdef public bint fast
    cdef public bint stopped
    cdef public bint hold
    cdef public bint cut
    cdef public int pending
    cdef public Work work
    cdef bytearray _rest
    cdef Alike _alike
    cdef Properties _last_properties
    cdef bint _looks            # for transfers that repeat each other

    cpdef int break_cycle(self) except -1
    cpdef int feed(self, object data) except -1
    cdef int _feed(self, object data, bytearray own) except -1
    cdef Py_ssize_t _wanted(self, bytearray rest) except -1
    cdef int _keep(self, const unsigned char* data, Py_ssize_t n) except -1
    cdef Py_ssize_t _finish_rest(self, const unsigned char* data, Py_ssize_t length) except -1
    cdef Py_ssize_t _scan(self, const unsigned char* data, Py_ssize_t length) except -1
    cdef Py_ssize_t _pass_repeats(self, const unsigned char* data, Py_ssize_t length) except -1
    cdef int _count(self) except -1
    cdef bint _by_field(self, int channel, const unsigned char* body, Py_ssize_t n) except -1
    cdef bint _transfer(self, int channel, const unsigned char* body, Py_ssize_t n) except -1
    cdef int _remember(self, int channel, const unsigned char* body, Py_ssize_t n, int id_at,
                       long long handle, long long message_format, int flags) except -1
    cdef bint _is_alike(self, const unsigned char* body, Py_ssize_t n) noexcept
    cdef bint _transfer_alike(self, int channel, const unsigned char* body,
                              Py_ssize_t n) except -1
    cdef bint _whole(self, int channel, long long handle, long long delivery_id, bytes tag,
                     long long message_format, int flags, const unsigned char* payload,
                     Py_ssize_t n) except -1
    cdef Properties _sections(self, const unsigned char* payload, Py_ssize_t n,
                              Py_ssize_t* content)
    cdef bint _disposition(self, int channel, const unsigned char* body, Py_ssize_t n) except -1
    cdef bint _flow(self, int channel, const unsigned char* body, Py_ssize_t n) except -1
