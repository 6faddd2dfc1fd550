cimport cython
from harebell.base.message cimport Message
from harebell.model.queue.staging_order cimport StagingOrder
from harebell.model.queue.staging cimport StagingQueue

cdef int _SHIFT
cdef long long _LEVEL
cdef int _EXPIRED_PER_TURN
cdef int _MIDDLE

cdef class PriorityQueue(StagingQueue):
    cdef object _open_level
    cdef list _orders
    cdef int _most
    cdef int _top
    cdef int _lowest
    cdef bint _lowest_first

    @cython.locals(order=StagingOrder)
    cpdef StagingOrder _make(self, int level)
    @cython.locals(level=int)
    cdef int _level_of(self, Message message) except -1
    @cython.locals(level=int, order=StagingOrder)
    cdef StagingOrder _order_for(self, Message message)
    @cython.locals(level=int, order=StagingOrder)
    cdef int _keep(self, Message message) except -1
    @cython.locals(level=int, order=StagingOrder)
    cdef long long _hand_over(self, Message message) except -1
    @cython.locals(level=int, before="long long", order=StagingOrder, message=Message)
    cdef Message _take(self)
    @cython.locals(level=int, before="long long", order=StagingOrder, message=Message)
    cdef bint _is_far(self) except -1
    cdef int _fetch(self, object done) except -1
    cdef bint _may_skip(self) except -1
    @cython.locals(level=int, order=StagingOrder)
    cdef StagingOrder _first_order(self)
    cdef Message _victim(self)
    @cython.locals(level=int, order=StagingOrder, earliest="long long", due="long long")
    cdef long long _expire_heads(self, long long now) except -1
    @cython.locals(before="long long", message=Message)
    cdef long long _expire_level(self, int level, StagingOrder order, long long now) except -1
    @cython.locals(before="long long", message=Message)
    cdef Message _peek_at(self, StagingOrder order)
    @cython.locals(level=int, order=StagingOrder, message=Message)
    cdef Message _peek(self)
    @cython.locals(order=StagingOrder)
    cdef StagingOrder _order_of(self, long long position)
    cdef Message _read(self, long long position)
    cdef int _drop(self, long long position) except -1
    @cython.locals(level=int)
    cdef int _put_back(self, long long position) except -1
    @cython.locals(level=int, order=StagingOrder, position="long long")
    cdef long long _look(self, list cursors) except -2
    cdef int _pass(self, list cursors, long long position) except -1
    cdef bint _was_out(self, long long position) except -1
    @cython.locals(order=StagingOrder, out=bint)
    cdef bint _take_out(self, long long position) except -1
    cdef int _untouched(self, long long position) except -1
    cpdef list _levels(self)
    @cython.locals(order=StagingOrder)
    cpdef int _recount(self) except -1
    cpdef tuple _place(self, long long position)
    @cython.locals(order=StagingOrder)
    cpdef int failures(self, long long position) except -1
    cpdef int set_failures(self, long long position, int count) except -1
    cpdef bint holds(self, long long position) except -1
    cpdef bint hold(self, long long position) except -1
    cdef int _drop_ready(self) except -1
    @cython.locals(order=StagingOrder)
    cdef int _drop_all(self) except -1
    @cython.locals(order=StagingOrder)
    cpdef int sync_soon(self) except -1
