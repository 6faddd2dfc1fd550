cimport cython
from harebell.base.message cimport Message
from harebell.model.queue.staging_order cimport StagingOrder
from harebell.model.queue.staging cimport StagingQueue

cdef class ClassicQueue(StagingQueue):
    cdef StagingOrder _order

    cdef StagingOrder _order_for(self, Message message)
    cdef int _keep(self, Message message) except -1
    cdef long long _hand_over(self, Message message) except -1
    @cython.locals(order=StagingOrder, message=Message)
    cdef Message _take(self)
    @cython.locals(message=Message)
    cdef bint _is_far(self) except -1
    cdef int _fetch(self, object done) except -1
    cdef int _skip(self) except -1
    cdef Message _peek(self)
    cdef Message _read(self, long long position)
    cdef int _drop(self, long long position) except -1
    cdef int _put_back(self, long long position) except -1
    cdef long long _look(self, list cursors) except -2
    cdef int _pass(self, list cursors, long long position) except -1
    cdef bint _was_out(self, long long position) except -1
    cdef bint _take_out(self, long long position) except -1
    cdef int _untouched(self, long long position) except -1
    cpdef list _levels(self)
    cpdef int _recount(self) except -1
    cpdef int failures(self, long long position) except -1
    cpdef int set_failures(self, long long position, int count) except -1
    cpdef bint holds(self, long long position) except -1
    cpdef bint hold(self, long long position) except -1
    cdef int _drop_ready(self) except -1
    cdef int _drop_all(self) except -1
    cpdef int sync_soon(self) except -1
