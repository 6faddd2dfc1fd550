from harebell.base.message cimport Message
from harebell.base.ports cimport Log
from harebell.model.queue.order.staged_rows cimport StagedRows

cdef class MessageOrder:
    cdef public Log log
    cdef public long long count
    cdef public long long position
    cdef public bint redelivered
    cdef public int level_bits
    cdef public int heads
    cdef public bint staging

    cpdef int keep(self, Message message) except -1
    cpdef long long deliver_direct(self, Message message) except -1
    cpdef Message take(self)
    cpdef Message peek(self)
    cpdef int restore(self, long long position, bint redelivered) except -1
    cpdef long long next_ready(self, list cursors) except -2
    cpdef bint was_out(self, long long position) except -1
    cpdef bint take_out(self, long long position) except -1
    cpdef bint hold(self, long long position) except -1
    cpdef long long purge(self) except -1
    cpdef int delete(self) except -1
    cpdef list levels(self)
    cpdef int recount(self) except -1
    cpdef StagedRows staged_for(self, Message message)
    cpdef int begin_batch(self) except -1
    cpdef long long commit_batch(self) except -1
    cpdef long long roll_back_batch(self) except -1
    cpdef int untake(self, long long position, bint redelivered) except -1
    cpdef long long spilled_head(self) except -2
    cpdef int load_spilled(self, object done) except -1
    cpdef int skip_spilled(self) except -1
    cpdef Message take_victim(self)
    cpdef Message peek_head(self, int head)
    cpdef Message take_head(self, int head)
    cpdef int pass_by(self, list cursors, long long position) except -1
    cpdef bint acquire(self, long long position, object holder) except -1
    cpdef bint in_ranges(self) except -1
    cpdef long long next_position(self, Message message) except -1
    cpdef Message read(self, long long position)
    cpdef int settle(self, long long position) except -1
    cpdef int settle_range(self, long long first, long long end) except -1
    cpdef bint holds(self, long long position) except -1
    cpdef int delivery_count(self, long long position) except -1
    cpdef int set_delivery_count(self, long long position, int count) except -1
    cpdef int sync_soon(self) except -1
