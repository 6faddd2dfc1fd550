from harebell.base.message cimport Message, Properties
from harebell.kernels.output cimport OutBuffer, OutputPassage

cdef class TransferBuffer(OutBuffer):
    # What the last delivery had before its body, and what that was made of.
    cdef bytes _sections
    cdef bytes _raw
    cdef str _exchange
    cdef str _key
    cdef int _mode
    cdef int _priority
    cdef bint _first
    cdef unsigned int _count
    cpdef int performative(self, int channel, bytes body) except -1
    cpdef Py_ssize_t transfer(self, int channel, unsigned int handle, unsigned int delivery_id,
                              bytes tag, bint settled, bint first_acquirer,
                              unsigned int delivery_count, long long ttl, Message message,
                              Py_ssize_t frame_max, Py_ssize_t window) except -1
    cpdef int disposition(self, int channel, bint role, unsigned int first, unsigned int last,
                          bint settled, bytes state) except -1
    cpdef int flow(self, int channel, long long next_incoming_id, long long incoming_window,
                   long long next_outgoing_id, long long outgoing_window, long long handle,
                   long long delivery_count, long long link_credit, long long available,
                   bint drain, bint echo) except -1
    cdef int _in_frames(self, int channel, unsigned int handle, const unsigned char* head,
                        Py_ssize_t n_head, const unsigned char* before, Py_ssize_t n_before,
                        const unsigned char* body, Py_ssize_t n_body, Py_ssize_t frame_max,
                        bint later) except -1
    cdef int _single(self, int channel, unsigned int handle, unsigned int delivery_id, bytes tag,
                     bint settled, bint first_acquirer, unsigned int delivery_count,
                     long long ttl, Message message, const unsigned char* body,
                     Py_ssize_t n_body, Py_ssize_t frame_max) except -1
    cdef bint _is_remembered(self, Message message, bint first_acquirer,
                             unsigned int delivery_count, long long ttl) noexcept
    cdef Py_ssize_t _put_sections(self, unsigned char* p, Message message, bint first_acquirer,
                                  unsigned int delivery_count, long long ttl) except -1

cdef class TransferPassage(OutputPassage):
    cdef TransferBuffer _frames
    cdef int _channel
    cdef unsigned int _handle
    cdef long long _number
    cdef str _exchange
    cdef str _routing_key
    cdef Py_ssize_t _frame_max
    # What the last message had before its body, with an empty one.
    cdef Properties _properties
    cdef Message _like
