cimport cython
from harebell.base.message cimport Message
from harebell.base.ports cimport Log
from harebell.kernels.rows cimport Rows
from harebell.model.queue.order.contract cimport MessageOrder

cdef class FifoOrder(MessageOrder):
    cdef readonly long long damaged
    cdef readonly long long hidden
    cdef bint _marks
    cdef long long _cursor
    cdef long long _old
    cdef long long _seen
    cdef list _returned
    cdef set _held
    cdef object _leased
    cdef set _fresh
    cdef bint _sorted
    cdef long long _barrier
    cdef list _rows
    cdef long long _rows_first
    cdef long long _rows_end

    cpdef long long end(self) except -1
    cpdef int keep(self, Message message) except -1
    @cython.locals(position="long long")
    cpdef long long hand_over(self, Message message) except -1
    @cython.locals(position="long long", message=Message)
    cpdef Message take(self)
    @cython.locals(position="long long")
    cpdef long long far(self) except -2
    cpdef int skip(self) except -1
    @cython.locals(position="long long")
    cdef long long _next(self) except -2
    @cython.locals(position="long long")
    cpdef long long first_ready(self) except -2
    @cython.locals(position="long long", message=Message)
    cpdef Message peek(self)
    @cython.locals(begin="long long", held=set)
    cdef long long _next_old(self, long long position) except -1
    cdef long long _skip(self, long long position) except -1
    @cython.locals(found="long long", at=Py_ssize_t, end="long long")
    cpdef long long look(self, long long position) except -2
    @cython.locals(at=Py_ssize_t)
    cpdef bint take_out(self, long long position) except -1
    cpdef bint was_out(self, long long position) except -1
    cpdef int mark(self, object into) except -1
    cpdef int mark_claimed(self, object into, long long seen) except -1
    cpdef int saw(self, long long end) except -1
    cpdef long long seen(self) except -1
    cpdef int untouched(self, long long position) except -1
    @cython.locals(fresh=set)
    cdef bint _touched(self, long long position) except -1
    cdef int _sort(self) except -1
    cpdef bint hold(self, long long position) except -1
    @cython.locals(end="long long")
    cdef int _pass_over(self, long long position) except -1
    cpdef long long next_ready(self, list cursors) except -2
    cpdef list levels(self)
    cpdef int recount(self) except -1
    cpdef int begin_batch(self) except -1
    @cython.locals(position="long long")
    cpdef int stage(self, Message message) except -1
    @cython.locals(position="long long")
    cpdef int stage_rows(
        self, Rows rows, Py_ssize_t first, Py_ssize_t end, Message like
    ) except -1
    cdef int _end_range(self) except -1
    @cython.locals(at="Py_ssize_t")
    cpdef bint has_row(self, long long position) except -1
    @cython.locals(count="long long")
    cpdef long long commit_batch(self) except -1
    cpdef long long roll_back_batch(self) except -1
    cpdef int put_back(self, long long position) except -1
    @cython.locals(count="long long", end="long long", begin="long long")
    cpdef long long purge(self) except -1
    cpdef int relax(self) except -1
    cpdef list _out(self)
    cpdef list claim(self, long long messages, long long byte_count, long long limit)
    @cython.locals(reached="long long", count="long long", size="long long")
    cdef tuple _lease(
        self, long long first, long long end, long long messages, long long byte_count, list found
    )
    cpdef int lease(self, long long first, long long end) except -1
    cpdef long long withhold(self, long long first, long long end) except -1
    cpdef int settle_leased(self, list runs) except -1
    cpdef int end_lease(self, long long first, long long end) except -1
    @cython.locals(position="long long")
    cpdef int end_lease_out(self, long long first, long long end) except -1
    cpdef long long release(self, list runs) except -1
    cpdef int delete(self) except -1
