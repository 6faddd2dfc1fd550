cimport cython
from harebell.base.message cimport Message
from harebell.model.queue.order.contract cimport MessageOrder
from harebell.model.queue.order.fifo cimport FifoOrder

cdef int _SHIFT
cdef long long _LEVEL
cdef int _MIDDLE

cdef class PriorityOrder(MessageOrder):
    cdef object _open_level
    cdef list _orders
    cdef int _max_level
    cdef int _top
    cdef int _lowest
    cdef bint _lowest_first
    cdef bint _marks

    @cython.locals(order=FifoOrder)
    cpdef FifoOrder _make(self, int level)
    @cython.locals(level=int)
    cdef int _level_of(self, Message message) except -1
    cdef FifoOrder _order_of(self, long long position)
    @cython.locals(level=int, before="long long", order=FifoOrder)
    cpdef int keep(self, Message message) except -1
    @cython.locals(level=int, order=FifoOrder)
    cpdef long long deliver_direct(self, Message message) except -1
    @cython.locals(level=int, message=Message)
    cpdef Message take(self)
    @cython.locals(level=int, message=Message)
    cpdef Message peek(self)
    @cython.locals(before="long long", order=FifoOrder, message=Message)
    cpdef Message take_head(self, int head)
    @cython.locals(before="long long", order=FifoOrder, message=Message)
    cpdef Message peek_head(self, int head)
    @cython.locals(level=int, order=FifoOrder)
    cdef int _first_level(self) except -2
    @cython.locals(level=int, order=FifoOrder, position="long long")
    cpdef long long spilled_head(self) except -2
    @cython.locals(position="long long")
    cpdef int load_spilled(self, object done) except -1
    @cython.locals(level=int, message=Message)
    cpdef Message take_victim(self)
    @cython.locals(level="long long")
    cpdef int restore(self, long long position, bint redelivered) except -1
    @cython.locals(level=int, order=FifoOrder, position="long long")
    cpdef long long next_ready(self, list cursors) except -2
    cpdef int pass_by(self, list cursors, long long position) except -1
    cpdef Message read(self, long long position)
    cpdef int settle(self, long long position) except -1
    cpdef bint was_out(self, long long position) except -1
    @cython.locals(order=FifoOrder, out=bint)
    cpdef bint take_out(self, long long position) except -1
    @cython.locals(held=bint)
    cpdef bint hold(self, long long position) except -1
    cpdef bint holds(self, long long position) except -1
    cpdef long long next_position(self, Message message) except -1
    cpdef int delivery_count(self, long long position) except -1
    cpdef int set_delivery_count(self, long long position, int count) except -1
    @cython.locals(order=FifoOrder, count="long long")
    cpdef long long purge(self) except -1
    @cython.locals(order=FifoOrder)
    cpdef int delete(self) except -1
    cpdef list levels(self)
    @cython.locals(order=FifoOrder)
    cpdef int recount(self) except -1
    @cython.locals(order=FifoOrder)
    cpdef int sync_soon(self) except -1
