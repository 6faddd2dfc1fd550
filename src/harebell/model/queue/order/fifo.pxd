cimport cython
from harebell.base.message cimport Message
from harebell.base.ports cimport Log
from harebell.model.queue.order.contract cimport MessageOrder
from harebell.model.queue.order.leased_ranges cimport LeasedRanges, RangeClaim
from harebell.model.queue.order.staged_rows cimport StagedRows

cdef class FifoOrder(MessageOrder):
    cdef readonly long long damaged
    cdef readonly StagedRows staged
    cdef bint _marks
    cdef long long _cursor
    cdef long long _old
    cdef long long _seen
    cdef list _requeued
    cdef set _held
    cdef LeasedRanges _leases
    cdef set _fresh
    cdef bint _sorted

    cpdef long long end(self) except -1
    cpdef int keep(self, Message message) except -1
    @cython.locals(position="long long")
    cpdef long long deliver_direct(self, Message message) except -1
    @cython.locals(position="long long", message=Message)
    cpdef Message take(self)
    @cython.locals(position="long long")
    cpdef long long spilled_head(self) except -2
    cpdef int skip_spilled(self) except -1
    @cython.locals(position="long long")
    cdef long long _next(self) except -2
    @cython.locals(position="long long")
    cpdef long long first_ready(self) except -2
    @cython.locals(position="long long", message=Message)
    cpdef Message peek(self)
    @cython.locals(begin="long long", held=set)
    cdef long long _next_old(self, long long position) except -1
    cdef long long _next_free(self, long long position) except -1
    @cython.locals(first="long long", index=Py_ssize_t, end="long long")
    cpdef long long first_ready_from(self, long long position) except -2
    @cython.locals(index=Py_ssize_t)
    cpdef bint take_out(self, long long position) except -1
    cpdef bint was_out(self, long long position) except -1
    cpdef int mark(self, object into) except -1
    cpdef int mark_claimed(self, object into, long long seen) except -1
    cpdef int saw(self, long long end) except -1
    cpdef long long seen(self) except -1
    @cython.locals(fresh=set)
    cdef bint _take_redelivered(self, long long position) except -1
    cdef int _sort(self) except -1
    cpdef bint hold(self, long long position) except -1
    @cython.locals(end="long long")
    cdef int _pass_over(self, long long position) except -1
    cpdef long long next_ready(self, list cursors) except -2
    cpdef list levels(self)
    cpdef int recount(self) except -1
    cpdef int begin_batch(self) except -1
    cpdef bint has_row(self, long long position) except -1
    @cython.locals(count="long long")
    cpdef long long commit_batch(self) except -1
    cpdef long long roll_back_batch(self) except -1
    cpdef int restore(self, long long position, bint redelivered) except -1
    @cython.locals(count="long long", end="long long", begin="long long")
    cpdef long long purge(self) except -1
    cpdef int relax(self) except -1
    cpdef list _out(self)
    cpdef LeasedRanges leases(self)
    @cython.locals(
        claim=RangeClaim,
        position="long long",
        index=Py_ssize_t,
        end="long long",
        count="long long",
        first="long long",
    )
    cpdef list claim(self, long long messages, long long byte_count, long long ranges)
    cpdef long long withhold(self, long long first, long long end) except -1
    @cython.locals(position="long long")
    cpdef int end_lease_out(self, long long first, long long end) except -1
    @cython.locals(count="long long", mine=LeasedRanges)
    cpdef long long release(self, list runs) except -1
    @cython.locals(current="long long", behind="long long")
    cdef int _go_back(
        self, long long position, long long before, LeasedRanges mine
    ) except -1
    cpdef int delete(self) except -1
