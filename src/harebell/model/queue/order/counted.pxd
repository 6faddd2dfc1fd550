cimport cython
from harebell.base.message cimport Message
from harebell.model.queue.order.contract cimport MessageOrder
from harebell.model.queue.order.fifo cimport FifoOrder

cdef class CountedOrder(MessageOrder):
    cdef FifoOrder _fifo
    cdef object _requeued
    cdef list _sorted

    cpdef list levels(self)
    cpdef int recount(self) except -1
    @cython.locals(before="long long")
    cpdef int keep(self, Message message) except -1
    cpdef long long deliver_direct(self, Message message) except -1
    @cython.locals(fifo=FifoOrder, message=Message, position="long long")
    cpdef Message take(self)
    @cython.locals(message=Message)
    cpdef Message peek(self)
    @cython.locals(position="long long")
    cpdef long long spilled_head(self) except -2
    cpdef int skip_spilled(self) except -1
    cpdef int restore(self, long long position, bint redelivered) except -1
    cpdef int untake(self, long long position, bint redelivered) except -1
    @cython.locals(held=bint)
    cpdef bint hold(self, long long position) except -1
    @cython.locals(first="long long", index=Py_ssize_t)
    cpdef long long next_ready(self, list cursors) except -2
    cpdef bint was_out(self, long long position) except -1
    @cython.locals(out=bint)
    cpdef bint take_out(self, long long position) except -1
    cpdef bint in_ranges(self) except -1
    @cython.locals(count="long long")
    cpdef long long purge(self) except -1
    cpdef int delete(self) except -1
